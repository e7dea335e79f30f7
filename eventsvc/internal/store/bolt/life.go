package bolt

import (
	"context"
	"sync"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// life is the time in which a store is open. All methods are safe for concurrent use.
type life struct {
	stop    chan struct{}  // closed when the store begins to close
	running sync.WaitGroup // what ends by itself after stop
	once    sync.Once
	err     error // of end
}

// closed reports whether the store begins to close, or is closed.
func (l *life) closed() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// close stops what is running, waits for it, and then calls end. It returns the error of
// end, also when it is called again.
func (l *life) close(end func() error) error {
	l.once.Do(func() {
		close(l.stop)
		l.running.Wait()
		l.err = end()
	})
	return l.err
}

// during returns a context that ends with ctx or when the store begins to close.
func (l *life) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-l.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// sleep waits for a time, or until ctx ends or the store begins to close.
func (l *life) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.stop:
		return store.ErrClosed
	}
}
