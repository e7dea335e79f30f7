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

// snapshot is what holds between two changes of state. It never changes; a new one takes its place.
type snapshot struct {
	signing   *key
	published []*key
	set       Set
}

// Set is the published key set (RFC 7517 section 5), ready to be sent.
type Set struct {
	Body   []byte
	ETag   string
	MaxAge time.Duration // for which it may be remembered
}

// Published returns the key set of this moment.
func (r *Keyring) Published() Set { return r.current.Load().set }

// timeline applies the rule of the package comment: which key signs at now, and which are published. Keys that are
// only public are always published.
func timeline(keys []*key, now time.Time, tail time.Duration) (signing *key, published []*key) {
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
	turn := 0 // the earliest signs even before its time: better than no tokens at all
	for i, k := range private {
		if !k.from.After(now) {
			turn = i
		}
	}
	for i, k := range private {
		if i < turn && !now.Before(private[i+1].from.Add(tail)) {
			continue // gone
		}
		published = append(published, k)
	}
	return private[turn], published
}

// advance brings the snapshot up to the clock. Keys that are gone are forgotten.
func (r *Keyring) advance() error {
	signing, published := timeline(r.keys, r.c.Now(), r.tail())
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
func (r *Keyring) scheduled() (from time.Time, due bool) {
	if r.c.Rotation <= 0 {
		return time.Time{}, false
	}
	now := r.c.Now()
	from = r.keys[len(r.keys)-1].from.Add(r.c.Rotation)
	if now.Before(from.Add(-r.lead())) {
		return time.Time{}, false
	}
	if earliest := now.Add(r.lead()); from.Before(earliest) {
		from = earliest // the process was stopped or the clock jumped
	}
	return from, true
}
