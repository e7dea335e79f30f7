package client

import (
	"context"
	"sync"
	"time"
)

// flights lets attempts with the same id and secret that arrive while one of them is being compared share its outcome:
// the instances of one client that start together cost one compare.
type flights struct {
	timeout time.Duration

	mu      sync.Mutex
	current map[string]*flight
}

// flight is one compare and those who wait for it. It is given up when the last of them has gone.
type flight struct {
	done   chan struct{}
	err    error // valid once done is closed
	joined int
	cancel context.CancelFunc
}

func newFlights(timeout time.Duration) *flights {
	return &flights{timeout: timeout, current: make(map[string]*flight)}
}

// do runs compare unless one with the same key is under way, and returns its outcome.
func (fs *flights) do(ctx context.Context, key string, compare func(context.Context) error) error {
	f := fs.join(ctx, key, compare)
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		fs.abandon(key, f)
		return ctx.Err()
	}
}

func (fs *flights) join(ctx context.Context, key string, compare func(context.Context) error) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f, ok := fs.current[key]; ok {
		f.joined++
		return f
	}
	shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), fs.timeout)
	f := &flight{done: make(chan struct{}), joined: 1, cancel: cancel}
	fs.current[key] = f
	go func() {
		defer cancel()
		f.err = compare(shared)
		fs.mu.Lock()
		fs.forget(key, f)
		fs.mu.Unlock()
		close(f.done)
	}()
	return f
}

func (fs *flights) abandon(key string, f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.joined--
	if f.joined == 0 {
		f.cancel()
		fs.forget(key, f)
	}
}

// forget makes later attempts start afresh; another flight may have taken the key meanwhile.
func (fs *flights) forget(key string, f *flight) {
	if fs.current[key] == f {
		delete(fs.current, key)
	}
}
