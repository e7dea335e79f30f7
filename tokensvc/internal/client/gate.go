package client

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// gate limits how many BCrypt compares run at the same time, so that signing and everything else keep their share of
// the cores. A compare takes a seat; the two readings of an attempt share one. Free seats go to two queues in
// alternation:
//
//	queue   all waiting attempts, in the order of arrival
//	fair    only attempts for registered ids, one client after the other
//
// The fair queue keeps a flood of guesses from delaying a client's first compare. It must not show which ids are
// registered. So the queue advances as if the fair queue did not exist: a seat of the fair queue goes back to the queue
// after the time that the compare before it took, whether an attempt uses it or not. A compare that costs more work
// than the one before goes on beside the queue, and the next seats of the fair queue stay empty for it. An attempt that
// fails in a seat of the fair queue keeps its position in the queue, and is answered from there after the same work
// once more.
type gate struct {
	max int // attempts that may wait

	mu    sync.Mutex
	free  int // seats that are neither taken nor kept for a waiter
	queue []*waiter
	fair  []*waiter // of the queue: for registered ids, and without a seat of the fair queue so far
	owed  int       // work of the last attempt in a seat of the fair queue that went beyond its seats
}

// waiter is an attempt at the gate. The channels have room for what is sent, which the gate sends at most once.
type waiter struct {
	client string        // empty for ids that are not registered
	work   int           // of a failure
	called chan error    // nil: a seat of the queue; otherwise why it gets no seat
	early  chan struct{} // a seat of the fair queue
}

func newGate(parallel, limit int) *gate { return &gate{free: parallel, max: limit} }

// run calls compare in a seat and returns its result, negative for a failure, which costs so much work. The client is a
// registered one, or empty. Then, or if compare succeeds, it is called once; otherwise it may be called a second time,
// also beside the first. The error is a [*BusyError]: ctx has ended, or too many attempts wait, of which a random one
// is refused.
func (g *gate) run(ctx context.Context, client string, work int, compare func() int) (matched int, err error) {
	w := g.enter(client, work)
	defer g.giveUp(w)
	early := make(chan int, 1) // what compare has returned in a seat of the fair queue
	for {
		select {
		case err := <-w.called:
			if err != nil {
				return -1, err
			}
			began := time.Now()
			matched := compare()
			g.leave(time.Since(began), work)
			return matched, nil
		case <-w.early:
			if len(w.called) == 0 { // with a seat of the queue, the early one is not needed
				go func() { early <- compare() }()
			}
		case matched := <-early:
			if matched >= 0 {
				return matched, nil
			}
		case <-ctx.Done():
			return -1, &BusyError{Reason: "gate_timeout", RetryAfter: time.Second}
		}
	}
}

// enter takes a free seat, or appends a waiter to the queues. If the queue is full, a random waiter is refused first: a
// choice by name would show which ids are registered.
func (g *gate) enter(client string, work int) *waiter {
	w := &waiter{client: client, work: work, called: make(chan error, 1), early: make(chan struct{}, 1)}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 {
		g.free--
		w.called <- nil
		return w
	}
	if len(g.queue) >= g.max {
		victim := g.queue[rand.IntN(len(g.queue))]
		g.remove(victim)
		victim.called <- &BusyError{Reason: "gate_full", RetryAfter: time.Second}
	}
	g.queue = append(g.queue, w)
	if client != "" {
		g.fair = append(g.fair, w)
	}
	return w
}

// remove takes w out of both queues.
func (g *gate) remove(w *waiter) {
	is := func(other *waiter) bool { return other == w }
	g.queue, g.fair = slices.DeleteFunc(g.queue, is), slices.DeleteFunc(g.fair, is)
}

// giveUp removes w, and gives back the seat of the queue that it was given and has not used.
func (g *gate) giveUp(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(w)
	if len(w.called) > 0 && <-w.called == nil {
		g.nextQueued()
	}
}

// leave gives a seat of the queue to the fair queue, and back to the queue after the duration took.
func (g *gate) leave(took time.Duration, work int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.free++
		return
	}
	time.AfterFunc(took, g.giveBack)
	if g.owed -= work; g.owed > -work || len(g.fair) == 0 {
		g.owed = max(g.owed, 0)
		return
	}
	chosen := g.fair[0]
	var others, same []*waiter
	for _, w := range g.fair[1:] {
		if w.client == chosen.client {
			same = append(same, w)
		} else {
			others = append(others, w)
		}
	}
	g.fair = append(others, same...) // one client after the other
	g.owed = max(chosen.work-work, 0)
	chosen.early <- struct{}{}
}

// giveBack gives a seat to the queue.
func (g *gate) giveBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nextQueued()
}

// nextQueued gives a seat to the first waiter of the queue.
func (g *gate) nextQueued() {
	if len(g.queue) == 0 {
		g.free++
		return
	}
	w := g.queue[0]
	g.remove(w)
	w.called <- nil
}

func (g *gate) length() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue)
}
