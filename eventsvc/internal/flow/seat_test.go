package flow

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// enter enters a request and acquires its seat.
func (s *Scheduler) enter(t *testing.T, l Level, name string) *Seat {
	t.Helper()
	seat, err := s.Enter(l, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := seat.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	return seat
}

// working is how many requests of a level hold a seat.
func (s *Scheduler) working(l Level) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.levels[l].working
}

// TestLongWorkQueuesAgain: a request that has held its seat for a quantum lets a
// waiting one go before it when it acquires again, and one that has not keeps it.
func TestLongWorkQueuesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(2)
		s.seats = 1
		long := s.enter(t, Reads, "long")
		defer long.Release()
		got := make(chan *Seat)
		go func() { got <- s.enter(t, Reads, "short") }()
		synctest.Wait()
		time.Sleep(quantum - 1)
		if err := long.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-got:
			t.Fatal("the seat was given up before a quantum was over")
		default:
		}
		time.Sleep(time.Nanosecond)
		again := make(chan error)
		go func() { again <- long.Acquire(t.Context()) }()
		short := <-got
		synctest.Wait()
		select {
		case err := <-again:
			t.Errorf("two requests hold one seat, %v", err)
		default:
		}
		short.Release()
		if err := <-again; err != nil {
			t.Error(err)
		}
	})
}

// TestSlowWritesYield: beside others a request holds its seat while it writes,
// until that takes long; a flow alone writes without.
func TestSlowWritesYield(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(2)
		seat := s.enter(t, Reads, "one")
		defer seat.Release()
		write := func(takes time.Duration, want int) func() error {
			return func() error {
				time.Sleep(takes)
				synctest.Wait() // for the timer
				if n := s.working(Reads); n != want {
					t.Errorf("%d seats are held after %v of a write, want %d", n, takes, want)
				}
				return io.ErrClosedPipe
			}
		}
		for _, test := range []struct {
			other bool
			takes time.Duration
			want  int
		}{{false, 0, 0}, {true, slowWrite - 1, 1}, {true, slowWrite, 0}} {
			seat.Yield()
			if test.other {
				s.enter(t, Writes, "other").Release()
				s.enter(t, Writes, "one").Release()
			}
			if err := seat.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := seat.Write(write(test.takes, test.want)); !errors.Is(err, io.ErrClosedPipe) {
				t.Error(err)
			}
		}
	})
}

// TestReleasedSeat: a request that has ended takes no seat, whatever is called on it later, and counts only once.
func TestReleasedSeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(2)
		over := s.enter(t, Writes, "over")
		over.Release()
		exempt := FromContext(t.Context())
		for _, seat := range []*Seat{over, exempt} {
			ctx := context.WithValue(t.Context(), Key{}, seat)
			if _, err := io.Copy(io.Discard, NewReader(ctx, io.NopCloser(strings.NewReader("body")))); err != nil {
				t.Error(err)
			}
			seat.Yield()
			wrote := false
			if err := seat.Write(func() error { wrote = true; return nil }); err != nil || !wrote {
				t.Errorf("wrote: %t, %v", wrote, err)
			}
			seat.Release()
		}
		if n := s.working(Writes); n != 0 {
			t.Errorf("%d seats are held", n)
		}
		s.forgotten(t)
	})
}
