package basic

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	perSecond   = 50 // trades in all
	inFlight    = 8  // at the same time
	maxOfSource = 200
	maxWaiting  = 1000
	maxWait     = 4500 * time.Millisecond // so that a client whose turn comes is served within five seconds
)

// queue lets trades through one after the other: [perSecond], and [inFlight] at the same time. Sources take turns, so a
// flood of one delays another by a turn. Those of one source go in the order of arrival. [maxOfSource] trades take four
// seconds, so one that may wait gets its turn in time. When [maxWaiting] wait in all, only a source of which none waits
// may add one.
type queue struct {
	pace *rate.Limiter

	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{} // by source; closed when the turn has come
	turns   []string                   // sources of waiting, the next one first
	count   int                        // of waiting
}

func newQueue() *queue {
	return &queue{pace: rate.NewLimiter(perSecond, inFlight), free: inFlight, waiting: map[string][]chan struct{}{}}
}

// errFull answers a client that does not get its turn.
var errFull = &BusyError{Reason: "too many clients ask for a token", Status: http.StatusServiceUnavailable, RetryAfter: time.Second}

// enter waits for the turn of a trade. The caller calls leave when it is over.
func (q *queue) enter(ctx context.Context, source string) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	turn, ok := q.line(source)
	if !ok {
		return nil, errFull
	}
	select {
	case <-turn:
	case <-ctx.Done():
		if q.giveUp(source, turn) {
			return nil, errFull
		}
	}
	if q.pace.Wait(ctx) != nil {
		q.leave()
		return nil, errFull
	}
	return q.leave, nil
}

// line adds an attempt to the queue of its source address, and returns the channel that is closed when its turn comes.
// It returns false if too many wait.
func (q *queue) line(source string) (turn chan struct{}, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	turn = make(chan struct{})
	of := q.waiting[source]
	switch {
	case q.free > 0:
		q.free--
		close(turn)
		return turn, true
	case len(of) >= maxOfSource, q.count >= maxWaiting && len(of) > 0:
		return nil, false
	case len(of) == 0:
		q.turns = append(q.turns, source)
	}
	q.waiting[source] = append(of, turn)
	q.count++
	return turn, true
}

// leave passes a place on.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turns) == 0 {
		q.free++
		return
	}
	source := q.turns[0]
	close(q.waiting[source][0])
	q.turns = q.turns[1:]
	if q.remove(source, 0); len(q.waiting[source]) > 0 {
		q.turns = append(q.turns, source)
	}
}

// giveUp ends a wait. It returns false if the turn has come.
func (q *queue) giveUp(source string, turn chan struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting[source], turn)
	if i < 0 {
		return false
	}
	if q.remove(source, i); len(q.waiting[source]) == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(other string) bool { return other == source })
	}
	return true
}

func (q *queue) remove(source string, i int) {
	q.count--
	if q.waiting[source] = slices.Delete(q.waiting[source], i, i+1); len(q.waiting[source]) == 0 {
		delete(q.waiting, source)
	}
}
