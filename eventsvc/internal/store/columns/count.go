package columns

import (
	"cmp"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// fewGroups is how many combinations of codes have an array of groups. More have a map.
const fewGroups = 1 << 16

// leftOut is the group of what is not counted.
const leftOut = -2

// A groupKey has the codes of the dimensions, the object and the pattern of a group.
type groupKey [numDims + 2]uint32

// A Counter counts the rows of a scan by groups.
type Counter struct {
	*Scan
	count   *store.Count
	visit   func(store.Occurred)
	columns []int
	sizes   []int
	few     []int32 // 1 beyond the group, 0 if it was not asked for
	many    map[groupKey]int32
	codes   [numDims + 2][]uint64
	sums    []int64  // by the places of few, of a chunk that is counted as a whole
	summed  []int    // a row of each
	places  []uint64 // in few, by row
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
	all := 1
	for _, column := range n.columns {
		size, err := s.table.limit(column)
		if err != nil {
			return nil, err
		}
		n.sizes = append(n.sizes, size)
		all = min(all*size, fewGroups+1)
	}
	if all <= fewGroups && !c.Patterns() {
		n.few, n.sums = make([]int32, all), make([]int64, all)
	} else {
		n.many = map[groupKey]int32{}
	}
	return n, nil
}

// Chunks returns how many chunks the table has.
func (s *Scan) Chunks() int { return s.table.chunks() }

// Chunk counts the rows of a chunk that match.
func (n *Counter) Chunk(chunk int) error {
	_, found, err := n.Select(chunk)
	if err != nil || found == 0 {
		return err
	}
	return n.Selected()
}

// Selected counts the rows of the chunk that were selected last. Several counters can count what one scan has selected.
func (n *Counter) Selected() error {
	chunk, mask := n.chunk, n.mask
	if err := n.read(n.columns, n.codes[:]); err != nil {
		return err
	}
	if n.count.Patterns() {
		var err error
		if n.codes[len(n.columns)], err = n.patterns(mask); err != nil {
			return err
		}
	}
	_, span, err := n.table.bounds(colSpan, chunk)
	if err != nil {
		return err
	}
	if span > 0 {
		return n.spans(mask)
	}
	first, last, err := n.ChunkTimes(chunk)
	if err != nil {
		return err
	}
	if step := n.count.Step; step > 0 && first >= n.From && last < n.To && floor(first, step) == floor(last, step) {
		return n.sum(mask, first)
	}
	return n.each(mask)
}

// sum counts rows that are all of one step, of which a second is given: first by combinations of codes, then by groups.
func (n *Counter) sum(mask []bool, second int64) error {
	added, err := n.column(colNew)
	if err != nil {
		return err
	}
	if n.few == nil {
		return n.sumMany(mask, added, second)
	}
	for i, at := range n.combined() {
		if !mask[i] || added[i] == 0 {
			continue
		}
		if n.sums[at] == 0 {
			n.summed = append(n.summed, i)
		}
		n.sums[at] += int64(added[i])
	}
	for _, row := range n.summed {
		at := n.place(row)
		count := n.sums[at]
		n.sums[at] = 0
		group, failed := n.group(row)
		if err = cmp.Or(err, failed); err == nil && group >= 0 {
			n.visit(store.Occurred{Group: group, Second: second, Count: count})
		}
	}
	n.summed = n.summed[:0]
	return err
}

// combined returns the place of each row of the chunk in few.
func (n *Counter) combined() []uint64 {
	if len(n.columns) == 1 {
		return n.codes[0]
	}
	n.places = slices.Grow(n.places[:0], ChunkRows)[:n.table.chunkLen(n.chunk)]
	clear(n.places)
	for i, size := range n.sizes {
		for row, code := range n.codes[i] {
			n.places[row] = n.places[row]*uint64(size) + code
		}
	}
	return n.places
}

// place returns the place of a row in few.
func (n *Counter) place(row int) (at int) {
	for i := range n.columns {
		at = at*n.sizes[i] + int(n.codes[i][row])
	}
	return at
}

// sumMany is sum of combinations of codes that are too many for an array.
func (n *Counter) sumMany(mask []bool, added []uint64, second int64) error {
	for i, is := range mask {
		if !is || added[i] == 0 {
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
func (n *Counter) each(mask []bool) error {
	var in [2][]uint64 // seconds, new observations
	if err := n.read([]int{colSecond, colNew}, in[:]); err != nil {
		return err
	}
	for i, is := range mask {
		second := unbiased(in[0][i])
		if !is || in[1][i] == 0 || second < n.From || second >= n.To {
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
func (n *Counter) spans(mask []bool) error {
	var in [4][]uint64 // seconds, new observations, spans, counts
	if err := n.read([]int{colSecond, colNew, colSpan, colCount}, in[:]); err != nil {
		return err
	}
	for i, is := range mask {
		if !is || in[1][i] == 0 {
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
		if into[i], err = n.column(column); err != nil {
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
	micros, err := n.column(colMicro)
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
	if n.few != nil {
		at := n.place(row)
		if known := n.few[at]; known != 0 {
			return int(known) - 1, nil
		}
		g, err := n.ask(row)
		n.few[at] = int32(g) + 1 // less than 0: it is left out
		return g, err
	}
	var key groupKey
	for i := range n.columns {
		key[i] = uint32(n.codes[i][row])
	}
	if n.count.Patterns() {
		key[len(n.columns)] = uint32(n.codes[len(n.columns)][row])
	}
	if known, ok := n.many[key]; ok {
		return int(known), nil
	}
	g, err := n.ask(row)
	n.many[key] = int32(g)
	return g, err
}

// ask asks for the group of a row.
func (n *Counter) ask(row int) (int, error) {
	var codes [numDims]uint64
	var object event.Regarding
	dims := n.columns
	if n.count.Objects {
		dims = dims[:len(dims)-1]
	}
	for i, column := range dims {
		codes[column] = n.codes[i][row]
	}
	d, err := n.table.dimensions(dims, &codes)
	if err == nil && n.count.Objects {
		object, err = n.table.object(int(n.codes[len(dims)][row]))
	}
	if err != nil {
		return leftOut, err
	}
	if n.count.Patterns() {
		d.Pattern = n.pattern.text(n.codes[len(n.columns)][row])
	}
	return max(n.count.Group(d, object), leftOut), nil
}

// A Found is a row that was found.
type Found struct {
	Micro    int64 // of its last observation in the range, since 1970
	Revision uint64
}

// Find appends the rows of a chunk that match, and were observed in the range.
func (s *Scan) Find(chunk int, found []Found) ([]Found, error) {
	_, n, err := s.Select(chunk)
	if err != nil || n == 0 {
		return found, err
	}
	return s.Found(found)
}

// Whole leaves light rows out of those that were selected last.
func (s *Scan) Whole() error { return s.whole(s.mask) }

// Found appends the rows that were selected last and were observed in the range.
func (s *Scan) Found(found []Found) (_ []Found, err error) {
	mask := s.mask
	var in [3][]uint64
	for i, column := range []int{colSecond, colMicro, colRevision} {
		if in[i], err = s.column(column); err != nil {
			return found, err
		}
	}
	for i, is := range mask {
		second := unbiased(in[0][i])
		if !is || second < s.From {
			continue
		}
		f := Found{second*1e6 + int64(in[1][i]), s.revision(i, in[2][i])}
		if second >= s.To {
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
	mask, n, err := s.Select(chunk)
	if err != nil || n == 0 {
		return dst, err
	}
	beyond, err := s.column(colRevision)
	if err != nil {
		return dst, err
	}
	for i, is := range mask {
		if is {
			dst = append(dst, s.revision(i, beyond[i]))
		}
	}
	return dst, nil
}

// before finds the last observation in the range of a row whose last one is behind it. It reports false if there is
// none.
func (s *Scan) before(row int, f *Found) (in bool, err error) {
	var numbers [3]uint64
	for i, column := range []int{colSpan, colCount, colNew} {
		all, err := s.column(column)
		if err != nil || !s.Spans {
			return false, err
		}
		numbers[i] = all[row]
	}
	at, in := occurrence(f.Micro, numbers[0], numbers[1], numbers[2]).LastIn(s.From, s.To)
	f.Micro = at.UnixMicro()
	return in, nil
}

// occurrence returns the occurrence of a row.
func occurrence(last int64, span, count, added uint64) event.Occurrence {
	return event.Occurrence{Time: time.UnixMicro(last).UTC(), First: time.UnixMicro(last - int64(span)).UTC(), Count: int64(count), New: int64(added)}
}
