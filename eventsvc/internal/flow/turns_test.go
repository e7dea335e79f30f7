package flow

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns: a request that works in turns lets others go before it, and ends with its
// client.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(2)
		s.seats = 1
		seat := s.enter(t, Reads, "long")
		defer seat.Release()
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), Key{}, seat))
		turns := NewTurns(ctx)
		got := make(chan *Seat)
		go func() { got <- s.enter(t, Reads, "short") }()
		synctest.Wait()
		if !turns.Next() || s.working(Reads) != 1 {
			t.Fatal("no turn, or another seat")
		}
		time.Sleep(quantum)
		went := make(chan bool)
		go func() { went <- turns.Next() }()
		(<-got).Release()
		if !<-went {
			t.Error("no second turn", turns.Err())
		}
		cancel()
		for range 2 {
			if turns.Next() || !errors.Is(turns.Err(), context.Canceled) {
				t.Errorf("a turn after the end of the request, %v", turns.Err())
			}
		}
	})
	if turns := NewTurns(t.Context()); !turns.Next() || turns.Err() != nil { // of an exempt request
		t.Error(turns.Err())
	}
}
