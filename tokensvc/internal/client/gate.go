package client

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// gate limits how many BCrypt compares run at a time, so that signing and everything else keeps its share of the
// cores. A place is given by turns to one of two kinds:
//
//	line    everybody who waits, in the order of arrival
//	turns   only attempts for registered ids, one client after the other
//
// Turns are why guessing cannot keep a good client from its first compare, however long the line. That they exist must
// not show to those who guess. So the line goes on as if nobody ever had a turn: where no registered client waits, the
// place stays empty for as long as a compare takes; and who fails in its turn keeps its place in the line and is
// answered from there, after the same work once more.
type gate struct {
	max int // waiting at most

	mu    sync.Mutex
	free  int       // places that nobody has and nobody waits for
	line  []*waiter // in the order of arrival
	turns []*turn   // those with somebody waiting, in the order of service
}

// turn is the line of waiters of one registered client.
type turn struct {
	name string
	line []*waiter
}

// waiter is an attempt at the gate. Its fields but called are guarded by the gate.
type waiter struct {
	name   string     // of the client; empty for ids that are not registered
	called chan error // nil: a place is yours

	early   bool      // the place is in its client's turn; the one in the line is still to come
	reached bool      // the line has come to it, and a place is kept for it
	since   time.Time // it has the place
}

func newGate(parallel, limit int) *gate { return &gate{free: parallel, max: limit} }

// enter waits for a place; the caller must leave it again. The name is that of a registered client, or empty. When too
// many wait, any one of them has to go.
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

// failed is told by who had a turn and did not match. It returns when the line has come to the attempt.
func (g *gate) failed(ctx context.Context, w *waiter) error {
	g.mu.Lock()
	w.early = false
	if w.reached {
		w.reached = false
		w.since = time.Now()
	}
	g.afterTurn()
	g.mu.Unlock()
	return g.await(ctx, w)
}

// await waits to be called.
func (g *gate) await(ctx context.Context, w *waiter) error {
	select {
	case err := <-w.called:
		return err
	case <-ctx.Done():
	}
	g.mu.Lock()
	called := !g.remove(w) || w.early // at the same moment
	g.mu.Unlock()
	if called && <-w.called == nil {
		g.leave(w)
	}
	return &BusyError{Reason: "gate_timeout", RetryAfter: time.Second}
}

// leave hands the place on.
func (g *gate) leave(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !w.early {
		g.afterLine(time.Since(w.since))
		return
	}
	g.remove(w)
	g.afterTurn()
	if w.reached {
		g.afterTurn() // the line need not wait for what was not used
	}
}

// afterLine gives a place that was the line's to the next turn, or keeps it empty for the time of one.
func (g *gate) afterLine(took time.Duration) {
	switch {
	case len(g.turns) > 0:
		g.callTurn()
	case len(g.line) > 0:
		time.AfterFunc(took, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.afterTurn()
		})
	default:
		g.free++
	}
}

// afterTurn gives a place that was a turn's to the first in the line.
func (g *gate) afterTurn() {
	if len(g.line) == 0 {
		g.free++
		return
	}
	w := g.line[0]
	if w.early { // in its turn at this moment
		g.line = g.line[1:]
		w.reached = true
		w.called <- nil
		return
	}
	g.remove(w)
	w.since = time.Now()
	w.called <- nil
}

// callTurn gives a place to the first of the next client, who keeps the one in the line.
func (g *gate) callTurn() {
	t := g.turns[0]
	g.turns = g.turns[1:]
	w := t.line[0]
	t.line = t.line[1:]
	if len(t.line) > 0 {
		g.turns = append(g.turns, t)
	}
	w.early, w.since = true, time.Now()
	w.called <- nil
}

// add lets w wait. When that is one too many, chance says who goes: whom it hits must not tell who is registered.
func (g *gate) add(w *waiter) {
	if len(g.line) >= g.max {
		victim := g.line[rand.IntN(len(g.line))]
		g.remove(victim)
		victim.called <- &BusyError{Reason: "gate_full", RetryAfter: time.Second}
	}
	g.line = append(g.line, w)
	if w.name == "" {
		return
	}
	i := slices.IndexFunc(g.turns, func(t *turn) bool { return t.name == w.name })
	if i < 0 {
		i = len(g.turns)
		g.turns = append(g.turns, &turn{name: w.name})
	}
	g.turns[i].line = append(g.turns[i].line, w)
}

// remove takes w out of the line and out of its turn, and reports whether it was in the line.
func (g *gate) remove(w *waiter) bool {
	for i, t := range g.turns {
		if j := slices.Index(t.line, w); j >= 0 {
			if t.line = slices.Delete(t.line, j, j+1); len(t.line) == 0 {
				g.turns = slices.Delete(g.turns, i, i+1)
			}
			break
		}
	}
	i := slices.Index(g.line, w)
	if i >= 0 {
		g.line = slices.Delete(g.line, i, i+1)
	}
	return i >= 0
}

func (g *gate) lineLength() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line)
}
