package columns

import (
	"math"

	"tidings.example/eventsvc/internal/event"
)

// Lights calls f with the rows of versions that are no longer held, in their order.
func (t *Table) Lights(f func(r *Row) error) error {
	if t.lights == 0 {
		return nil
	}
	labels, err := t.dict(dictLabels)
	if err != nil {
		return err
	}
	light := labels.fitting(isLight)
	known := map[[numDims]uint64]*event.Dimensions{}
	s := &Scan{Query: &Query{}, table: t}
	for chunk := range t.chunks() {
		s.chunk, s.have = chunk, 0
		s.rows.fill(t.chunkLen(chunk))
		if err := s.narrow(ofCodes(colLabels, light), &s.rows); err != nil {
			return err
		}
		for row := range s.rows.all {
			r, err := s.lightRow(row, known)
			if err == nil {
				err = f(r)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// lightMark stands for the set of labels of a light row. It is none.
const lightMark = "\xff"

func isLight(set string) bool { return set == lightMark }

// lightRow returns a row of the chunk of which no more is left than its dimensions, that are known by their codes, and
// its occurrence.
func (s *Scan) lightRow(row int, known map[[numDims]uint64]*event.Dimensions) (*Row, error) {
	var codes [numDims]uint64
	var numbers [numColumns]uint64
	dims := make([]int, numDims)
	for column := range numColumns {
		if column >= numDims && column < colSecond || column > colRevision {
			continue
		}
		all, err := s.column(column, &s.rows)
		if err != nil {
			return nil, err
		}
		if numbers[column] = all[row]; column < numDims {
			codes[column], dims[column] = all[row], column
		}
	}
	if known[codes] == nil {
		d, err := s.table.dimensions(dims, &codes)
		if err != nil {
			return nil, err
		}
		known[codes] = &d
	}
	micro := unbiased(numbers[colSecond])*1e6 + int64(numbers[colMicro])
	return &Row{
		Revision: s.revision(row, numbers[colRevision]), Light: known[codes],
		Occurrence: occurrence(micro, min(numbers[colSpan], math.MaxInt64/4), numbers[colCount], numbers[colNew]),
	}, nil
}
