package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/shared/pgtest"
)

// BenchmarkCreate measures new events of 1.1 kB by so many callers at the same time. Set TEST_POSTGRES_DSN to a server
// whose commits reach the disk, which in the tests they do not.
func BenchmarkCreate(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			dsn := service(b, pgtest.Start(b).Database(b))
			db := open(b, postgres.Options{Access: postgres.Access{DSN: dsn}, Copy: bolt.Options{Dir: b.TempDir(), MaxBytes: -1}})
			value := make([]byte, 1100)
			for i := range value {
				value[i] = byte(i * 7)
			}
			var n atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			start := time.Now()
			for range callers {
				wg.Go(func() {
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						if _, err := store.Create(b.Context(), db, store.Key{Namespace: "a", Name: fmt.Sprintf("e%09d", i)}, store.Draft{Value: value}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "creates/s")
		})
	}
}

// BenchmarkCatchUp measures how fast an empty copy is filled.
func BenchmarkCatchUp(b *testing.B) {
	dsn := service(b, pgtest.Start(b).Database(b))
	pgtest.Exec(b, dsn, `SET search_path = eventsvc; DO $$ BEGIN FOR i IN 0..9 LOOP
		PERFORM commit_batch(1, gen_random_uuid(), 1, array_agg(1::smallint), array_agg('a'::text), array_agg('e' || i || '-' || n),
			array_agg(0::bigint), array_agg(''::bytea), array_agg(decode(repeat(md5(n::text), 34), 'hex') || decode(repeat(md5(i::text), 34), 'hex')))
			FROM generate_series(1, 5000) n; END LOOP; END $$`)
	for b.Loop() {
		start := time.Now()
		db := open(b, postgres.Options{Access: postgres.Access{DSN: dsn}, Copy: bolt.Options{Dir: b.TempDir(), MaxBytes: -1}})
		b.ReportMetric(50_000/time.Since(start).Seconds(), "events/s")
		if db.Stats().Events != 50_000 {
			b.Errorf("%d events", db.Stats().Events)
		}
		db.Close()
	}
}
