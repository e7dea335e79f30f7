//go:build !race

package maintenance_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
)

// limited is a store with a limit of bytes, and the events that were acknowledged.
type limited struct {
	options bolt.Options
	db      *bolt.DB
	rnd     *rand.Rand
	random  bool // values cannot be compressed

	mu      sync.Mutex
	events  map[store.Key]acknowledged
	refused int
	most    atomic.Int64 // bytes of all files
}

type acknowledged struct {
	revision uint64
	size     int
}

func newLimited(t *testing.T, o bolt.Options, seed uint64) *limited {
	o.Dir, o.MinFree = t.TempDir(), -1
	return &limited{options: o, db: bolttest.Open(t, o), rnd: rand.New(rand.NewPCG(seed, 1)), events: map[store.Key]acknowledged{}}
}

// files notes what all files take, also those that are being rewritten.
func (l *limited) files(t *testing.T) int64 {
	t.Helper()
	all, err := os.ReadDir(l.options.Dir)
	if err != nil {
		t.Error(err)
	}
	sum := int64(0)
	for _, f := range all {
		sum += disk.Usage(filepath.Join(l.options.Dir, f.Name()))
	}
	for most := l.most.Load(); sum > most && !l.most.CompareAndSwap(most, sum); most = l.most.Load() {
	}
	if sum > l.options.MaxBytes {
		t.Errorf("the files take %d bytes, %d more than the limit: %+v", sum, sum-l.options.MaxBytes, l.db.Stats())
	}
	return sum
}

func (l *limited) value(size int) []byte {
	if !l.random {
		return []byte(strings.Repeat(fmt.Sprintf("back-off %02d ", l.rnd.IntN(100)), size/12+1)[:size])
	}
	b := make([]byte, 0, size+8)
	for len(b) < size {
		b = binary.LittleEndian.AppendUint64(b, l.rnd.Uint64())
	}
	return b[:size]
}

// write creates or changes events, some at a time.
func (l *limited) write(t *testing.T, keys []store.Key, size func() int) {
	t.Helper()
	values := make([][]byte, len(keys))
	for i := range keys {
		values[i] = l.value(size())
	}
	storetest.Parallel(t, len(keys), func(i int) {
		r, err := l.db.Update(t.Context(), keys[i], store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Put, Draft: store.Draft{Value: values[i]}}, nil
		})
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case errors.Is(err, store.ErrFull):
			l.refused++
		case err != nil:
			t.Error(err)
		default:
			l.events[keys[i]] = acknowledged{max(r.Record.Revision, l.events[keys[i]].revision), len(values[i])}
		}
	})
	l.files(t)
}

// fresh returns keys of events that are not there.
func (l *limited) fresh(n int) (keys []store.Key) {
	for range n {
		keys = append(keys, store.Key{Namespace: fmt.Sprint("ns", l.rnd.IntN(3)), Name: fmt.Sprintf("pod-%d.%016x", l.rnd.IntN(50), l.rnd.Uint64())})
	}
	return keys
}

