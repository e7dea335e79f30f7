package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/storetest"
)

// take reads a watch until it has given n changes, and checks that their
// revisions rise and that none lies behind its batch.
func take(t testing.TB, w store.Watcher, n int) (ds []store.Delivery) {
	t.Helper()
	var last uint64
	for len(ds) < n {
		b, err := storetest.Next(t, w)
		if err != nil {
			t.Fatalf("watch after %d of %d changes: %v", len(ds), n, err)
		}
		for _, d := range b.Changes {
			if d.Revision <= last || d.Revision > b.Revision {
				t.Fatalf("revision %d after %d in a batch up to %d", d.Revision, last, b.Revision)
			}
			last = d.Revision
		}
		if b.Revision < last {
			t.Fatalf("batch up to %d after change %d", b.Revision, last)
		}
		last = b.Revision
		ds = append(ds, b.Changes...)
	}
	if len(ds) > n {
		t.Fatalf("%d changes, want %d", len(ds), n)
	}
	return ds
}

// show prints deliveries for comparison: kind, name, value, revision of the
// version shown and of the change.
func show(ds []store.Delivery) (out []string) {
	for _, d := range ds {
		kind := map[store.EventType]string{store.Added: "added", store.Modified: "modified", store.Removed: "removed"}[d.Type]
		out = append(out, fmt.Sprintf("%s %s=%s object %d change %d", kind, d.Object.Key, d.Object.Value, d.Object.Revision, d.Revision))
	}
	return out
}

func testWatchTypes(t *testing.T, s store.Store) {
	at := s.Revision()
	live := watch(t, s, store.WatchQuery{})
	mustCreate(t, s, key("a", "1"), draft("1", "R", "x"))
	mustPut(t, s, key("a", "1"), draft("2", "R", "x"))
	mustCreate(t, s, key("b", "1"), draft("3", "R", "x"))
	mustDelete(t, s, key("a", "1"))
	mustCreate(t, s, key("a", "1"), draft("4", "R", "x"))
	rel := func(n uint64) uint64 { return at + n }
	all := []string{
		fmt.Sprintf("added a/1=1 object %d change %d", rel(1), rel(1)),
		fmt.Sprintf("modified a/1=2 object %d change %d", rel(2), rel(2)),
		fmt.Sprintf("added b/1=3 object %d change %d", rel(3), rel(3)),
		fmt.Sprintf("removed a/1=2 object %d change %d", rel(2), rel(4)),
		fmt.Sprintf("added a/1=4 object %d change %d", rel(5), rel(5)),
	}
	if diff := cmp.Diff(all, show(take(t, live, 5))); diff != "" {
		t.Errorf("live: %s", diff)
	}
	for after := range uint64(5) {
		if diff := cmp.Diff(all[after:], show(take(t, watch(t, s, store.WatchQuery{After: at + after}), 5-int(after)))); diff != "" {
			t.Errorf("after %d: %s", after, diff)
		}
	}
	inB := take(t, watch(t, s, store.WatchQuery{After: at, Namespace: "b"}), 1)
	if diff := cmp.Diff(all[2:3], show(inB)); diff != "" {
		t.Errorf("one namespace: %s", diff)
	}
	one := take(t, watch(t, s, store.WatchQuery{After: at, Namespace: "a", Name: "1"}), 4)
	if diff := cmp.Diff(append(all[:2:2], all[3:]...), show(one)); diff != "" {
		t.Errorf("one event: %s", diff)
	}
}

// A change can lead into the view of a selector, out of it, or stay inside.
func testWatchSelector(t *testing.T, s store.Store) {
	at := s.Revision()
	q := store.WatchQuery{After: at, Selector: selector(t, "", "app=web")}
	live := watch(t, s, q)
	k := key("a", "1")
	mustCreate(t, s, k, draft("1", "R", "db"))
	mustPut(t, s, k, draft("2", "R", "web"))
	mustPut(t, s, k, draft("3", "R", "web"))
	mustPut(t, s, k, draft("4", "R", "db"))
	mustPut(t, s, k, draft("5", "R", "db"))
	mustPut(t, s, k, draft("6", "R", "web"))
	mustDelete(t, s, k)
	mustCreate(t, s, k, draft("7", "R", "db"))
	mustDelete(t, s, k)
	want := []string{
		fmt.Sprintf("added a/1=2 object %d change %d", at+2, at+2),
		fmt.Sprintf("modified a/1=3 object %d change %d", at+3, at+3),
		fmt.Sprintf("removed a/1=3 object %d change %d", at+3, at+4),
		fmt.Sprintf("added a/1=6 object %d change %d", at+6, at+6),
		fmt.Sprintf("removed a/1=6 object %d change %d", at+6, at+7),
	}
	if diff := cmp.Diff(want, show(take(t, live, 5))); diff != "" {
		t.Errorf("live: %s", diff)
	}
	if diff := cmp.Diff(want, show(take(t, watch(t, s, q), 5))); diff != "" {
		t.Errorf("later: %s", diff)
	}
}

