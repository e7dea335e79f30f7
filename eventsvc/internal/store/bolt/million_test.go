package bolt_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
)

// BenchmarkMillion fills a store with a million events, starts it again and
// reports what that takes. It keeps the directory named by TIDINGS_BENCH_DIR.
func BenchmarkMillion(b *testing.B) {
	dir := os.Getenv("TIDINGS_BENCH_DIR")
	if dir == "" {
		b.Skip("set TIDINGS_BENCH_DIR to a directory for 3.5 GB of events")
	}
	const n = 1_000_000
	db, err := bolttest.OpenDB(bolt.Options{Dir: dir, MaxBytes: -1})
	if err != nil {
		b.Fatal(err)
	}
	if missing := n - int(db.Stats().Events); missing > 0 {
		start := time.Now()
		createMany(b, db, n-missing, missing, 64)
		b.ReportMetric(float64(missing)/time.Since(start).Seconds(), "creates/s")
		fmt.Printf("filled: %v, %+v\n", time.Since(start), db.Stats())
	}
	start := time.Now()
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	fmt.Printf("close: %v\n", time.Since(start))
	debug.FreeOSMemory()
	start = time.Now()
	if db, err = bolttest.OpenDB(bolt.Options{Dir: dir, MaxBytes: -1}); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	b.ReportMetric(float64(time.Since(start).Milliseconds()), "start-ms")
	fmt.Printf("start: %v, anonymous memory %s\n", time.Since(start), anonymous())
	for range 3 {
		start = time.Now()
		_, page, err := store.Records(b.Context(), db, store.Query{Limit: 500, Count: true})
		fmt.Printf("first page with count: %v (%d remaining, %v)\n", time.Since(start), page.Remaining, err)
	}
	for range 2 {
		start = time.Now()
		listAll(b, db, store.Query{Namespace: "ns-07"}, n/50)
		fmt.Printf("list of %d: %v\n", n/50, time.Since(start))
	}
	for range 3 {
		sel := &event.Selector{Fields: []event.FieldRequirement{{Field: event.Reason, Value: "Rare"}}}
		start = time.Now()
		listAll(b, db, store.Query{Selector: sel}, n/100)
		fmt.Printf("list of 1%%: %v\n", time.Since(start))
	}
	runtime.GC()
	fmt.Printf("anonymous memory %s\n", anonymous())
}

func anonymous() string {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(bytes.TrimSpace(line))
}
