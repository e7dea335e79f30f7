package client

import (
	"context"
	"slices"
	"sync"
	"time"
)

// gate limits how many BCrypt compares run at a time, so that signing and everything else keeps its share of the
// cores. Who waits is served in turns: one turn per registered client id and one that all unknown ids share. Guessing
// ids or hammering one client therefore cannot starve another client's first compare.
type gate struct {
	max int // waiting at most

	mu      sync.Mutex
	free    int // compares that may begin now
	waiting int
	turns   []*turn // those with somebody waiting, in the order of service
}

// turn is the line of waiters that share a name.
type turn struct {
	name string
	line []*waiter
}

// waiter is told through done, once: nil means go.
type waiter struct{ done chan error }

// unknownTurn is shared by all ids that are not registered; registered ids are never empty.
const unknownTurn = ""

func newGate(parallel, limit int) *gate { return &gate{free: parallel, max: limit} }

// enter waits for a place; the caller must leave it again. When too many wait, the last in the longest line has to go.
func (g *gate) enter(ctx context.Context, name string) error {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return nil
	}
	w := &waiter{done: make(chan error, 1)}
	g.add(name, w)
	g.mu.Unlock()

	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		g.abandon(name, w)
		return &BusyError{Reason: "gate_timeout", RetryAfter: time.Second}
	}
}

// leave hands the place to the next turn's first waiter.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.turns) == 0 {
		g.free++
		return
	}
	t := g.turns[0]
	g.turns = g.turns[1:]
	w := t.line[0]
	t.line = t.line[1:]
	g.waiting--
	if len(t.line) > 0 {
		g.turns = append(g.turns, t)
	}
	w.done <- nil
}

// add puts w at the end of its line and, when that is one too many, sends the last of the longest line away.
func (g *gate) add(name string, w *waiter) {
	i := slices.IndexFunc(g.turns, func(t *turn) bool { return t.name == name })
	if i < 0 {
		i = len(g.turns)
		g.turns = append(g.turns, &turn{name: name})
	}
	g.turns[i].line = append(g.turns[i].line, w)
	g.waiting++
	if g.waiting <= g.max {
		return
	}
	longest := slices.MaxFunc(g.turns, func(a, b *turn) int { return len(a.line) - len(b.line) })
	last := longest.line[len(longest.line)-1]
	g.remove(longest.name, last)
	last.done <- &BusyError{Reason: "gate_full", RetryAfter: time.Second}
}

// abandon gives up waiting; a place that was granted at the same moment is handed on.
func (g *gate) abandon(name string, w *waiter) {
	g.mu.Lock()
	removed := g.remove(name, w)
	g.mu.Unlock()
	if !removed && <-w.done == nil {
		g.leave()
	}
}

func (g *gate) remove(name string, w *waiter) bool {
	i := slices.IndexFunc(g.turns, func(t *turn) bool { return t.name == name })
	if i < 0 {
		return false
	}
	t := g.turns[i]
	j := slices.Index(t.line, w)
	if j < 0 {
		return false
	}
	t.line = slices.Delete(t.line, j, j+1)
	g.waiting--
	if len(t.line) == 0 {
		g.turns = slices.Delete(g.turns, i, i+1)
	}
	return true
}

func (g *gate) lineLength() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}
