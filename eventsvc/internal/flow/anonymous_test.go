package flow

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnonymousDelaysNobody: during a flood of refused tokens no client waits,
// and a client that is otherwise alone can use all seats.
func TestAnonymousDelaysNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheduler := newScheduler(2)
		ctx, stop := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		scheduler.flood(ctx, &wait, Refusals, Anonymous, 200, 50*time.Millisecond)
		for i := range 100 {
			for c := range Refusals {
				if waited, err := scheduler.work(ctx, c, fmt.Sprint("good-", i%4), time.Millisecond); err != nil || waited > 0 {
					t.Fatalf("%s request %d waited for %v, %v", c, i, waited, err)
				}
			}
		}
		scheduler.flood(ctx, &wait, Reads, "alone", 100, time.Millisecond)
		time.Sleep(2*contention + time.Millisecond/2)
		synctest.Wait()
		scheduler.mu.Lock()
		working, most, refused := scheduler.levels[Reads].working, scheduler.seats, scheduler.levels[Refusals].working
		scheduler.mu.Unlock()
		if working != most || refused > 1 {
			t.Errorf("%d of %d requests and %d Refusals work", working, most, refused)
		}
		stop()
		wait.Wait()
		scheduler.forgotten(t)
	})
}

// TestAnonymousHasASmallShare: while a client has a request in flight, anonymous
// callers are refused no more often than their share says, all together.
func TestAnonymousHasASmallShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheduler := newScheduler(2)
		u, err := scheduler.Enter(Writes, "good")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		const seconds = 10
		most := int(seconds * time.Second / costs[Refusals])
		var mu sync.Mutex
		refused := 0
		goOn := func() bool { // not for ever where nobody waits
			mu.Lock()
			defer mu.Unlock()
			return ctx.Err() == nil && refused < 10*most
		}
		var wait sync.WaitGroup
		// Each caller may have one refusal more in a period: it was let in, and is charged for the next one only when
		// it asks again. Four of them stay below the bound in every order in which the goroutines run.
		for range 4 {
			wait.Go(func() {
				for goOn() {
					if _, err := scheduler.work(ctx, Refusals, Anonymous, 0); err == nil {
						mu.Lock()
						refused++
						mu.Unlock()
					}
				}
			})
		}
		time.Sleep(seconds * time.Second)
		mu.Lock()
		if refused > most+int(2*period/costs[Refusals]) || refused < most*9/10 {
			t.Errorf("%d Refusals in %d s, want %d", refused, seconds, most)
		}
		mu.Unlock()
		u.Release()
		stop()
		wait.Wait()
		scheduler.forgotten(t)
	})
}
