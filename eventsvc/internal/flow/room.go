package flow

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The room for answers that are made and not yet read. A container with 512 MiB, for
// which the collector keeps to 410 MiB, has it twice, as live memory and as garbage,
// beside 64 MiB for the rest.
const (
	roomOfAll  = 96 << 20
	roomOfFlow = 40 << 20 // as much as the largest answer takes while it is made
	// roomAlways is what a flow gets however much others have, so that they cannot shut it
	// out: a question, or some lists.
	roomAlways = Question
	// patience is how long Take waits while nothing is given back. Clients that read do
	// so within milliseconds.
	patience = 5 * time.Second
)

// FreeAnswer is the size up to which an answer needs no room: the number of requests in
// flight bounds those.
const FreeAnswer = 64 << 10

// Question is the room that an answer takes which is made as a whole, before it is known
// how large it will be.
const Question = 4 << 20

// LargestQuestion is the room of an answer for which [Question] is too little. It is less than the room of a flow, so
// that a flow that reads its other answers gets this one too.
const LargestQuestion = roomOfFlow - 2<<20

// Errors of [Room.Take] and [Room.Try].
var (
	ErrUnread       = errors.New("flow: too many bytes of answers are not read")
	ErrUnreadOfFlow = errors.New("flow: too many bytes of answers to this client are not read")
)

// rooms is what answers take in memory.
type rooms struct {
	mu      sync.Mutex
	all     int
	of      map[string]*taken // by flow
	waiting []*waiter         // in order
}

// taken is what the answers of a flow take.
type taken struct {
	bytes   int
	waiting int       // answers that wait for room
	given   time.Time // when some was given back last
}

// waiter is an answer that waits for room.
type waiter struct {
	flow  string
	bytes int
	ready chan struct{} // closed when it has it
}

// flow returns what a flow takes. The caller holds the mutex.
func (r *rooms) flow(name string) *taken {
	if r.of[name] == nil {
		r.of[name] = &taken{}
	}
	return r.of[name]
}

// fits returns an error if n bytes more of a flow would not leave spare bytes.
func (r *rooms) fits(f *taken, n, spare int) error {
	switch {
	case f.bytes+n > roomOfFlow-spare:
		return ErrUnreadOfFlow
	case f.bytes+n > roomAlways && r.all+n > roomOfAll-spare:
		return ErrUnread
	}
	return nil
}

// take adds n bytes to what a flow holds, unless that leaves less than spare bytes of its limit, or of the limit of
// all.
func (r *rooms) take(name string, n, spare int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.flow(name)
	err := r.fits(f, n, spare)
	if err == nil {
		r.all += n
		f.bytes += n
	}
	r.forget(name)
	return err
}

// enqueue is take for an answer that can wait behind others of its flow. It returns nil if
// it need not.
func (r *rooms) enqueue(name string, n int) *waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.flow(name)
	if f.waiting == 0 && r.fits(f, n, 0) == nil {
		r.all += n
		f.bytes += n
		return nil
	}
	f.waiting++
	w := &waiter{name, n, make(chan struct{})}
	r.waiting = append(r.waiting, w)
	return w
}

// cancel ends the wait of an answer if nothing was given back to its flow for some time, or
// in any case. It returns why there is no room, or after which time to look again. Both are
// zero if the answer has got its room.
func (r *rooms) cancel(w *waiter, always bool) (again time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.waiting, w)
	if i < 0 {
		return 0, nil
	}
	f := r.of[w.flow]
	if again = patience - time.Since(f.given); again > 0 && !always {
		return again, nil
	}
	r.waiting = slices.Delete(r.waiting, i, i+1)
	f.waiting--
	if err = r.fits(f, w.bytes, 0); err == nil { // it was behind others
		err = ErrUnreadOfFlow
	}
	r.forget(w.flow)
	return 0, err
}

// give takes n bytes back, and gives them to answers that wait.
func (r *rooms) give(name string, n int) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.of[name]
	r.all -= n
	f.bytes -= n
	f.given = time.Now()
	r.forget(name)
	var behind map[string]bool // flows whose first answer still waits
	r.waiting = slices.DeleteFunc(r.waiting, func(w *waiter) bool {
		f := r.of[w.flow]
		if behind[w.flow] {
			return false
		}
		if r.fits(f, w.bytes, 0) != nil {
			if behind == nil {
				behind = map[string]bool{}
			}
			behind[w.flow] = true
			return false
		}
		r.all += w.bytes
		f.bytes += w.bytes
		f.waiting--
		close(w.ready)
		return true
	})
}

