package bolt_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/shared/waittest"
)

// TestRemainingWhileEventsChange: the first page of a list says how many events are behind
// it at its revision, whatever is written meanwhile.
func TestRemainingWhileEventsChange(t *testing.T) {
	t.Parallel()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), MemtableLimit: 50})
	defer bolttest.Close(t, db)
	const writers, lists = 4, 100
	var writing sync.WaitGroup
	var done atomic.Bool
	for w := range writers {
		writing.Go(func() {
			for i := 0; !done.Load(); i++ {
				k := store.Key{Namespace: fmt.Sprintf("ns%d", (i+w)%3), Name: fmt.Sprintf("e%d-%d", w, i%20)}
				op := store.Op(1 + (i/20)%2) // creates twenty, deletes them
				_, err := db.Update(t.Context(), k, store.Any, func(was *store.Record) (store.Decision, error) {
					if was == nil && op == store.Delete {
						return store.Decision{}, nil
					}
					return store.Decision{Op: op, Draft: store.Draft{Value: []byte("{}")}}, nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range lists {
		q := store.Query{Limit: 1 + i%3, Count: true}
		if i%2 == 0 {
			q.Namespace = "ns1"
		}
		first, page, err := store.Records(t.Context(), db, q)
		if err != nil {
			t.Error(err)
			break
		}
		rest := listed(t, db, store.Query{Namespace: q.Namespace, Revision: page.Revision})[len(first):]
		if page.Remaining != int64(len(rest)) {
			t.Errorf("%+v: %d events remain, but the page says %d", q, len(rest), page.Remaining)
		}
	}
	done.Store(true)
	waittest.Join(t, &writing)
	bolttest.Check(t, db)
}

// TestRemainingOfALongList: no page counts a long list. The number that its first page knows
// goes on from page to page. Where none is known it is left out, until few events are left.
func TestRemainingOfALongList(t *testing.T) {
	t.Parallel()
	const n, counted = 17_500, 1 << 14
	o := bolt.Options{Dir: t.TempDir()}
	at := func(i int) store.Key { return store.Key{Namespace: "ns", Name: fmt.Sprintf("e%05d", i)} }
	db := bolttest.Open(t, o)
	bolttest.Fill(t, db, n, func(i int) (store.Key, store.Draft) { return at(i), store.Draft{Value: []byte("{}")} })
	old := db.Revision()
	bolttest.Close(t, db)
	db = bolttest.Open(t, o) // it knows the number of the newest revision alone
	defer func() { bolttest.Close(t, db) }()
	for _, key := range []store.Key{at(0), at(n - 1)} {
		if _, err := db.Update(t.Context(), key, store.Any, bolttest.Remove); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		query store.Query
		want  int64
	}{
		"the newest revision":           {store.Query{}, n - 2 - 10},
		"a namespace":                   {store.Query{Namespace: "ns"}, n - 2 - 10},
		"the revision of the start":     {store.Query{Revision: old}, n - 10},
		"a later page":                  {store.Query{Revision: old, After: at(999), Behind: n - 1000}, n - 1000 - 10},
		"a later page without a number": {store.Query{Revision: old, After: at(999)}, 0},
		"few are left":                  {store.Query{Revision: old, After: at(9999)}, n - 10_000 - 10},
		"as many as are counted":        {store.Query{Revision: db.Revision(), After: at(n - 1 - counted - 10)}, counted - 1}, // with one deletion
		"one more":                      {store.Query{Revision: db.Revision(), After: at(n - 1 - counted - 10 - 1)}, 0},
		"a number of another revision":  {store.Query{After: at(9999), Behind: 5}, n - 1 - 10_000 - 10},
		"a number that is too small":    {store.Query{Revision: old, After: at(999), Behind: 1}, 0},
	} {
		tt.query.Limit, tt.query.Count = 10, true
		records, page, err := store.Records(t.Context(), db, tt.query)
		if err != nil || len(records) != 10 || !page.More || page.Remaining != tt.want {
			t.Errorf("%s: %d events, more %t, %d remain, want %d, %v", name, len(records), page.More, page.Remaining, tt.want, err)
		}
	}
	bolttest.Close(t, db)
	db = bolttest.Open(t, o)
	if _, page, err := store.Records(t.Context(), db, store.Query{Revision: old, Limit: 10, Count: true}); err != nil || page.Remaining != 0 {
		t.Errorf("a revision before the start: %d remain, %v; their number is not known", page.Remaining, err)
	}
}
