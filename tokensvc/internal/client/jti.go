package client

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"time"
)

// maxReplays is the largest number of remembered assertions, which take about 24 MiB. One client gets half of them:
// 1,600 a second that are good for five minutes.
const maxReplays = 1 << 20

// replays remembers the assertions that were accepted until they expire, so that each is good once (RFC 7523 section 3,
// item 7). Nothing is forgotten early: when there is no room, further assertions are refused. A client can take as many
// places as are free then, so whoever takes most of them leaves half of the rest to others. The memory is of this
// process only.
type replays struct {
	seed maphash.Seed // of this process, so that nobody can choose ids that collide
	max  int

	mu      sync.Mutex
	minutes map[int64]*expiring // by the minute in which they expire
	count   int
}

// expiring are the assertions that expire in one minute.
type expiring struct {
	seen    map[uint64]struct{} // by 64 bits: of a full table, one assertion in 10^13 is taken for another and refused
	clients map[string]int      // how many of seen are of a client
}

func newReplays(all int) *replays {
	return &replays{seed: maphash.MakeSeed(), max: all, minutes: map[int64]*expiring{}}
}

// The outcomes of replays.add.
type replay int

const (
	firstUse replay = iota
	replayed
	noRoom
)

// id tells the assertions of a client apart. The length precedes the client's id, so that different pairs are different
// input.
func (r *replays) id(clientID, jti string) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(clientID))))
	h.WriteString(clientID)
	h.WriteString(jti)
	return h.Sum64()
}

// add remembers the assertion of a client with this jti until the given time.
func (r *replays) add(clientID, jti string, until, now time.Time) replay {
	id := r.id(clientID, jti)
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
	if ofClient >= r.max-r.count {
		return noRoom
	}
	minute := until.Unix() / 60
	m := r.minutes[minute]
	if m == nil {
		m = &expiring{seen: map[uint64]struct{}{}, clients: map[string]int{}}
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
