package keyring

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"
)

// snapshot has the states of the keys between two changes. It is immutable; a change replaces it.
type snapshot struct {
	signing   *key
	published []*key
	set       Set
}

// Set is the published key set (RFC 7517 section 5), ready to be sent.
type Set struct {
	Body   []byte
	ETag   string
	MaxAge time.Duration // for which it may be cached
}

// Published returns the current key set.
func (r *Keyring) Published() Set { return r.current.Load().set }

// schedule returns the key that signs at the time now, and the keys that are published then, by the rules of the
// package comment. Keys without a private half are always published.
func schedule(keys []*key, now time.Time, tail time.Duration) (signing *key, published []*key) {
	var private []*key
	for _, k := range keys {
		if k.private == nil {
			published = append(published, k)
		} else {
			private = append(private, k)
		}
	}
	if len(private) == 0 {
		return nil, published
	}
	slices.SortStableFunc(private, func(a, b *key) int { return a.from.Compare(b.from) })
	current := 0 // the earliest key signs even before its time, because otherwise there would be no tokens
	for i, k := range private {
		if !k.from.After(now) {
			current = i
		}
	}
	for i, k := range private {
		if i < current && !now.Before(private[i+1].from.Add(tail)) {
			continue // gone
		}
		published = append(published, k)
	}
	return private[current], published
}

// advance updates the snapshot by the clock, and forgets keys that are gone.
func (r *Keyring) advance() error {
	signing, published := schedule(r.keys, r.c.Now(), r.tail())
	r.keys = published
	old := r.current.Load()
	if old != nil && old.signing.id == signing.id && slices.EqualFunc(old.published, published, func(a, b *key) bool { return a.id == b.id }) {
		return nil
	}
	set, err := encodeSet(published, r.c.MaxAge)
	if err != nil {
		return err
	}
	r.current.Store(&snapshot{signing: signing, published: published, set: set})
	r.c.Log.Info("signing keys", "signing", signing.id, "published", len(published))
	return nil
}

func encodeSet(published []*key, maxAge time.Duration) (Set, error) {
	ordered := slices.SortedFunc(slices.Values(published), func(a, b *key) int { return cmp.Compare(a.id, b.id) })
	keys := jwk.NewSet()
	for _, k := range ordered {
		if err := keys.AddKey(k.public); err != nil {
			return Set{}, fmt.Errorf("publish key %s: %w", k.id, err)
		}
	}
	body, err := json.Marshal(keys)
	if err != nil {
		return Set{}, fmt.Errorf("encode key set: %w", err)
	}
	sum := sha256.Sum256(body)
	return Set{Body: body, ETag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, MaxAge: maxAge}, nil
}

// scheduled returns the time at which the next key made in memory begins to sign, and whether it has to be made now.
// The first one signs at once.
func (r *Keyring) scheduled() (from time.Time, due bool) {
	now := r.c.Now()
	switch {
	case len(r.keys) == 0:
		return now, true
	case r.c.Rotation <= 0:
		return time.Time{}, false
	}
	from = r.keys[len(r.keys)-1].from.Add(r.c.Rotation)
	if now.Before(from.Add(-r.c.lead())) {
		return time.Time{}, false
	}
	if earliest := now.Add(r.c.lead()); from.Before(earliest) {
		from = earliest // the process was stopped or the clock jumped
	}
	return from, true
}
