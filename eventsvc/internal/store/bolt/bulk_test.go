package bolt_test

import (
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
		q := store.Query{Revision: db.Revision()}
		for n := 0; n < b.N; {
			seen := make([]store.Seen, 0, 8192)
			page, err := db.List(b.Context(), q, func(v *store.View) bool {
				seen = append(seen, v.Seen())
				return true
			})
			if err != nil {
				b.Fatal(err)
			}
			deleted, changed, err := db.DeleteMany(b.Context(), seen, nil)
			if err != nil || len(changed) > 0 {
				b.Fatal(len(changed), err)
			}
			n += deleted
			q.After = page.Last
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deletions/s")
}
