package flow

import (
	"context"
	"runtime"
	"time"
)

const (
	// quantum is how long a request may hold its seat until Acquire gives it up
	// first. So a long list takes its place in the queue again for each page. With
	// 1 ms, and pieces of work twice as long, the p99 of others beside expressions
	// was 2.1 times theirs alone instead of 1.6 (6 and 3 alternating runs).
	quantum = 300 * time.Microsecond
	// slowWrite is how long a write to the client may hold the seat.
	slowWrite = time.Millisecond
)

// Seat is one request's right to a seat of its level.
type Seat struct {
	scheduler *Scheduler
	level     Level
	large     bool // its body is large
	room      Room // taken by its answer

	// Guarded by the scheduler's mutex, because the timer of a slow write yields.
	flow    *flow     // nil: released
	began   time.Time // when it got the seat; zero: it does not hold it
	stalled bool      // it waits for its client
}

// Acquire waits for the seat. A request that has held it for less than a quantum
// keeps it; after that it gives the seat up first, so that others go before it.
// The error is ctx.Err(); the request then does not hold the seat.
func (s *Seat) Acquire(ctx context.Context) error {
	if s == nil {
		return nil
	}
	t := s.scheduler
	t.mu.Lock()
	if s.flow == nil || !s.began.IsZero() && time.Since(s.began) < quantum {
		t.mu.Unlock()
		return nil
	}
	if !s.began.IsZero() {
		s.yield()
		t.mu.Unlock()
		runtime.Gosched() // goroutines without a seat go first too: connections and commits
		t.mu.Lock()
	}
	s.flow = t.flow(s.flow.name) // the scheduler may have forgotten the flow of a watch
	f := s.flow
	ready := t.enqueue(f, s.level)
	if ready == nil {
		s.began = time.Now()
		t.mu.Unlock()
		return nil
	}
	t.mu.Unlock()
	var err error
	select {
	case <-ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.cancel(f, s.level, ready) {
		return err
	}
	s.began = time.Now() // the seat counts more than the end of ctx
	return nil
}

// Yield gives up the seat until the next Acquire. It does nothing if the request
// does not hold it.
func (s *Seat) Yield() {
	if s == nil {
		return
	}
	s.scheduler.mu.Lock()
	defer s.scheduler.mu.Unlock()
	s.yield()
}

// yield is Yield for a caller who holds the mutex.
func (s *Seat) yield() {
	if s.began.IsZero() {
		return
	}
	worked := time.Since(s.began)
	s.flow.used += max(worked-minUse, 0)
	s.flow.spent += worked
	s.began = time.Time{}
	s.scheduler.stop(s.flow, s.level)
}

// Release ends the request: it gives up all that the request holds. Every other
// method does nothing from then on.
func (s *Seat) Release() {
	if s == nil {
		return
	}
	s.room.Free()
	t := s.scheduler
	t.mu.Lock()
	defer t.mu.Unlock()
	f := s.flow
	if f == nil {
		return
	}
	s.yield()
	s.flow = nil
	if s.large {
		<-f.large // never blocks: this request's element is in it
	}
	if s.level == Watches {
		return
	}
	t.inFlight--
	if f.inFlight--; f.inFlight == 0 {
		t.dispatchAll() // no flow has to leave anything to this one any more
	}
}

// Write runs write, which sends to the client. The request gives up its seat if
// that takes long, and at once if no other flow wants to compete: then nothing is
// gained by counting it. The caller acquires the seat again if it has more to do.
func (s *Seat) Write(write func() error) error {
	if s == nil {
		return write()
	}
	t := s.scheduler
	t.mu.Lock()
	written := false
	if s.flow == nil || s.began.IsZero() || t.alone(s.flow) {
		s.stall()
	} else {
		defer time.AfterFunc(slowWrite, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			if !written {
				s.stall()
			}
		}).Stop()
	}
	t.mu.Unlock()
	err := write()
	t.mu.Lock()
	defer t.mu.Unlock()
	written = true
	s.resume()
	return err
}

// client runs wait, which waits for the client, without the seat.
func (s *Seat) client(wait func()) {
	if s == nil {
		wait()
		return
	}
	t := s.scheduler
	t.mu.Lock()
	s.stall()
	t.mu.Unlock()
	wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	s.resume()
}

// stall gives up the seat for a wait for the client. Until resume, the request does not count
// as one that needs a processor: a client that never reads would hold up all flows above
// their share. The caller holds the mutex.
func (s *Seat) stall() {
	if s.flow != nil && s.level != Watches && !s.stalled {
		s.stalled = true
		s.flow.stalled++
	}
	s.yield()
	s.scheduler.dispatchAll()
}

// resume ends stall, if there was one. The caller holds the mutex.
func (s *Seat) resume() {
	if s.stalled {
		s.stalled = false
		s.flow.stalled--
	}
}

// piece waits for a seat to read the next piece of a body. Before the first piece of a large one it waits until the
// flow may have another large body in memory, up to the release of the request.
func (s *Seat) piece(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if !s.large {
		s.scheduler.mu.Lock()
		if s.flow.large == nil {
			s.flow.large = make(chan struct{}, largeBodies)
		}
		large := s.flow.large
		s.scheduler.mu.Unlock()
		select {
		case large <- struct{}{}:
			s.large = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	runtime.Gosched() // what is ready to run goes first
	defer s.Yield()   // the read itself is charged by size, because it waits for the client
	return s.Acquire(ctx)
}

// charge adds time that the request used without its seat.
func (s *Seat) charge(d time.Duration) {
	if s == nil {
		return
	}
	s.scheduler.mu.Lock()
	defer s.scheduler.mu.Unlock()
	if s.flow != nil {
		s.flow.charge(d)
	}
}

// Key is the key of a context under which [FromContext] finds the seat of a
// request.
type Key struct{}

// FromContext returns the seat of the request that ctx belongs to. It is nil if
// the request is exempt.
func FromContext(ctx context.Context) *Seat {
	s, _ := ctx.Value(Key{}).(*Seat)
	return s
}
