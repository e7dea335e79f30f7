package client

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
)

// flights shares the outcome of one compare between attempts with the same id and secret that arrive meanwhile. So the
// instances of a client that start together cost one compare. The compare goes on when its requests have been
// cancelled, because clients that time out soon try again.
type flights struct {
	timeout time.Duration
	group   singleflight.Group
}

// do runs compare, or joins the one with the same key that is running, and returns its outcome.
func (fs *flights) do(ctx context.Context, key string, compare func(context.Context) (int, error)) (int, error) {
	outcome := fs.group.DoChan(key, func() (any, error) {
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), fs.timeout)
		defer cancel()
		return compare(shared)
	})
	select {
	case r := <-outcome:
		return r.Val.(int), r.Err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
