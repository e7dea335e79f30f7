package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/waittest"
)

// Next returns what a watcher gives next. It may be called by any goroutine of a test: if nothing
// comes it returns an error.
func Next(t testing.TB, w store.Watcher) (store.Batch, error) {
	t.Helper()
	ctx, cancel := waittest.Context(t)
	defer cancel()
	b, err := w.Next(ctx)
	if errors.Is(err, context.Canceled) && t.Context().Err() == nil {
		t.Errorf("a watcher was told nothing:\n%s", waittest.Stacks())
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
	waittest.Reaches(t, "calls have ended", int64(n), ended.Load)
	waittest.Join(t, &callers)
}
