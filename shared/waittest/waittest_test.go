package waittest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/shared/waittest"
)

// recorded is a test that may fail.
type recorded struct {
	testing.TB
	failure string
}

func (*recorded) Helper() {}

func (r *recorded) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestLost: each wait fails in the end, with what is missing and the stack of what did not happen.
func TestLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		missing string
		wait    func(testing.TB)
	}{
		"Within":  {"nothing was sent", func(t testing.TB) { waittest.Within(t, make(chan int)) }},
		"Becomes": {"two of three", func(t testing.TB) { waittest.Becomes(t, func() error { return errors.New("two of three") }) }},
		"Slowly": {"two of four", func(t testing.TB) {
			begin := time.Now()
			waittest.Slowly(t, 10*time.Minute, func() error {
				if time.Since(begin) < 9*time.Minute { // not lost yet
					return errors.New("one of four")
				}
				return errors.New("two of four")
			})
		}},
		"Until": {"not yet: a new moon", func(t testing.TB) { waittest.Until(t, "a new moon", func() bool { return false }) }},
		"Reaches": {"not yet: copies: 2 of 3", func(t testing.TB) {
			n := int64(0)
			waittest.Reaches(t, "copies", 3, func() int64 { n = min(n+1, 2); return n })
		}},
		"Join": {"nothing was sent", func(t testing.TB) {
			var all sync.WaitGroup
			ctx, end := context.WithCancel(context.Background())
			defer end() // a bubble ends when all its goroutines have
			all.Go(func() { <-ctx.Done() })
			waittest.Join(t, &all)
		}},
		"Context": {"it ends", func(t testing.TB) {
			ctx, cancel := waittest.Context(t)
			defer cancel()
			<-ctx.Done()
			waittest.Lost(t, "it ends")
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &recorded{TB: t}
			var waiting sync.WaitGroup
			waiting.Go(func() { c.wait(r) })
			waiting.Wait()
			if !strings.HasPrefix(r.failure, "waited in vain: "+c.missing+"\n") || !strings.Contains(r.failure, "waittest_test.TestLost") {
				t.Errorf("%s: %q", name, r.failure)
			}
		})
	}
}

// TestKept: a wait ends as soon as what it waits for is there.
func TestKept(t *testing.T) {
	t.Parallel()
	numbers := make(chan int, 1)
	numbers <- 7
	if n := waittest.Within(t, numbers); n != 7 {
		t.Error(n)
	}
	close(numbers)
	waittest.Within(t, numbers)
	var all sync.WaitGroup
	all.Go(func() {})
	waittest.Join(t, &all)
	n := 0
	waittest.Until(t, "three", func() bool { n++; return n == 3 })
	if n != 3 {
		t.Error(n)
	}
	waittest.Reaches(t, "seven", 7, func() int64 { n++; return int64(n) })
	if n < 7 {
		t.Error(n)
	}
}
