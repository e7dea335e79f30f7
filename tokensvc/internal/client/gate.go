package client

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// gate limits how many BCrypt compares run at the same time, so that signing and everything else keep their share of the
// cores. A compare takes a seat. Free seats go to two queues in alternation:
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
	free  int       // seats that are neither taken nor kept for a waiter
	queue []*waiter // in the order of arrival
	fair  []*flow   // the flows with a waiter, in the order in which they are served
}

// flow has the waiting attempts of one registered client.
type flow struct {
	name    string
	waiting []*waiter
}

// waiter is an attempt at the gate. All its fields except called are guarded by the gate.
type waiter struct {
	name   string     // the client; empty for ids that are not registered
	called chan error // receives nil for a seat, or the error of a refused waiter

	early   bool      // the seat is one of the fair queue; that of the queue is still to come
	reached bool      // the queue has reached the waiter, and keeps a seat for it
	since   time.Time // when it got its seat
}

func newGate(parallel, limit int) *gate { return &gate{free: parallel, max: limit} }

// enter waits for a seat, which the caller gives back by leave. The name is that of a registered client, or empty. If too
// many attempts wait, a random one of them is refused with a [*BusyError].
func (g *gate) enter(ctx context.Context, name string) (*waiter, error) {
	w := &waiter{name: name, called: make(chan error, 2)}
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		w.since = time.Now()
		g.mu.Unlock()
		return w, nil
	}
	g.add(w)
	g.mu.Unlock()
	return w, g.await(ctx, w)
}

// failed reports that the compare of an early waiter did not match, and gives its seat of the fair queue back. It returns
// when the queue has reached the waiter, which then has a seat again.
func (g *gate) failed(ctx context.Context, w *waiter) error {
	g.mu.Lock()
	w.early = false
	if w.reached {
		w.reached = false
		w.since = time.Now()
	}
	g.nextQueued()
	g.mu.Unlock()
	return g.await(ctx, w)
}

// await waits until the waiter is called.
func (g *gate) await(ctx context.Context, w *waiter) error {
	select {
	case err := <-w.called:
		return err
	case <-ctx.Done():
	}
	g.mu.Lock()
	called := !g.remove(w) || w.early // called when ctx ended
	g.mu.Unlock()
	if called && <-w.called == nil {
		g.leave(w)
	}
	return &BusyError{Reason: "gate_timeout", RetryAfter: time.Second}
}

// leave gives the seat to another waiter.
func (g *gate) leave(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !w.early {
		g.nextFair(time.Since(w.since))
		return
	}
	g.remove(w)
	g.nextQueued()
	if w.reached {
		g.nextQueued() // the seat that the queue kept for the waiter is not needed
	}
}

// nextFair gives a seat of the queue to the fair queue. If nobody waits there, the seat stays empty for the duration took,
// as if a compare of the fair queue used it.
func (g *gate) nextFair(took time.Duration) {
	switch {
	case len(g.fair) > 0:
		g.callFair()
	case len(g.queue) > 0:
		time.AfterFunc(took, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.nextQueued()
		})
	default:
		g.free++
	}
}

// nextQueued gives a seat of the fair queue to the first waiter of the queue.
func (g *gate) nextQueued() {
	if len(g.queue) == 0 {
		g.free++
		return
	}
	w := g.queue[0]
	if w.early { // it has a seat of the fair queue now
		g.queue = g.queue[1:]
		w.reached = true
		w.called <- nil
		return
	}
	g.remove(w)
	w.since = time.Now()
	w.called <- nil
}

// callFair gives a seat to the first waiter of the next flow. The waiter keeps its position in the queue.
func (g *gate) callFair() {
	f := g.fair[0]
	g.fair = g.fair[1:]
	w := f.waiting[0]
	f.waiting = f.waiting[1:]
	if len(f.waiting) > 0 {
		g.fair = append(g.fair, f)
	}
	w.early, w.since = true, time.Now()
	w.called <- nil
}

// add appends w to the queues. If the queue is full, a random waiter is refused first: a choice by name would show which
// ids are registered.
func (g *gate) add(w *waiter) {
	if len(g.queue) >= g.max {
		victim := g.queue[rand.IntN(len(g.queue))]
		g.remove(victim)
		victim.called <- &BusyError{Reason: "gate_full", RetryAfter: time.Second}
	}
	g.queue = append(g.queue, w)
	if w.name == "" {
		return
	}
	i := slices.IndexFunc(g.fair, func(f *flow) bool { return f.name == w.name })
	if i < 0 {
		i = len(g.fair)
		g.fair = append(g.fair, &flow{name: w.name})
	}
	g.fair[i].waiting = append(g.fair[i].waiting, w)
}

// remove takes w out of both queues, and reports whether it was in the queue of all attempts.
func (g *gate) remove(w *waiter) bool {
	for i, f := range g.fair {
		if j := slices.Index(f.waiting, w); j >= 0 {
			if f.waiting = slices.Delete(f.waiting, j, j+1); len(f.waiting) == 0 {
				g.fair = slices.Delete(g.fair, i, i+1)
			}
			break
		}
	}
	i := slices.Index(g.queue, w)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	return i >= 0
}

func (g *gate) length() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue)
}
