package seglog

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/shared/randtest"
)

// decodeRun returns the entries of a run.
func decodeRun(k, v []byte) (entries []runEntry, err error) {
	r, err := parseRun(k, v)
	if err == nil {
		entries, err = r.Append(nil, allSeries)
	}
	return entries, err
}

// randomEntries are of one minute; some of their records are no longer held.
func randomEntries(rnd *rand.Rand, n int) (entries []runEntry, last uint64) {
	revision := rnd.Uint64N(1 << 50)
	for range n {
		revision += 1 + rnd.Uint64N(300)
		e := runEntry{Series: rnd.Uint32N(5) * rnd.Uint32N(1000), Second: uint8(rnd.IntN(60)), Revision: revision, Count: rnd.Int64N(3), Span: rnd.Uint32N(3) * rnd.Uint32N(1000), Node: rnd.Uint32N(3) * rnd.Uint32N(1000)}
		if rnd.IntN(4) == 0 {
			e.Revision, e.Count = 0, 1+rnd.Int64N(1<<40)
		}
		entries = append(entries, e)
	}
	return entries, revision
}

// sums are the counts by series, second and span.
func sums(entries []runEntry) map[[4]uint32]int64 {
	n := map[[4]uint32]int64{}
	for _, e := range entries {
		if e.Count > 0 {
			n[[4]uint32{e.Series, uint32(e.Second), e.Span, e.Node}] += e.Count
		}
	}
	return n
}

// TestRuns: a run has the entries that were put into it, and merging runs, and folding
// their records, keeps the counts.
func TestRuns(t *testing.T) {
	t.Parallel()
	rnd := randtest.New(t)
	for range 2000 {
		entries, last := randomEntries(rnd, 1+rnd.IntN(60))
		want := sums(entries)
		minute := rnd.Int64N(1<<40) - 1<<39
		merged := mergeEntries(entries)
		if diff := cmp.Diff(want, sums(merged)); diff != "" {
			t.Fatalf("merged: %s", diff)
		}
		if len(merged) == 0 {
			continue
		}
		k := runKey(minute, last)
		v := appendRun(nil, k, merged)
		got, err := decodeRun(k, v)
		if diff := cmp.Diff(merged, got); err != nil || diff != "" {
			t.Fatalf("%v %s", err, diff)
		}
		if r, err := parseRun(k, v); err != nil || r.Minute != minute || r.Last != last {
			t.Fatalf("minute %d, last %d, %v", r.Minute, r.Last, err)
		}
		for i := range got {
			got[i].Revision = 0
		}
		folded := mergeEntries(got)
		if diff := cmp.Diff(want, sums(folded)); diff != "" {
			t.Fatalf("folded: %s", diff)
		}
		for i := 1; i < len(folded); i++ {
			if compareEntries(folded[i-1], folded[i]) >= 0 {
				t.Fatalf("%+v is not summed with %+v", folded[i-1], folded[i])
			}
		}
	}
}

// TestKeyOrder: keys are in order of time, before 1970 too.
func TestKeyOrder(t *testing.T) {
	t.Parallel()
	var before []byte
	for _, second := range []int64{math.MinInt64 / 2, -3601, -61, -60, -59, -1, 0, 59, 60, 1e9, 253402300799} {
		minute, of := minuteOf(second)
		if minute*60+int64(of) != second || of > 59 {
			t.Errorf("%d is second %d of minute %d", second, of, minute)
		}
		k := runKey(minute, 7)
		if bytes.Compare(before[:min(8, len(before))], k[:8]) > 0 {
			t.Errorf("the key of %d is not behind the one before", second)
		}
		if got, err := minuteOfKey(k); err != nil || got != minute {
			t.Errorf("minute %d, %v, want %d", got, err, minute)
		}
		before = k
	}
}

