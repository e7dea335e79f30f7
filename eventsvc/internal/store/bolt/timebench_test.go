package bolt_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/storetest"
)

// observeMany stores n events of a week, of ten namespaces with 52 reasons each, of which
// one in ten is a warning. spread is how far the order in which they are written is from
// that of their observation.
func observeMany(b *testing.B, db *bolt.DB, n int, week, spread time.Duration) {
	b.Helper()
	value := make([]byte, 300)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 128 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				mixed := uint32(i) * 2654435761
				at := goldenTime().Add(time.Duration(float64(week)*float64(i)/float64(n)) + time.Duration(float64(spread)*float64(mixed)/(1<<32)))
				o := event.Occurrence{Time: at.Truncate(time.Microsecond), Count: 1, New: 1}
				typ := "Normal"
				if mixed>>8%10 == 0 {
					typ = "Warning"
				}
				a := event.NewAttributes([event.NumFields]string{
					event.RegardingKind: "Pod", event.RegardingUID: fmt.Sprintf("uid-%d", i%20_000), event.Type: typ,
					event.Reason: fmt.Sprint("Reason", mixed>>16%52), event.ReportingController: "kubelet",
				}, nil).With(o)
				k := store.Key{Namespace: fmt.Sprint("ns", mixed>>4%10), Name: fmt.Sprintf("e%09d", i)}
				if _, err := store.Create(b.Context(), db, k, store.Draft{Attributes: a, Value: value}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkTimeline reads the timeline of a million events: of a week as it went by, of one
// that was imported in no order, and of a burst of two minutes.
func BenchmarkTimeline(b *testing.B) {
	n := 20_000
	if *storetest.Long {
		n = 1_000_000
	}
	const week = 7 * 24 * time.Hour
	for _, c := range []struct {
		name         string
		week, spread time.Duration
		compact      bool
	}{
		{"week", week, 0, false},
		{"imported", 0, week, false},
		{"imported,compacted", 0, week, true},
		{"burst", 2 * time.Minute, 0, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			db := openBench(b)
			observeMany(b, db, n, c.week, c.spread)
			if c.compact {
				if err := db.Compact(b.Context(), false, nil); err != nil {
					b.Fatal(err)
				}
			}
			all := c.week + c.spread
			benchOccurrences(b, db, "all", n, store.Range{From: goldenTime(), To: goldenTime().Add(all + time.Second)})
			benchOccurrences(b, db, "day", -1, store.Range{From: goldenTime().Add(all / 2), To: goldenTime().Add(all/2 + all/7)})
			in := store.Range{From: goldenTime(), To: goldenTime().Add(all + time.Second)}
			one := func(f event.Field, value string) *event.Selector {
				return &event.Selector{Fields: []event.FieldRequirement{{Field: f, Value: value}}}
			}
			benchObserved(b, db, "newest", 100, store.TimeQuery{Range: in})
			benchObserved(b, db, "oldest", 100, store.TimeQuery{Range: in, OldestFirst: true})
			middle := store.Moment{Time: goldenTime().Add(all / 2)}
			benchObserved(b, db, "middle", 100, store.TimeQuery{Range: in, After: middle})
			benchObserved(b, db, "warning", 100, store.TimeQuery{Range: in, Selector: one(event.Type, "Warning")})
			benchObserved(b, db, "reason", 100, store.TimeQuery{Range: in, Selector: one(event.Reason, "Reason7")})
			benchObserved(b, db, "uid", 1, store.TimeQuery{Range: in, Selector: one(event.RegardingUID, "uid-7")})
			benchObserved(b, db, "none", 0, store.TimeQuery{Range: in, Wanted: func(d event.Dimensions) bool { return d.Reason == "none" }})
		})
	}
}

// benchOccurrences counts what was observed in a range, by all its dimensions.
func benchOccurrences(b *testing.B, db *bolt.DB, name string, want int, in store.Range) {
	b.Run("occurrences/"+name, func(b *testing.B) {
		for b.Loop() {
			groups, got := 0, int64(0)
			count := store.Count{Range: in, Group: func(event.Dimensions, event.Regarding) int { groups++; return groups }}
			err := db.Timeline().Count(b.Context(), count, func(o store.Occurred) { got += o.Count })
			if err != nil || want >= 0 && got != int64(want) {
				b.Fatalf("%d of %d, %v", got, want, err)
			}
		}
	})
}

// benchObserved reads the first so many events of a query.
func benchObserved(b *testing.B, db *bolt.DB, name string, want int, q store.TimeQuery) {
	b.Run("observed/"+name, func(b *testing.B) {
		pages := 0
		for b.Loop() {
			got := 0
			for q, more := q, true; more && (got < want || want == 0); pages++ {
				p, err := db.Timeline().Observed(b.Context(), q, func(*store.View, store.Moment) bool { got++; return got < want })
				if err != nil {
					b.Fatal(err)
				}
				q.After, q.Revision, more = p.Last, p.Revision, p.More
			}
			if got < want {
				b.Fatalf("%d events, want %d", got, want)
			}
		}
		b.ReportMetric(float64(pages)/float64(b.N), "pages")
	})
}
