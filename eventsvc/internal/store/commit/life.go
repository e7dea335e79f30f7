package commit

import (
	"context"
	"sync"
)

// Life is the time in which a store is open. All methods are safe for concurrent use.
type Life struct {
	Ctx     context.Context // ends when the store begins to close
	Running sync.WaitGroup  // what ends by itself after that

	close func() error
}

// NewLife begins a life, at whose end, when nothing runs any more, end closes the store.
func NewLife(end func() error) *Life {
	ctx, stop := context.WithCancel(context.Background())
	l := &Life{Ctx: ctx}
	l.close = sync.OnceValue(func() error {
		stop()
		l.Running.Wait()
		return end()
	})
	return l
}

// Closed reports whether the store begins to close, or is closed.
func (l *Life) Closed() bool { return l.Ctx.Err() != nil }

// Close closes the store once, and returns the same error again.
func (l *Life) Close() error { return l.close() }