// some returns keys of events that are there.
func (l *limited) some(n int) []store.Key {
	all := slices.SortedFunc(maps.Keys(l.events), func(a, b store.Key) int { return strings.Compare(a.String(), b.String()) })
	l.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// during runs a function, and measures the files meanwhile.
func (l *limited) during(t *testing.T, f func(context.Context) error) {
	t.Helper()
	done := make(chan struct{})
	var measuring sync.WaitGroup
	measuring.Go(func() {
		often := time.NewTicker(time.Millisecond)
		defer often.Stop()
		for {
			select {
			case <-done:
				return
			case <-often.C:
				l.files(t)
			}
		}
	})
	err := f(t.Context())
	close(done)
	measuring.Wait()
	if err != nil && !errors.Is(err, store.ErrFull) {
		t.Fatal(err)
	}
	l.files(t)
}

// wantOldestGone fails unless the events that are gone are those that were not written for longest, and had to go. It
// returns their number.
func (l *limited) wantOldestGone(t *testing.T, when string) (gone int) {
	t.Helper()
	there := map[store.Key]bool{}
	for q, more := (store.Query{}), true; more; {
		page, err := l.db.List(t.Context(), q, func(v *store.View) bool { there[v.Key] = true; return true })
		if err != nil {
			t.Fatal(err)
		}
		q.Revision, q.After, more = page.Revision, page.Last, page.More
	}
	newestGone, oldestThere, bytes := uint64(0), uint64(math.MaxUint64), 0
	for key, e := range l.events {
		bytes += e.size + 1200 // the rest of its record, the index, pages that are not full
		if there[key] {
			oldestThere = min(oldestThere, e.revision)
			continue
		}
		newestGone = max(newestGone, e.revision)
		delete(l.events, key)
		gone++
	}
	if gone > 0 && newestGone > oldestThere {
		t.Fatalf("%s: revision %d is gone, and %d is there", when, newestGone, oldestThere)
	}
	if gone > 0 && float64(bytes)*1.3 < 0.85*float64(l.options.MaxBytes) {
		t.Fatalf("%s: %d events are gone, and all of them have %d bytes of %d: %+v", when, gone, bytes, l.options.MaxBytes, l.db.Stats())
	}
	return gone
}

// TestFilesWithinLimit: whatever is written, changed, deleted, compressed and rewritten, the files never take more than
// the limit, and nothing goes but the oldest events when all of them do not fit. A store that was full accepts events
// after a round of maintenance.
func TestFilesWithinLimit(t *testing.T) {
	t.Parallel()
	seeds := []uint64{0, 2} // their values are not compressed
	if *storetest.Long {
		for seeds = nil; len(seeds) < 64; {
			seeds = append(seeds, uint64(len(seeds)))
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 2))
			o := bolt.Options{MaxBytes: 16<<20 + rnd.Int64N(4<<20), Retention: 1000 * time.Hour}
			if rnd.IntN(2) == 0 {
				o.CompressAfter = time.Nanosecond
			}
			l := newLimited(t, o, seed)
			l.random = rnd.IntN(4) > 0
			defer func() { bolttest.Close(t, l.db) }()
			gone := 0
			for step := range 60 {
				size := func() int { return 100 + rnd.IntN(1+rnd.IntN(60_000)) }
				switch rnd.IntN(8) {
				default:
					l.write(t, l.fresh(1+rnd.IntN(100)), size)
				case 0, 1:
					l.write(t, l.some(1+rnd.IntN(100)), size)
				case 2:
					keys := l.some(rnd.IntN(100))
					storetest.Parallel(t, len(keys), func(i int) {
						_, err := l.db.Update(t.Context(), keys[i], store.Any, bolttest.Remove)
						l.mu.Lock()
						defer l.mu.Unlock()
						if err == nil {
							delete(l.events, keys[i])
						} else if !errors.Is(err, store.ErrFull) && !errors.Is(err, store.ErrNotFound) {
							t.Error(err)
						}
					})
				case 3:
					bolttest.Close(t, l.db)
					l.files(t)
					l.db = bolttest.Open(t, l.options)
				case 4:
					l.during(t, func(ctx context.Context) error { return l.db.Compact(ctx, rnd.IntN(2) == 0, nil) })
				}
				if step%2 == 1 {
					l.during(t, l.db.Maintain)
					gone += l.wantOldestGone(t, fmt.Sprint("step ", step))
					if before := l.refused; before > 0 {
						if l.write(t, l.fresh(1), func() int { return 500 }); l.refused > before {
							t.Fatalf("step %d: full after a round: %+v", step, l.db.Stats())
						}
					}
				}
			}
			bolttest.Check(t, l.db)
			t.Logf("limit %d, most %d, %d refused, %d gone: %+v", o.MaxBytes, l.most.Load(), l.refused, gone, l.db.Stats())
		})
	}
}

