// The tests of this package check that every engine does what the interface promises: case by case, and by random
// operations compared with a [model]. A new engine joins them by a file such as bolt_test.go.
package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/policy/pattern"
	"tidings.example/eventsvc/internal/store"
)

// engine is a store under test that can be stopped and started again.
type engine interface {
	// Start opens the store with what it held when it was stopped.
	Start(t testing.TB) store.Store
	// Stop closes it, after checking it as well as it can check itself.
	Stop(t testing.TB)
}

// trimmer is an engine that can be told to give up old history.
type trimmer interface {
	// Trim returns the oldest revision that is still held.
	Trim(t testing.TB) uint64
}

// bumper is an engine whose revisions can go on behind a gap, as those of a
// restored store do.
type bumper interface {
	// Bump returns the revision that the engine has come to.
	Bump(t testing.TB) uint64
}

// testContract runs all cases and the random operations, each with an engine of its own.
func testContract(t *testing.T, newEngine func(t testing.TB, now func() time.Time) engine) {
	t.Helper()
	testCases(t, newEngine)
	t.Run("Restart", func(t *testing.T) {
		t.Parallel()
		testRestart(t, newEngine(t, time.Now))
	})
	t.Run("Random", func(t *testing.T) {
		t.Parallel()
		testRandom(t, newEngine)
	})
}

// testCases runs the cases that do not stop the engine.
func testCases(t *testing.T, newEngine func(t testing.TB, now func() time.Time) engine) {
	t.Helper()
	cases := []struct {
		name string
		run  func(t *testing.T, s store.Store)
	}{
		{"Create", testCreate},
		{"Get", testGet},
		{"Update", testUpdate},
		{"UpdateRetries", testUpdateRetries},
		{"Delete", testDelete},
		{"DeleteMany", testDeleteMany},
		{"Deletions", testDeletions},
		{"UpdateMany", testUpdateMany},
		{"ListOrderAndPages", testListPages},
		{"ListVisit", testListVisit},
		{"ListAtRevision", testListAtRevision},
		{"ListSelector", testListSelector},
		{"Clusters", testClusters},
		{"WatchTypes", testWatchTypes},
		{"WatchSelector", testWatchSelector},
		{"WatchFromThePast", testWatchPast},
		{"WatchContext", testWatchContext},
		{"ListThenWatch", testListThenWatch},
		{"ConcurrentWriters", testConcurrentWriters},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, time.Now)
			s := e.Start(t)
			t.Cleanup(func() { e.Stop(t) })
			c.run(t, s)
		})
	}
}

func key(namespace, name string) store.Key { return store.Key{Namespace: namespace, Name: name} }

// draft makes a version whose reason and label "app" are the given ones. All but the app db have a node.
func draft(value, reason, app string) store.Draft {
	return store.Draft{
		Attributes: event.NewAttributes([event.NumFields]string{event.Reason: reason, event.RegardingUID: "uid-" + app, event.Node: strings.TrimPrefix(app, "db")}, map[string]string{"app": app}),
		Value:      []byte(value),
	}
}

func mustCreate(t testing.TB, s store.Store, k store.Key, d store.Draft) store.Record {
	t.Helper()
	r, err := store.Create(t.Context(), s, k, d)
	if err != nil {
		t.Fatalf("create %s: %v", k, err)
	}
	return r
}

func mustPut(t testing.TB, s store.Store, k store.Key, d store.Draft) store.Record {
	t.Helper()
	r, err := s.Update(t.Context(), k, store.Any, put(d))
	if err != nil {
		t.Fatalf("put %s: %v", k, err)
	}
	return r.Record
}

func mustDelete(t testing.TB, s store.Store, k store.Key) store.Record {
	t.Helper()
	r, err := s.Update(t.Context(), k, store.Any, remove)
	if err != nil {
		t.Fatalf("delete %s: %v", k, err)
	}
	return r.Record
}

func put(d store.Draft) store.Decide {
	return func(*store.Record) (store.Decision, error) { return store.Decision{Op: store.Put, Draft: d}, nil }
}

func remove(*store.Record) (store.Decision, error) { return store.Decision{Op: store.Delete}, nil }

func keep(*store.Record) (store.Decision, error) { return store.Decision{Op: store.Keep}, nil }

