package httpserver

import (
	"sync"
	"time"
)

// What strangers may send: bytes a second of a source and in all, and so many at once. Each byte may be work that no
// request stands for: handshakes, headers that net/http refuses, and the frames PING, SETTINGS and RST_STREAM of
// HTTP/2. Every request that was answered gives some bytes back, and all of a connection are given back when something
// else answers for it ([Leave]).
const (
	paceSource  = 64 << 10
	paceAll     = 8 * paceSource
	paceSeconds = 1       // what may come at once, in seconds of a rate
	paceAnswer  = 2 << 10 // given back for an answer: a request to tokensvc and its share of a connection
	paceRead    = 4 << 10 // read at once, before the next look
	paceLook    = 50 * time.Millisecond
	paceSources = 4096 // known before those that have sent nothing for long are forgotten
)

// budget is what may still be read. It may be overdrawn by as much as it may have, because connections that read at
// once do not wait for each other.
type budget struct {
	left float64
	at   time.Time
}

// add fills a budget of so many bytes a second up to now, and adds n bytes.
func (b *budget) add(rate, n float64, now time.Time) {
	most := rate * paceSeconds
	if b.at.IsZero() {
		b.left = most
	} else {
		b.left += max(0, now.Sub(b.at).Seconds()) * rate
	}
	b.left, b.at = max(-most, min(most, b.left+n)), now
}

// pacer bounds what strangers send. Its methods are safe for concurrent use.
type pacer struct {
	mu  sync.Mutex
	all budget
	of  map[string]*budget
}

func newPacer() *pacer { return &pacer{of: map[string]*budget{}} }

// add gives bytes to a source, or takes them where n is negative, and reports whether it may read more now.
func (p *pacer) add(source string, n int64, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all.add(paceAll, float64(n), now)
	b := p.of[source]
	if b == nil {
		p.forget(now)
		b = &budget{}
		p.of[source] = b
	}
	b.add(paceSource, float64(n), now)
	return b.left > 0 && p.all.left > 0
}

// forget forgets the sources whose budgets are full, where there are many.
func (p *pacer) forget(now time.Time) {
	if len(p.of) < paceSources {
		return
	}
	for source, b := range p.of {
		if now.Sub(b.at) > 2*paceSeconds*time.Second {
			delete(p.of, source)
		}
	}
}

// pace is what a connection of a stranger takes of the budgets.
type pace struct {
	of     *pacer
	source string

	mu       sync.Mutex
	taken    int64
	known    bool
	deadline time.Time // for reads; past: the next read is to fail at once
}

// wait waits until more may be read. A deadline in the past ends it, by which net/http and [connection.Close] interrupt
// reads.
func (p *pace) wait() {
	for !p.may() {
		time.Sleep(paceLook)
	}
}

func (p *pace) may() bool {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known || !p.deadline.IsZero() && !now.Before(p.deadline) || p.of.add(p.source, 0, now)
}

// took counts bytes that were read.
func (p *pace) took(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return
	}
	p.taken += int64(n)
	p.of.add(p.source, -int64(n), time.Now())
}

// give gives back some of what was taken.
func (p *pace) give(most int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(most, p.taken)
	p.taken -= n
	p.of.add(p.source, n, time.Now())
}

// leave gives everything back, and ends the waits.
func (p *pace) leave() {
	if p == nil {
		return
	}
	p.give(1 << 62)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = true
}

// until notes a deadline for reads.
func (p *pace) until(t time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadline = t
}
