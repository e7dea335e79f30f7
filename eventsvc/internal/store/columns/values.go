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

// Values returns the values of the dimensions of a count. visit is called with each once or more.
func (s *Scan) Values(c *store.Count, visit func(dimension, value string)) (*Values, error) {
	v := &Values{Scan: s, visit: visit}
	all, err := s.entire()
	if err != nil {
		return nil, err
	}
	for column, name := range dimensionNames {
		if !c.Counts(name) {
			continue
		}
		texts, err := s.table.dict(column)
		switch {
		case err != nil:
			return nil, err
		case !all:
			v.columns, v.found[column] = append(v.columns, column), &codeSet{has: make([]bool, texts.len())}
		case column == colNamespace: // the dictionary has those of objects, too
			places, err := s.table.placesOf()
			if err != nil {
				return nil, err
			}
			for i := range places {
				visit(name, places[i].texts.Namespace)
			}
		default:
			for code := range texts.len() {
				visit(name, event.CutDimension(string(texts.at(code))))
			}
		}
	}
	return v, nil
}

// entire reports whether all rows of the table match and were observed, so that its dictionaries tell their values.
func (s *Scan) entire() (bool, error) {
	if t := s.table; s.root != everything || t.growing != nil || t.from < s.From || t.to >= s.To || t.id > s.Last || !s.light && t.lights > 0 {
		return false, nil
	}
	for chunk := range s.Chunks() {
		if least, _, err := s.bounds(colNew, chunk); err != nil || least == 0 {
			return false, err
		}
	}
	return true, nil
}

// More reports whether chunks can have values that were not found yet.
func (v *Values) More() bool { return len(v.columns) > 0 }

// Chunk finds the values of the rows of a chunk that match.
func (v *Values) Chunk(chunk int) error {
	n, err := v.Select(chunk)
	if err != nil || n == 0 {
		return err
	}
	added, err := v.column(colNew, &v.rows)
	if err != nil {
		return err
	}
	for _, column := range v.columns {
		codes, err := v.column(column, &v.rows)
		if err != nil {
			return err
		}
		texts, err := v.table.dict(column)
		if err != nil {
			return err
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
	return nil
}