func testWatchPast(t *testing.T, s store.Store) {
	at := s.Revision()
	const n = 300
	for i := range n {
		mustCreate(t, s, key("a", fmt.Sprint(i)), draft(fmt.Sprint(i), "R", "x"))
	}
	for _, after := range []uint64{0, 1, n / 2, n - 1} {
		w := watch(t, s, store.WatchQuery{After: at + after})
		for i, d := range take(t, w, int(n-after)) {
			if d.Revision != at+after+uint64(i)+1 {
				t.Fatalf("after %d: change %d has revision %d", after, i, d.Revision)
			}
		}
	}
	// A revision to come is one of another store.
	var future *store.FutureError
	if _, err := s.Watch(t.Context(), store.WatchQuery{After: s.Revision() + 1}); !errors.As(err, &future) ||
		*future != (store.FutureError{Revision: s.Revision() + 1, Current: s.Revision()}) {
		t.Errorf("watch after a revision to come: %v", err)
	}
}

// The context's end leaves the watcher usable; changes that it did not ask for
// move its revision on.
func testWatchContext(t *testing.T, s store.Store) {
	w := watch(t, s, store.WatchQuery{Namespace: "mine"})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
	mustCreate(t, s, key("other", "1"), draft("", "R", "x"))
	b, err := w.Next(ended)
	if err != nil || len(b.Changes) != 0 || b.Revision != s.Revision() {
		t.Errorf("a change passed over: %+v, %v; want revision %d", b, err, s.Revision())
	}
	if _, err := w.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("nothing new: %v", err)
	}
	mustCreate(t, s, key("mine", "1"), draft("", "R", "x"))
	if d := take(t, w, 1); d[0].Object.Namespace != "mine" {
		t.Errorf("told of %s", d[0].Object.Key)
	}
}

// R8: a list and a watch from its revision miss nothing under a flood of
// writes, paged or not.
func testListThenWatch(t *testing.T, s store.Store) {
	const writers, each = 4, 100
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			for i := range each {
				mustCreate(t, s, key("a", fmt.Sprintf("%d-%d", n, i)), draft("v", "R", "x"))
			}
		})
	}
	for limit := range 8 {
		wg.Go(func() {
			q := store.Query{Limit: limit * 10}
			_, page, err := store.Records(t.Context(), s, q)
			if err != nil {
				t.Error(err)
				return
			}
			q.Revision = page.Revision
			listed := list(t, s, q)
			seen := map[store.Key]bool{}
			for _, r := range listed {
				seen[r.Key] = true
			}
			for _, d := range take(t, watch(t, s, store.WatchQuery{After: page.Revision}), writers*each-len(listed)) {
				if seen[d.Object.Key] {
					t.Errorf("%s was listed and told", d.Object.Key)
				}
				seen[d.Object.Key] = true
			}
			if len(seen) != writers*each {
				t.Errorf("%d of %d seen", len(seen), writers*each)
			}
		})
	}
	wg.Wait()
}

// Many writers on few events: no update is lost, and every watcher sees every
// change once and in order.
func testConcurrentWriters(t *testing.T, s store.Store) {
	const writers, each, events = 8, 50, 3
	at := s.Revision()
	for i := range events {
		mustCreate(t, s, key("a", fmt.Sprint(i)), draft("", "R", "x"))
	}
	var writes, watches sync.WaitGroup
	for range 4 {
		watches.Go(func() {
			for i, d := range take(t, watch(t, s, store.WatchQuery{After: at}), events+writers*each) {
				if d.Revision != at+uint64(i)+1 {
					t.Errorf("change %d has revision %d", i, d.Revision)
					return
				}
			}
		})
	}
	for n := range writers {
		writes.Go(func() {
			for i := range each {
				_, err := s.Update(t.Context(), key("a", fmt.Sprint((n+i)%events)), store.Any, func(c *store.Record) (store.Decision, error) {
					return store.Decision{Op: store.Put, Draft: draft(string(c.Value)+"+", "R", "x")}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writes.Wait()
	watches.Wait()
	total := 0
	for _, r := range list(t, s, store.Query{}) {
		total += len(r.Value)
	}
	if total != writers*each {
		t.Errorf("%d updates arrived of %d", total, writers*each)
	}
}
