package bolt_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/randtest"
)

// What the columns find is what going over everything finds: by all kinds of
// selectors, at old revisions, in pages, of the head and of sealed files.
func TestSelectorsFindTheSame(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir(), SegmentBytes: 256 << 10, MemtableLimit: 700}
	db := bolttest.Open(t, o)
	defer func() { bolttest.Close(t, db) }()
	rnd := randtest.New(t)
	draft := func(i int) store.Draft {
		return store.Draft{Value: fmt.Appendf(nil, "value %d", i), Attributes: event.NewAttributes([event.NumFields]string{
			event.Reason: fmt.Sprintf("R%d", rnd.IntN(40)), event.Type: []string{"Normal", "Warning"}[rnd.IntN(2)],
			event.RegardingUID: fmt.Sprintf("uid-%d", rnd.IntN(300)),
		}, map[string]string{"app": fmt.Sprintf("a%d", rnd.IntN(60)), "odd": ""})}
	}
	drafts := make([]store.Draft, 3000)
	for i := range drafts {
		drafts[i] = draft(i)
	}
	storetest.Parallel(t, 2000, func(i int) {
		k := store.Key{Namespace: fmt.Sprintf("ns%d", i%3), Name: bolttest.Key(i).Name}
		if _, err := store.Create(t.Context(), db, k, drafts[i]); err != nil {
			t.Error(err)
		}
	})
	old := db.Revision()
	storetest.Parallel(t, 1000, func(i int) {
		k := store.Key{Namespace: fmt.Sprintf("ns%d", i%3), Name: bolttest.Key(i).Name}
		_, err := db.Update(t.Context(), k, store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Op(1 + i%2), Draft: drafts[2000+i]}, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	for _, revision := range []uint64{old, old + 500, db.Revision()} {
		compareSelectors(t, db, revision)
	}
	bolttest.Close(t, db)
	db = bolttest.Open(t, o)
	compareSelectors(t, db, old+500)
	bolttest.Check(t, db)
}

// TestSelectorsOfSmallNamespaces: lists of namespaces that have a few rows of each chunk of columns find what going
// over everything finds.
func TestSelectorsOfSmallNamespaces(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir(), SegmentBytes: 1 << 20}
	db := bolttest.Open(t, o)
	defer func() { bolttest.Close(t, db) }()
	rnd := randtest.New(t)
	draft := func() store.Draft {
		return store.Draft{Value: []byte("value"), Attributes: event.NewAttributes([event.NumFields]string{
			event.Reason: fmt.Sprintf("R%d", rnd.IntN(40)), event.Type: []string{"Normal", "Warning"}[rnd.IntN(2)],
		}, map[string]string{"app": fmt.Sprintf("a%d", rnd.IntN(60)), "odd": ""})}
	}
	const events, namespaces = 9000, 60
	key := func(i int) store.Key {
		return store.Key{Namespace: fmt.Sprintf("ns%d", i%namespaces), Name: bolttest.Key(i).Name}
	}
	bolttest.Fill(t, db, events, func(i int) (store.Key, store.Draft) { return key(i), draft() })
	old := db.Revision()
	compareSelectors(t, db, old)
	for i := range events / 10 {
		_, err := db.Update(t.Context(), key(i), store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Op(1 + i/namespaces%2), Draft: draft()}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	both := func() {
		compareSelectors(t, db, old)
		compareSelectors(t, db, db.Revision())
	}
	both()
	if err := db.Compact(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	both()
}

func compareSelectors(t *testing.T, db *bolt.DB, revision uint64) {
	t.Helper()
	everything := listed(t, db, store.Query{Revision: revision})
	for _, text := range []string{"", "app=a7", "app in (a1,a2,nothing)", "app=a7,odd", "app!=a7", "odd=,app=a9", "none=1"} {
		for _, fields := range [][]event.FieldRequirement{
			nil,
			{{Field: event.Reason, Value: "R7"}},
			{{Field: event.RegardingUID, Value: "uid-17"}},
			{{Field: event.Reason, Value: "R7"}, {Field: event.Type, Value: "Normal", Not: true}},
			{{Field: event.Reason, Value: "R7"}, {Field: event.FieldNamespace, Value: "ns1"}},
			{{Field: event.Reason, Value: ""}},
		} {
			reqs, err := labels.ParseToRequirements(text)
			if err != nil {
				t.Fatal(err)
			}
			q := store.Query{Revision: revision, Selector: &event.Selector{Fields: fields, Labels: reqs}}
			for _, q.Namespace = range []string{"", "ns2"} {
				var want []string
				for _, r := range everything {
					if (q.Namespace == "" || q.Namespace == r.Namespace) && q.Selector.Matches(r.Namespace, r.Name, r.Attributes) {
						want = append(want, fmt.Sprint(r.Key, r.Revision, string(r.Value)))
					}
				}
				for _, q.Limit = range []int{0, 1 + len(want)/20} {
					var got []string
					for _, r := range listed(t, db, q) {
						got = append(got, fmt.Sprint(r.Key, r.Revision, string(r.Value)))
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%q %v in %q at %d: %s", text, fields, q.Namespace, revision, diff)
					}
				}
			}
		}
	}
}

func listed(t *testing.T, db *bolt.DB, q store.Query) (all []store.Record) {
	t.Helper()
	for {
		records, page, err := store.Records(t.Context(), db, q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, records...)
		if !page.More {
			return all
		}
		q.After = page.Last
	}
}

func field(f event.Field, value string) *event.Selector {
	return &event.Selector{Fields: []event.FieldRequirement{{Field: f, Value: value}}}
}

func requirements(t testing.TB, text string) []labels.Requirement {
	t.Helper()
	reqs, err := labels.ParseToRequirements(text)
	if err != nil {
		t.Fatal(err)
	}
	return reqs
}
