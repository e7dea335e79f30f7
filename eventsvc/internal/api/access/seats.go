package access

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/httpserver"
)

// levelOf is the level of a verb's requests.
func levelOf(v policy.Verb) flow.Level {
	switch {
	case v&(policy.Get|policy.List) != 0:
		return flow.Reads
	case v == policy.Watch:
		return flow.Watches
	}
	return flow.Writes
}

// Seated serves the requests of a verb with a seat, which is released when next
// returns or panics. A read acquires it here, other requests when their body has
// been read or when they first need the store.
//
// The store yields the seat while a write waits for the disk ([Store]), and the writer of answers while a client is
// slow ([httpio.Writer]). A handler of many events acquires the seat again before each part, and asks it for room
// ([flow.FromContext]).
func (g *Guard) Seated(v policy.Verb, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		seat, err := g.sit(c, v)
		if err != nil {
			return err
		}
		defer seat.Release()
		return next(c)
	}
}

// sit gives a request of a verb its seat. The caller must release it.
func (g *Guard) sit(c echo.Context, v policy.Verb) (*flow.Seat, error) {
	req, level := c.Request(), levelOf(v)
	seat, err := g.enter(level, Client(req))
	if err != nil {
		return nil, err
	}
	httpserver.Leave(req.Context())
	if v != policy.Create { // a creation is checked by the store when it writes
		err = g.freshen(c)
	}
	req = httpserver.WithValue(req, flow.Key{}, seat)
	if level == flow.Writes {
		req.Body = flow.NewReader(req.Context(), req.Body)
	}
	if err == nil && level == flow.Reads {
		err = seat.Acquire(req.Context())
	}
	if err != nil {
		seat.Release()
		return nil, err
	}
	c.SetRequest(req)
	return seat, nil
}

// freshen makes the store show every write that was acknowledged before the request. The header Age (RFC 9111, section
// 5.1) tells a client that it may see an older state.
func (g *Guard) freshen(c echo.Context) error {
	age, err := g.Fresh(c.Request().Context())
	if err == nil && age > 0 {
		c.Response().Header().Set("Age", strconv.Itoa(int(age.Round(time.Second)/time.Second)))
	}
	return err
}

// enter counts a request in, or returns the answer to one that is too many.
func (g *Guard) enter(l flow.Level, name string) (*flow.Seat, error) {
	seat, err := g.scheduler.Enter(l, name)
	if err == nil {
		return seat, nil
	}
	limit := "requests"
	if errors.Is(err, flow.ErrTooManyOfFlow) {
		limit = "client-requests"
	}
	return nil, httpio.Beyond(limit, apierrors.NewTooManyRequests("too many requests are in flight, please try again", 1))
}

// seatedStore is a store whose callers hold their seat while they read or decide,
// and yield it while a write waits for other writes and for the disk.
type seatedStore struct{ store.Store }

// Store returns a store that takes and yields the seat of the request that its
// context belongs to.
func Store(s store.Store) store.Store { return seatedStore{s} }

// Get implements [store.Store].
func (s seatedStore) Get(ctx context.Context, key store.Key, look func(*store.View) error) error {
	if err := flow.FromContext(ctx).Acquire(ctx); err != nil {
		return err
	}
	return s.Store.Get(ctx, key, look)
}

// List implements [store.Store].
func (s seatedStore) List(ctx context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	if err := flow.FromContext(ctx).Acquire(ctx); err != nil {
		return store.Page{}, err
	}
	return s.Store.List(ctx, q, visit)
}

// Update implements [store.Store].
func (s seatedStore) Update(ctx context.Context, key store.Key, expect store.Expect, decide store.Decide) (store.Result, error) {
	seat := flow.FromContext(ctx)
	result, err := s.Store.Update(ctx, key, expect, func(current *store.Record) (store.Decision, error) {
		if err := seat.Acquire(ctx); err != nil { // another write came first, and decide is called again
			return store.Decision{}, err
		}
		defer seat.Yield() // the disk comes next
		return decide(current)
	})
	_ = seat.Acquire(ctx) // ctx may have ended: what was written is answered all the same
	return result, err
}

