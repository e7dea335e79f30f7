package access_test

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
)

// noting is a store and a timeline that note how many requests hold a seat when they are called.
type noting struct {
	store.Store
	store.Timeline
	seats func() float64
	noted []float64
}

func (n *noting) note() { n.noted = append(n.noted, n.seats()) }

func (n *noting) Get(context.Context, store.Key, func(*store.View) error) error { n.note(); return nil }

func (n *noting) List(context.Context, store.Query, func(*store.View) bool) (store.Page, error) {
	n.note()
	return store.Page{Revision: 7}, nil
}

func (n *noting) Watch(context.Context, store.WatchQuery) (store.Watcher, error) {
	n.note()
	return nil, nil
}

func (n *noting) DeleteMany(context.Context, []store.Seen, []byte) (int, []store.Key, error) {
	n.note()
	return 7, nil, nil
}

// UpdateMany decides on each key, waits for the disk, finds that the first one has changed, and does so again.
func (n *noting) UpdateMany(
	_ context.Context, keys []store.Key, _ func(i int) store.Expect, decide func(i int, current *store.Record) (store.Decision, error),
) (all []store.Outcome) {
	for i := range keys {
		_, err := decide(i, nil)
		all = append(all, store.Outcome{Err: err})
	}
	n.note()
	_, err := decide(0, nil)
	all[0].Err = err
	n.note()
	return all
}

func (n *noting) Count(context.Context, store.Count, func(store.Occurred)) error {
	n.note()
	return nil
}

func (n *noting) Survey(context.Context, store.Survey) (store.TimePage, error) {
	n.note()
	return store.TimePage{Revision: 7}, nil
}

func (n *noting) Observed(context.Context, store.TimeQuery, func(*store.View, store.Moment) bool) (store.TimePage, error) {
	n.note()
	return store.TimePage{Revision: 7}, nil
}

func (n *noting) Versions(context.Context, *event.Selector, func(*store.View, bool) bool) error {
	n.note()
	return nil
}

func (n *noting) Deletions(context.Context, store.DeletionQuery, func(*store.View, []byte) bool) error {
	n.note()
	return nil
}

func (n *noting) Deleted(context.Context, store.Key, func(*store.View) bool) error {
	n.note()
	return nil
}

func (n *noting) Gaps(context.Context, uint64, int) ([]store.Gap, bool, error) {
	n.note()
	return []store.Gap{{Revision: 7}}, true, nil
}

// seated is a request without a seat yet, where all seats are taken.
type seated struct {
	*noting
	ctx  context.Context // of the request
	seat *flow.Seat
	free func() // gives the other seats back
}

func newSeated(t *testing.T) *seated {
	t.Helper()
	scheduler, reg := flow.New(10, 10, 1), prometheus.NewRegistry()
	for _, c := range scheduler.Collectors() {
		reg.MustRegister(c)
	}
	enter := func(client string) *flow.Seat {
		seat, err := scheduler.Enter(flow.Reads, client)
		if err != nil {
			t.Fatal(err)
		}
		return seat
	}
	s := &seated{noting: &noting{seats: func() float64 { return apitest.Sum(t, reg, "eventsvc_requests_working") }}}
	var others []*flow.Seat
	for range 4 { // there are no more
		others = append(others, enter("other"))
	}
	apitest.Equal(t, s.seats(), 4.0)
	s.seat = enter("caller")
	s.ctx = context.WithValue(t.Context(), flow.Key{}, s.seat)
	s.free = func() {
		for _, seat := range others {
			seat.Release()
		}
	}
	return s
}

