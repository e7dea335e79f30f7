package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff spaces attempts: the waits double up to a bound and are random in their upper half, so that clients that lost
// the same server do not come back together. A server's Retry-After goes first. The zero value is ready to use.
type Backoff struct {
	wait time.Duration
}

const (
	backoffFirst   = 200 * time.Millisecond
	backoffLongest = 15 * time.Second
)

// Reset is told of a success.
func (b *Backoff) Reset() { b.wait = 0 }

// Next is how long to wait after err.
func (b *Backoff) Next(err error) time.Duration {
	b.wait = min(max(2*b.wait, backoffFirst), backoffLongest)
	jitter := rand.N(b.wait/2 + 1)
	if asked := retryAfter(err); asked > 0 {
		return asked + jitter/4 // never earlier than asked for
	}
	return b.wait/2 + jitter
}

// Wait waits as [Backoff.Next] says; it is an error when ctx ends first.
func (b *Backoff) Wait(ctx context.Context, err error) error {
	return Sleep(ctx, b.Next(err))
}

// Sleep waits for d, or is an error when ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
