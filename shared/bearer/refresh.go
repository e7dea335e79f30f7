package bearer

import (
	"context"
	"crypto/rsa"
	"time"
)

const (
	maxMissing  = 1024             // key ids remembered as unknown
	missingLife = 30 * time.Second // how long they are
	maxWaiters  = 64               // requests that wait for one fetch; others are answered from what is there
)

// refresh fetches the set because of an unknown id, or waits for the fetch that is under way. It does not fail: what
// counts is the set that is there afterwards.
func (k *JWKS) refresh(ctx context.Context, kid string) {
	select {
	case k.waiters <- struct{}{}:
		defer func() { <-k.waiters }()
	default:
		return
	}
	done, first := k.begin(kid)
	if first {
		// Others wait for this fetch, so the leaving of the one whose request caused it must not end it.
		if k.fetch(context.WithoutCancel(ctx), done) == nil {
			k.noteMissing(kid)
		}
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// alreadyDone is what begin returns where nothing is to be waited for.
var alreadyDone = func() chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}()

// begin joins the fetch under way, or starts one that the caller then has to carry out. Neither happens for an id that is
// known to be missing, or within MinRefresh of the last fetch. An empty id stands for a fetch that is due.
func (k *JWKS) begin(kid string) (done chan struct{}, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	switch since, missing := k.missing[kid]; {
	case k.fetching != nil:
		return k.fetching, false
	case missing && now.Sub(since) < missingLife, kid != "" && now.Sub(k.tried) < k.MinRefresh:
		return alreadyDone, false
	}
	k.fetching, k.tried = make(chan struct{}), now
	return k.fetching, true
}

// noteMissing notes an id that a set fetched on its behalf does not have, so that it causes no further fetch for a while.
// The notes are thrown away when they become too many and when another set comes.
func (k *JWKS) noteMissing(kid string) {
	if _, err := k.lookup(kid); err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.missing) >= maxMissing {
		clear(k.missing)
	}
	k.missing[kid] = k.Now()
}

// fetch carries out the fetch that begin started.
func (k *JWKS) fetch(ctx context.Context, done chan struct{}) error {
	defer func() {
		k.mu.Lock()
		k.fetching = nil
		k.mu.Unlock()
		close(done)
	}()
	body, maxAge, err := k.source.get(ctx, k.URL)
	var keys map[string]*rsa.PublicKey
	if err == nil {
		keys, err = parseKeys(body, k.Log)
	}
	if err != nil {
		k.fetches.WithLabelValues(k.URL, "failed").Inc()
		k.Log.Warn("keys not fetched", "url", k.URL, "error", err, "state", k.state())
		return err
	}
	k.fetches.WithLabelValues(k.URL, "ok").Inc()
	k.store(keys, maxAge)
	return nil
}
