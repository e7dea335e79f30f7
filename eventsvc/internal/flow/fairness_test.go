package flow

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// newScheduler is a scheduler for so many processors.
func newScheduler(processors int) *Scheduler {
	return New(1024, 256, processors)
}

// work is one request of a client that needs a processor for a while. It returns
// how long it waited for its seat.
func (s *Scheduler) work(ctx context.Context, l Level, client string, takes time.Duration) (waited time.Duration, err error) {
	start := time.Now()
	u, err := s.Enter(l, client)
	if err != nil {
		return 0, err
	}
	defer u.Release()
	if err := u.Acquire(ctx); err != nil {
		return 0, err
	}
	waited = time.Since(start)
	time.Sleep(takes)
	return waited, nil
}

// flood keeps n requests of a client in flight until ctx ends.
func (s *Scheduler) flood(ctx context.Context, wait *sync.WaitGroup, l Level, client string, n int, takes time.Duration) {
	for range n {
		wait.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.work(ctx, l, client, takes)
			}
		})
	}
}

// TestFloodsHoldNobodyUp: during a flood of long requests of one client,
// requests of others do not wait. Only the first of them may wait for one
// request of the flood, because the flood was alone before. None is refused.
func TestFloodsHoldNobodyUp(t *testing.T) {
	t.Parallel()
	for _, processors := range []int{2, 3, 8} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const long = 50 * time.Millisecond
				scheduler := newScheduler(processors)
				ctx, stop := context.WithCancel(t.Context())
				var wait sync.WaitGroup
				for c := range Refusals {
					scheduler.flood(ctx, &wait, c, "flood", 80, long)
				}
				scheduler.flood(ctx, &wait, Refusals, Anonymous, 80, long)
				time.Sleep(10*contention + long/2)
				for i := range 1000 {
					client := fmt.Sprint("good-", i%4)
					waited, err := scheduler.work(ctx, Level(i%int(Refusals)), client, time.Millisecond)
					if most := map[bool]time.Duration{true: long}[i < int(Refusals)]; err != nil || waited > most {
						t.Fatalf("request %d of %s waited for %v, %v", i, client, waited, err)
					}
				}
				stop()
				wait.Wait()
				scheduler.forgotten(t)
			})
		})
	}
}

// TestOneProcessor: on one processor, others wait for at most one request of
// the flood.
func TestOneProcessor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const long = 50 * time.Millisecond
		scheduler := newScheduler(1)
		ctx, stop := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		scheduler.flood(ctx, &wait, Writes, "flood", 200, long)
		time.Sleep(contention)
		for i := range 100 {
			if waited, err := scheduler.work(ctx, Writes, "good", time.Millisecond); err != nil || waited > long {
				t.Fatalf("request %d waited for %v, %v", i, waited, err)
			}
		}
		stop()
		wait.Wait()
	})
}

// TestTimeIsShared: clients that all ask for more than there is get the same
// processor time, whatever their requests cost. A client that had been idle
// gets no more.
func TestTimeIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheduler := newScheduler(2)
		scheduler.seats = 1
		used := map[string]time.Duration{}
		var mu sync.Mutex
		var wait sync.WaitGroup
		ctx, stop := context.WithTimeout(t.Context(), 40*time.Second)
		defer stop()
		ask := func(client string, takes time.Duration) {
			for range 20 {
				wait.Go(func() {
					for ctx.Err() == nil {
						if _, err := scheduler.work(ctx, Reads, client, takes); err == nil {
							mu.Lock()
							used[client] += takes + costs[Reads]
							mu.Unlock()
						}
					}
				})
			}
		}
		ask("long", 50*time.Millisecond)
		ask("short", time.Millisecond)
		ask("medium", 7*time.Millisecond)
		time.Sleep(30 * time.Second)
		alike := func(clients int, tolerance time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			var sum time.Duration
			for _, n := range used {
				sum += n
			}
			for client, n := range used {
				if off := (n - sum/time.Duration(clients)).Abs(); off > tolerance || len(used) != clients {
					t.Errorf("%s had %v of %v", client, n, sum)
				}
			}
			clear(used)
		}
		alike(3, 100*time.Millisecond)
		ask("late", 20*time.Millisecond)
		time.Sleep(8 * time.Second)
		alike(4, 100*time.Millisecond)
		stop()
		wait.Wait()
	})
}

