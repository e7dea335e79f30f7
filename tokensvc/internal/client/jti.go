package client

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"
)

// The largest numbers of remembered assertions: of all clients, about 16 MiB, and of one client, so that none can keep others
// from being remembered.
const (
	maxReplays       = 1 << 18
	maxClientReplays = maxReplays / 4
)

// replays remembers the assertions that were accepted until they expire, so that each is good once (RFC 7523 section 3,
// item 7). Nothing is forgotten early: when there is no room, further assertions are refused. The memory is of this
// process only.
type replays struct {
	key              [32]byte // of this process, so that nobody can choose ids that collide
	max, maxOfClient int

	mu      sync.Mutex
	minutes map[int64]*expiring // by the minute in which they expire
	count   int
}

// expiring are the assertions that expire in one minute.
type expiring struct {
	seen    map[[16]byte]struct{}
	clients map[string]int // how many of seen are of a client
}

func newReplays(all, ofClient int) *replays {
	r := &replays{max: all, maxOfClient: ofClient, minutes: map[int64]*expiring{}}
	rand.Read(r.key[:])
	return r
}

// The outcomes of replays.add.
type replay int

const (
	firstUse replay = iota
	replayed
	noRoom
)

// add remembers the assertion of a client with this jti until the given time.
func (r *replays) add(clientID, jti string, until, now time.Time) replay {
	mac := hmac.New(sha256.New, r.key[:])
	mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(clientID))))
	mac.Write([]byte(clientID))
	mac.Write([]byte(jti))
	id := [16]byte(mac.Sum(nil))

	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	ofClient := 0
	for _, m := range r.minutes {
		if _, used := m.seen[id]; used {
			return replayed
		}
		ofClient += m.clients[clientID]
	}
	if r.count >= r.max || ofClient >= r.maxOfClient {
		return noRoom
	}
	minute := until.Unix() / 60
	m := r.minutes[minute]
	if m == nil {
		m = &expiring{seen: map[[16]byte]struct{}{}, clients: map[string]int{}}
		r.minutes[minute] = m
	}
	m.seen[id] = struct{}{}
	m.clients[clientID]++
	r.count++
	return firstUse
}

// forget drops the minutes that have passed.
func (r *replays) forget(now time.Time) {
	for minute, m := range r.minutes {
		if minute < now.Unix()/60 {
			r.count -= len(m.seen)
			delete(r.minutes, minute)
		}
	}
}

func (r *replays) length() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}
