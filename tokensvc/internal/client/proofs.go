package client

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// proof records that a submitted secret matched a stored secret of a client. It is a keyed hash of the three and
// reveals none of them. A changed stored secret has another proof, so a change takes effect at once and proofs need not
// expire.
type proof [sha256.Size]byte

// proofs remembers the secrets that BCrypt has confirmed. Only right secrets are added, so guesses cannot evict them.
type proofs struct {
	key [32]byte // of this process
	max int

	mu   sync.RWMutex
	seen map[proof]struct{}
}

func newProofs(limit int) *proofs {
	p := &proofs{max: limit, seen: make(map[proof]struct{})}
	rand.Read(p.key[:])
	return p
}

// of returns the proof. The length of each part precedes it, so that different triples are different input.
func (p *proofs) of(clientID string, stored Secret, secret string) proof {
	mac := hmac.New(sha256.New, p.key[:])
	var buf []byte
	for _, part := range [...]string{clientID, stored.encoded, secret} {
		buf = binary.BigEndian.AppendUint32(buf[:0], uint32(len(part)))
		buf = append(buf, part...)
		mac.Write(buf)
	}
	return proof(mac.Sum(nil))
}

// all returns the proof of each stored secret. Without stored secrets, as of an unknown client, it returns one proof
// that is never remembered.
func (p *proofs) all(clientID string, stored []Secret, secret string) []proof {
	if len(stored) == 0 {
		return []proof{p.of(clientID, Secret{}, secret)}
	}
	keys := make([]proof, len(stored))
	for i, s := range stored {
		keys[i] = p.of(clientID, s, secret)
	}
	return keys
}

func (p *proofs) has(k proof) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, ok := p.seen[k]
	return ok
}

// add remembers k. If there are too many, it forgets an arbitrary other one, whose client then needs one BCrypt
// compare.
func (p *proofs) add(k proof) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) >= p.max {
		for old := range p.seen {
			delete(p.seen, old)
			break
		}
	}
	p.seen[k] = struct{}{}
}

func (p *proofs) count() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.seen)
}
