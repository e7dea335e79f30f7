package changes

import (
	"context"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

const (
	// maxTallies bounds the memory of a question: a tally takes up to 2 KB.
	maxTallies = 20_000
	// sliceTime bounds one turn at the timeline. A shorter one costs more in all, since the
	// timeline asks in each for the group of each combination of dimensions.
	sliceTime    = 24 * time.Hour
	sliceWindows = 360
)

// tallyKey names a series of occurrences that is compared with its own past.
type tallyKey struct{ cluster, namespace, kind, reason, typ string }

func keyOf(d *event.Dimensions) tallyKey {
	return tallyKey{d.Cluster, d.Namespace, d.Kind, d.Reason, d.Type}
}

// systemNamespace is where a cluster's own components run.
const systemNamespace = metav1.NamespaceSystem

// family returns the key of the tally over all namespaces. The cluster's own components
// are no part of it: what is usual elsewhere is not for them, and others depend on them.
func (k tallyKey) family() tallyKey {
	if k.namespace != systemNamespace {
		k.namespace = ""
	}
	return k
}

// several stands for a dimension that differs within a tally.
const several = "\x00"

// tally counts the occurrences of one series, or of one family: the series of all
// namespaces that agree in everything else.
type tally struct {
	tallyKey
	reporter string
	now      int64 // in the window
	first    int64 // second of the first one in the window
	last     int64 // second of the last one in the window
	prev     int64 // in the same length of time before the window
	day      int64 // a day before
	week     int64 // a week before
	total    int64 // in all history before the window
	squares  float64
	buckets  []float32 // by window, of the slice of history that is being read
	dirty    bool      // something is in buckets

	family  *tally
	members []*tally // of a family
	had     int      // members of a family that history before the window has
}

// tallies are all series that a question is about.
type tallies struct {
	all      []*tally
	byKey    map[tallyKey]int
	families map[tallyKey]*tally
	order    []*tally // the families
	full     bool     // some were left out
}

// index returns the number of a tally, -1 if there are too many.
func (t *tallies) index(d *event.Dimensions) int {
	k := keyOf(d)
	if i, ok := t.byKey[k]; ok {
		if s := t.all[i]; s.reporter != d.Reporter {
			s.reporter = several
		}
		return i
	}
	if len(t.all) >= maxTallies {
		t.full = true
		return -1
	}
	f := t.families[k.family()]
	if f == nil {
		f = &tally{tallyKey: k.family()}
		t.families[f.tallyKey] = f
		t.order = append(t.order, f)
	}
	s := &tally{tallyKey: k, reporter: d.Reporter, first: math.MaxInt64, family: f}
	f.members = append(f.members, s)
	t.byKey[k] = len(t.all)
	t.all = append(t.all, s)
	return len(t.all) - 1
}

// history counts everything in the window and before it.
func (c *comparison) history(ctx context.Context) error {
	c.tallies = tallies{byKey: map[tallyKey]int{}, families: map[tallyKey]*tally{}}
	r := c.answer.Range
	from, to := r.From.Unix(), r.To.Unix()
	begin := to // the first second of what the caller may see
	err := c.pieces(ctx, from, to, func(s *tally, second, n int64) {
		begin = min(begin, second)
		s.now += n
		s.first, s.last = min(s.first, second), max(s.last, second)
	})
	if err != nil {
		return err
	}
	held, err := c.timeline.Begin(ctx)
	if err != nil {
		return err
	}
	window := int64(c.q.Window / time.Second)
	slice := window * max(1, min(sliceWindows, int64(sliceTime/c.q.Window)))
	for end := from; end > held.Unix(); end -= slice {
		err := c.slice(ctx, end-slice, end, window, func(second int64) { begin = min(begin, second) })
		if err != nil {
			return err
		}
	}
	c.tallies.total()
	c.windows = max(0, float64(from-begin)/float64(window))
	c.day = window <= daySeconds && begin <= from-daySeconds
	c.week = window <= 7*daySeconds && begin <= from-7*daySeconds
	c.answer.HistoryFrom = time.Unix(begin, 0).UTC()
	c.shortcomings(begin < from, begin <= from-window)
	return nil
}

const daySeconds = 24 * 60 * 60

// shortcomings notes what history lacks.
func (c *comparison) shortcomings(any, whole bool) {
	switch {
	case !any:
		c.partial("there is no history before the window, so nothing can be compared")
	case !whole:
		c.partial("the history before the window is shorter than the window")
	}
	if c.tallies.full {
		c.partial("only the first %d combinations of namespace, kind, reason and type were compared", maxTallies)
	}
}

// slice counts what history has in [from, to), a whole number of windows.
func (c *comparison) slice(ctx context.Context, from, to, window int64, seen func(second int64)) error {
	newest := c.answer.Range.From.Unix()
	day, week := newest-daySeconds, newest-7*daySeconds // not used if the window is longer
	windows := (to - from) / window
	var dirty []*tally
	err := c.pieces(ctx, from, to, func(s *tally, second, n int64) {
		seen(second)
		if second >= day && second < day+window {
			s.day += n
		}
		if second >= week && second < week+window {
			s.week += n
		}
		s.total += n
		dirty = s.add(dirty, windows, (to-1-second)/window, float32(n))
	})
	if err != nil {
		return err
	}
	for i := range dirty { // the families join them
		s := dirty[i]
		for b, n := range s.buckets {
			if n > 0 {
				dirty = s.family.add(dirty, windows, int64(b), n)
			}
		}
	}
	for _, s := range dirty {
		if to == newest {
			s.prev = int64(s.buckets[0])
		}
		for _, n := range s.buckets {
			s.squares += float64(n) * float64(n)
		}
		clear(s.buckets)
		s.dirty = false
	}
	return nil
}

// add counts in a bucket, and appends s to the tallies that have something in theirs.
func (s *tally) add(dirty []*tally, windows, bucket int64, n float32) []*tally {
	if !s.dirty {
		s.dirty = true
		dirty = append(dirty, s)
		if s.buckets == nil {
			s.buckets = make([]float32, windows)
		}
	}
	s.buckets[bucket] += n
	return dirty
}

// total completes the families. It sorts them and their members, as the timeline visits
// in no order.
func (t *tallies) total() {
	byKey := func(a, b *tally) int { return a.compare(b.tallyKey) }
	slices.SortFunc(t.order, byKey)
	for _, f := range t.order {
		slices.SortFunc(f.members, byKey)
	}
	for _, s := range t.all {
		f := s.family
		f.now += s.now
		f.total += s.total
		f.day += s.day
		f.week += s.week
		if s.total > 0 {
			f.had++
		}
	}
}

// pieces calls visit with what was observed in [from, to), in pieces of bounded length.
func (c *comparison) pieces(ctx context.Context, from, to int64, visit func(s *tally, second, n int64)) error {
	group := func(d event.Dimensions) int {
		if !c.q.Allows(d.Namespace) {
			return -1
		}
		return c.tallies.index(&d)
	}
	for ; from < to; from += int64(sliceTime / time.Second) {
		r := store.Range{
			From: time.Unix(from, 0), To: time.Unix(min(to, from+int64(sliceTime/time.Second)), 0), Revision: c.answer.Range.Revision,
		}
		err := c.timeline.Occurrences(ctx, r, group, func(o store.Occurred) {
			visit(c.tallies.all[o.Group], o.Second, o.Count)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