func (r *rooms) forget(name string) {
	if f := r.of[name]; f.bytes == 0 && f.waiting == 0 {
		delete(r.of, name)
	}
}

// Room is what one answer takes in memory. It is for one goroutine. The
// methods of a nil Room do nothing.
type Room struct {
	pool  *rooms
	flow  string
	bytes int
}

// Room returns the room of an answer that goes on after its request has released its
// seat. The caller must call [Room.Free].
func (s *Scheduler) Room(flow string) *Room { return &Room{pool: &s.rooms, flow: flow} }

// Try takes n bytes more, or returns [ErrUnread] or [ErrUnreadOfFlow].
func (r *Room) Try(n int) error {
	if r == nil {
		return nil
	}
	err := r.pool.take(r.flow, n, 0)
	if err == nil {
		r.bytes += n
	}
	return err
}

// Spare takes n bytes more for what the answer can do without, and reports whether it did:
// half of the room is left to answers that cannot.
func (r *Room) Spare(n int) bool {
	if r == nil {
		return true
	}
	if r.pool.take(r.flow, n, roomOfFlow/2) != nil {
		return false
	}
	r.bytes += n
	return true
}

// Take is Try for an answer that can wait. It gives up when its flow has given nothing back
// for some seconds, or with the error of ctx. An answer that has room already should not
// wait for more: others may wait for what it has.
func (r *Room) Take(ctx context.Context, n int) error {
	if r == nil {
		return nil
	}
	if w := r.pool.enqueue(r.flow, n); w != nil {
		return r.wait(ctx, w)
	}
	r.bytes += n
	return nil
}

func (r *Room) wait(ctx context.Context, w *waiter) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		var again time.Duration
		var err error
		select {
		case <-w.ready:
		case <-timer.C:
			again, err = r.pool.cancel(w, false)
		case <-ctx.Done():
			if _, err = r.pool.cancel(w, true); err != nil {
				return ctx.Err()
			}
		}
		switch {
		case err != nil:
			return err
		case again > 0:
			timer.Reset(again)
		default:
			r.bytes += w.bytes
			return nil
		}
	}
}

// Set makes it n bytes in all, and returns the error of Try if these are more than before.
func (r *Room) Set(n int) error {
	if r == nil {
		return nil
	}
	if n > r.bytes {
		return r.Try(n - r.bytes)
	}
	r.pool.give(r.flow, r.bytes-n)
	r.bytes = n
	return nil
}

// Grow is Set for what only grows.
func (r *Room) Grow(n int) error { return r.Set(max(n, r.Bytes())) }

// Free gives everything back.
func (r *Room) Free() { _ = r.Set(0) }

// Bytes is how much it takes.
func (r *Room) Bytes() int {
	if r == nil {
		return 0
	}
	return r.bytes
}

// Room is what the answer has until the seat is released. It is nil if the
// request is exempt.
func (s *Seat) Room() *Room {
	if s == nil {
		return nil
	}
	return &s.room
}

// Take is [Room.Take]. The request waits without its seat.
func (s *Seat) Take(ctx context.Context, n int) error {
	if s == nil {
		return nil
	}
	w := s.room.pool.enqueue(s.room.flow, n)
	if w == nil {
		s.room.bytes += n
		return nil
	}
	var err error
	if s.client(func() { err = s.room.wait(ctx, w) }); err != nil {
		return err
	}
	return s.Acquire(ctx)
}

// Reads reports whether the request changes nothing, so that its answer can be refused.
func (s *Seat) Reads() bool { return s != nil && s.level == Reads }

// gauge is the metric of the room that is taken.
func (r *rooms) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "eventsvc_answers_unread_bytes", Help: "Memory of answers that are made and not yet read by their clients.",
	}, func() float64 {
		r.mu.Lock()
		defer r.mu.Unlock()
		return float64(r.all)
	})
}
