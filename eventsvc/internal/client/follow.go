package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// ErrRewound means that the server's versions are lower than before, for instance because its data was replaced. What
// was read before says nothing about what is there now.
var ErrRewound = errors.New("the server's versions have started over")

// ErrSilent means that a watch says nothing, although the server has a later version. What has changed is unknown:
// perhaps nothing that the watch is about, perhaps something between here and the server holds it back.
var ErrSilent = errors.New("the watch says nothing")

// Change is one frame of a watch: a change of an object, or a bookmark, which only tells a version.
type Change struct {
	Type    watch.EventType
	Object  json.RawMessage
	Version string // the object's resourceVersion
}

// Seen reports whether the change shows an object as it is now, and not that it was deleted.
func (c Change) Seen() bool { return c.Type == watch.Added || c.Type == watch.Modified }

// Follower has the functions that [Client.Follow] calls.
type Follower struct {
	Connected   func()
	Change      func(Change) error // with bookmarks too; an error ends Follow
	Interrupted func(error)        // a failure after which Follow tries again
	// Silence is how long a watch may say nothing while the server's version grows, until twice as long; 0:
	// silenceWait. Then it is begun again or, if EndSilent is set, ends Follow with [ErrSilent].
	Silence   time.Duration
	EndSilent bool
	// OnlySelected is set if this caller may list only what the query selects. Otherwise the current version is asked
	// for without the query, because to find the first object that a selector selects may take long.
	OnlySelected bool
}

const (
	// shortWatch is the time within which a watch that ends without a change is suspicious: a server that ends each
	// watch at once must not be asked again at once.
	shortWatch = time.Second
	// newKeys is how long a server that has accepted this caller before may take to learn its issuer's new keys.
	newKeys = 2 * time.Minute
	// watchSeconds is the shortest time for which a watch is requested. A dead connection that nothing reports is given
	// up then. A random time is added, so that watches do not all end at the same time.
	watchSeconds = 300
	// silenceWait is longer than the minute between the bookmarks of most servers.
	silenceWait = 90 * time.Second
	lookWait    = 10 * time.Second // for the answer to how far a server is whose watch says nothing
)

// Follow delivers every change after a version, once and in order, also when the server restarts and when tokens
// expire. It ends with ctx, with an error of Change, or when it cannot continue from the last version: see [Gone] and
// [ErrRewound].
func (c *Client) Follow(ctx context.Context, path, version string, query url.Values, f Follower) error {
	var wait Backoff
	var accepted time.Time // when the last watch ended
	for {
		began, from, connected := time.Now(), version, false
		err := c.watch(ctx, path, &version, query, f, &connected)
		if connected {
			accepted = time.Now()
		}
		ended, useful := f.goesOn(err), version != from || time.Since(began) >= shortWatch
		var stop stopError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &stop):
			return stop.error
		case ended:
		case passes(err, accepted):
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

// goesOn reports whether the end of a watch is an ordinary one.
func (f *Follower) goesOn(end error) bool {
	return errors.Is(end, io.EOF) || errors.Is(end, ErrSilent) && !f.EndSilent
}

// passes reports whether a watch that has failed is worth another attempt. accepted is when the last watch ended.
func passes(err error, accepted time.Time) bool {
	var noToken *TokenError
	return Retryable(err) || errors.As(err, &noToken) || Code(err) == http.StatusUnauthorized && time.Since(accepted) < newKeys
}

// stopError is an error of Change, which ends Follow whatever it is.
type stopError struct{ error }

// watch delivers the changes of one watch. It sets connected when the watch is open, and version after each change.
func (c *Client) watch(ctx context.Context, path string, version *string, query url.Values, f Follower, connected *bool) error {
	var selected url.Values
	if f.OnlySelected {
		selected = query
	}
	current, err := c.version(ctx, path, selected) // kube-apiserver does not answer a watch from a version that is yet to come
	if err != nil {
		return err
	}
	if current != *version && Newer(*version, current) {
		return ErrRewound
	}
	q := url.Values{
		"watch": {"true"}, "resourceVersion": {*version}, "allowWatchBookmarks": {"true"},
		"timeoutSeconds": {strconv.Itoa(watchSeconds + rand.IntN(watchSeconds))},
	}
	maps.Copy(q, query)
	ctx, end := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer end(nil)
	resp, err := c.send(ctx, Request{Path: path, Query: q})
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	*connected = true
	f.Connected()
	var waiting atomic.Pointer[string] // the version from which the next frame is waited for; nil: none is
	listening.Go(func() {
		end(silent(ctx, cmp.Or(f.Silence, silenceWait), &waiting, func(ctx context.Context) (string, error) {
			asking, cancel := context.WithTimeout(ctx, lookWait)
			defer cancel()
			version, err := c.version(asking, path, selected)
			if asking.Err() != nil {
				err = &UnreachableError{Server: c.Server(), Err: asking.Err()}
			}
			return version, err
		}))
	})
	for frames := json.NewDecoder(resp.Body); ; {
		waiting.Store(new(*version))
		change, err := c.next(frames)
		waiting.Store(nil)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if err := f.Change(change); err != nil {
			return stopError{err}
		}
		*version = change.Version
	}
}

// silent returns why a watch is to end that says nothing: at two looks, with a pause between in which no frame came,
// the server had a later version than the one waited with, or did not answer. It returns nil when ctx ends.
func silent(ctx context.Context, pause time.Duration, waiting *atomic.Pointer[string], latest func(context.Context) (string, error)) error {
	var before *string // what was waited with at the last look, if that found something amiss
	for Sleep(ctx, pause) == nil {
		now := waiting.Load()
		if now == nil { // whoever takes the changes is at work
			before = nil
			continue
		}
		version, err := latest(ctx)
		switch {
		case err == nil && !Newer(version, *now):
			before = nil
		case now != before:
			before = now
		case err != nil:
			return err
		default:
			return ErrSilent
		}
	}
	return nil
}

// next returns the next frame of a watch. The ordinary end is io.EOF. An ERROR frame becomes the refusal that it
// carries.
func (c *Client) next(frames *json.Decoder) (Change, error) {
	var frame struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	err := frames.Decode(&frame)
	switch {
	case errors.Is(err, io.EOF):
		return Change{}, io.EOF
	case err != nil: // also a frame that is cut off: the server has gone away
		return Change{}, &UnreachableError{Server: c.Server(), Err: err}
	}
	if frame.Type == watch.Error {
		var status metav1.Status
		if err := json.Unmarshal(frame.Object, &status); err != nil {
			return Change{}, fmt.Errorf("%s ended the watch with %s", c.Server(), frame.Object)
		}
		return Change{}, &apierrors.StatusError{ErrStatus: status}
	}
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(frame.Object, &object); err != nil || object.Metadata.ResourceVersion == "" {
		return Change{}, fmt.Errorf("%s sent a change without a version: %.200s", c.Server(), frame.Object)
	}
	return Change{Type: frame.Type, Object: frame.Object, Version: object.Metadata.ResourceVersion}, nil
}

// Gone reports whether the server no longer keeps the version that was asked for.
func Gone(err error) bool { return Code(err) == http.StatusGone }

// Newer reports whether version a is later than b. Versions are numbers that grow (KEP-5504). A version that is no
// number counts as newer unless both are the same.
func Newer(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	if errX != nil || errY != nil {
		return a != b
	}
	return x > y
}