// TestAloneIsNotHeldBack: a client that is alone may use all seats.
func TestAloneIsNotHeldBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheduler := newScheduler(2)
		slots := scheduler.seats
		working := func() int {
			scheduler.mu.Lock()
			defer scheduler.mu.Unlock()
			return scheduler.levels[Reads].working
		}
		ctx, stop := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		if _, err := scheduler.work(ctx, Reads, "other", time.Millisecond); err != nil {
			t.Fatal(err)
		}
		scheduler.flood(ctx, &wait, Reads, "alone", 100, time.Millisecond)
		synctest.Wait()
		if n := working(); n != 1 {
			t.Errorf("in contention %d requests work", n)
		}
		time.Sleep(contention + 2*time.Millisecond)
		synctest.Wait()
		if n := working(); n != slots {
			t.Errorf("alone %d requests work, want %d", n, slots)
		}
		stop()
		wait.Wait()
	})
}

// TestLargeBodiesAreFew: only a few large bodies of one client are in memory,
// and a request that leaves while it waits takes no place.
func TestLargeBodiesAreFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheduler := newScheduler(2)
		var held []*Seat
		enter := func(client string) *Seat {
			u, err := scheduler.Enter(Writes, client)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
		hold := func(client string, ctx context.Context) error {
			u := enter(client)
			if err := u.piece(ctx); err != nil {
				u.Release()
				return err
			}
			held = append(held, u)
			return u.piece(ctx) // has it already
		}
		for range largeBodies {
			if err := hold("a", t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := hold("a", short); err == nil {
			t.Error("another large body is in memory")
		}
		if err := hold("b", short); err != nil && short.Err() == nil {
			t.Error("another client's body waits")
		}
		done := make(chan error)
		go func() { done <- hold("a", t.Context()) }()
		synctest.Wait()
		first := held[0]
		held = held[1:]
		first.Release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, u := range held {
			u.Release()
		}
		scheduler.forgotten(t)
	})
}

// TestReadingLargeBodiesIsWork: when reading a client's bodies has used up its
// share of time, no more of them is read until it has a share again.
func TestReadingLargeBodiesIsWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheduler := newScheduler(2)
		other, err := scheduler.Enter(Writes, "other")
		if err != nil {
			t.Fatal(err)
		}
		defer other.Release()
		start := time.Now()
		for i, want := range []time.Duration{0, 0, period} {
			u, err := scheduler.Enter(Writes, "sender")
			if err != nil {
				t.Fatal(err)
			}
			if err := u.piece(t.Context()); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start); waited != want {
				t.Errorf("body %d is read after %s, want %s", i, waited, want)
			}
			u.charge(period/2 + time.Millisecond)
			u.Release()
		}
	})
}

// TestLargeBodiesAreReadInTurn: each piece of a body waits for a seat. While it
// waits because its client has used its share, others go on at once.
func TestLargeBodiesAreReadInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheduler := newScheduler(2)
		other, err := scheduler.Enter(Writes, "other")
		if err != nil {
			t.Fatal(err)
		}
		defer other.Release()
		u, err := scheduler.Enter(Writes, "sender")
		if err != nil {
			t.Fatal(err)
		}
		defer u.Release()
		read := make(chan time.Duration)
		start := time.Now()
		go func() {
			for range 3 {
				if err := u.piece(t.Context()); err != nil {
					t.Error(err)
				}
				read <- time.Since(start)
				u.charge(period/2 + time.Millisecond)
			}
		}()
		for piece, want := range []time.Duration{0, 0, period} {
			synctest.Wait() // the sender has read the piece, or waits for a seat
			if waited, err := scheduler.work(t.Context(), Writes, "small", 0); waited > 0 || err != nil {
				t.Errorf("beside piece %d another waits for %s, %v", piece, waited, err)
			}
			if at := <-read; at != want {
				t.Errorf("piece %d is read after %s, want %s", piece, at, want)
			}
		}
	})
}