func testCreate(t *testing.T, s store.Store) {
	before := s.Revision()
	if before == 0 {
		t.Error("the revision of an empty store is 0")
	}
	r := mustCreate(t, s, key("a", "1"), draft("v", "R", "x"))
	if r.Revision <= before || s.Revision() != r.Revision {
		t.Errorf("revision %d after %d, the store says %d", r.Revision, before, s.Revision())
	}
	if r.Key != key("a", "1") || string(r.Value) != "v" || string(r.Attributes.Field(event.Reason)) != "R" || time.Since(r.Time) > time.Minute {
		t.Errorf("created %+v", r)
	}
	if _, err := store.Create(t.Context(), s, key("a", "1"), draft("w", "R", "x")); !errors.Is(err, store.ErrExists) {
		t.Errorf("second create: %v, want ErrExists", err)
	}
	if s.Revision() != r.Revision {
		t.Error("a refused create used a revision")
	}
}

func testGet(t *testing.T, s store.Store) {
	want := mustCreate(t, s, key("a", "1"), draft("v", "R", "x"))
	mustCreate(t, s, key("b", "1"), draft("other", "R", "x"))
	got, err := store.Read(t.Context(), s, key("a", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffRecords([]store.Record{want}, []store.Record{got}); diff != "" {
		t.Error(diff)
	}
	for _, k := range []store.Key{key("a", "2"), key("a", ""), key("", "1"), key("c", "1")} {
		if _, err := store.Read(t.Context(), s, k); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("get %q: %v, want ErrNotFound", k, err)
		}
	}
}

func testUpdate(t *testing.T, s store.Store) {
	k := key("a", "1")
	if r, err := s.Update(t.Context(), k, store.Any, keep); err != nil || r.Op != store.Keep || r.Record.Revision != 0 {
		t.Errorf("keep of nothing: %+v, %v", r, err)
	}
	r, err := s.Update(t.Context(), k, store.Any, func(c *store.Record) (store.Decision, error) {
		if c != nil {
			t.Errorf("there is a version before the first: %+v", c)
		}
		return store.Decision{Op: store.Put, Draft: draft("1", "R", "x")}, nil
	})
	if err != nil || !r.Created || r.Op != store.Put {
		t.Fatalf("creating update: %+v, %v", r, err)
	}
	next, err := s.Update(t.Context(), k, store.Any, func(c *store.Record) (store.Decision, error) {
		if c == nil || string(c.Value) != "1" || c.Revision != r.Record.Revision {
			t.Errorf("the update sees %+v", c)
		}
		return store.Decision{Op: store.Put, Draft: draft("2", "R", "x")}, nil
	})
	if err != nil || next.Created || next.Record.Revision <= r.Record.Revision {
		t.Fatalf("update: %+v, %v", next, err)
	}
	at := s.Revision()
	if kept, err := s.Update(t.Context(), k, store.Any, keep); err != nil || kept.Record.Revision != next.Record.Revision || s.Revision() != at {
		t.Errorf("keep: %+v, %v, revision %d after %d", kept, err, s.Revision(), at)
	}
	mine := errors.New("mine")
	if _, err := s.Update(t.Context(), k, store.Any, func(*store.Record) (store.Decision, error) { return store.Decision{Op: store.Put}, mine }); !errors.Is(err, mine) {
		t.Errorf("the decision's error came back as %v", err)
	}
	if s.Revision() != at {
		t.Error("a refused update used a revision")
	}
}

// Another write comes between look and swap: the decision is made again.
func testUpdateRetries(t *testing.T, s store.Store) {
	k := key("a", "1")
	mustCreate(t, s, k, draft("1", "R", "x"))
	calls := 0
	r, err := s.Update(t.Context(), k, store.Any, func(c *store.Record) (store.Decision, error) {
		if calls++; calls == 1 {
			if _, isModel := s.(*model); isModel {
				calls++ // the model decides under its lock
			} else {
				mustPut(t, s, k, draft("between", "R", "x"))
			}
		}
		return store.Decision{Op: store.Put, Draft: draft(string(c.Value)+"+", "R", "x")}, nil
	})
	if err != nil || calls != 2 {
		t.Fatalf("%d calls, %v", calls, err)
	}
	if got := string(r.Record.Value); got != "between+" && got != "1+" {
		t.Errorf("value %q", got)
	}
}

func testDelete(t *testing.T, s store.Store) {
	k := key("a", "1")
	if _, err := s.Update(t.Context(), k, store.Any, remove); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("delete of nothing: %v", err)
	}
	first := mustCreate(t, s, k, draft("1", "R", "x"))
	gone := mustDelete(t, s, k)
	if gone.Revision <= first.Revision || string(gone.Value) != "1" || s.Revision() != gone.Revision {
		t.Errorf("deleted %+v", gone)
	}
	if _, err := store.Read(t.Context(), s, k); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get of a deleted event: %v", err)
	}
	if got := list(t, s, store.Query{}); len(got) != 0 {
		t.Errorf("listed after deletion: %+v", got)
	}
	if _, err := s.Update(t.Context(), k, store.Any, remove); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("second delete: %v", err)
	}
	again := mustCreate(t, s, k, draft("2", "R", "x"))
	if again.Revision <= gone.Revision {
		t.Errorf("created again at %d after %d", again.Revision, gone.Revision)
	}
	if got := list(t, s, store.Query{Revision: gone.Revision}); len(got) != 0 {
		t.Errorf("at the revision of the deletion there is %+v", got)
	}
	if got := list(t, s, store.Query{Revision: first.Revision}); len(got) != 1 || string(got[0].Value) != "1" {
		t.Errorf("at its creation there is %+v", got)
	}
}

