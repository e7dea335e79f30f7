package bolt

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"tidings.example/eventsvc/internal/store"
)

// TestElsewhere: what happens in one namespace wakes nobody who watches another,
// however much it is. Such a watcher is not behind, tells how far it has come,
// and reads what comes next from the ring, not from the log.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, func(o *Options) { o.RingEntries = 8 })
	create := func(namespace, name string) uint64 {
		t.Helper()
		r, err := db.Create(t.Context(), store.Key{Namespace: namespace, Name: name}, store.Draft{Value: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		return r.Revision
	}
	create("elsewhere", "first")
	first := create("here", "first")
	watch, err := db.Watch(t.Context(), store.WatchQuery{Namespace: "here"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	w := watch.(*watcher)
	_, wake, _ := w.look()
	var last uint64
	for i := range 100 { // far more than the ring holds
		last = create("elsewhere", fmt.Sprint(i))
	}
	select {
	case <-wake:
		t.Error("the watcher was woken")
	default:
	}
	if lag := db.watchers.lag(db.hub); lag != 0 {
		t.Errorf("lag %d of a watcher for whom there is nothing", lag)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if b, err := w.Next(ended); err != nil || b.Revision != last || len(b.Changes) > 0 {
		t.Errorf("at the time of a bookmark: %+v, %v; want revision %d", b, err, last)
	}
	if b, err := w.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("without news: %+v, %v", b, err)
	}
	for i := range 100 {
		create("elsewhere", fmt.Sprint("more-", i))
	}
	want := create("here", "second")
	if lag := db.watchers.lag(db.hub); lag != 1 {
		t.Errorf("lag %d with one change to come", lag)
	}
	<-wake
	if _, _, held := w.look(); !held {
		t.Error("the change would have to be read from the log")
	}
	b, err := w.Next(t.Context())
	if err != nil || len(b.Changes) != 1 || b.Changes[0].Revision != want {
		t.Errorf("%+v, %v; want the change of revision %d", b, err, want)
	}

	late, err := db.Watch(t.Context(), store.WatchQuery{Namespace: "here", After: first - 1})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	var got []uint64
	for len(got) < 2 {
		b, err := late.Next(t.Context())
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
}

// TestTopicsAreForgotten: nothing is kept for namespaces that nobody watches any
// more.
func TestTopicsAreForgotten(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, nil)
	for range 3 {
		var all []store.Watcher
		for i := range 20 {
			w, err := db.Watch(t.Context(), store.WatchQuery{Namespace: fmt.Sprint("n-", i%5)})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, w)
		}
		if n := len(db.hub.topics); n != 5 {
			t.Errorf("%d topics, want 5", n)
		}
		for _, w := range all {
			w.Close()
			w.Close() // once more is nothing
		}
		if n := len(db.hub.topics); n != 0 {
			t.Errorf("%d topics without watchers", n)
		}
	}
}
