package seglog

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/wal"
	"tidings.example/shared/randtest"
)

// An hourCount is what was observed of a group within an hour, or within a span that reaches beyond it.
type hourCount struct{ first, last, n int64 }

// countHours counts by reason and hour. It returns of how many sums it was told.
func countHours(t *testing.T, l *Log, m Moments) (counts map[string]hourCount, sums int) {
	t.Helper()
	reasons := []string{}
	m.Group = func(d event.Dimensions) int {
		if d.Reason == "R0" {
			return -1
		}
		reasons = append(reasons, d.Reason)
		return len(reasons) - 1
	}
	counts = map[string]hourCount{}
	visit := func(o store.Occurred) {
		hour := hourOf(o.Second / 60)
		k := fmt.Sprint(reasons[o.Group], " ", hour)
		if o.Second+o.Span > (hour+1)*hourSeconds {
			k += fmt.Sprint(" ", o.Second, o.Span)
		}
		c, ok := counts[k]
		if c.first = min(c.first, o.Second); !ok {
			c.first = o.Second
		}
		c.last = max(c.last, o.Second+o.Length)
		c.n += o.Count
		counts[k] = c
		if o.Length > 0 {
			sums++
		}
	}
	for more := true; more; {
		err := l.View(func(r *Reader) (err error) {
			more, err = m.Occurrences(r, visit)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return counts, sums
}

// sameHours compares counts by sums of hours with counts by runs, and reports how many sums there were.
func sameHours(t *testing.T, l *Log, m Moments) (sums int) {
	t.Helper()
	want, none := countHours(t, l, m)
	m.Hours = true
	got, sums := countHours(t, l, m)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(hourCount{})); diff != "" || none > 0 {
		t.Fatalf("from %d to %d, up to revision %d, %d sums: %s", m.From, m.To, m.Last, none, diff)
	}
	return sums
}

// begin is the hour in which the records of these tests begin.
const sumsBegin = 1000 * hourSeconds

// scatteredRecords are observed in some hours.
func scatteredRecords(rnd *rand.Rand, first uint64, n int) (records []wal.Record) {
	for i := range n {
		at := time.Unix(sumsBegin+rnd.Int64N(5*hourSeconds), 0)
		o := event.Occurrence{Time: at, First: at, Count: 1, New: 1}
		if rnd.IntN(3) == 0 {
			o.Count = 1 + rnd.Int64N(30)
			o.New, o.First = o.Count, at.Add(-time.Duration(rnd.Int64N(2*hourSeconds))*time.Second)
		}
		e := Entry{
			Revision: first + uint64(i), Kind: Created, Key: fmt.Appendf(nil, "ns/e%d", rnd.IntN(40)), NamespaceLen: 2, Time: at, Value: []byte("{}"),
			Attributes: event.NewAttributes([event.NumFields]string{event.Reason: fmt.Sprint("R", rnd.IntN(5))}, nil).With(o),
		}
		records = append(records, wal.Record{Revision: e.Revision, Data: AppendEntry(nil, &e)})
	}
	return records
}

// TestSums: counts by sums of hours are those by runs, over random ranges and states, of segments that are open,
// sealed, rewritten with some of their records and carried, beside pending records.
func TestSums(t *testing.T) {
	t.Parallel()
	rnd := randtest.New(t)
	l := newLog(t)
	revision, sums := uint64(2), 0
	for range 60 {
		switch rnd.IntN(5) {
		case 0:
			l.rotateTo(t, revision+1)
			revision++
		case 1:
			if ss := l.Segments(); len(ss) > 1 {
				l.rewrite(t, ss[rnd.IntN(len(ss)-1)], time.Unix(sumsBegin+rnd.Int64N(hourSeconds), 0), rnd.IntN(2) == 0)
			}
		case 2:
			if ss := l.Segments(); len(ss) > 3 {
				if damaged, err := l.Carry(ss[rnd.IntN(2)], time.Time{}); damaged || err != nil {
					t.Fatal(damaged, err)
				}
			}
		default:
			records := scatteredRecords(rnd, revision+1, 1+rnd.IntN(200))
			revision += uint64(len(records))
			l.SetPending(records)
			if rnd.IntN(3) > 0 {
				if err := l.Checkpoint(l.Head(), records); err != nil {
					t.Fatal(err)
				}
			} else { // they were not checkpointed: the next ones are behind a gap
				sums += sameHours(t, l, Moments{From: 0, To: 2 * sumsBegin, Last: revision})
				l.SetPending(nil)
			}
		}
		for range 5 {
			m := Moments{From: sumsBegin - hourSeconds + rnd.Int64N(6*hourSeconds), Last: revision}
			if m.To = m.From + rnd.Int64N(6*hourSeconds); rnd.IntN(3) == 0 {
				m.From, m.To = m.From/hourSeconds*hourSeconds, m.To/hourSeconds*hourSeconds
			}
			if rnd.IntN(3) == 0 {
				m.Last = rnd.Uint64N(revision + 1)
			}
			sums += sameHours(t, l, m)
		}
	}
	if sums == 0 {
		t.Error("no sums were read")
	}
}

// sumsLog returns a log with a segment that has sums, and the path of its file.
func sumsLog(t *testing.T) (l *Log, s *Segment) {
	t.Helper()
	l = newLog(t)
	if err := l.Checkpoint(l.Head(), scatteredRecords(rand.New(rand.NewPCG(1, 1)), 2, 300)); err != nil {
		t.Fatal(err)
	}
	l.rotateTo(t, 302)
	l.rewriteKeeping(t, l.Segments()[0])
	return l, l.Segments()[0]
}

// TestSumsAreCountedOnce: what was taken from one segment counts once, although the file of the next one was replaced
// before it was opened.
func TestSumsAreCountedOnce(t *testing.T) {
	t.Parallel()
	l, _ := sumsLog(t)
	if err := l.Checkpoint(l.Head(), scatteredRecords(rand.New(rand.NewPCG(1, 2)), 302, 300)); err != nil {
		t.Fatal(err)
	}
	second := l.Head()
	l.rotateTo(t, 602)
	m, n, want := Moments{To: 2 * sumsBegin, Last: 601, Hours: true}, int64(0), int64(0)
	for _, counted := range countedIn(t, l, 601) {
		want += counted
	}
	err := l.View(func(r *Reader) (err error) {
		if err := m.open(r); err != nil {
			return err
		}
		l.rewriteKeeping(t, second)
		for more := true; more && err == nil; r.Rest() {
			more, err = m.Occurrences(r, func(o store.Occurred) { n += o.Count })
		}
		return err
	})
	if err != nil || n != want {
		t.Errorf("%d, want %d, %v", n, want, err)
	}
}

// TestDamagedSums: sums that are damaged, make no sense or are missing change no count, and a check says so of them.
func TestDamagedSums(t *testing.T) {
	t.Parallel()
	all := Moments{To: 2 * sumsBegin, Last: 301}
	sealed := func(k, v []byte) []byte { return be.AppendUint32(v, runChecksum(k, v)) }
	for name, change := range map[string]func(b *bbolt.Bucket, k, v []byte) error{
		"value":  func(b *bbolt.Bucket, k, v []byte) error { v[3] ^= 1; return b.Put(k, v) },
		"sense":  func(b *bbolt.Bucket, k, v []byte) error { return b.Put(k, sealed(k, v[:len(v)-runChecksumLen-1])) },
		"series": func(b *bbolt.Bucket, k, v []byte) error { return b.Put(k, sealed(k, []byte{0xe0, 7, 0, 0, 1})) },
		"hour": func(b *bbolt.Bucket, k, v []byte) error {
			return b.Put(hourKey(int64(be.Uint64(k)^signBit)+1), v)
		},
		"missing": func(b *bbolt.Bucket, k, _ []byte) error { return b.Delete(k) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, s := sumsLog(t)
			whole := sameHours(t, l, all)
			path := s.Path
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			changeFile(t, path, func(tx *bbolt.Tx) error {
				b := tx.Bucket([]byte(bucketSums))
				c := b.Cursor()
				c.First()
				k, v := c.Next()
				return change(b, bytes.Clone(k), bytes.Clone(v))
			})
			l = reopened(t, path)
			if sums := sameHours(t, l, all); sums >= whole || sums == 0 {
				t.Errorf("%d sums were read, and %d before", sums, whole)
			}
			var problems []string
			err := CheckObserved(l.Segments()[0], func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) })
			if err != nil || len(problems) == 0 {
				t.Errorf("%q, %v", problems, err)
			}
		})
	}
}

