package bolt_test

import (
	"cmp"
	"slices"
	"testing"

	"tidings.example/eventsvc/internal/store"
)

// BenchmarkDeleteMany deletes b.N events as a deletecollection does, page by
// page.
func BenchmarkDeleteMany(b *testing.B) {
	db := openBench(b)
	createMany(b, db, 0, b.N, 256)
	b.ResetTimer()
	reportCPU(b, b.N, func() {
		q := store.Query{Revision: db.Revision(), Scattered: true}
		for n := 0; n < b.N; {
			seen := make([]store.Seen, 0, 8192)
			q.Visit = func(r *store.Record) bool {
				seen = append(seen, r.Seen())
				return true
			}
			page, err := db.List(b.Context(), q)
			if err != nil {
				b.Fatal(err)
			}
			slices.SortFunc(seen, func(a, b store.Seen) int {
				return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
			})
			deleted, changed, err := db.DeleteMany(b.Context(), seen)
			if err != nil || len(changed) > 0 {
				b.Fatal(len(changed), err)
			}
			n += deleted
			q.After = page.Last
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deletions/s")
}
