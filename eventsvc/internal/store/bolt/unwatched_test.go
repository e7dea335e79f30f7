package bolt

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/storetest"
)

// TestDeletionsThatNobodyWatches: the content of a deleted event is in the ring
// only if somebody watches its namespace. Otherwise it is not read at all; a
// watcher that comes later, even between the decision and the commit, gets it
// from the log.
func TestDeletionsThatNobodyWatches(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	db := openQuiet(t, func(o *Options) { o.Registry = r })
	seen := map[string][]store.Seen{}
	for _, namespace := range []string{"alone", "between", "watched"} {
		for i := range 3 {
			record, err := store.Create(t.Context(), db, store.Key{Namespace: namespace, Name: fmt.Sprint(i)}, store.Draft{Value: []byte(namespace)})
			if err != nil {
				t.Fatal(err)
			}
			seen[namespace] = append(seen[namespace], record.View().Seen())
		}
	}
	watch := func(namespace string, after uint64) store.Watcher {
		t.Helper()
		w, err := db.Watch(t.Context(), store.WatchQuery{Namespace: namespace, After: after})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		return w
	}
	removed := func(w store.Watcher, namespace string, inRing bool) {
		t.Helper()
		before := replays(t, r)
		for n := 0; n < 3; {
			b, err := storetest.Next(t, w)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range b.Changes {
				n++
				if d.Type != store.Removed || string(d.Object.Value) != namespace {
					t.Errorf("told of %s with type %d and %q", d.Object.Key, d.Type, d.Object.Value)
				}
			}
		}
		if read := replays(t, r) > before; read == inRing {
			t.Errorf("what was deleted in %s was read from the log: %t, want %t", namespace, read, !inRing)
		}
	}
	before := db.Revision()

	watched := watch("watched", 0)
	if _, _, err := db.DeleteMany(t.Context(), seen["alone"], nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.DeleteMany(t.Context(), seen["watched"], nil); err != nil {
		t.Fatal(err)
	}
	removed(watched, "watched", true)

	deletions := commit.Deletions{Prepare: db.readWatched}
	decided, err := deletions.Writes(t.Context(), seen["between"])
	if err != nil {
		t.Fatal(err)
	}
	between, all := watch("between", 0), watch("", 0)
	if err := db.committer.Queue.Submit(&decided[len(decided)-1]); err != nil {
		t.Fatal(err)
	}
	removed(between, "between", false)
	removed(all, "between", false)
	removed(watch("alone", before), "alone", false)

	if s := db.Stats(); s.Events != 0 || s.LiveBytes != 0 {
		t.Errorf("%d events of %d bytes are left", s.Events, s.LiveBytes)
	}
}

// replays returns how often the log was read for watchers.
func replays(t *testing.T, r *prometheus.Registry) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "store_watch_replays_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("reads of the log for watchers are not counted")
	return 0
}