// testUpdateMany changes many events at once: each gets what [store.Store.Update] would do to it, and another revision.
func testUpdateMany(t *testing.T, s store.Store) {
	const n = 600
	for i := 0; i < n; i += 3 {
		mustCreate(t, s, key("a", fmt.Sprint(i)), draft("old", "R", "x"))
	}
	keys := []store.Key{{Namespace: "a", Name: "no/key"}}
	for i := range n {
		keys = append(keys, key("a", fmt.Sprint(i)))
	}
	errRefused, before := errors.New("refused"), s.Revision()
	outcomes := s.UpdateMany(t.Context(), keys, func(int) store.Expect { return store.Absent }, func(i int, current *store.Record) (store.Decision, error) {
		switch {
		case current == nil:
			return store.Decision{Op: store.Put, Draft: draft("new", "R", "x")}, nil
		case i%2 == 0:
			return store.Decision{Op: store.Put, Draft: draft("behind "+string(current.Value), "R", "x")}, nil
		case i == 7:
			return store.Decision{Op: store.Delete}, nil
		case i == 13:
			return store.Decision{}, nil
		}
		return store.Decision{}, errRefused
	})
	created, changed, refused, revisions := 0, 0, 0, map[uint64]bool{}
	for i, o := range outcomes {
		switch {
		case errors.Is(o.Err, errRefused):
			refused++
			continue
		case o.Err != nil:
			if i != 0 {
				t.Errorf("%s: %v", keys[i], o.Err)
			}
			continue
		case o.Op == store.Keep && string(o.Record.Value) == "old" && i == 13, o.Op == store.Delete && i == 7:
		case o.Created && string(o.Record.Value) == "new":
			created++
		case string(o.Record.Value) == "behind old":
			changed++
		default:
			t.Errorf("%s: %+v", keys[i], o)
		}
		if o.Op != store.Keep && (o.Record.Revision <= before || revisions[o.Record.Revision]) {
			t.Errorf("%s has revision %d", keys[i], o.Record.Revision)
		}
		revisions[o.Record.Revision] = true
	}
	if outcomes[0].Err == nil || created != n-n/3 || changed != n/6 || refused != n/6-2 {
		t.Errorf("%d created, %d changed, %d refused, %v", created, changed, refused, outcomes[0].Err)
	}
	if got := len(list(t, s, store.Query{})); got != n-1 {
		t.Errorf("%d events, want %d", got, n-1)
	}
}

func testDeleteMany(t *testing.T, s store.Store) {
	const n = 600
	for i := range n {
		mustCreate(t, s, key("a", fmt.Sprint(i)), draft("v", "R", "x"))
	}
	mustCreate(t, s, key("b", "stays"), draft("v", "R", "x"))
	var seen []store.Seen
	for _, r := range list(t, s, store.Query{Namespace: "a"}) {
		seen = append(seen, r.View().Seen())
	}
	at := s.Revision()
	mustPut(t, s, key("a", "17"), draft("changed", "R", "x"))
	mustDelete(t, s, key("a", "18"))
	gone, changed, err := s.DeleteMany(t.Context(), seen, nil)
	if err != nil || gone != n-2 {
		t.Errorf("%d deleted, %v; want %d", gone, err, n-2)
	}
	if diff := cmp.Diff([]store.Key{key("a", "17"), key("a", "18")}, changed); diff != "" {
		t.Errorf("left alone: %s", diff)
	}
	if diff := cmp.Diff([]string{"a/17", "b/stays"}, names(list(t, s, store.Query{}))); diff != "" {
		t.Error(diff)
	}
	for _, d := range take(t, watch(t, s, store.WatchQuery{After: at + 2}), n-2) {
		if d.Type != store.Removed || len(d.Object.Value) == 0 {
			t.Errorf("told of %s with type %d and %q", d.Object.Key, d.Type, d.Object.Value)
		}
	}
	if gone, changed, err := s.DeleteMany(t.Context(), seen, nil); gone != 0 || len(changed) != n || err != nil {
		t.Errorf("again: %d deleted, %d left alone, %v", gone, len(changed), err)
	}
}

