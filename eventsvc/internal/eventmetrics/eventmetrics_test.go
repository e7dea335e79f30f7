package eventmetrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/eventmetrics"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// write stores the next version of an event.
func write(t *testing.T, db store.Store, name, reason string, count int32) {
	t.Helper()
	ev := &eventsv1.Event{Type: "Warning", Reason: reason, DeprecatedCount: count}
	ev.Regarding.Kind = "Pod"
	ev.Labels = map[string]string{event.ClusterLabel: "a"}
	_, err := db.Update(t.Context(), store.Key{Namespace: "shop", Name: name}, store.Any, func(current *store.Record) (store.Decision, error) {
		draft := store.Draft{Attributes: event.AttributesOf(ev), Value: []byte("{}")}
		if current != nil {
			draft.Attributes = draft.Attributes.Since(current.Attributes)
		}
		return store.Decision{Op: store.Put, Draft: draft}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) *bolt.DB {
	t.Helper()
	db, err := bolt.Open(bolt.Options{Dir: t.TempDir(), MinFree: -1, MaxBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// seen ends a run of a counter once it has read up to a revision.
type seen struct {
	store.Store
	upTo   uint64
	cancel context.CancelFunc
}

type seenWatcher struct {
	store.Watcher
	*seen
}

func (s *seen) Watch(ctx context.Context, q store.WatchQuery) (store.Watcher, error) {
	w, err := s.Store.Watch(ctx, q)
	return seenWatcher{w, s}, err
}

func (w seenWatcher) Next(ctx context.Context) (store.Batch, error) {
	if w.upTo == 0 {
		w.cancel()
	}
	batch, err := w.Watcher.Next(ctx)
	if batch.Revision >= w.upTo {
		w.upTo = 0
	}
	return batch, err
}

// values returns the value of each series, by the values of its labels in the order of their names.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "eventsvc_observed_events_")
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = metric.GetCounter().GetValue()
		}
	}
	return all
}

// TestCounts: increments of what was written after New are counted, combinations beyond the limit together, and
// deletions not.
func TestCounts(t *testing.T) {
	t.Parallel()
	db := open(t)
	write(t, db, "before", "Early", 7)
	ctx, cancel := context.WithCancel(t.Context())
	s := &seen{Store: db, cancel: cancel}
	registry := prometheus.NewRegistry()
	counter := eventmetrics.New(s, 2, slog.New(slog.DiscardHandler), registry)
	write(t, db, "before", "Early", 12) // a series that grows
	write(t, db, "before", "Early", 12) // and that is only changed
	write(t, db, "a", "BackOff", 1)
	write(t, db, "b", "BackOff", 3)
	for n := range 5 {
		write(t, db, fmt.Sprint("c", n), fmt.Sprint("Reason", n), 2)
	}
	if _, err := db.Update(t.Context(), store.Key{Namespace: "shop", Name: "a"}, store.Any, func(*store.Record) (store.Decision, error) {
		return store.Decision{Op: store.Delete}, nil
	}); err != nil {
		t.Fatal(err)
	}
	s.upTo = db.Revision()
	if err := counter.Run(ctx); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"total a Pod shop BackOff Warning":    4,
		"total a Pod shop Early Warning":      5,
		"total other other other other other": 10,
		"interruptions_total":                 0,
	}
	if diff := cmp.Diff(want, values(t, registry)); diff != "" {
		t.Error(diff)
	}
}

// forgetful has forgotten what comes after the first watch.
type forgetful struct {
	store.Store
	watches int
	next    func(query store.WatchQuery, watches int) (store.Watcher, error)
}

func (f *forgetful) Watch(_ context.Context, q store.WatchQuery) (store.Watcher, error) {
	f.watches++
	return f.next(q, f.watches)
}

// TestInterrupted: a counter that was left behind says so, and continues with what is written then.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	db := open(t)
	registry := prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(t.Context())
	ended := &seen{Store: db, cancel: cancel}
	f := &forgetful{Store: db, next: func(q store.WatchQuery, watches int) (store.Watcher, error) {
		if watches == 1 {
			return nil, &store.ExpiredError{Revision: q.After, Oldest: db.Revision()}
		}
		if q.After != db.Revision() {
			t.Errorf("continues after %d, not %d", q.After, db.Revision())
		}
		write(t, db, "later", "Later", 1)
		ended.upTo = db.Revision()
		return ended.Watch(t.Context(), q)
	}}
	counter := eventmetrics.New(f, 10, slog.New(slog.DiscardHandler), registry)
	write(t, db, "missed", "Missed", 1)
	if err := counter.Run(ctx); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"total a Pod shop Later Warning": 1, "interruptions_total": 1}
	if diff := cmp.Diff(want, values(t, registry)); diff != "" {
		t.Error(diff)
	}
}

// TestEnds: a store that closes ends the counter; any other failure is returned.
func TestEnds(t *testing.T) {
	t.Parallel()
	db := open(t)
	broken := errors.New("broken")
	for given, want := range map[error]error{store.ErrClosed: nil, broken: broken} {
		f := &forgetful{Store: db, next: func(store.WatchQuery, int) (store.Watcher, error) { return nil, given }}
		counter := eventmetrics.New(f, 1, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		if err := counter.Run(t.Context()); !errors.Is(err, want) {
			t.Errorf("%v: %v", given, err)
		}
	}
}
