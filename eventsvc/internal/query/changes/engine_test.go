package changes_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/query"
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
	in := &incidents[0]
	w := newCluster(5, 0.03, 1.5*day).played(func(c *cluster) { in.play(&scene{c, day}) })
	var clock atomic.Int64 // events are written when they are observed
	clock.Store(w.seen[0].second)
	db, err := bolt.Open(bolt.Options{Dir: t.TempDir(), SegmentBytes: 1 << 20, Now: func() time.Time { return time.Unix(clock.Load(), 0) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	when := at(day + asked)
	n := int(w.until(when))
	for i := range n {
		clock.Store(w.seen[i].second)
		w.write(t, db, c, i, i+1)
	}
	t.Logf("%d events", n)
	for _, q := range []changes.Query{
		{At: when, Allows: everywhere},
		{At: when, Allows: only("shop")},
		{At: when, Window: 7 * time.Hour, Allows: everywhere},
		{At: when, Allows: everywhere, Namespaces: []string{"shop"}, Object: query.Subject{Kind: "Deployment", Name: "api"}},
	} {
		got := rank(t, db.Timeline(), q)
		if q.Window == 0 && q.Object == (query.Subject{}) {
			var found places
			found.look(t, in, got)
			found.want(t, 0, 20)
		}
		q.Revision = w.until(when)
		want := rank(t, w.memory, q)
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

// TestFirstVersion: an event that comes with a count, as from the first list of a mirror, is expected
// as often as it came between its first and its last observation, and not as if it had come at once.
func TestFirstVersion(t *testing.T) {
	t.Parallel()
	c, err := codec.New("k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(bolt.Options{Dir: t.TempDir(), Now: func() time.Time { return noon.Add(-20 * time.Minute) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }
	for name, ev := range map[string]*eventsv1.Event{
		"list": {DeprecatedFirstTimestamp: ago(7*24*time.Hour + 20*time.Minute), DeprecatedLastTimestamp: ago(20 * time.Minute), DeprecatedCount: 2689},
		"now":  {DeprecatedFirstTimestamp: ago(10 * time.Minute), DeprecatedLastTimestamp: ago(time.Minute), DeprecatedCount: 40},
	} {
		ev.Namespace, ev.Name, ev.Reason, ev.Type, ev.Regarding.Kind, ev.Regarding.Name = "shop", name, "BackOff", warning, "Pod", "web-0"
		draft, err := c.Draft(ev)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Create(t.Context(), db, store.Key{Namespace: "shop", Name: name}, draft); err != nil {
			t.Fatal(err)
		}
	}
	a := rank(t, db.Timeline(), changes.Query{At: noon, Allows: everywhere})
	if len(a.Rows) != 1 || a.Rows[0].Kind != changes.More || a.Rows[0].Now != 40 || a.Rows[0].Before < 3 || a.Rows[0].Before > 6 || !a.Rows[0].First.Equal(ago(10*time.Minute).Time) {
		t.Errorf("%+v", a.Rows)
	}
}