// testDeletions: what somebody has deleted is told with who did, in order, and apart from what the store deletes by
// itself.
func testDeletions(t *testing.T, s store.Store) {
	timed, ok := s.(timeliner)
	if !ok {
		t.Skip("the store has no timeline")
	}
	begin := s.Revision()
	for _, name := range []string{"one", "two", "three", "expired", "again", "stays"} {
		mustCreate(t, s, key("a", name), draft(name, "R", "x"))
	}
	mustCreate(t, s, key("b", "other"), draft("other", "R", "x"))
	removed := func(name string, by string) store.Record {
		t.Helper()
		r, err := s.Update(t.Context(), key("a", name), store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Delete, By: []byte(by)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.Record
	}
	many := func(by []byte, keys ...store.Key) {
		t.Helper()
		var seen []store.Seen
		for _, k := range keys {
			r, err := store.Read(t.Context(), s, k)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, r.View().Seen())
		}
		if n, _, err := s.DeleteMany(t.Context(), seen, by); n != len(keys) || err != nil {
			t.Fatal(n, err)
		}
	}
	removed("again", "ann")
	mustCreate(t, s, key("a", "again"), draft("again 2", "R", "x"))
	one := removed("one", "ann")
	many([]byte("bob"), key("a", "two"), key("a", "three"), key("b", "other"))
	many(nil, key("a", "expired"))
	removed("again", "cid")
	read := func(q store.DeletionQuery, most int) (all []string) {
		t.Helper()
		err := timed.Timeline().Deletions(t.Context(), q, func(v *store.View, by []byte) bool {
			all = append(all, fmt.Sprintf("%s %s %s", v.Name, v.Value, by))
			return len(all) < most
		})
		if err != nil {
			t.Error(err)
		}
		return all
	}
	all := store.DeletionQuery{From: time.Unix(0, 0), To: time.Now().Add(24 * time.Hour), After: begin, Until: s.Revision()}
	bounded, later, earlier, past := all, all, all, all
	bounded.Until, later.After = one.Revision, one.Revision
	earlier.After, earlier.To = 0, time.Unix(1, 0)
	past.From = time.Now().Add(time.Hour)
	for name, test := range map[string]struct {
		q    store.DeletionQuery
		most int
		want string
	}{
		"all":                 {all, 99, "again again ann, one one ann, two two bob, three three bob, other other bob, again again 2 cid"},
		"two":                 {all, 2, "again again ann, one one ann"},
		"up to a revision":    {bounded, 99, "again again ann, one one ann"},
		"behind it":           {later, 99, "two two bob, three three bob, other other bob, again again 2 cid"},
		"before anything was": {earlier, 99, ""},
		"after all":           {past, 99, ""},
	} {
		if got := strings.Join(read(test.q, test.most), ", "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// list reads all pages of a query.
func list(t testing.TB, s store.Store, q store.Query) (all []store.Record) {
	t.Helper()
	for {
		records, page, err := store.Records(t.Context(), s, q)
		if err != nil {
			t.Fatalf("list %+v: %v", q, err)
		}
		all = append(all, records...)
		if !page.More {
			return all
		}
		if q.Revision != 0 && page.Revision != q.Revision {
			t.Fatalf("page of revision %d, asked for %d", page.Revision, q.Revision)
		}
		q.Revision, q.After = page.Revision, page.Last
	}
}

func names(rs []store.Record) (out []string) {
	for _, r := range rs {
		out = append(out, r.Key.String())
	}
	return out
}

func testListPages(t *testing.T, s store.Store) {
	all := []string{"a-b/2", "a/1", "a/10", "a/2", "a/A", "a/Z", "a/b.1", "a/b.2", "aa/1", "b/1"}
	slices.Sort(all)
	for i := range all {
		k := all[(i*7)%len(all)]
		n := 0
		for k[n] != '/' {
			n++
		}
		mustCreate(t, s, key(k[:n], k[n+1:]), draft("0123456789", "R", "x"))
	}
	inA := slices.DeleteFunc(slices.Clone(all), func(k string) bool { return k[:2] != "a/" })
	for limit := range len(all) + 2 {
		if diff := cmp.Diff(all, names(list(t, s, store.Query{Limit: limit}))); diff != "" {
			t.Errorf("all by %d: %s", limit, diff)
		}
		if diff := cmp.Diff(inA, names(list(t, s, store.Query{Namespace: "a", Limit: limit}))); diff != "" {
			t.Errorf("a namespace by %d: %s", limit, diff)
		}
	}
	if diff := cmp.Diff([]string{"a/1"}, names(list(t, s, store.Query{Namespace: "a", Name: "1"}))); diff != "" {
		t.Errorf("by name: %s", diff)
	}
	if diff := cmp.Diff([]string{"a/1", "aa/1", "b/1"}, names(list(t, s, store.Query{Name: "1"}))); diff != "" {
		t.Errorf("by name everywhere: %s", diff)
	}
	_, page, err := store.Records(t.Context(), s, store.Query{Namespace: "a", Limit: 3, Count: true})
	if err != nil || !page.More || page.Remaining != int64(len(inA)-3) {
		t.Errorf("page of 3 of %d: more %v, remaining %d, %v", len(inA), page.More, page.Remaining, err)
	}
	_, page, err = store.Records(t.Context(), s, store.Query{Namespace: "a", Limit: len(inA), Count: true})
	if err != nil || page.More || page.Remaining != 0 {
		t.Errorf("page of all: more %v, remaining %d, %v", page.More, page.Remaining, err)
	}
	_, page, err = store.Records(t.Context(), s, store.Query{Namespace: "none"})
	if err != nil || page.More || page.Revision != s.Revision() {
		t.Errorf("empty namespace: %+v, %v", page, err)
	}
}

func testListAtRevision(t *testing.T, s store.Store) {
	states := map[uint64][]string{s.Revision(): nil}
	var now []string
	for i := range 20 {
		k := key("a", fmt.Sprint(i%7))
		i0 := slices.IndexFunc(now, func(v string) bool { return v[:3] == k.String() })
		var r store.Record
		switch {
		case i0 < 0:
			r = mustCreate(t, s, k, draft(fmt.Sprint(i), "R", "x"))
			now = append(slices.Clone(now), k.String()+"="+fmt.Sprint(i))
		case i%3 == 0:
			r = mustDelete(t, s, k)
			now = slices.Delete(slices.Clone(now), i0, i0+1)
		default:
			r = mustPut(t, s, k, draft(fmt.Sprint(i), "R", "x"))
			now = slices.Clone(now)
			now[i0] = k.String() + "=" + fmt.Sprint(i)
		}
		slices.Sort(now)
		states[r.Revision] = now
	}
	for revision, want := range states {
		var got []string
		for _, r := range list(t, s, store.Query{Revision: revision, Limit: 2}) {
			got = append(got, r.Key.String()+"="+string(r.Value))
			if r.Revision > revision {
				t.Errorf("at %d there is a version of %d", revision, r.Revision)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at %d: %s", revision, diff)
		}
	}
	future := new(store.FutureError)
	if _, _, err := store.Records(t.Context(), s, store.Query{Revision: s.Revision() + 1}); !errors.As(err, &future) || future.Current != s.Revision() {
		t.Errorf("list of the future: %v", err)
	}
}

func selector(t testing.TB, reason, lbls string) *event.Selector {
	t.Helper()
	reqs, err := labels.ParseToRequirements(lbls)
	if err != nil {
		t.Fatal(err)
	}
	s := &event.Selector{Labels: reqs}
	if reason != "" {
		s.Fields = append(s.Fields, event.FieldRequirement{Field: event.Reason, Value: reason})
	}
	return s
}

func testListSelector(t *testing.T, s store.Store) {
	for i := range 30 {
		mustCreate(t, s, key("a", fmt.Sprintf("%02d", i)), draft("v", []string{"Pulled", "Killing", "Failed"}[i%3], []string{"web", "db"}[i%2]))
	}
	mustPut(t, s, key("a", "00"), draft("v", "Killing", "web"))
	mustDelete(t, s, key("a", "01"))
	first := s.Revision()
	mustPut(t, s, key("a", "04"), draft("v", "Pulled", "web"))
	tests := []struct {
		query  store.Query
		reason string
		labels string
		want   []string
	}{
		{reason: "Killing", want: []string{"00", "07", "10", "13", "16", "19", "22", "25", "28"}},
		{reason: "Killing", labels: "app=web", want: []string{"00", "10", "16", "22", "28"}},
		{query: store.Query{Revision: first}, reason: "Killing", labels: "app=web", want: []string{"00", "04", "10", "16", "22", "28"}},
		{query: store.Query{Limit: 2}, labels: "app notin (web)", reason: "Failed", want: []string{"05", "11", "17", "23", "29"}},
		{reason: "None"},
		{query: store.Query{Namespace: "b"}, reason: "Killing"},
		{query: store.Query{Namespace: "a", Limit: 1}, labels: "app=web", reason: "Pulled", want: []string{"04", "06", "12", "18", "24"}},
	}
	for _, tt := range tests {
		tt.query.Selector = selector(t, tt.reason, tt.labels)
		var got []string
		for _, r := range list(t, s, tt.query) {
			got = append(got, r.Name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q %q: %s", tt.reason, tt.labels, diff)
		}
	}
}

// testClusters: a selector of clusters finds by names, by beginnings, and events without one.
func testClusters(t *testing.T, s store.Store) {
	all := map[string][]string{}
	for i := range 40 {
		cluster, name := []string{"", "a", "b", "eu-1", "eu-2"}[i%5], fmt.Sprintf("%02d", i)
		d := draft("v", "Killing", "web")
		if cluster != "" {
			d.Attributes = event.NewAttributes([event.NumFields]string{event.Reason: "Killing"}, map[string]string{event.ClusterLabel: cluster})
		}
		mustCreate(t, s, key("a", name), d)
		all[cluster] = append(all[cluster], name)
	}
	for _, clusters := range []pattern.List{{"a"}, {"a", "b"}, {"eu-*"}, {""}, {"", "eu-1"}, {"*"}, {}, {"none"}} {
		var want []string
		for cluster, names := range all {
			if clusters.Match(cluster) {
				want = append(want, names...)
			}
		}
		slices.Sort(want)
		for _, limit := range []int{0, 1, 3} { // with a limit, pages of one list and of another must not be mixed up
			var got []string
			for _, r := range list(t, s, store.Query{Limit: limit, Selector: &event.Selector{Clusters: clusters}}) {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q, limit %d: %s", []string(clusters), limit, diff)
			}
		}
	}
}

func testRestart(t *testing.T, e engine) {
	s := e.Start(t)
	for i := range 10 {
		mustCreate(t, s, key("a", fmt.Sprint(i)), draft(fmt.Sprint(i), "R", "x"))
	}
	mustPut(t, s, key("a", "3"), draft("changed", "R", "x"))
	mustDelete(t, s, key("a", "4"))
	want, at := list(t, s, store.Query{}), s.Revision()
	w := watch(t, s, store.WatchQuery{After: at})
	e.Stop(t)
	if _, err := w.Next(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a watch ended by closing says %v, want ErrClosed", err)
	}
	if _, err := store.Create(t.Context(), s, key("a", "late"), draft("", "", "")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("create after closing: %v, want ErrClosed", err)
	}

	s = e.Start(t)
	defer e.Stop(t)
	if s.Revision() != at {
		t.Errorf("revision %d after the restart, %d before", s.Revision(), at)
	}
	if diff := diffRecords(want, list(t, s, store.Query{})); diff != "" {
		t.Error(diff)
	}
	if r := mustCreate(t, s, key("a", "4"), draft("again", "R", "x")); r.Revision <= at {
		t.Errorf("revision %d was used twice", r.Revision)
	}
	got := take(t, watch(t, s, store.WatchQuery{After: 1}), 13)
	for i, d := range got {
		if d.Revision != uint64(i+2) {
			t.Errorf("change %d after the restart has revision %d", i, d.Revision)
		}
	}
}

// diffRecords compares records, or what holds them, but for the bytes that they
// take, which are the engine's own affair.
func diffRecords(want, got any) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b store.Record) bool {
		return a.Key == b.Key && a.Revision == b.Revision && a.Time.Equal(b.Time) && bytes.Equal(a.Attributes, b.Attributes) && bytes.Equal(a.Value, b.Value)
	}), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }))
}

func watch(t testing.TB, s store.Store, q store.WatchQuery) store.Watcher {
	t.Helper()
	w, err := s.Watch(context.WithoutCancel(t.Context()), q)
	if err != nil {
		t.Fatalf("watch %+v: %v", q, err)
	}
	t.Cleanup(w.Close)
	return w
}
