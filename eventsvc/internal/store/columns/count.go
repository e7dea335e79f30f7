package columns

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// fewGroups is how many combinations of codes have an array of groups. More have a map.
const fewGroups = 1 << 16

// leftOut is the group of what is not counted.
const leftOut = -2

// mostPlaces is how many combinations of codes are told apart by numbers. If there could be more, those of the first
// columns that rows have get other numbers.
const mostPlaces = 1 << 40

// A Counter counts the rows of a scan by groups.
type Counter struct {
	*Scan
	count   *store.Count
	visit   func(store.Occurred)
	columns []int
	sizes   []uint64            // how many codes the columns have, and the patterns behind them
	known   []map[uint64]uint64 // other numbers of what the columns before have; nil: they keep theirs
	few     []int32             // 1 beyond the group, 0 if it was not asked for
	many    map[uint64]int32
	codes   [numDims + 2][]uint64
	texts   [numDims][]string // by code, empty if they were not read or are so
	second  int64             // of a row that is counted in sums: all are of one step
	sums    []int64           // by the places of few
	summed  []uint64          // those that are not 0
	places  []uint64          // in few or many, by row
	one     [1]uint64         // the code that is the place of what is tallied
}

// Counter returns a counter of the rows of a scan.
func (s *Scan) Counter(c *store.Count, visit func(store.Occurred)) (*Counter, error) {
	n := &Counter{Scan: s, count: c, visit: visit}
	for column, name := range dimensionNames {
		if c.Counts(name) {
			n.columns = append(n.columns, column)
		}
	}
	if c.Objects {
		n.columns = append(n.columns, colObject)
	}
	all := uint64(1)
	for _, column := range n.columns {
		size, err := s.table.limit(column)
		if err != nil {
			return nil, err
		}
		all = n.tell(all, max(1, uint64(size)))
	}
	if c.Patterns() {
		all = n.tell(all, math.MaxUint32)
	}
	if all <= fewGroups {
		n.few, n.sums = make([]int32, all), make([]int64, all)
	} else {
		n.many = map[uint64]int32{}
	}
	return n, nil
}

// tell adds a column of so many codes behind others, and returns how many combinations of codes there can be.
func (n *Counter) tell(all, size uint64) uint64 {
	var known map[uint64]uint64
	if all > mostPlaces/size {
		known, all = map[uint64]uint64{}, uint64(n.table.rows)
	}
	n.sizes, n.known = append(n.sizes, size), append(n.known, known)
	return all * size
}

// Chunks returns how many chunks the table has.
func (s *Scan) Chunks() int { return s.table.chunks() }

// Chunk counts the rows of a chunk that match.
func (n *Counter) Chunk(chunk int) error {
	found, err := n.Select(chunk)
	if err != nil || found == 0 {
		return err
	}
	return n.Selected()
}

// Selected counts the rows of the chunk that were selected last. Several counters can count what one scan has selected.
func (n *Counter) Selected() error {
	first, last, err := n.ChunkTimes(n.chunk)
	if err != nil {
		return err
	}
	step := n.count.Step
	whole := !n.times.spans && step > 0 && first >= n.From && last < n.To && floor(first, step) == floor(last, step)
	if whole {
		if done, err := n.tally(first); done || err != nil {
			return err
		}
	}
	if err := n.read(n.columns, n.codes[:]); err != nil {
		return err
	}
	if n.count.Patterns() {
		var err error
		if n.codes[len(n.columns)], err = n.patterns(&n.rows); err != nil {
			return err
		}
	}
	n.place()
	switch {
	case n.times.spans:
		return n.spans()
	case whole:
		return n.sum(first)
	}
	return n.each()
}

// tally is sum of rows that were observed equally often, by no column, or all of them by one. It reports false if they
// are others.
func (n *Counter) tally(second int64) (done bool, err error) {
	if n.few == nil || n.table.growing != nil || len(n.sizes) > 1 || n.count.Patterns() {
		return false, nil
	}
	added, err := n.open(colNew, n.chunk)
	if err != nil || added.width > 0 {
		return false, err
	}
	rows := n.rows.len()
	if len(n.columns) == 0 {
		n.turn(second)
		return true, n.tallied(0, rows, added.least)
	}
	c, err := n.open(n.columns[0], n.chunk)
	if err != nil || c.width > 8 || rows < n.table.chunkLen(n.chunk) {
		return false, err
	}
	var counts [2][256]uint32
	c.tally(rows, &counts)
	n.turn(second)
	for i := range 1 << c.width {
		if times := counts[0][i] + counts[1][i]; times > 0 && err == nil {
			err = n.tallied(c.least+uint64(i), int(times), added.least)
		}
	}
	return true, err
}

