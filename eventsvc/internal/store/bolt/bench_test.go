package bolt_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// A stored event takes about as much as this: both wire forms of it.
const benchValue = 2800

func benchDraft(reason string) store.Draft {
	value := make([]byte, benchValue)
	for i := range value {
		value[i] = byte(rand.Uint32())
	}
	return store.Draft{Value: value, Attributes: event.NewAttributes([event.NumFields]string{
		"Pod", "shop", "web-7c5ddbdf54-x2x7k", "9c1f0e0a-3b7e-4f6e-9d1c-0a5f5b0c7a11", "v1", "123456", "spec.containers{web}", reason, "Normal", "kubelet", "kubelet",
	}, map[string]string{"app": "web"})}
}

func benchKey(i int) store.Key {
	return store.Key{Namespace: fmt.Sprintf("ns-%02d", i%50), Name: fmt.Sprintf("web-%08x.%016x", uint32(i)*2654435761, i)}
}

// openBench opens an empty store.
func openBench(b *testing.B) *bolt.DB {
	b.Helper()
	db, err := bolt.Open(bolt.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return db
}

// createMany stores n events from so many goroutines.
func createMany(b *testing.B, db *bolt.DB, first, n, callers int) {
	b.Helper()
	var next atomic.Int64
	draft, rare := benchDraft("Pulled"), benchDraft("Rare")
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				d := draft
				if i%100 == 0 {
					d = rare
				}
				if _, err := store.Create(b.Context(), db, benchKey(first+int(i)), d); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// reportCPU reports the processor time of this process for each operation: on a
// busy machine it says more than the time that passed.
func reportCPU(b *testing.B, operations int, f func()) {
	b.Helper()
	before := cpuTime(b)
	f()
	b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/1e3/float64(operations), "cpu-µs/op")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkCreate(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			db := openBench(b)
			b.ResetTimer()
			reportCPU(b, b.N, func() { createMany(b, db, 0, b.N, callers) })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
		})
	}
}

// BenchmarkCreateBesideStalled is BenchmarkCreate with so many watchers that do
// not read.
func BenchmarkCreateBesideStalled(b *testing.B) {
	for _, watchers := range []int{0, 1000} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			db := openBench(b)
			for range watchers {
				if _, err := db.Watch(b.Context(), store.WatchQuery{After: 1}); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			reportCPU(b, b.N, func() { createMany(b, db, 0, b.N, 64) })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	db := openBench(b)
	const n = 100_000
	createMany(b, db, 0, n, 256)
	b.ResetTimer()
	reportCPU(b, b.N, func() {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := store.Read(b.Context(), db, benchKey(rand.IntN(n))); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

func BenchmarkList(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			db := openBench(b)
			createMany(b, db, 0, n, 256)
			b.ResetTimer()
			reportCPU(b, b.N*n, func() {
				for range b.N {
					listAll(b, db, store.Query{}, n)
				}
			})
		})
	}
}

func listAll(b *testing.B, db *bolt.DB, q store.Query, want int) {
	b.Helper()
	got := 0
	for {
		page, err := db.List(b.Context(), q, func(*store.View) bool {
			got++
			return true
		})
		if err != nil {
			b.Fatal(err)
		}
		if !page.More {
			break
		}
		q.Revision, q.After = page.Revision, page.Last
	}
	if got != want {
		b.Fatalf("%d events listed, want %d", got, want)
	}
}

// BenchmarkFanOut has so many watchers read every one of b.N creations, which
// are made one after the other as at a low rate.
func BenchmarkFanOut(b *testing.B) {
	for _, watchers := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			db := openBench(b)
			var wg sync.WaitGroup
			for range watchers {
				w, err := db.Watch(b.Context(), store.WatchQuery{After: 1})
				if err != nil {
					b.Fatal(err)
				}
				wg.Go(func() {
					for seen := 0; seen < b.N; {
						batch, err := w.Next(b.Context())
						if err != nil {
							b.Error(err)
							return
						}
						seen += len(batch.Changes)
					}
				})
			}
			b.ResetTimer()
			reportCPU(b, b.N*watchers, func() {
				createMany(b, db, 0, b.N, 1)
				wg.Wait()
			})
			b.ReportMetric(float64(b.N*watchers)/b.Elapsed().Seconds(), "deliveries/s")
		})
	}
}
