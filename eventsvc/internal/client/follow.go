package client

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// ErrRewound means that a server's versions have started over, for instance because its data was replaced: what was
// seen before says nothing about what is there now.
var ErrRewound = errors.New("the server's versions have started over")

// Pages reads a list page by page, so that a long one needs little memory, and returns the version that it shows. What
// fails is given to again, which waits and returns nil to try once more.
func (c *Client) Pages(ctx context.Context, path string, query url.Values, size int, each func(*Page) error, again func(error) error) (string, error) {
	q := url.Values{}
	maps.Copy(q, query)
	q.Set("limit", strconv.Itoa(size))
	for {
		page, err := c.List(ctx, path, q)
		if err != nil {
			if err = again(err); err != nil {
				return "", err
			}
			continue
		}
		if err := each(page); err != nil {
			return "", err
		}
		if page.Metadata.Continue == "" {
			return page.Metadata.ResourceVersion, nil
		}
		q.Set("continue", page.Metadata.Continue)
	}
}

// Version is the server's version now.
func (c *Client) Version(ctx context.Context, path string) (string, error) {
	page, err := c.List(ctx, path, url.Values{"limit": {"1"}})
	if err != nil {
		return "", err
	}
	return page.Metadata.ResourceVersion, nil
}

// Follower is told what [Client.Follow] sees.
type Follower struct {
	Connected   func()
	Change      func(Change) error // bookmarks too, which only say a version
	Interrupted func(error)        // it is tried again
}

const (
	// shortWatch is how long a watch lasts at least that is not suspicious although it brought nothing: a server that
	// ends each at once must not be asked again at once.
	shortWatch = time.Second
	// newKeys is how long a server that has accepted this caller before may take to hear of its issuer's new keys.
	newKeys = 2 * time.Minute
)

// Follow delivers every change after a version, once and in order, over restarts of the server and new tokens. It ends
// with ctx, with an error of Change, or when there is no going on: see [Gone], [ErrRewound].
func (c *Client) Follow(ctx context.Context, path, version string, query url.Values, f Follower) error {
	var wait Backoff
	var accepted time.Time // when the last watch ended
	for {
		began, from, connected := time.Now(), version, false
		err := c.follow(ctx, path, &version, query, f, &connected)
		if connected {
			accepted = time.Now()
		}
		ended, useful := errors.Is(err, io.EOF), version != from || time.Since(began) >= shortWatch
		var stop *stopError
		var noToken *TokenError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &stop):
			return stop.err
		case ended:
		case Retryable(err), errors.As(err, &noToken), Code(err) == http.StatusUnauthorized && time.Since(accepted) < newKeys:
			f.Interrupted(err)
		default:
			return err
		}
		if useful && connected {
			wait.Reset()
		}
		if useful && ended {
			continue // the ordinary end of a watch
		}
		if err := wait.Wait(ctx, err); err != nil {
			return err
		}
	}
}

// follow is one watch. What it has delivered is told by version.
func (c *Client) follow(ctx context.Context, path string, version *string, query url.Values, f Follower, connected *bool) error {
	current, err := c.Version(ctx, path) // kube-apiserver waits in silence for a version that is still to come
	if err != nil {
		return err
	}
	if current != *version && Newer(*version, current) {
		return ErrRewound
	}
	stream, err := c.Watch(ctx, path, *version, query)
	if err != nil {
		return err
	}
	defer stream.Close()
	*connected = true
	f.Connected()
	for {
		change, err := stream.Next()
		if err != nil {
			return err
		}
		if err := f.Change(change); err != nil {
			return &stopError{err}
		}
		*version = change.Version
	}
}

// stopError is an error of whoever is told, which is never a reason to try again.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }

func (e *stopError) Unwrap() error { return e.err }

// Seen reports whether a frame shows an event as it is, and not that it is gone.
func (c Change) Seen() bool { return c.Type == watch.Added || c.Type == watch.Modified }