// TestEventsTakeMostOfTheLimit: where there is no history, events take 85 % of the limit before the first one goes, and
// as much from then on.
func TestEventsTakeMostOfTheLimit(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"plain": 0, "compressed": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited(t, bolt.Options{MaxBytes: 64 << 20, Retention: 1000 * time.Hour, CompressAfter: after}, 1)
			l.random = true
			defer func() { bolttest.Close(t, l.db) }()
			share, full := 0.0, 0
			for full < 6 && l.refused == 0 {
				l.write(t, l.fresh(40), func() int { return 30_000 })
				if l.files(t) < l.options.MaxBytes/2 {
					continue
				}
				if full == 0 {
					share = float64(l.files(t)) / float64(l.options.MaxBytes)
				}
				bolttest.Maintain(t, l.db)
				if l.db.Stats().Events < int64(len(l.events)) {
					l.wantOldestGone(t, "filling")
					full++
				}
			}
			s := l.db.Stats()
			later := float64(s.FileBytes) / float64(l.options.MaxBytes) * float64(s.LiveBytes) / float64(s.LiveBytes+s.HistoryBytes+s.DeadBytes)
			if share < 0.85 || later < 0.8 || l.refused > 0 {
				t.Errorf("the first event went at %.3f of the limit, later events take %.3f, and %d were refused: %+v", share, later, l.refused, s)
			}
			bolttest.Check(t, l.db)
		})
	}
}

// TestCompactNearTheLimit: a compaction goes on where there is no room for another copy of the index.
func TestCompactNearTheLimit(t *testing.T) {
	t.Parallel()
	l := newLimited(t, bolt.Options{MaxBytes: 8 << 20, Retention: 1000 * time.Hour}, 1)
	defer func() { bolttest.Close(t, l.db) }()
	l.random = true
	for l.refused == 0 && l.db.Stats().Events == int64(len(l.events)) {
		l.write(t, l.fresh(600), func() int { return 40 })
		if err := l.db.Maintain(t.Context()); err != nil && !errors.Is(err, store.ErrFull) {
			t.Fatal(err)
		}
	}
	for _, compress := range []bool{false, true} {
		if err := l.db.Compact(t.Context(), compress, nil); err != nil {
			t.Errorf("compress %v: %v", compress, err)
		}
		l.files(t)
	}
	bolttest.Check(t, l.db)
}

// TestHistoryTakesNoEvents: no event goes when others are changed again and again, however near the events are to the
// limit. A smaller one has smaller files, and those that history leaves empty take 80 KiB each, more than its part.
func TestHistoryTakesNoEvents(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"plain": 0, "compressed": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited(t, bolt.Options{MaxBytes: 32 << 20, Retention: 1000 * time.Hour, CompressAfter: after}, 1)
			defer func() { bolttest.Close(t, l.db) }()
			l.random = true // worse than what the events have, where these are compressed
			for l.files(t) < l.options.MaxBytes*4/5 && l.refused == 0 {
				l.write(t, l.fresh(60), func() int { return 4000 })
				bolttest.Maintain(t, l.db)
			}
			if gone := l.wantOldestGone(t, "filled"); gone > 0 || l.refused > 0 {
				t.Fatalf("%d events are gone and %d refused before any was changed: %+v", gone, l.refused, l.db.Stats())
			}
			changed, revision := l.some(5), l.db.Revision()
			for range 20 {
				l.write(t, slices.Concat(changed, changed, changed, changed, changed, changed), func() int { return 15_000 })
				l.during(t, l.db.Maintain)
			}
			if gone := l.wantOldestGone(t, "changed"); gone > 0 {
				t.Errorf("%d events went for the history of others: %+v", gone, l.db.Stats())
			}
			if l.db.Stats().Oldest <= revision {
				t.Errorf("the history did not reach its limit, and %d writes were refused: %+v", l.refused, l.db.Stats())
			}
			bolttest.Check(t, l.db)
		})
	}
}