// TestReadsTakeASeat: each read waits for the seat of its request, and is not begun if the request ends meanwhile. It
// holds the seat while it reads, and what it has read is returned.
func TestReadsTakeASeat(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(context.Context, store.Store, store.Timeline) (whole bool, err error){
		"Get": func(ctx context.Context, s store.Store, _ store.Timeline) (bool, error) {
			return true, s.Get(ctx, store.Key{}, nil)
		},
		"List": func(ctx context.Context, s store.Store, _ store.Timeline) (bool, error) {
			page, err := s.List(ctx, store.Query{}, nil)
			return page.Revision == 7, err
		},
		"Watch": func(ctx context.Context, s store.Store, _ store.Timeline) (bool, error) {
			_, err := s.Watch(ctx, store.WatchQuery{})
			return true, err
		},
		"Count": func(ctx context.Context, _ store.Store, l store.Timeline) (bool, error) {
			return true, l.Count(ctx, store.Count{}, nil)
		},
		"Survey": func(ctx context.Context, _ store.Store, l store.Timeline) (bool, error) {
			page, err := l.Survey(ctx, store.Survey{})
			return page.Revision == 7, err
		},
		"Observed": func(ctx context.Context, _ store.Store, l store.Timeline) (bool, error) {
			page, err := l.Observed(ctx, store.TimeQuery{}, nil)
			return page.Revision == 7, err
		},
		"Versions": func(ctx context.Context, _ store.Store, l store.Timeline) (bool, error) {
			return true, l.Versions(ctx, nil, nil)
		},
		"Deletions": func(ctx context.Context, _ store.Store, l store.Timeline) (bool, error) {
			return true, l.Deletions(ctx, store.DeletionQuery{}, nil)
		},
		"Deleted": func(ctx context.Context, _ store.Store, l store.Timeline) (bool, error) {
			return true, l.Deleted(ctx, store.Key{}, nil)
		},
		"Gaps": func(ctx context.Context, _ store.Store, l store.Timeline) (bool, error) {
			gaps, more, err := l.Gaps(ctx, 0, 1)
			return len(gaps) == 1 && more, err
		},
	} {
		s := newSeated(t)
		wrapped, timeline := access.Store(s.noting), access.Timeline(s.noting)
		gone, leave := context.WithCancel(s.ctx)
		leave()
		if _, err := read(gone, wrapped, timeline); !errors.Is(err, context.Canceled) || s.noted != nil {
			t.Errorf("%s without a seat: %v, and the store was called: %v", name, err, s.noted != nil)
		}
		s.free()
		if whole, err := read(s.ctx, wrapped, timeline); err != nil || !whole {
			t.Errorf("%s: %v, whole: %v", name, err, whole)
		}
		apitest.Equal(t, s.noted, []float64{1})
		s.seat.Release()
		apitest.Equal(t, s.seats(), 0.0)
	}
}

// TestWritesYieldTheirSeat: writes of many events hold a seat while they decide and when they have returned, and none
// while the disk works, also when a decision is made again.
func TestWritesYieldTheirSeat(t *testing.T) {
	t.Parallel()
	s := newSeated(t)
	wrapped := access.Store(s.noting)
	decided := 0
	decide := func(int, *store.Record) (store.Decision, error) {
		decided++
		s.note()
		return store.Decision{}, nil
	}
	keys := []store.Key{{Name: "a"}, {Name: "b"}}
	gone, leave := context.WithCancel(s.ctx)
	leave()
	for i, outcome := range wrapped.UpdateMany(gone, keys, nil, decide) {
		if !errors.Is(outcome.Err, context.Canceled) {
			t.Errorf("key %d without a seat: %v", i, outcome.Err)
		}
	}
	if decided > 0 {
		t.Errorf("%d decisions were made without a seat", decided)
	}
	s.free()
	s.noted = nil
	for i, outcome := range wrapped.UpdateMany(s.ctx, keys, nil, decide) {
		if outcome.Err != nil {
			t.Errorf("key %d: %v", i, outcome.Err)
		}
	}
	apitest.Equal(t, s.noted, []float64{1, 1, 0, 1, 0})
	apitest.Equal(t, s.seats(), 1.0)

	s.noted = nil
	if n, _, err := wrapped.DeleteMany(s.ctx, nil, nil); n != 7 || err != nil {
		t.Errorf("%d are deleted: %v", n, err)
	}
	apitest.Equal(t, s.noted, []float64{0})
	apitest.Equal(t, s.seats(), 1.0)
}

// TestBesideWaitsWithoutASeat: the work beside a request has no seat, the request has none while it waits for it, and
// gets the error.
func TestBesideWaitsWithoutASeat(t *testing.T) {
	t.Parallel()
	s := newSeated(t)
	s.free()
	if err := s.seat.Acquire(s.ctx); err != nil {
		t.Fatal(err)
	}
	goOn, failed := make(chan struct{}), errors.New("no disk")
	wait := access.Beside(s.ctx, func(ctx context.Context) error {
		<-goOn
		if flow.FromContext(ctx) != nil {
			t.Error("the work has the seat of its request")
		}
		return failed
	})
	apitest.Equal(t, s.seats(), 1.0)
	close(goOn)
	if err := wait(); !errors.Is(err, failed) {
		t.Error(err)
	}
	apitest.Equal(t, s.seats(), 1.0)
}
