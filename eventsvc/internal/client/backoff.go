package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff spaces attempts. The waits double up to a limit, and their upper half is random, so that clients that lost
// the same server do not return at the same time. If the server sends Retry-After, the wait is not shorter than that.
// The zero value is ready to use. It is not safe for concurrent use.
type Backoff struct {
	wait time.Duration
}

const (
	backoffFirst   = 200 * time.Millisecond
	backoffLongest = 15 * time.Second
)

// Reset makes the next wait a short one, after a success.
func (b *Backoff) Reset() { b.wait = 0 }

// Next returns how long to wait after err.
func (b *Backoff) Next(err error) time.Duration {
	b.wait = min(max(2*b.wait, backoffFirst), backoffLongest)
	jitter := rand.N(b.wait/2 + 1)
	if asked := retryAfter(err); asked > 0 {
		return asked + jitter/4
	}
	return b.wait/2 + jitter
}

// Wait waits as long as [Backoff.Next] returns, or returns the error of ctx.
func (b *Backoff) Wait(ctx context.Context, err error) error {
	return Sleep(ctx, b.Next(err))
}

// Sleep waits for d, or returns the error of ctx.
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
