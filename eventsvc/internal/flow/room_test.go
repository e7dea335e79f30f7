package flow

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/shared/randtest"
)

// TestRoomIsBounded: whatever is taken and given back, a flow has at most its part, all
// flows have at most theirs and what each is let have always, and nothing stays taken.
func TestRoomIsBounded(t *testing.T) {
	t.Parallel()
	scheduler := newScheduler(2)
	var rooms []*Room
	for i := range 16 {
		rooms = append(rooms, scheduler.Room(fmt.Sprint("client-", i%4)))
	}
	refused, random := map[error]int{}, randtest.New(t)
	for range 20_000 {
		r := rooms[random.IntN(len(rooms))]
		n := 1 + random.IntN(roomOfFlow/4)
		switch random.IntN(4) {
		case 0:
			r.Free()
		case 1:
			before := r.Bytes()
			if r.Spare(n) && before+n > roomOfFlow/2 {
				t.Fatalf("%d bytes are spare with %d taken", n, before)
			}
		case 2:
			refused[r.Set(n)]++
		case 3:
			refused[r.Try(n)]++
		}
		all := 0
		for name, f := range scheduler.rooms.of {
			if all += f.bytes; f.bytes > roomOfFlow || f.bytes <= 0 {
				t.Fatalf("%s has %d bytes", name, f.bytes)
			}
		}
		if all != scheduler.rooms.all || all > roomOfAll+4*roomAlways {
			t.Fatalf("all have %d bytes, counted are %d", all, scheduler.rooms.all)
		}
	}
	if refused[ErrUnread] == 0 || refused[ErrUnreadOfFlow] == 0 || refused[nil] == 0 {
		t.Errorf("not all has happened: %v", refused)
	}
	for _, r := range rooms {
		r.Free()
	}
	if r := &scheduler.rooms; r.all != 0 || len(r.of) != 0 {
		t.Errorf("%d bytes of %d flows stay taken", r.all, len(r.of))
	}
}

// TestCrowdLeavesRoom: however much others have, a client gets room for a question.
func TestCrowdLeavesRoom(t *testing.T) {
	t.Parallel()
	scheduler := newScheduler(2)
	for i := range roomOfAll / roomOfFlow {
		if err := scheduler.Room(fmt.Sprint("bad-", i)).Try(roomOfFlow); err != nil {
			t.Fatal(err)
		}
	}
	if err := scheduler.Room("bad").Try(roomOfAll % roomOfFlow); err != nil {
		t.Fatal(err)
	}
	good := scheduler.Room("good")
	if err := good.Try(Question); err != nil {
		t.Error(err)
	}
	if err := good.Try(1); !errors.Is(err, ErrUnread) {
		t.Errorf("more than that: %v", err)
	}
}

// TestRoomIsWaitedFor: an answer waits while others are being read, without its seat, and is
// refused when nothing was given back for some time.
func TestRoomIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheduler := newScheduler(2)
		var held []*Seat
		for range 4 {
			s, err := scheduler.Enter(Reads, "client")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Take(t.Context(), roomOfFlow/4); err != nil {
				t.Fatal(err)
			}
			held = append(held, s)
		}
		begin := time.Now()
		waiting, err := scheduler.Enter(Reads, "client")
		if err != nil {
			t.Fatal(err)
		}
		taken := make(chan error)
		go func() { taken <- waiting.Take(t.Context(), roomOfFlow/2) }()
		for range 2 {
			time.Sleep(patience - time.Second)
			held[0].Release()
			held = held[1:]
		}
		if err, took := <-taken, time.Since(begin); err != nil || took != 2*(patience-time.Second) {
			t.Errorf("%v after %v", err, took)
		}

		late, err := scheduler.Enter(Reads, "client")
		if err != nil {
			t.Fatal(err)
		}
		begin = time.Now()
		if err := late.Take(t.Context(), 1); !errors.Is(err, ErrUnreadOfFlow) || time.Since(begin) != patience {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if !late.began.IsZero() {
			t.Error("it has waited with its seat")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := late.Take(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("its client has gone: %v", err)
		}
		for _, s := range append(held, waiting, late) {
			s.Release()
		}
		if scheduler.rooms.all != 0 || len(scheduler.rooms.of) != 0 {
			t.Errorf("%d bytes stay taken", scheduler.rooms.all)
		}
	})
}
