package bearer

import (
	"context"
	"time"
)

const (
	minRefresh  = time.Second      // from any fetch to the next that a request causes
	maxMissing  = 1024             // keys remembered as unknown
	missingLife = 30 * time.Second // how long a key is remembered as unknown
	maxWaiters  = 64               // requests that wait for one fetch; others are answered from the current set, or 503
)

// refresh fetches a set that lacks a key, is too old or was never there, or waits for the fetch that is under way. It reports
// no error: the caller looks into the current set afterwards.
func (k *JWKS) refresh(ctx context.Context, name keyName) {
	select {
	case k.waiters <- struct{}{}:
		defer func() { <-k.waiters }()
	default:
		return
	}
	switch done, first := k.begin(name); {
	case first:
		// Other requests wait for this fetch, so it goes on when the client of this request leaves.
		if k.fetch(context.WithoutCancel(ctx), done) == nil {
			k.noteMissing(name)
		}
	case done != nil:
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// begin returns the channel of the fetch under way. If there is none, it starts one, and the caller must call fetch (first
// is true). It starts none and returns nil for a key that is known to be missing, and for every key within minRefresh of the last
// fetch. The zero name stands for a background fetch, which is not limited.
func (k *JWKS) begin(name keyName) (done chan struct{}, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	switch since, missing := k.missing[name]; {
	case k.fetching != nil:
		return k.fetching, false
	case missing && now.Sub(since) < missingLife, name != keyName{} && now.Sub(k.tried) < minRefresh:
		return nil, false
	}
	k.fetching, k.tried = make(chan struct{}), now
	return k.fetching, true
}

// noteMissing remembers a key that was not in the set that was fetched for it, so that it causes no fetch for missingLife. All
// such keys are forgotten when there are too many, and when the set changes.
func (k *JWKS) noteMissing(name keyName) {
	if _, err := k.lookup(name); err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.missing) >= maxMissing {
		clear(k.missing)
	}
	k.missing[name] = k.Now()
}

// fetch does the fetch that begin started, and ends the waiting of others for it.
func (k *JWKS) fetch(ctx context.Context, done chan struct{}) error {
	defer func() {
		k.mu.Lock()
		k.fetching = nil
		k.mu.Unlock()
		close(done)
	}()
	body, maxAge, err := get(ctx, k.client, k.URL)
	var keys keysByID
	if err == nil {
		keys, err = parseKeys(body, k.Algorithms, k.Log)
	}
	if err != nil {
		k.count("failed")
		k.Log.Warn("keys not fetched", "url", k.URL, "error", err, "state", k.state())
		return err
	}
	k.store(keys, body, maxAge)
	k.count("ok")
	return nil
}
