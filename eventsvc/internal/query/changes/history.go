package changes

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

const (
	// maxTallies bounds the memory of a question.
	maxTallies = 20_000
	// maxSilence ends history: after so long a time without an occurrence, what is before it is
	// not compared with. It may be a dump of years ago that was imported. This holds only for
	// times before the store was first written to. The longest window is as long.
	maxSilence = MaxWindow
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
	came     query.Rhythm   // in the window
	total    int64          // in all history before the window
	even     int64          // the part of it that was spread over longer than a second
	newest   int64          // second of the newest of them
	older    bool           // there are occurrences before history begins
	prev     int64          // in the same length of time before the window
	slots    slots          // of the time before the window
	times    timesBefore    // at the same time of the day
	before   before         // like now
	former   query.Rhythm   // in former outages, which are left out of the numbers above and below
	recent   [2]windowCount // the windows that are being read, by the last bit of their number
	usual    float64        // how often it came in all history without outages
	squares  float64        // of the counts of all windows that are meant by usual

	family  *tally
	members []*tally // of a family
	had     int      // members of a family that history before the window has
}

// windowCount is the count of a window before the window. They have numbers, the newest 0.
type windowCount struct {
	window int64
	n      float64
}

// add counts n in one of the windows before the window that is asked about. They come in their
// order, except two that share a minute.
func (s *tally) add(shift uint8, window, n int64) {
	r := &s.recent[window&1]
	if r.window != window {
		s.closeBefore(window - 1)
		*r = windowCount{window: window}
	}
	s.slots.at(window, shift).add(n, n*(n+2*int64(r.n)))
	r.n += float64(n)
}

// closeBefore closes the windows that are newer than one, in their order.
func (s *tally) closeBefore(window int64) {
	a, b := &s.recent[0], &s.recent[1]
	if a.window > b.window {
		a, b = b, a
	}
	for _, w := range []*windowCount{a, b} {
		if w.window < window {
			s.before.close(*w, s.came.Count)
			w.n = 0
		}
	}
}

// tallies are all series that a question is about.
type tallies struct {
	all      []*tally
	byKey    map[tallyKey]int
	families map[tallyKey]*tally
	order    []*tally // the families
	full     bool     // some were left out
	shift    uint8    // of all slots: one has 2^shift windows
}

// slotOf makes the slots of all series long enough for a window.
func (t *tallies) slotOf(window int64) uint8 {
	for window>>t.shift >= maxSlots {
		t.shift++
	}
	return t.shift
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
	s := &tally{tallyKey: k, reporter: d.Reporter, family: f}
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
	err := c.count(ctx, from, to, func(s *tally, o store.Occurred) { // first, as these series must not be left out
		s.came.Add(store.Occurred{Second: o.Second, Count: o.Before(to)})
	})
	if err != nil {
		return err
	}
	held, written, err := c.timeline.Begin(ctx)
	if err != nil {
		return err
	}
	begin := min(from, written.Unix())
	window := int64(c.q.Window / time.Second)
	err = c.count(ctx, held.Unix(), from, func(s *tally, o store.Occurred) {
		if begin-o.Second > int64(maxSilence/time.Second) {
			s.older = true
			return
		}
		begin = min(begin, o.Second)
		if n := o.Count - o.Before(from); n > 0 {
			s.came.Add(store.Occurred{Second: from, Count: n})
			o.Count -= n
		}
		s.total += o.Count
		s.newest = max(s.newest, o.Second)
		s.prev += o.Before(from) - o.Before(from-window)
		for i := range s.times {
			if earlier := from - s.times.seconds(i); o.Second < earlier+window && o.Second+max(o.Span, 1) > earlier {
				s.times[i] += uint32(o.Before(earlier+window) - o.Before(earlier))
			}
		}
		number := (from - 1 - o.Second) / window
		shift := c.tallies.slotOf(number)
		if o.Span > 0 {
			s.even += o.Count
			c.tallies.spread(s, o, from, window)
			return
		}
		s.add(shift, number, o.Count)
		s.family.add(shift, number, o.Count)
	})
	if err != nil {
		return err
	}
	c.windows = float64(from-begin) / float64(window)
	c.tallies.total(c.windows)
	if window <= daySeconds {
		c.days = int(min(dailyTimes, (from-begin)/daySeconds))
	}
	if window <= 7*daySeconds {
		c.weeks = int(min(weeklyTimes, (from-begin)/(7*daySeconds)))
	}
	c.answer.HistoryFrom = time.Unix(begin, 0).UTC()
	c.shortcomings(begin < from, begin <= from-window)
	return c.formerly(ctx)
}

