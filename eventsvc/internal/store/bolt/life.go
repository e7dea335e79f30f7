package bolt

import (
	"context"
	"sync"
)

// life is the time in which a store is open. All methods are safe for concurrent use.
type life struct {
	ctx     context.Context // ends when the store begins to close
	stop    context.CancelFunc
	running sync.WaitGroup // what ends by itself after that
	once    sync.Once
	err     error // of end
}

// closed reports whether the store begins to close, or is closed.
func (l *life) closed() bool { return l.ctx.Err() != nil }

// close stops what is running, waits for it, and then calls end. It returns the error of
// end, also when it is called again.
func (l *life) close(end func() error) error {
	l.once.Do(func() {
		l.stop()
		l.running.Wait()
		l.err = end()
	})
	return l.err
}

// during returns a context that ends with ctx or when the store begins to close.
func (l *life) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
