package seglog

import (
	"cmp"
	"slices"

	"tidings.example/eventsvc/internal/event"
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
	Wanted      func(event.Dimensions) bool // nil: all
	Pieces      [][]byte                    // records whose texts do not have all of these may be left out ([Search])

	reader     *Reader
	generation int
	parts      []part
	known      map[uint64]*grouping // by file
	reasons    map[uint64]uint64    // by file: classes of the reasons with which all pieces occur
	minute     int64
	runs       []partRun // of the minute
	size       int       // of them
	found      []Moment
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
		group, err := m.group(run.part)
		if err != nil {
			return nil, 0, false, err
		}
		err = m.each(run, group, func(e runEntry, _ int) {
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
func (m *Moments) each(run partRun, group func(event.Dimensions) int, f func(e runEntry, group int)) error {
	known := m.known[run.part.file()]
	if known == nil {
		known = &grouping{}
		m.known[run.part.file()] = known
	}
	n := 0
	if !m.Nodes {
		return run.Each(func(series uint32) (_ bool, err error) {
			n, err = known.of(run.part, series, group)
			return n >= 0, err
		}, func(e runEntry) { f(e, n) })
	}
	var failed error
	err := run.Each(allSeries, func(e runEntry) {
		if failed != nil {
			return
		}
		if n, failed = known.ofNode(run.part, e.Series, e.Node, group); failed == nil && n >= 0 {
			f(e, n)
		}
	})
	return cmp.Or(err, failed)
}

// shows reports whether an entry is the newest moment of a version that may be seen.
func (m *Moments) shows(e runEntry) bool {
	return e.Revision != 0 && e.Span == 0 && e.Revision <= m.Last
}

func (m *Moments) compare(a, b Moment) int {
	n := cmp.Or(cmp.Compare(a.Second, b.Second), cmp.Compare(a.Revision, b.Revision))
	if !m.OldestFirst {
		n = -n
	}
	return n
}

// group returns a function that leaves out the dimensions that are not wanted of a part.
func (m *Moments) group(p part) (func(event.Dimensions) int, error) {
	classes := ^uint64(0)
	if s, ok := p.(*stored); ok && len(m.Pieces) > 0 {
		var err error
		if classes, ok = m.reasons[p.file()]; !ok {
			if classes, err = m.reader.reasonsWith(s.segment, partsOf(m.Pieces)); err != nil {
				return nil, err
			}
			m.reasons[p.file()] = classes
		}
	}
	return func(d event.Dimensions) int {
		if classes&reasonClass(d.Reason) == 0 || m.Wanted != nil && !m.Wanted(d) {
			return -1
		}
		return 0
	}, nil
}

// open moves to the beginning of the range, at the first call and when the reader was
// opened again.
func (m *Moments) open(r *Reader) error {
	if m.reader == r && m.generation == r.generation {
		return nil
	}
	parts, err := r.parts(m.Last, m.From, m.To)
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
		m.known, m.reasons = map[uint64]*grouping{}, map[uint64]uint64{}
	}
	delete(m.known, 0) // the pending records have other series now
	m.reader, m.generation, m.runs, m.parts = r, r.generation, m.runs[:0], parts
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
	for _, p := range m.parts {
		minute, ok, err := p.minute()
		if err != nil {
			return false, err
		}
		if ok && (!any || minute < m.minute == m.OldestFirst) {
			m.minute, any = minute, true
		}
	}
	if !any || m.outside() {
		return false, nil
	}
	m.size = 0
	for _, p := range m.parts {
		for {
			minute, ok, err := p.minute()
			if err != nil {
				return false, err
			}
			if !ok || minute != m.minute {
				break
			}
			run, err := p.run()
			if err != nil {
				return false, err
			}
			m.runs = append(m.runs, partRun{run, p})
			m.size += run.Size()
			p.next(m.OldestFirst)
		}
	}
	return true, nil
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
