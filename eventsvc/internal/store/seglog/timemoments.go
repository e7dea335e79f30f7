package seglog

import (
	"unique"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Moments counts what was observed in a range of time, the newest minutes first. It is valid as long as its Reader.
type Moments struct {
	From, To int64                       // seconds that are left; To is not part of them
	Last     uint64                      // only records up to this revision
	Nodes    bool                        // dimensions have their node
	Hours    bool                        // Occurrences may visit what was observed within one hour as one; not with Nodes
	Sees     func(event.Dimensions) bool // of dimensions without their node: entries of others are not decoded; nil: all
	Group    func(event.Dimensions) int  // of records with these dimensions; less than 0: they are left out; nil: 0

	reader  *Reader
	head    *bbolt.Tx // of the head: parts are read anew with another
	parts   []part
	known   map[uint64]*grouping                    // by file
	groups  map[unique.Handle[event.Dimensions]]int // of series, whatever file they are in
	minute  int64
	runs    []partRun // of the minute
	size    int       // of them
	entries []runEntry
	sums    []store.Occurred // of the hour
	decoded int              // entries
}

// partRun is a run with the part that it belongs to.
type partRun struct {
	minuteRun
	part part
}

// each calls f with the entries of a run that have a group.
func (m *Moments) each(run partRun, f func(*runEntry)) error {
	g, err := m.grouping(run.part), error(nil)
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
func (m *Moments) grouping(p part) *grouping {
	g := m.known[p.file()]
	if g == nil {
		g = &grouping{}
		m.known[p.file()] = g
	}
	return g
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
	if len(g.byNode) < maxGrouped {
		if g.byNode == nil {
			g.byNode = map[uint64]int{}
		}
		g.byNode[key] = n
	}
	return n, nil
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

func (m *Moments) begin(r *Reader, parts []part) {
	if m.known == nil {
		m.known, m.groups = map[uint64]*grouping{}, map[unique.Handle[event.Dimensions]]int{}
	}
	delete(m.known, 0) // the pending records have other series now
	m.reader, m.head, m.runs, m.sums, m.parts = r, r.headTx(), m.runs[:0], m.sums[:0], parts
	minute, _ := minuteOf(m.To - 1)
	for _, p := range m.parts {
		p.seek(minute, false)
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
		if ok && (!any || minute > m.minute) {
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
		p.next(false)
	}
}

// outside reports whether nothing of the minute is left of the range.
func (m *Moments) outside() bool { return m.minute*60 >= m.To || m.minute*60+60 <= m.From }
