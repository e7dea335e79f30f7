package clientkey

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"math/big"
	"sync"
	"sync/atomic"

	"tidings.example/shared/bearer"
)

// Kinds knows the largest RSA key that was seen, of clients and of trusted issuers. Stand-ins are not larger, so that
// forged signatures cost more work than those of 2048 bits only where there are such keys: 4096 bits take 18 times as
// long. The zero value is ready for use.
type Kinds struct{ largest atomic.Int64 } // size of the signature in bytes

// Set is the keys of a client as a [bearer.KeySet]. An unknown client has an empty one. A failed verification costs the
// same work for every set, so that its time does not show which clients are registered, with how many keys, and of what
// kind: the work depends on the assertion only.
type Set struct {
	keys  []Public
	kinds *Kinds
}

// Set returns the set of some keys.
func (k *Kinds) Set(keys []Public) Set {
	for _, key := range keys {
		if r, ok := key.Public().(*rsa.PublicKey); ok {
			k.Saw(r.Size())
		}
	}
	return Set{keys: keys, kinds: k}
}

// Saw notes that there is a key whose signatures have so many bytes.
func (k *Kinds) Saw(signature int) {
	size := int64(signature)
	for seen := k.largest.Load(); size > seen && !k.largest.CompareAndSwap(seen, size); seen = k.largest.Load() {
	}
}

// Key implements [bearer.KeySet]. An assertion without kid can be of any key of the set. Key never returns an error: no
// signature is good for a key that is not there, and the key that it returns knows which algorithms belong to it.
func (s Set) Key(_ context.Context, kid, _ string) (bearer.Key, error) {
	c := candidates{kinds: s.kinds, work: MaxKeys}
	for _, k := range s.keys {
		if kid == "" || kid == k.ID {
			c.keys = append(c.keys, k.PublicKey)
		}
	}
	return &c, nil
}

// candidates are the keys by which an assertion may be signed.
type candidates struct {
	keys  []*bearer.PublicKey
	kinds *Kinds
	work  int // verifications that a failure costs
}

// StandIn returns a key that nobody has. Verifying by it costs the work of so many verifications.
func (k *Kinds) StandIn(work int) bearer.Key { return &candidates{kinds: k, work: work} }

// Verify implements [bearer.Key].
func (c *candidates) Verify(alg string, input, signature []byte) bool {
	tried := 0
	for _, key := range c.keys {
		if !key.Fits(alg, signature) {
			continue
		}
		if key.Verify(alg, input, signature) {
			return true
		}
		tried++
	}
	if key := c.kinds.standIn(alg, signature); key != nil {
		for ; tried < c.work; tried++ {
			key.Verify(alg, input, signature)
		}
	}
	return false
}

// standIn returns the key that stands in for one that a client does not have; nil if no client can have one.
func (k *Kinds) standIn(alg string, signature []byte) *bearer.PublicKey {
	for _, key := range standIns() {
		if key.Fits(alg, signature) && len(signature) <= max(int(k.largest.Load()), sizes()[0]/8) {
			return key
		}
	}
	return nil
}

// standIns are keys whose private keys nobody has, one of each kind.
var standIns = sync.OnceValue(func() []*bearer.PublicKey {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // cannot happen: crypto/rand does not fail
	}
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	publics := []crypto.PublicKey{&curve.PublicKey, edwards}
	for _, bits := range sizes() {
		// A modulus above every signature of its length, because verification ends at once for a larger signature.
		modulus := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(bits)), big.NewInt(1))
		publics = append(publics, &rsa.PublicKey{N: modulus, E: 65537})
	}
	var keys []*bearer.PublicKey
	for _, public := range publics {
		key, err := bearer.NewPublicKey(public, bearer.Algorithms())
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
	}
	return keys
})
