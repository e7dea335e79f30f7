package api

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestStrangersHoldNobodyUp: beside a flood of refused tokens nobody waits, and
// who would be alone without it has all slots.
func TestStrangersHoldNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2)
		ctx, stop := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		turns.flood(ctx, &wait, refusals, strangers, 200, 50*time.Millisecond)
		for i := range 100 {
			for c := range refusals {
				if waited, err := turns.work(ctx, c, fmt.Sprint("good-", i%4), time.Millisecond); err != nil || waited > 0 {
					t.Fatalf("%s request %d waited for %v, %v", c, i, waited, err)
				}
			}
		}
		turns.flood(ctx, &wait, reads, "alone", 100, time.Millisecond)
		time.Sleep(2*company + time.Millisecond/2)
		synctest.Wait()
		turns.mu.Lock()
		working, most, refused := turns.classes[reads].working, turns.classes[reads].slots, turns.classes[refusals].working
		turns.mu.Unlock()
		if working != most || refused > 1 {
			t.Errorf("%d of %d requests and %d refusals work", working, most, refused)
		}
		stop()
		wait.Wait()
		turns.forgotten(t)
	})
}

// TestStrangersHaveASmallPart: while a client has a request in flight, strangers
// are refused no more often than their part says, all together.
func TestStrangersHaveASmallPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2)
		u, err := turns.enter(writes, "good")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		refused := 0
		var wait sync.WaitGroup
		for range 100 {
			wait.Go(func() {
				for ctx.Err() == nil {
					if _, err := turns.work(ctx, refusals, strangers, 0); err == nil {
						mu.Lock()
						refused++
						mu.Unlock()
					}
				}
			})
		}
		const seconds = 10
		time.Sleep(seconds * time.Second)
		mu.Lock()
		if most := int(seconds * time.Second / costs[refusals]); refused > most+int(2*period/costs[refusals]) || refused < most*9/10 {
			t.Errorf("%d refusals in %d s, want %d", refused, seconds, most)
		}
		mu.Unlock()
		u.leave()
		stop()
		wait.Wait()
		turns.forgotten(t)
	})
}