// TestNoSumsOfDamage: a segment is not summed up if one of its runs is damaged, so that who counts is told.
func TestNoSumsOfDamage(t *testing.T) {
	t.Parallel()
	l, s := sumsLog(t)
	path := s.Path
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	changeFile(t, path, func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(bucketRuns)).Cursor()
		c.First()
		k, v := c.Next()
		v = bytes.Clone(v)
		v[0] ^= 1
		return tx.Bucket([]byte(bucketRuns)).Put(bytes.Clone(k), v)
	})
	l = reopened(t, path)
	l.rewriteKeeping(t, l.Segments()[0])
	m := Moments{To: 2 * sumsBegin, Last: 301, Hours: true}
	err := l.View(func(r *Reader) error { return eachOccurrence(r, &m, func(store.Occurred) {}) })
	if err == nil {
		t.Error("the damage was not found")
	}
}

// testSums are sums of an hour, with a span.
func testSums() (k, v []byte) {
	k = hourKey(500_000)
	return k, appendSums(nil, k, []hourSum{{series: 1, count: 1}, {series: 1, first: 3000, length: 601, spread: true, count: 300}, {series: 900, first: 1, length: 3598, count: 70_000}})
}

// TestDamagedSumsOfAnHour: no flipped bit of key or value goes unnoticed.
func TestDamagedSumsOfAnHour(t *testing.T) {
	t.Parallel()
	k, v := testSums()
	got, err := readSums(nil, k, v, allSeries)
	start := int64(500_000 * hourSeconds)
	want := []store.Occurred{{Second: start, Count: 1}, {Second: start + 3000, Span: 601, Count: 300}, {Second: start + 1, Length: 3598, Count: 70_000}}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range (len(k) + len(v)) * 8 {
		both := append(bytes.Clone(k), v...)
		both[i/8] ^= 1 << (i % 8)
		if _, err := readSums(nil, both[:len(k)], both[len(k):], allSeries); err == nil {
			t.Fatalf("bit %d of key and value is flipped", i)
		}
	}
}

