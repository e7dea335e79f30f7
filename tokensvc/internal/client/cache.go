package client

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// proof identifies the event "this secret was right for this stored secret of this client" without revealing any of
// the three. A changed stored secret makes another proof, so a change takes effect at once and nothing has to expire.
type proof [sha256.Size]byte

// proofs remembers which secrets BCrypt has confirmed. Only right secrets get in, so guessing cannot push them out.
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

// of computes the proof; every part is preceded by its length so that no two triples run together.
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

// all returns the proofs for each stored secret; without any, as for an unknown client, one that is never remembered.
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

// add remembers k. When full, any one other is forgotten: it costs its client one BCrypt compare.
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
