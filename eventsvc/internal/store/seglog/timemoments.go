package seglog

import (
	"cmp"
	"slices"
	"unique"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// A Moment is a record that is held, and the second in which what it reports was observed.
type Moment struct {
	Second   int64
	Revision uint64
}

// stepBytes is about how many bytes of runs are decoded at once. Of a minute that has more,
// [Moments.Next] reads some seconds at a time.
const stepBytes = 64 << 10

// Moments goes over the records that were observed in a range of time, in the order of
// their seconds. It is valid as long as its Reader.
type Moments struct {
	From, To    int64 // seconds that are left; To is not part of them
	OldestFirst bool
	Last        uint64                      // only records up to this revision
	Nodes       bool                        // dimensions have their node
	Hours       bool                        // Occurrences may visit what was observed within one hour as one; not with Nodes
	Sees        func(event.Dimensions) bool // of dimensions without their node: entries of others are not decoded; nil: all
	Group       func(event.Dimensions) int  // of records with these dimensions; less than 0: they are left out; nil: 0
	Pieces      [][]byte                    // records whose texts do not have all of these may be left out ([Search])

	reader  *Reader
	head    *bbolt.Tx // of the head: parts are read anew with another
	parts   []part
	known   map[uint64]*grouping                    // by file
	groups  map[unique.Handle[event.Dimensions]]int // of series, whatever file they are in
	minute  int64
	runs    []partRun // of the minute
	size    int       // of them
	entries []runEntry
	found   []Moment
	sums    []store.Occurred // of the hour
	decoded int              // entries
}

// partRun is a run with the part that it belongs to.
type partRun struct {
	minuteRun
	part part
}

// Next returns the next records, by second and revision, of a few seconds, and reports false
// at the end. There may be none although there are more. From and To then exclude these
// seconds. The result is valid until the next call.
func (m *Moments) Next(r *Reader) (found []Moment, looked int, more bool, err error) {
	if err := m.open(r); err != nil || m.From >= m.To {
		return nil, 0, false, err
	}
	if len(m.runs) == 0 {
		if ok, err := m.gather(); err != nil || !ok {
			return nil, 0, false, err
		}
	}
	from, to := m.window()
	m.found = m.found[:0]
	for _, run := range m.runs {
		start := m.minute * 60
		if start+int64(run.High) < from || start+int64(run.Low) >= to {
			continue
		}
		looked++
		err := m.each(run, func(e *runEntry) {
			looked++
			if second := start + int64(e.Second); m.shows(e) && second >= from && second < to {
				m.found = append(m.found, Moment{second, e.Revision})
			}
		})
		if err != nil {
			return nil, 0, false, err
		}
	}
	slices.SortFunc(m.found, m.compare)
	if m.pass(from, to); m.outside() {
		m.runs = m.runs[:0]
	}
	return m.found, looked, true, nil
}

// each calls f with the entries of a run that have a group.
func (m *Moments) each(run partRun, f func(*runEntry)) error {
	g, err := m.grouping(run.part)
	if err != nil {
		return err
	}
	group := func(series uint32) (int, error) { return m.ofSeries(g, run.part, series) }
	if m.Nodes && m.Sees == nil {
		group = allSeries
	}
	if m.entries, err = run.Append(m.entries[:0], group); err != nil {
		return err
	}
	m.decoded += len(m.entries)
	for i := range m.entries {
		e := &m.entries[i]
		if m.Nodes {
			if e.Group, err = m.ofNode(g, run.part, e.Series, e.Node); err != nil {
				return err
			}
		}
		if e.Group >= 0 {
			f(e)
		}
	}
	return nil
}

// A grouping remembers the groups of the series of one part, and those of each of their nodes.
type grouping struct {
	reasons  uint64 // classes of the reasons with which all pieces occur in the part; records with others are left out
	bySeries []int32
	byNode   map[uint64]int // series, and node behind it
}

const (
	// ungrouped is the place of a series that was not asked for yet.
	ungrouped = -2
	// maxGrouped is how many groups of series, and of nodes, are remembered of a part.
	maxGrouped = 1 << 20
)

// grouping returns what is known of a part.
func (m *Moments) grouping(p part) (*grouping, error) {
	if known := m.known[p.file()]; known != nil {
		return known, nil
	}
	g := &grouping{reasons: allReasons}
	if s, ok := p.(*stored); ok && len(m.Pieces) > 0 {
		var err error
		if g.reasons, err = m.reader.reasonsWith(s.segment, partsOf(m.Pieces)); err != nil {
			return nil, err
		}
	}
	m.known[p.file()] = g
	return g, nil
}

// ofSeries returns the group of a series, a negative number if it is left out.
func (m *Moments) ofSeries(g *grouping, p part, series uint32) (int, error) {
	if known := g.bySeries; int(series) < len(known) && known[series] != ungrouped {
		return int(known[series]), nil
	}
	return m.ask(g, p, series)
}

// ask asks for the group of a series, and remembers it if that does not take too much memory.
func (m *Moments) ask(g *grouping, p part, series uint32) (int, error) {
	d, err := p.dimensions(series)
	if err != nil {
		return 0, err
	}
	n, known := m.groups[d]
	if !known {
		n = m.groupOf(d.Value(), m.Nodes)                       // of its nodes each has a group of its own
		if len(m.parts) > 2 && len(m.groups) < maxKnownSeries { // else each is asked for once anyway
			m.groups[d] = n
		}
	}
	if g.reasons != allReasons && g.reasons&reasonClass(d.Value().Reason) == 0 {
		n = -1
	}
	if series < maxGrouped {
		for len(g.bySeries) <= int(series) {
			g.bySeries = append(g.bySeries, ungrouped)
		}
		g.bySeries[series] = int32(n)
	}
	return n, nil
}

// groupOf asks for the group of dimensions or, if only that is asked for, whether they are seen.
func (m *Moments) groupOf(d event.Dimensions, seen bool) int {
	switch {
	case m.Sees != nil && d.Node == "" && !m.Sees(d):
		return -1
	case seen || m.Group == nil:
		return 0
	}
	return max(m.Group(d), -1)
}

// ofNode returns the group of a node of a series that is seen, a negative number if it is left out. 0 is no node.
func (m *Moments) ofNode(g *grouping, p part, series, node uint32) (int, error) {
	key := uint64(series)<<32 | uint64(node)
	if n, ok := g.byNode[key]; ok {
		return n, nil
	}
	of, err := p.dimensions(series)
	if err != nil {
		return 0, err
	}
	d := of.Value()
	if node != 0 {
		on, err := p.dimensions(node - 1)
		if err != nil {
			return 0, err
		}
		d.Node = on.Value().Node
	}
	n := m.groupOf(d, false)
	if g.reasons&reasonClass(d.Reason) == 0 {
		n = -1
	}
	if len(g.byNode) < maxGrouped {
		if g.byNode == nil {
			g.byNode = map[uint64]int{}
		}
		g.byNode[key] = n
	}
	return n, nil
}

// shows reports whether an entry is the newest moment of a version that may be seen.
func (m *Moments) shows(e *runEntry) bool {
	return e.Revision != 0 && e.Span == 0 && e.Revision <= m.Last
}

func (m *Moments) compare(a, b Moment) int {
	n := cmp.Or(cmp.Compare(a.Second, b.Second), cmp.Compare(a.Revision, b.Revision))
	if !m.OldestFirst {
		n = -n
	}
	return n
}

// open moves to the beginning of what is left of the range, at the first call and after a [Reader.Rest].
func (m *Moments) open(r *Reader) error {
	if m.reader == r && m.head == r.headTx() {
		return nil
	}
	parts, err := r.parts(m.Last, m.From, m.To, m.Sees)
	if err != nil {
		return err
	}
	m.begin(r, parts)
	return nil
}

// openSegment moves to the beginning of the range in one segment, and leaves out all others.
func (m *Moments) openSegment(r *Reader, i int) error {
	summary, err := r.summary(i)
	if err == nil {
		m.begin(r, []part{&stored{reader: r, segment: i, summary: summary}})
	}
	return err
}

func (m *Moments) begin(r *Reader, parts []part) {
	if m.known == nil {
		m.known, m.groups = map[uint64]*grouping{}, map[unique.Handle[event.Dimensions]]int{}
	}
	delete(m.known, 0) // the pending records have other series now
	m.reader, m.head, m.runs, m.sums, m.parts = r, r.headTx(), m.runs[:0], m.sums[:0], parts
	at := m.From
	if !m.OldestFirst {
		at = m.To - 1
	}
	minute, _ := minuteOf(at)
	for _, p := range m.parts {
		p.seek(minute, m.OldestFirst)
	}
}

// gather takes the runs of the next minute from all parts. It reports false if there are
// none.
func (m *Moments) gather() (any bool, err error) {
	if any, err = m.next(); err != nil || !any {
		return false, err
	}
	m.size = 0
	for _, p := range m.parts {
		if err := m.take(p, func(minute int64) bool { return minute == m.minute }); err != nil {
			return false, err
		}
	}
	return true, nil
}

// next moves to the next minute of all parts. It reports false if there is none in the range.
func (m *Moments) next() (any bool, err error) {
	for _, p := range m.parts {
		minute, ok, err := p.minute()
		if err != nil {
			return false, err
		}
		if ok && (!any || minute < m.minute == m.OldestFirst) {
			m.minute, any = minute, true
		}
	}
	return any && !m.outside(), nil
}

// take takes the next runs of a part, as long as they are of minutes that are wanted.
func (m *Moments) take(p part, wanted func(minute int64) bool) error {
	for {
		minute, ok, err := p.minute()
		if err != nil || !ok || !wanted(minute) {
			return err
		}
		run, err := p.run()
		if err != nil {
			return err
		}
		m.runs = append(m.runs, partRun{run, p})
		m.size += run.Size()
		p.next(m.OldestFirst)
	}
}

// outside reports whether nothing of the minute is left of the range.
func (m *Moments) outside() bool { return m.minute*60 >= m.To || m.minute*60+60 <= m.From }

// window returns the next seconds of the minute.
func (m *Moments) window() (from, to int64) {
	from, to = max(m.From, m.minute*60), min(m.To, m.minute*60+60)
	seconds := int64(max(1, 60*stepBytes/max(m.size, stepBytes)))
	if m.OldestFirst {
		return from, min(to, from+seconds)
	}
	return max(from, to-seconds), to
}

// pass takes seconds out of the range.
func (m *Moments) pass(from, to int64) {
	if m.OldestFirst {
		m.From = to
	} else {
		m.To = from
	}
}