// TestDamagedRuns: no flipped bit of key or value goes unnoticed.
func TestDamagedRuns(t *testing.T) {
	t.Parallel()
	k := runKey(29_000_000, 900)
	v := appendRun(nil, k, []runEntry{{Series: 1, Second: 3, Count: 40}, {Series: 1, Second: 4, Revision: 880, Count: 1, Span: 300, Node: 12}, {Series: 7, Second: 59, Revision: 900}})
	for i := range (len(k) + len(v)) * 8 {
		dk, dv := bytes.Clone(k), bytes.Clone(v)
		if i < len(k)*8 {
			dk[i/8] ^= 1 << (i % 8)
		} else {
			dv[i/8-len(k)] ^= 1 << (i % 8)
		}
		if _, err := decodeRun(dk, dv); !errors.Is(err, boltfile.ErrChecksum) {
			t.Fatalf("bit %d: %v", i, err)
		}
	}
}

// TestSeries: the texts of a series are the dimensions of the event.
func TestSeries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields [event.NumFields]string
		labels map[string]string
	}{
		{},
		{fields: [event.NumFields]string{event.Type: "Warning", event.Reason: "BackOff", event.RegardingKind: "Pod", event.Source: "kubelet"}},
		{
			fields: [event.NumFields]string{event.Type: strings.Repeat("t", 1000), event.Reason: strings.Repeat("ä", 1000), event.Source: strings.Repeat("s", 512), event.Node: strings.Repeat("n", 513)},
		},
		{
			fields: [event.NumFields]string{event.ReportingController: "example.com/c", event.Source: "other", event.Node: "node-1"},
			labels: map[string]string{event.ClusterLabel: "east", event.OwnerKindLabel: "Deployment", event.OwnerNameLabel: "web", "a": "b"},
		},
	} {
		a := event.NewAttributes(c.fields, c.labels)
		k := seriesKey(7)
		encoded, node := appendSeries(nil, []byte("shop"), a)
		v := seriesValue(k, string(encoded))
		texts, err := seriesTexts(k, v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseSeries(texts)
		if err != nil {
			t.Fatal(err)
		}
		of, err := parseSeries([]byte(nodeTexts(node)))
		if err != nil || of != (event.Dimensions{Node: node}) {
			t.Errorf("node %q: %+v, %v", node, of, err)
		}
		if got.Node = of.Node; got != event.DimensionsOf("shop", a) {
			t.Errorf("%+v", got)
		}
		if _, err := seriesTexts(seriesKey(8), v); !errors.Is(err, boltfile.ErrChecksum) {
			t.Errorf("under another number: %v", err)
		}
	}
}

// FuzzRun: whatever a run holds, it is read without a panic, and what is read makes a run
// with the same entries.
func FuzzRun(f *testing.F) {
	k := runKey(29_000_000, 900)
	f.Add(k, appendRun(nil, k, []runEntry{{Series: 1, Second: 3, Count: 40}, {Series: 1, Second: 4, Revision: 880, Count: 1, Span: 300, Node: 12}, {Series: 7, Second: 59, Revision: 900}}))
	f.Add(runKey(-1, 0), appendRun(nil, runKey(-1, 0), []runEntry{{Count: 1}}))
	f.Fuzz(func(t *testing.T, k, v []byte) {
		if n := len(v) - runChecksumLen; n >= 0 { // so that more than the checksum is tried
			be.PutUint32(v[n:], runChecksum(k, v[:n]))
		}
		entries, err := decodeRun(k, v)
		if err != nil {
			if !errors.Is(err, boltfile.ErrChecksum) {
				t.Errorf("error %v", err)
			}
			return
		}
		if entries = mergeEntries(entries); len(entries) == 0 {
			return
		}
		again, err := decodeRun(k, appendRun(nil, k, entries))
		if diff := cmp.Diff(entries, again); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

// FuzzSeries: whatever bytes the texts of a series are, they are read without a panic.
func FuzzSeries(f *testing.F) {
	series, _ := appendSeries(nil, []byte("shop"), event.NewAttributes([event.NumFields]string{event.Reason: "Pulled"}, nil))
	f.Add(series)
	f.Add([]byte(nodeTexts("node-1")))
	f.Fuzz(func(t *testing.T, texts []byte) {
		if _, err := parseSeries(texts); err != nil && !errors.Is(err, boltfile.ErrChecksum) {
			t.Errorf("error %v", err)
		}
	})
}