// spread counts what was observed evenly over a time before the window in its slots.
func (t *tallies) spread(s *tally, o store.Occurred, from, window int64) {
	width := window << t.shift
	for newest := max(0, (from-o.Second-o.Span)/width); newest <= (from-1-o.Second)/width; newest++ {
		if n := o.Before(from-newest*width) - o.Before(from-(newest+1)*width); n > 0 {
			for _, one := range []*tally{s, s.family} {
				one.slots.at(newest<<t.shift, t.shift).add(n, 0)
			}
		}
	}
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

// total completes the families. It sorts them and their members, as the timeline visits
// in no order.
func (t *tallies) total(windows float64) {
	byKey := func(a, b *tally) int { return a.compare(b.tallyKey) }
	slices.SortFunc(t.order, byKey)
	for _, f := range t.order {
		slices.SortFunc(f.members, byKey)
	}
	for _, s := range t.all {
		f := s.family
		f.came.Merge(s.came)
		f.total += s.total
		f.even += s.even
		f.older = f.older || s.older
		f.prev += s.prev
		for i, n := range s.times {
			f.times[i] += n
		}
		s.closeBefore(math.MaxInt64)
	}
	for _, s := range slices.Concat(t.all, t.order) {
		s.slots.widen(t.shift)
	}
	t.judge(windows)
}

// judge says what is usual of all series.
func (t *tallies) judge(windows float64) {
	for _, s := range slices.Concat(t.all, t.order) {
		s.usual, s.squares = s.slots.usual(windows, s.alarming())
	}
	for _, f := range t.order {
		f.had = 0
		for _, s := range f.members {
			if s.total > 0 || s.older {
				f.had++
			}
		}
	}
}

// What is counted is put in order part by part. A part has at most so many observations, and is at first so long.
const (
	partSeen    = 1 << 18
	partSeconds = daySeconds
)

// count calls visit with what was observed in [from, to), the newest first, but in no order within a minute of which
// there is very much.
func (c *comparison) count(ctx context.Context, from, to int64, visit func(s *tally, o store.Occurred)) error {
	var seen []store.Occurred
	for length := int64(partSeconds); to > from; {
		begin := max(from, to-length)
		seen = seen[:0]
		full := false
		err := c.countPart(ctx, begin, to, func(o store.Occurred) {
			if full = full || len(seen) == partSeen; !full {
				seen = append(seen, o)
			}
		})
		switch {
		case err != nil:
			return err
		case full && to-begin > 60:
			length = max(60, (to-begin)/2)
			continue
		case full:
			err = c.countPart(ctx, begin, to, func(o store.Occurred) { visit(c.tallies.all[o.Group], o) })
		case len(seen) < partSeen/4:
			length = min(2*length, to-from+1)
		}
		if err != nil {
			return err
		}
		if !full {
			slices.SortStableFunc(seen, func(a, b store.Occurred) int { return cmp.Compare(b.Second, a.Second) })
			for _, o := range seen {
				visit(c.tallies.all[o.Group], o)
			}
		}
		to = begin
	}
	return nil
}

// countPart calls visit with what was observed in [from, to), in no order.
func (c *comparison) countPart(ctx context.Context, from, to int64, visit func(store.Occurred)) error {
	group := func(d event.Dimensions, _ event.Regarding) int {
		if !c.q.wanted(d) || isEdit(&d) || d.Bookkeeping() {
			return -1
		}
		return c.tallies.index(&d)
	}
	in := store.Range{From: time.Unix(from, 0), To: time.Unix(to, 0), Revision: c.answer.Range.Revision, Sees: c.q.sees}
	return c.timeline.Count(ctx, store.Count{Range: in, By: compared, Group: group}, visit)
}

// compared are the dimensions that decide about tallies.
var compared = []string{"cluster", "namespace", "kind", "reason", "type", "reporter"}