// FuzzSums: whatever the sums of an hour hold, they are read without a panic, and what is read makes the same sums.
func FuzzSums(f *testing.F) {
	k, v := testSums()
	f.Add(v)
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, v []byte) {
		if n := len(v) - runChecksumLen; n >= 0 { // so that more than the checksum is tried
			be.PutUint32(v[n:], runChecksum(k, v[:n]))
		}
		got, err := readSums(nil, k, v, func(series uint32) (int, error) { return int(series), nil })
		if err != nil {
			return
		}
		var again []hourSum
		for _, o := range got {
			first := o.Second - 500_000*hourSeconds
			if o.Count <= 0 || first < 0 || first+o.Length >= hourSeconds || o.Span > 0 && (o.Length > 0 || first+o.Span <= hourSeconds) {
				t.Fatalf("%+v", o)
			}
			again = append(again, hourSum{series: uint32(o.Group), first: uint16(first), length: uint32(o.Length + o.Span), spread: o.Span > 0, count: o.Count})
		}
		same, err := readSums(nil, k, appendSums(nil, k, again), func(series uint32) (int, error) { return int(series), nil })
		if err != nil || !slices.Equal(same, got) {
			t.Errorf("%+v, %v, want %+v", same, err, got)
		}
	})
}

// reopened opens the log of which a segment is at path.
func reopened(t *testing.T, path string) *Log {
	t.Helper()
	l, err := Open(filepath.Dir(path), 1<<20, func() uint64 { return 1e6 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// changeFile changes a file in a transaction.
func changeFile(t *testing.T, path string, change func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err == nil {
		err = errors.Join(db.Update(change), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
