package columns

import (
	"slices"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Values are the values of dimensions that rows of a scan have.
type Values struct {
	*Scan
	visit   func(dimension, value string)
	columns []int             // of which some values were not found yet
	found   [numDims]*codeSet // by column
}

// Values returns the values of the dimensions of a count. visit is called with each once.
func (s *Scan) Values(c *store.Count, visit func(dimension, value string)) (*Values, error) {
	v := &Values{Scan: s, visit: visit}
	for column, name := range dimensionNames {
		if !c.Counts(name) {
			continue
		}
		size, err := s.table.limit(column)
		if err != nil {
			return nil, err
		}
		v.columns, v.found[column] = append(v.columns, column), &codeSet{has: make([]bool, size)}
	}
	return v, nil
}

// Chunk finds the values of the rows of a chunk that match. It reports false if no other chunk can have more.
func (v *Values) Chunk(chunk int) (more bool, err error) {
	n, err := v.Select(chunk)
	if err != nil || n == 0 {
		return true, err
	}
	added, err := v.column(colNew, &v.rows)
	if err != nil {
		return false, err
	}
	for _, column := range v.columns {
		codes, err := v.column(column, &v.rows)
		if err != nil {
			return false, err
		}
		texts, err := v.table.dict(column)
		if err != nil {
			return false, err
		}
		known := v.found[column]
		for row := range v.rows.all {
			if code := codes[row]; added[row] > 0 && !known.has[code] {
				known.add(int(code))
				v.visit(dimensionNames[column], event.CutDimension(string(texts.at(int(code)))))
			}
		}
	}
	v.columns = slices.DeleteFunc(v.columns, func(column int) bool { return v.found[column].n == len(v.found[column].has) })
	return len(v.columns) > 0, nil
}
