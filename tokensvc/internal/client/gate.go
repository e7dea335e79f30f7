package client

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// gate limits how many BCrypt compares run at the same time, so that signing and everything else keep their share of the
// cores. A compare takes a seat; the two readings of an attempt share one. Free seats go to two queues in alternation:
//
//	queue   all waiting attempts, in the order of arrival
//	fair    only attempts for registered ids, one client after the other
//
// The fair queue keeps a flood of guesses from delaying a client's first compare. It must not show which ids are
// registered. So the queue advances as if the fair queue did not exist: if no registered client waits, the seat of the
// fair queue stays empty for as long as a compare takes. An attempt that fails in a seat of the fair queue keeps its
// position in the queue, and is answered from there after the same work once more.
type gate struct {
	max int // attempts that may wait

	mu    sync.Mutex
	free  int // seats that are neither taken nor kept for a waiter
	queue []*waiter
	fair  []*waiter // of the queue: for registered ids, and without a seat of the fair queue so far
}

// waiter is an attempt at the gate. The channels have room for what is sent, which the gate sends at most once.
type waiter struct {
	client string        // empty for ids that are not registered
	called chan error    // nil: a seat of the queue; otherwise why it gets no seat
	early  chan struct{} // a seat of the fair queue
}

func newGate(parallel, limit int) *gate { return &gate{free: parallel, max: limit} }

// run calls compare in a seat and returns its result. The client is a registered one, or empty. Then, or if compare returns
// true, it is called once; otherwise it may be called a second time. The error is a [*BusyError]: ctx has ended, or too many
// attempts wait, of which a random one is refused.
func (g *gate) run(ctx context.Context, client string, compare func() bool) (matched bool, err error) {
	w := g.enter(client)
	defer g.giveUp(w)
	for {
		select {
		case err := <-w.called:
			if err != nil {
				return false, err
			}
			began := time.Now()
			matched := compare()
			g.leave(time.Since(began))
			return matched, nil
		case <-w.early:
			matched := len(w.called) == 0 && compare() // with a seat of the queue, the early one is not needed
			g.leaveEarly()
			if matched {
				return true, nil
			}
		case <-ctx.Done():
			return false, &BusyError{Reason: "gate_timeout", RetryAfter: time.Second}
		}
	}
}

// enter takes a free seat, or appends a waiter to the queues. If the queue is full, a random waiter is refused first: a
// choice by name would show which ids are registered.
func (g *gate) enter(client string) *waiter {
	w := &waiter{client: client, called: make(chan error, 1), early: make(chan struct{}, 1)}
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

// giveUp removes w, and gives back the seats that it was given and has not used.
func (g *gate) giveUp(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(w)
	if len(w.called) > 0 && <-w.called == nil {
		g.nextQueued()
	}
	if len(w.early) > 0 {
		g.nextQueued()
	}
}

// leave gives a seat of the queue to the fair queue. If nobody waits there, the seat stays empty for the duration took, as
// if a compare of the fair queue used it.
func (g *gate) leave(took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case len(g.fair) > 0:
		first := g.fair[0]
		var others, same []*waiter
		for _, w := range g.fair[1:] {
			if w.client == first.client {
				same = append(same, w)
			} else {
				others = append(others, w)
			}
		}
		g.fair = append(others, same...) // one client after the other
		first.early <- struct{}{}
	case len(g.queue) > 0:
		time.AfterFunc(took, g.leaveEarly)
	default:
		g.free++
	}
}

// leaveEarly gives a seat of the fair queue to the queue.
func (g *gate) leaveEarly() {
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
