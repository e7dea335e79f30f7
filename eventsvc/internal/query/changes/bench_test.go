package changes_test

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/query/changes"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// BenchmarkRank asks a million events in memory, so that it shows what the ranking costs
// itself.
func BenchmarkRank(b *testing.B) {
	c := playedIn(background(1, 1, week), incidents)
	when := at(c.begins(19) + asked)
	benchmark(b, c.memory, when, c.until(when))
}

// BenchmarkEngine asks the real engine with the same events, in the directory named by
// TIDINGS_BENCH_DIR, which it fills if it is empty and keeps.
func BenchmarkEngine(b *testing.B) {
	dir := os.Getenv("TIDINGS_BENCH_DIR")
	if dir == "" {
		b.Skip("set TIDINGS_BENCH_DIR to a directory for 3 GB of events")
	}
	formats, err := codec.New("k8s.io")
	if err != nil {
		b.Fatal(err)
	}
	db, err := bolt.Open(bolt.Options{Dir: dir, MaxBytes: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	c := playedIn(background(1, 1, week), incidents)
	when := at(c.begins(19) + asked)
	if n := int(c.until(when)); db.Stats().Events == 0 {
		start := time.Now()
		c.fill(b, db, formats, n)
		fmt.Printf("%d observations written in %v\n", n, time.Since(start))
	}
	benchmark(b, db.Timeline(), when, 0)
}

// fill writes observations with many writers, each of which has events of its own.
func (m *memory) fill(b *testing.B, s store.Store, c *codec.Codec, n int) {
	const writers = 64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i, o := range m.seen[:n] {
				if int(o.event)%writers == w {
					m.write(b, s, c, i, i+1)
				}
			}
		})
	}
	wg.Wait()
}

func benchmark(b *testing.B, t store.Timeline, when time.Time, revision uint64) {
	ask := func(name string, q changes.Query) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before, n := cpuTime(b), 0
			for ; b.Loop(); n++ {
				q.At, q.Allows, q.Revision = when, everywhere, revision
				rank(b, t, q)
			}
			b.ReportMetric(float64((cpuTime(b)-before).Milliseconds())/float64(n), "cpu-ms/op")
		})
	}
	for _, window := range []time.Duration{time.Minute, changes.DefaultWindow, 24 * time.Hour} {
		ask(query.FormatDuration(window), changes.Query{Window: window})
	}
	ask("namespace", changes.Query{Namespaces: []string{"shop"}})
}

// cpuTime is the processor time of this process: on a busy machine it says more than the
// time that passed.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
