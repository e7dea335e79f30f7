package changes

import (
	"context"
	"math"
	"slices"
	"sync"
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
	came     query.Rhythm // in the window
	total    int64        // in all history before the window
	even     int64        // the part of it that was spread over longer than a second
	newest   int64        // second of the newest of them
	older    bool         // there are occurrences before history begins
	prev     int64        // in the same length of time before the window
	slots    slots        // of the time before the window
	times    timesBefore  // at the same time of the day
	before   before       // like now
	former   query.Rhythm // in a former outage
	left     int64        // in all of them, which are left out of the numbers above and below
	last     query.Rhythm // in the newest of the windows before the window in which it came
	since    int64        // second of the first of what is spread evenly over a time that reaches into the window
	reading  int64        // in the window before the window that is being read
	usual    float64      // how often it came in all history without outages
	squares  float64      // of the counts of all windows that are meant by usual

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

// cameNow counts what came of a series in the window.
func (s *tally) cameNow(o store.Occurred) {
	s.came.Add(o)
	s.family.came.Add(o)
}

// history counts everything in the window and before it.
func (c *comparison) history(ctx context.Context) error {
	c.tallies = tallies{byKey: map[tallyKey]int{}, families: map[tallyKey]*tally{}}
	r := c.answer.Range
	from, to := r.From.Unix(), r.To.Unix()
	err := c.count(ctx, from, to, minute, nil, func(s *tally, o store.Occurred) { // first, as these series must not be left out
		s.cameNow(store.Occurred{Second: o.Second, Count: o.Before(to)})
	})
	if err != nil {
		return err
	}
	held, written, err := c.timeline.Begin(ctx)
	if err != nil {
		return err
	}
	window := int64(c.q.Window / time.Second)
	p := &past{tallies: &c.tallies, from: from, window: window, begin: min(from, written.Unix())}
	if err = c.count(ctx, held.Unix(), from, window, p.next, p.add); err != nil {
		return err
	}
	p.close()
	c.windows = float64(from-p.begin) / float64(window)
	c.tallies.total(c.windows)
	if window <= daySeconds {
		c.days = int(min(dailyTimes, (from-p.begin)/daySeconds))
	}
	if window <= 7*daySeconds {
		c.weeks = int(min(weeklyTimes, (from-p.begin)/(7*daySeconds)))
	}
	c.answer.HistoryFrom = time.Unix(p.begin, 0).UTC()
	c.shortcomings(p.begin < from, p.begin <= from-window)
	return c.formerly(ctx)
}

// past reads the time before the window in windows, the newest first.
type past struct {
	*tallies
	from, window int64    // seconds
	begin        int64    // of history, as far as it is known
	number       int64    // of the window that is being read
	older        bool     // the window is before history begins
	same         []int    // indexes of [timesBefore]: days and weeks before, at the same time of the day
	some         []*tally // of which something came in it
}

// next begins a window.
func (p *past) next(number, newest int64) {
	p.close()
	p.number, p.older, p.same = number, p.begin-newest > int64(maxSilence/time.Second), p.same[:0]
	p.slotOf(number)
	for i := range (timesBefore{}) {
		if by := number*p.window - (timesBefore{}).seconds(i); -2*p.window < by && by < 0 {
			p.same = append(p.same, i)
		}
	}
}

// add counts what was observed in the window.
func (p *past) add(s *tally, o store.Occurred) {
	if p.older {
		s.older = true
		return
	}
	p.begin = min(p.begin, o.Second)
	if o.Span > 0 {
		p.spread(s, o)
		return
	}
	if s.total == s.reading {
		s.last.Add(o)
	}
	s.total += o.Count
	s.newest = max(s.newest, o.Second)
	for _, i := range p.same {
		s.times.add(i, o, p.from, p.window)
	}
	if s.reading == 0 {
		p.some = append(p.some, s)
	}
	s.reading += o.Count
}

// spread counts what was observed evenly over a time.
func (p *past) spread(s *tally, o store.Occurred) {
	if n := o.Count - o.Before(p.from); n > 0 {
		s.cameNow(store.Occurred{Second: p.from, Count: n})
		if s.since == 0 || o.Second < s.since {
			s.since = o.Second
		}
		o.Count -= n
	}
	s.total += o.Count
	s.even += o.Count
	s.newest = max(s.newest, o.Second)
	for _, one := range []*tally{s, s.family} {
		one.prev += o.Before(p.from) - o.Before(p.from-p.window)
	}
	for i := range s.times {
		s.times.add(i, o, p.from, p.window)
	}
	width := p.window << p.shift
	for newest := max(0, (p.from-o.Second-o.Span)/width); newest <= (p.from-1-o.Second)/width; newest++ {
		if n := o.Before(p.from-newest*width) - o.Before(p.from-(newest+1)*width); n > 0 {
			for _, one := range []*tally{s, s.family} {
				one.slots.at(newest<<p.shift, p.shift).add(n, 0)
			}
		}
	}
}

// close ends a window.
func (p *past) close() {
	for i := 0; i < len(p.some); i++ { // families come behind their members
		s := p.some[i]
		n := s.reading
		s.reading = 0
		s.slots.at(p.number, p.shift).add(n, n*n)
		s.before.close(p.number, n, s.came.Count)
		if p.number == 0 {
			s.prev += n
		}
		if f := s.family; f != nil {
			if f.reading == 0 {
				p.some = append(p.some, f)
			}
			f.reading += n
		}
	}
	p.some = p.some[:0]
}

const (
	minute     = 60
	daySeconds = 24 * 60 * minute
)

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
		f.total += s.total
		f.even += s.even
		f.older = f.older || s.older
		for i, n := range s.times {
			f.times[i] += n
		}
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

// What is counted is put in order part by part. A part has at most so many observations and steps, and is at first so
// long.
const (
	partSeen    = 1 << 18
	partSteps   = 1 << 18
	partSeconds = daySeconds
)

// parts are those that no question has.
var parts = sync.Pool{New: func() any { return new(part) }}

// part is what was observed in a part of a time.
type part struct {
	seen  []store.Occurred
	after []int32 // the numbers of those that are next in the same step
	steps []step
	full  bool
}

// step is what was observed in a step of a part.
type step struct {
	first  int32 // number of one of those, -1 if there is none
	newest int64 // second
}

func (p *part) reset(steps int64) {
	p.seen, p.after, p.full = p.seen[:0], p.after[:0], false
	p.steps = slices.Grow(p.steps[:0], int(steps))[:steps]
	for i := range p.steps {
		p.steps[i] = step{-1, math.MinInt64}
	}
}

func (p *part) add(in int64, o store.Occurred) {
	s := &p.steps[in]
	s.newest = max(s.newest, o.Second)
	if p.full = p.full || len(p.seen) == partSeen; !p.full {
		p.after = append(p.after, s.first)
		s.first = int32(len(p.seen))
		p.seen = append(p.seen, o)
	}
}

// count calls visit with what was observed in [from, to), in steps of so many seconds, the newest first, and next, if
// there is one, before each step in which anything was: with the number of the step and its newest second.
func (c *comparison) count(ctx context.Context, from, to, width int64, next func(number, newest int64), visit func(s *tally, o store.Occurred)) error {
	p, all := c.part, (to-from+width-1)/width
	begins := func(number int64, s step) {
		if next != nil {
			next(number, s.newest)
		}
	}
	for first, length := int64(0), max(1, partSeconds/width); first < all; {
		length = min(length, all-first)
		begin, end := max(from, to-(first+length)*width), to-first*width
		p.reset(length)
		err := c.countPart(ctx, begin, end, func(o store.Occurred) { p.add((end-1-o.Second)/width, o) })
		switch {
		case err != nil:
			return err
		case p.full && length > 1:
			length /= 2
			continue
		case p.full:
			begins(first, p.steps[0])
			if err := c.countPart(ctx, begin, end, func(o store.Occurred) { visit(c.tallies.all[o.Group], o) }); err != nil {
				return err
			}
		}
		for i := range p.steps {
			if at := p.steps[i].first; at >= 0 && !p.full {
				begins(first+int64(i), p.steps[i])
				for ; at >= 0; at = p.after[at] {
					visit(c.tallies.all[p.seen[at].Group], p.seen[at])
				}
			}
		}
		if first += length; len(p.seen) < partSeen/4 {
			length = min(2*length, partSteps)
		}
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
