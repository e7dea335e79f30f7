package changes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/query/changes"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// write records observations in a store, as their reporters would: the first of an event
// creates it, each other one updates its series.
func (m *memory) write(t testing.TB, s store.Store, c *codec.Codec, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		ev := m.event(i)
		draft, err := c.Draft(ev)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Update(t.Context(), store.Key{Namespace: ev.Namespace, Name: ev.Name}, store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Put, Draft: draft}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestEngine asks the real engine, which must give the answers of the timeline in memory.
func TestEngine(t *testing.T) {
	t.Parallel()
	c, err := codec.New("k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(bolt.Options{Dir: t.TempDir(), SegmentBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	in := &incidents[0]
	w := newCluster(5, 0.03)
	in.play(&scene{w, 5 * day})
	w.seen = slices.DeleteFunc(w.seen, func(o observation) bool { return o.second < at(4*day).Unix() }) // a day is enough
	w.sort()
	when := at(5*day + asked)
	n := int(w.until(when))
	w.write(t, db, c, 0, n)
	t.Logf("%d events", n)
	for _, q := range []changes.Query{
		{At: when, Allows: everywhere},
		{At: when, Allows: only("shop")},
		{At: when, Window: 7 * time.Hour, Allows: everywhere},
		{At: when, Allows: everywhere, Object: changes.Object{Kind: "Deployment", Namespace: "shop", Name: "api"}},
	} {
		got := rank(t, db.Timeline(), c.Event, q)
		if q.Window == 0 && q.Object == (changes.Object{}) {
			if at := in.rankOf(got.Rows); at < 1 || at > 5 {
				t.Errorf("the cause has rank %d", at)
			}
		}
		q.Revision = w.until(when)
		want := rank(t, w.memory, w.decode, q)
		for i := range min(len(want.Rows), len(got.Rows)) {
			if want, got := want.Rows[i].Sample, got.Rows[i].Sample; (want == nil) != (got == nil) || want != nil && want.Key != got.Key {
				t.Errorf("row %d has another sample", i)
			}
		}
		if len(got.Rows) == 0 {
			t.Errorf("%+v: no rows", q)
		}
		if diff := cmp.Diff(forget(want), forget(got)); diff != "" {
			t.Errorf("%+v: %s", q, diff)
		}
	}
}