// tallied adds rows of one code.
func (n *Counter) tallied(code uint64, rows int, added uint64) error {
	if code >= uint64(len(n.sums)) {
		return n.table.damaged(n.columns[0], n.chunk)
	}
	if n.sums[code] == 0 && added > 0 {
		n.one[0] = code
		n.codes[0], n.places = n.one[:], n.one[:]
		if _, err := n.group(0); err != nil {
			return err
		}
		n.summed = append(n.summed, code)
	}
	n.sums[code] += int64(added) * int64(rows)
	return nil
}

// sum counts rows that are all of one step, of which a second is given: first by combinations of codes, then, when
// there is another step, by groups.
func (n *Counter) sum(second int64) error {
	added, err := n.column(colNew, &n.rows)
	if err != nil {
		return err
	}
	if n.few == nil {
		return n.sumMany(added, second)
	}
	n.turn(second)
	sums, places := n.sums, n.places[:len(added)]
	for i, word := range n.rows { // not with all, whose function would read sums from memory at each row
		for ; word > 0; word &= word - 1 {
			row := i*64 + bits.TrailingZeros64(word)
			at := places[row]
			if sums[at] == 0 && added[row] > 0 {
				if _, err := n.group(row); err != nil {
					return err
				}
				n.summed = append(n.summed, at)
			}
			sums[at] += int64(added[row])
		}
	}
	return nil
}

// turn begins the step of a second.
func (n *Counter) turn(second int64) {
	if step := n.count.Step; floor(second, step) != floor(n.second, step) {
		n.Flush()
	}
	n.second = second
}

// Flush counts what was summed up. Call it when all chunks have been counted.
func (n *Counter) Flush() {
	for _, at := range n.summed {
		if group := int(n.few[at]) - 1; group >= 0 {
			n.visit(store.Occurred{Group: group, Second: n.second, Count: n.sums[at]})
		}
		n.sums[at] = 0
	}
	n.summed = n.summed[:0]
}

// place finds the places of the rows in few or many.
func (n *Counter) place() {
	if len(n.sizes) == 1 {
		n.places = n.codes[0]
		return
	}
	n.places = slices.Grow(n.places[:0], ChunkRows)[:ChunkRows]
	clear(n.places)
	for i, size := range n.sizes {
		codes, places := n.codes[i], n.places[:len(n.codes[i])]
		if known := n.known[i]; known != nil {
			for row := range n.rows.all {
				at, ok := known[places[row]]
				if !ok {
					at = uint64(len(known))
					known[places[row]] = at
				}
				places[row] = at
			}
		}
		for w, word := range n.rows {
			for ; word > 0; word &= word - 1 {
				row := w*64 + bits.TrailingZeros64(word)
				places[row] = places[row]*size + codes[row]
			}
		}
	}
}

// sumMany is sum of combinations of codes that are too many for an array.
func (n *Counter) sumMany(added []uint64, second int64) error {
	for i := range n.rows.all {
		if added[i] == 0 {
			continue
		}
		group, err := n.group(i)
		if err != nil {
			return err
		}
		if group >= 0 {
			n.visit(store.Occurred{Group: group, Second: second, Count: int64(added[i])})
		}
	}
	return nil
}

// each counts rows that have no span, one by one.
func (n *Counter) each() error {
	var in [2][]uint64 // seconds, new observations
	if err := n.read([]int{colSecond, colNew}, in[:]); err != nil {
		return err
	}
	for i := range n.rows.all {
		second := unbiased(in[0][i])
		if in[1][i] == 0 || second < n.From || second >= n.To {
			continue
		}
		group, err := n.group(i)
		if err != nil {
			return err
		}
		if group >= 0 {
			n.visit(store.Occurred{Group: group, Second: second, Count: int64(in[1][i])})
		}
	}
	return nil
}

