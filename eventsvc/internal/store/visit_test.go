package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// A list has the same events whatever the length of its pages, and a page ends where visit
// returns false.
func testListVisit(t *testing.T, s store.Store) {
	for i := range 30 {
		mustCreate(t, s, key("a", fmt.Sprintf("%02d", i)), draft("v", []string{"Pulled", "Killing", "Failed"}[i%3], "web"))
	}
	reason := &event.Selector{Fields: []event.FieldRequirement{{Field: event.Reason, Value: "Killing"}}}
	for _, q := range []store.Query{{}, {Namespace: "a", Limit: 4}, {Selector: reason}, {Selector: reason, Limit: 2}} {
		for every := 1; every < 5; every++ {
			if diff := cmp.Diff(names(list(t, s, q)), names(visit(t, s, q, every))); diff != "" {
				t.Errorf("%+v, shown %d at a time: %s", q, every, diff)
			}
		}
	}
}

// visit reads all pages of a query, each of which it ends after so many events.
func visit(t *testing.T, s store.Store, q store.Query, every int) (all []store.Record) {
	t.Helper()
	for {
		n := 0
		page, err := s.List(t.Context(), q, func(v *store.View) bool {
			all = append(all, v.Clone())
			n++
			return n < every
		})
		if err != nil || n > every {
			t.Fatalf("%+v: %d shown, %v", q, n, err)
		}
		if !page.More {
			return all
		}
		q.Revision, q.After = page.Revision, page.Last
	}
}
