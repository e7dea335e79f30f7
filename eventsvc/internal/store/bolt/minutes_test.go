package bolt_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/seglog"
)

func TestMinuteCounts(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	start := clock.now()
	o := bolt.Options{Dir: t.TempDir(), Now: clock.now, History: time.Minute, SegmentBytes: 32 << 10}
	db := open(t, o)
	defer func() { closeDB(t, db) }()
	for minute := range 4 {
		parallel(120, func(i int) {
			d := store.Draft{Value: make([]byte, 500), Attributes: event.NewAttributes([event.NumFields]string{
				event.Type: "Normal", event.Reason: fmt.Sprintf("R%d", i%2), event.RegardingKind: "Pod",
			}, nil)}
			k := store.Key{Namespace: fmt.Sprintf("ns%d", i%3), Name: fmt.Sprintf("%d-%d", minute, i)}
			if _, err := store.Create(t.Context(), db, k, d); err != nil {
				t.Error(err)
			}
			if i%4 == 0 {
				if _, err := db.Update(t.Context(), k, func(*store.Record) (store.Decision, error) {
					return store.Decision{Op: store.Put, Draft: d}, nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
		clock.add(time.Minute)
	}
	want := map[string][2]int64{}
	for minute := range 4 {
		for reason := range 2 {
			// 120 events: two thirds are not in ns1, every fourth was modified.
			n := [2]int64{20, 10}
			if reason == 1 {
				n[1] = 0
			}
			want[fmt.Sprintf("%d ns1 Normal R%d Pod", minute, reason)] = n
		}
	}
	counts := func() map[string][2]int64 {
		got := map[string][2]int64{}
		err := db.Counts(t.Context(), start, start.Add(4*time.Minute), "ns1", func(c seglog.MinuteCount) {
			k := fmt.Sprintf("%d %s %s %s %s", c.Minute.Sub(start)/time.Minute, c.Namespace, c.Type, c.Reason, c.RegardingKind)
			n := got[k]
			got[k] = [2]int64{n[0] + c.Created, n[1] + c.Modified}
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff(want, counts()); diff != "" {
		t.Error(diff)
	}
	clock.add(time.Hour)
	if err := db.Compact(t.Context(), nil); err != nil { // segments that are written again keep their counts
		t.Fatal(err)
	}
	closeDB(t, db)
	db = open(t, o)
	if diff := cmp.Diff(want, counts()); diff != "" {
		t.Errorf("after compaction and restart: %s", diff)
	}
	check(t, db)
}
