package storetest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// most is how long a test waits for what comes at once unless it is lost.
const most = 10 * time.Second

// Within receives what others send, or waits until they close the channel. If nothing comes the
// test fails, and shows what all goroutines do.
func Within[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case v = <-from:
	case <-timer.C:
		lost(t)
	}
	return v
}

// Join waits for goroutines that have been told to end, or have little left to do.
func Join(t testing.TB, all *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	Within(t, done)
}

// Becomes waits until a condition holds, of which the error says what is missing.
func Becomes(t testing.TB, condition func() error) {
	t.Helper()
	began := time.Now()
	for err := condition(); err != nil; err = condition() {
		if time.Since(began) > most {
			t.Errorf("after %s: %v", most, err)
			lost(t)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// Next returns what a watcher gives next. It may be called by any goroutine of a test: if nothing
// comes it returns an error.
func Next(t testing.TB, w store.Watcher) (store.Batch, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	b, err := w.Next(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a watcher was told nothing for %s:\n%s", most, stacks())
	}
	return b, err
}

// Parallel calls f with 0 to n-1 from many goroutines, so that commits are shared. The test fails
// if no call ends for a while.
func Parallel(t testing.TB, n int, f func(i int)) {
	t.Helper()
	var next, ended atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
				ended.Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() { callers.Wait(); close(done) }()
	for before := int64(-1); before != ended.Load(); {
		before = ended.Load()
		select {
		case <-done:
			return
		case <-time.After(most):
		}
	}
	lost(t)
}

// lost fails the test, which has waited in vain.
func lost(t testing.TB) {
	t.Helper()
	t.Fatalf("waited for %s in vain:\n%s", most, stacks())
}

// stacks are those of all goroutines.
func stacks() []byte {
	text := make([]byte, 1<<20)
	return text[:runtime.Stack(text, true)]
}
