package changes

import (
	"context"
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
	prev     int64          // in the same length of time before the window
	day      int64          // a day before
	week     int64          // a week before
	total    int64          // in all history before the window
	even     int64          // the part of it that was spread over longer than a second
	older    bool           // there are occurrences before history begins
	squares  float64        // of the other counts of all windows before the window
	recent   [2]windowCount // the windows that are being read, by the last bit of their number

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
func (s *tally) add(window int64, n float64) {
	r := &s.recent[window&1]
	if r.window != window {
		*r = windowCount{window: window}
	}
	s.squares += n * (n + 2*r.n)
	r.n += n
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
		for _, earlier := range []struct {
			from int64
			n    *int64
		}{{from - window, &s.prev}, {from - daySeconds, &s.day}, {from - 7*daySeconds, &s.week}} {
			*earlier.n += o.Before(earlier.from+window) - o.Before(earlier.from)
		}
		if o.Span > 0 {
			s.even += o.Count
			return
		}
		number := (from - 1 - o.Second) / window
		s.add(number, float64(o.Count))
		s.family.add(number, float64(o.Count))
	})
	if err != nil {
		return err
	}
	c.tallies.total()
	c.windows = float64(from-begin) / float64(window)
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
		f.came.Merge(s.came)
		f.total += s.total
		f.even += s.even
		f.older = f.older || s.older
		f.prev += s.prev
		f.day += s.day
		f.week += s.week
		if s.total > 0 || s.older {
			f.had++
		}
	}
}

// count calls visit with what was observed in [from, to), the newest minutes first.
func (c *comparison) count(ctx context.Context, from, to int64, visit func(s *tally, o store.Occurred)) error {
	group := func(d event.Dimensions) int {
		if !c.q.wanted(d) || isEdit(&d) {
			return -1
		}
		return c.tallies.index(&d)
	}
	r := store.Range{From: time.Unix(from, 0), To: time.Unix(to, 0), Revision: c.answer.Range.Revision, Sees: c.q.sees}
	return c.timeline.Occurrences(ctx, r, group, func(o store.Occurred) {
		visit(c.tallies.all[o.Group], o)
	})
}
