package watch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/waittest"
)

// history is a log in memory that counts how often it is read.
type history struct {
	changes []*Change
	reads   int
}

func (h *history) Replay(dst []*Change, q *store.WatchQuery, after uint64) ([]*Change, uint64, error) {
	h.reads++
	upTo := after
	for _, c := range h.changes {
		if c.Revision <= after {
			continue
		}
		upTo = c.Revision
		if q.Namespace == "" || q.Namespace == c.Key.Namespace {
			dst = append(dst, c)
		}
	}
	return dst, upTo, nil
}

// publish publishes the creation of one event, and returns its revision.
func (h *history) publish(hub *Hub, namespace string) uint64 {
	key := store.Key{Namespace: namespace, Name: fmt.Sprint(len(h.changes))}
	revision := hub.Published() + 1
	c := Change{Revision: revision, Key: key, Current: &store.Version{Record: store.Record{Key: key, Revision: revision}}}
	h.changes = append(h.changes, &c)
	hub.Announce(hub.Publish([]Change{c}))
	return revision
}

// TestElsewhere: changes of one namespace wake no watcher of another, however many there are. Such a watcher is not
// behind, reports progress, and reads its next change from the ring, not from the log.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	hub, log := NewHub(1, 8, 1<<20), &history{}
	log.publish(hub, "elsewhere")
	first := log.publish(hub, "here")
	w := hub.Subscribe(store.WatchQuery{Namespace: "here"}, log)
	defer w.Close()
	_, wake, _ := w.look()
	var last uint64
	for range 100 { // far more than the ring holds
		last = log.publish(hub, "elsewhere")
	}
	select {
	case <-wake:
		t.Error("the watcher was woken")
	default:
	}
	if lag := hub.Lag(); lag != 0 {
		t.Errorf("lag %d of a watcher for which there is nothing", lag)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if b, err := w.Next(ended); err != nil || b.Revision != last || len(b.Changes) > 0 {
		t.Errorf("at the time of a bookmark: %+v, %v; want revision %d", b, err, last)
	}
	if b, err := w.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("without news: %+v, %v", b, err)
	}
	for range 100 {
		log.publish(hub, "elsewhere")
	}
	want := log.publish(hub, "here")
	if lag := hub.Lag(); lag == 0 {
		t.Error("no lag with one change to come")
	}
	ctx, cancel := waittest.Context(t)
	defer cancel()
	waittest.Within(t, wake)
	b, err := w.Next(ctx)
	if err != nil || len(b.Changes) != 1 || b.Changes[0].Revision != want {
		t.Errorf("%+v, %v; want the change of revision %d", b, err, want)
	}
	if log.reads > 0 {
		t.Errorf("%d reads of the log", log.reads)
	}

	late := hub.Subscribe(store.WatchQuery{Namespace: "here", After: first - 1}, log)
	defer late.Close()
	var got []uint64
	for len(got) < 2 {
		b, err := late.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range b.Changes {
			got = append(got, d.Revision)
		}
	}
	if got[0] != first || got[1] != want {
		t.Errorf("a watch from the past sees %v, want %d and %d", got, first, want)
	}
	if log.reads == 0 {
		t.Error("a watch from before the ring did not read the log")
	}
}

// TestBehindWithoutAnything: a watcher that has fallen behind reads the log, finds nothing for it there, and hears of
// what comes then.
func TestBehindWithoutAnything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, log := NewHub(1, 8, 1<<20), &history{}
		w := hub.Subscribe(store.WatchQuery{Namespace: "here", Name: "20"}, log)
		defer w.Close()
		for range 20 { // more than the ring holds
			log.publish(hub, "here")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		next := make(chan store.Batch, 1)
		go func() {
			b, err := w.Next(ctx)
			if err != nil {
				t.Error(err)
			}
			next <- b
		}()
		synctest.Wait()
		want := log.publish(hub, "here")
		if b := <-next; len(b.Changes) != 1 || b.Changes[0].Revision != want {
			t.Errorf("%+v; want the change of revision %d", b, want)
		}
		if log.reads == 0 {
			t.Error("the log was not read")
		}
	})
}

// TestTopicsAreForgotten: nothing is kept for namespaces without watchers.
func TestTopicsAreForgotten(t *testing.T) {
	t.Parallel()
	hub := NewHub(1, 8, 1<<20)
	for range 3 {
		var all []*Watcher
		for i := range 20 {
			all = append(all, hub.Subscribe(store.WatchQuery{Namespace: fmt.Sprint("n-", i%5)}, nil))
		}
		if n := len(hub.topics); n != 5 {
			t.Errorf("%d topics, want 5", n)
		}
		for _, w := range all {
			w.Close()
			w.Close() // once more is nothing
		}
		if n := len(hub.topics); n != 0 {
			t.Errorf("%d topics without watchers", n)
		}
	}
}