// spans counts rows of which some may have a span.
func (n *Counter) spans() error {
	var in [4][]uint64 // seconds, new observations, spans, counts
	if err := n.read([]int{colSecond, colNew, colSpan, colCount}, in[:]); err != nil {
		return err
	}
	for i := range n.rows.all {
		if in[1][i] == 0 {
			continue
		}
		group, err := n.group(i)
		if err == nil && group >= 0 {
			err = n.row(i, group, &in)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads columns of the chunk into as many places.
func (n *Counter) read(columns []int, into [][]uint64) (err error) {
	for i, column := range columns {
		if into[i], err = n.column(column, &n.rows); err != nil {
			return err
		}
	}
	return nil
}

// row counts a row of a group.
func (n *Counter) row(i, group int, in *[4][]uint64) error {
	second := unbiased(in[0][i])
	if in[2][i] != 0 && in[1][i] == in[3][i] {
		return n.spread(i, group, second)
	}
	if second >= n.From && second < n.To {
		n.visit(store.Occurred{Group: group, Second: second, Count: int64(in[1][i])})
	}
	return nil
}

// spread counts a row that was observed before its first version.
func (n *Counter) spread(row, group int, second int64) error {
	micros, err := n.column(colMicro, &n.rows)
	if err != nil {
		return err
	}
	count := n.numbers[colCount][row]
	occurrence(second*1e6+int64(micros[row]), n.numbers[colSpan][row], count, count).Spread(func(second, span, times int64) {
		if times > 0 && second >= n.From && second < n.To {
			n.visit(store.Occurred{Group: group, Second: second, Span: span, Count: times})
		}
	})
	return nil
}

// group returns the group of a row.
func (n *Counter) group(row int) (int, error) {
	at := n.places[row]
	if n.few != nil {
		if known := n.few[at]; known != 0 {
			return int(known) - 1, nil
		}
		g, err := n.ask(row)
		n.few[at] = int32(g) + 1 // less than 0: it is left out
		return g, err
	}
	if known, ok := n.many[at]; ok {
		return int(known), nil
	}
	g, err := n.ask(row)
	n.many[at] = int32(g)
	return g, err
}

// ask asks for the group of a row.
func (n *Counter) ask(row int) (int, error) {
	var d event.Dimensions
	var object event.Regarding
	var err error
	dims := n.columns
	if n.count.Objects {
		dims = dims[:len(dims)-1]
	}
	for i, column := range dims {
		if *d.Text(dimensionNames[column]), err = n.text(column, n.codes[i][row]); err != nil {
			return leftOut, err
		}
	}
	if n.count.Objects {
		object, err = n.table.object(int(n.codes[len(dims)][row]))
	}
	if err != nil {
		return leftOut, err
	}
	if n.count.Patterns() {
		d.Pattern = n.pattern.text(n.codes[len(n.columns)][row])
	}
	group := n.count.Group(d, object)
	if group < 0 {
		group = leftOut // -1 would be asked for again at each row
	}
	return group, nil
}

// text returns the text of a code of a dimension.
func (n *Counter) text(column int, code uint64) (string, error) {
	if texts := n.texts[column]; texts != nil && texts[code] != "" {
		return texts[code], nil
	}
	d, err := n.table.dict(column)
	if err != nil {
		return "", err
	}
	if n.texts[column] == nil {
		n.texts[column] = make([]string, d.len())
	}
	n.texts[column][code] = event.CutDimension(string(d.at(int(code))))
	return n.texts[column][code], nil
}

// A Found is a row that was found.
type Found struct {
	Micro    int64 // of its last observation in the range, since 1970
	Revision uint64
}

// Find appends the rows of a chunk that match, and were observed in the range.
func (s *Scan) Find(chunk int, found []Found) ([]Found, error) {
	n, err := s.Select(chunk)
	if err != nil || n == 0 {
		return found, err
	}
	return s.Found(found)
}

// Whole leaves light rows out of those that were selected last.
func (s *Scan) Whole() error { return s.unlit(&s.rows) }

// Found appends the rows that were selected last and were observed in the range.
func (s *Scan) Found(found []Found) (_ []Found, err error) {
	var in [3][]uint64
	for i, column := range []int{colSecond, colMicro, colRevision} {
		if in[i], err = s.column(column, &s.rows); err != nil {
			return found, err
		}
	}
	for i := range s.rows.all {
		second, micro := unbiased(in[0][i]), int64(in[1][i])
		if second < s.From || second == s.From && micro < s.Late {
			continue
		}
		f := Found{second*1e6 + micro, s.revision(i, in[2][i])}
		if second >= s.To || second == s.To-1 && micro >= 1e6-s.Early {
			in, err := s.before(i, &f)
			if err != nil {
				return found, err
			}
			if !in {
				continue
			}
		}
		found = append(found, f)
	}
	return found, nil
}

// Revisions appends the revisions of the rows of a chunk that match.
func (s *Scan) Revisions(chunk int, dst []uint64) ([]uint64, error) {
	n, err := s.Select(chunk)
	if err != nil || n == 0 {
		return dst, err
	}
	beyond, err := s.column(colRevision, &s.rows)
	if err != nil {
		return dst, err
	}
	for row := range s.rows.all {
		dst = append(dst, s.revision(row, beyond[row]))
	}
	return dst, nil
}

// before finds the last observation in the range of a row whose last one is behind it. It reports false if there is
// none.
func (s *Scan) before(row int, f *Found) (in bool, err error) {
	var numbers [3]uint64
	for i, column := range []int{colSpan, colCount, colNew} {
		all, err := s.column(column, &s.rows)
		if err != nil || !s.Spans {
			return false, err
		}
		numbers[i] = all[row]
	}
	at, in := occurrence(f.Micro, numbers[0], numbers[1], numbers[2]).LastIn(time.Unix(s.From, s.Late*1e3), time.Unix(s.To, -s.Early*1e3))
	f.Micro = at.UnixMicro()
	return in, nil
}

// occurrence returns the occurrence of a row.
func occurrence(last int64, span, count, added uint64) event.Occurrence {
	return event.Occurrence{Time: time.UnixMicro(last).UTC(), First: time.UnixMicro(last - int64(span)).UTC(), Count: int64(count), New: int64(added)}
}