// UpdateMany implements [store.Store].
func (s seatedStore) UpdateMany(
	ctx context.Context, keys []store.Key, expect func(i int) store.Expect, decide func(i int, current *store.Record) (store.Decision, error),
) []store.Outcome {
	seat, decided := flow.FromContext(ctx), false // all once
	outcomes := s.Store.UpdateMany(ctx, keys, expect, func(i int, current *store.Record) (store.Decision, error) {
		if err := seat.Acquire(ctx); err != nil {
			return store.Decision{}, err
		}
		if decided = decided || i == len(keys)-1; decided {
			defer seat.Yield() // the disk may come next
		}
		return decide(i, current)
	})
	_ = seat.Acquire(ctx) // likewise
	return outcomes
}

// DeleteMany implements [store.Store].
func (s seatedStore) DeleteMany(ctx context.Context, seen []store.Seen, by []byte) (n int, changed []store.Key, err error) {
	seat := flow.FromContext(ctx)
	seat.Yield()
	n, changed, err = s.Store.DeleteMany(ctx, seen, by)
	_ = seat.Acquire(ctx) // likewise
	return n, changed, err
}

// Watch implements [store.Store].
func (s seatedStore) Watch(ctx context.Context, q store.WatchQuery) (store.Watcher, error) {
	if err := flow.FromContext(ctx).Acquire(ctx); err != nil {
		return nil, err
	}
	return s.Store.Watch(ctx, q)
}

// seatedTimeline is a timeline whose callers hold their seat while they read. Each call
// takes its place in the queue again when the caller has held the seat for long.
type seatedTimeline struct{ store.Timeline }

// Timeline returns a timeline that takes the seat of the request that its context belongs
// to.
func Timeline(t store.Timeline) store.Timeline { return seatedTimeline{t} }

// Count implements [store.Timeline].
func (s seatedTimeline) Count(ctx context.Context, c store.Count, visit func(store.Occurred)) error {
	if err := flow.FromContext(ctx).Acquire(ctx); err != nil {
		return err
	}
	return s.Timeline.Count(ctx, c, visit)
}

// Survey implements [store.Timeline].
func (s seatedTimeline) Survey(ctx context.Context, what store.Survey) (store.TimePage, error) {
	if err := flow.FromContext(ctx).Acquire(ctx); err != nil {
		return store.TimePage{}, err
	}
	return s.Timeline.Survey(ctx, what)
}

// Observed implements [store.Timeline].
func (s seatedTimeline) Observed(ctx context.Context, q store.TimeQuery, visit func(*store.View, store.Moment) bool) (store.TimePage, error) {
	if err := flow.FromContext(ctx).Acquire(ctx); err != nil {
		return store.TimePage{}, err
	}
	return s.Timeline.Observed(ctx, q, visit)
}

// Versions implements [store.Timeline].
func (s seatedTimeline) Versions(ctx context.Context, what *event.Selector, visit func(v *store.View, gone bool) bool) error {
	if err := flow.FromContext(ctx).Acquire(ctx); err != nil {
		return err
	}
	return s.Timeline.Versions(ctx, what, visit)
}

// Deleted implements [store.Timeline].
func (s seatedTimeline) Deleted(ctx context.Context, key store.Key, visit func(*store.View) bool) error {
	if err := flow.FromContext(ctx).Acquire(ctx); err != nil {
		return err
	}
	return s.Timeline.Deleted(ctx, key, visit)
}

// Deletions implements [store.Timeline].
func (s seatedTimeline) Deletions(ctx context.Context, q store.DeletionQuery, visit func(v *store.View, by []byte) bool) error {
	if err := flow.FromContext(ctx).Acquire(ctx); err != nil {
		return err
	}
	return s.Timeline.Deletions(ctx, q, visit)
}

// Gaps implements [store.Timeline].
func (s seatedTimeline) Gaps(ctx context.Context, revision uint64, most int) ([]store.Gap, bool, error) {
	if err := flow.FromContext(ctx).Acquire(ctx); err != nil {
		return nil, false, err
	}
	return s.Timeline.Gaps(ctx, revision, most)
}

// Beside runs work on a goroutine while the caller goes on. A seat is for one
// goroutine, so work has none: it must mostly wait for the disk. The caller must
// call wait, which returns the error of work and yields the seat meanwhile.
func Beside(ctx context.Context, work func(context.Context) error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- work(context.WithValue(ctx, flow.Key{}, (*flow.Seat)(nil))) }()
	return func() error {
		seat := flow.FromContext(ctx)
		seat.Yield()
		err := <-done
		_ = seat.Acquire(ctx) // likewise
		return err
	}
}