// TestMuchOfLittleIsMuch: requests count even if they hold their seats for no time; writes count more than reads.
func TestMuchOfLittleIsMuch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheduler := newScheduler(2)
		other, err := scheduler.Enter(Reads, "other")
		if err != nil {
			t.Fatal(err)
		}
		defer other.Release()
		for client, c := range map[string]Level{"reader": Reads, "writer": Writes} {
			var waited time.Duration
			n := 0
			for ; waited == 0 && n < 10_000; n++ {
				if waited, err = scheduler.work(t.Context(), c, client, 0); err != nil {
					t.Fatal(err)
				}
			}
			if want := int(period / costs[c]); n < want || n > want+2 {
				t.Errorf("the %s has to wait with request %d, want %d", client, n, want)
			}
		}
	})
}

// forgotten expects that nothing is counted any more once what was used is
// history.
func (s *Scheduler) forgotten(tb testing.TB) {
	tb.Helper()
	time.Sleep(time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startPeriod()
	if len(s.flows) != 0 || s.inFlight != 0 {
		tb.Errorf("%d flows and %d requests are still counted", len(s.flows), s.inFlight)
	}
}

// TestPartsOfTime: a client that asks for everything gets its share of
// processor time while others have requests in flight, even if these mostly
// wait for the disk. It gets all of it when they are gone.
func TestPartsOfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheduler := newScheduler(2)
		var mu sync.Mutex
		var used time.Duration
		var wait sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		for range 10 {
			wait.Go(func() {
				for ctx.Err() == nil {
					if _, err := scheduler.work(ctx, Reads, "flood", 35*time.Millisecond); err == nil {
						mu.Lock()
						used += 35 * time.Millisecond
						mu.Unlock()
					}
				}
			})
		}
		others, gone := context.WithTimeout(ctx, 10*time.Second)
		defer gone()
		for i := range 8 {
			wait.Go(func() {
				for others.Err() == nil {
					u, err := scheduler.Enter(Writes, fmt.Sprint("good-", i/2))
					if err == nil {
						err = u.Acquire(ctx)
					}
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(100 * time.Microsecond)
					u.Yield()
					time.Sleep(time.Millisecond) // the disk
					u.Release()
				}
			})
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		if part := 2 * 10 * time.Second / 5; used < part*95/100 || used > part*105/100 {
			t.Errorf("the flood had %v of 10s of two processors, want a fifth: %v", used, part)
		}
		used = 0
		mu.Unlock()
		time.Sleep(10 * time.Second)
		mu.Lock()
		if used < 19*time.Second/2 {
			t.Errorf("alone it had %v of 10s", used)
		}
		mu.Unlock()
		stop()
		wait.Wait()
		scheduler.forgotten(t)
	})
}

// TestClientsThatStallHoldNobodyUp: clients that do not read their answers or send the rest of
// their bodies need no processor, so others do not leave any to them.
func TestClientsThatStallHoldNobodyUp(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(*Seat, func()){
		"unread": func(u *Seat, forever func()) {
			_ = u.Write(func() error { forever(); return nil })
		},
		"unsent": func(u *Seat, forever func()) {
			body := io.NopCloser(readerFunc(func([]byte) (int, error) { forever(); return 0, io.EOF }))
			_, _ = NewReader(context.WithValue(t.Context(), Key{}, u), body).Read(make([]byte, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				scheduler := newScheduler(2)
				ctx, stop := context.WithCancel(t.Context())
				var stalled sync.WaitGroup
				for i := range 6 {
					stalled.Go(func() {
						u := scheduler.enter(t, Reads, fmt.Sprint("stalled-", i))
						defer u.Release()
						wait(u, func() { <-ctx.Done() })
					})
				}
				time.Sleep(2 * slowWrite)
				for i := range 100 {
					scheduler.enter(t, Writes, "other").Release() // the good one is not alone
					if waited, err := scheduler.work(ctx, Reads, "good", 5*time.Millisecond); err != nil || waited > 0 {
						t.Fatalf("request %d waited for %v, %v", i, waited, err)
					}
				}
				stop()
				stalled.Wait()
				scheduler.forgotten(t)
			})
		})
	}
}

// readerFunc is a reader from a function.
type readerFunc func([]byte) (int, error)

// Read implements [io.Reader].
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
