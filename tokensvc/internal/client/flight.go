package client

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
)

// flights lets attempts with the same id and secret that arrive while one of them is being compared share its outcome:
// the instances of one client that start together cost one compare. It goes on when those who wait have gone, because
// clients that lose patience soon ask again.
type flights struct {
	timeout time.Duration
	group   singleflight.Group
}

// do runs compare unless one with the same key is under way, and returns its outcome.
func (fs *flights) do(ctx context.Context, key string, compare func(context.Context) error) error {
	outcome := fs.group.DoChan(key, func() (any, error) {
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), fs.timeout)
		defer cancel()
		return nil, compare(shared)
	})
	select {
	case r := <-outcome:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}
