package loki

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/logql"
	"tidings.example/eventsvc/internal/store"
)

// streamsIn returns the streams of a range of time that are selected by one of several
// queries, with their occurrences.
func (a *API) streamsIn(r *request, in period, by ...*logql.Log) (map[event.Dimensions]int64, error) {
	var found []event.Dimensions
	var counts []int64
	room := share{most: maxInner}
	one := func(selects func(*logql.Log) bool) bool { return slices.ContainsFunc(by, selects) }
	may := func(d *event.Dimensions) bool {
		return one(func(l *logql.Log) bool { return l.MaySelect(labelOf(d)) })
	}
	number := func(d event.Dimensions) (int, error) {
		if !one(func(l *logql.Log) bool { return l.Selects(r.turns, labelOf(&d)) }) {
			return -1, nil
		}
		if !room.take(d.Namespace) {
			r.warn("there are more than %d streams: some of the namespaces that have most are left out", maxInner)
			return -1, nil
		}
		found, counts = append(found, d), append(counts, 0)
		return len(found) - 1, nil
	}
	if err := a.occurred(a.streams(r, may, number), in, func(o store.Occurred) { counts[o.Group] += o.Count }); err != nil {
		return nil, err
	}
	all := map[event.Dimensions]int64{}
	for i, d := range found {
		if counts[i] > 0 {
			all[d] = counts[i]
		}
	}
	return all, nil
}

// streamsOfRequest is streamsIn for the range and the selector of a request.
func (a *API) streamsOfRequest(r *request, parse func(string) (*logql.Log, error)) (map[event.Dimensions]int64, error) {
	in, err := r.times()
	if err != nil {
		return nil, err
	}
	l, err := r.selector(parse)
	if err != nil {
		return nil, err
	}
	return a.streamsIn(r, in, l)
}

// valuesOf returns the values of each label of streams.
func valuesOf(all map[event.Dimensions]int64) map[string]map[string]bool {
	values := map[string]map[string]bool{}
	for d := range all {
		for _, l := range streamLabels(&d) {
			if values[l.Name] == nil {
				values[l.Name] = map[string]bool{}
			}
			values[l.Name][l.Value] = true
		}
	}
	return values
}

// texts is an answer with a list of texts.
func (r *request) texts(all []string) answer {
	return r.success(func(b []byte) []byte { return appendJSON(b, append([]string{}, all...)) }) // [] if there are none
}

// labels serves /labels: the labels that streams have.
func (a *API) labels(r *request) (answer, error) {
	all, err := a.streamsOfRequest(r, logql.ParseSelector)
	if err != nil {
		return nil, err
	}
	return r.texts(slices.Sorted(maps.Keys(valuesOf(all)))), nil
}

// labelValues serves /label/{name}/values. It keeps values alone, of which there are fewer than of streams.
func (a *API) labelValues(r *request) (answer, error) {
	in, err := r.times()
	if err != nil {
		return nil, err
	}
	l, err := r.selector(logql.ParseSelector)
	if err != nil {
		return nil, err
	}
	ids, counts, room := map[string]int{}, []int64{}, share{most: maxInner}
	number := func(d event.Dimensions) (int, error) {
		text := value(&d, r.Param("label"))
		if text == "" || !l.Selects(r.turns, labelOf(&d)) {
			return -1, nil
		}
		id, known := ids[text]
		switch {
		case known:
			return id, nil
		case !room.take(d.Namespace):
			r.warn("there are more than %d values: some of the namespaces that have most are left out", maxInner)
			return -1, nil
		}
		id = len(counts)
		ids[text], counts = id, append(counts, 0)
		return id, nil
	}
	if err := a.occurred(a.streams(r, maySelect(l), number), in, func(o store.Occurred) { counts[o.Group] += o.Count }); err != nil {
		return nil, err
	}
	maps.DeleteFunc(ids, func(_ string, id int) bool { return counts[id] == 0 })
	return r.texts(slices.Sorted(maps.Keys(ids))), nil
}

// series serves /series: the labels of each stream.
func (a *API) series(r *request) (answer, error) {
	in, err := r.times()
	if err != nil {
		return nil, err
	}
	texts := slices.Concat(r.values["match"], r.values["match[]"])
	if len(texts) > maxNames {
		return nil, badRequest("more than %d selectors in match[]", maxNames)
	}
	by, err := logql.ParseSelectors(texts)
	if err != nil {
		return nil, err
	}
	if len(by) == 0 {
		by = []*logql.Log{{}}
	}
	found, err := a.streamsIn(r, in, by...)
	if err != nil {
		return nil, err
	}
	all := slices.SortedFunc(maps.Keys(found), compareDimensions)
	return r.success(func(b []byte) []byte {
		return appendList(b, len(all), func(b []byte, i int) []byte { return appendLabels(b, streamLabels(&all[i])) })
	}), nil
}

func compareDimensions(a, b event.Dimensions) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reason, b.Reason),
		cmp.Compare(a.Type, b.Type), cmp.Compare(a.Reporter, b.Reporter), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Node, b.Node))
}

// detectedLabels serves /detected_labels: labels with the number of their values.
func (a *API) detectedLabels(r *request) (answer, error) {
	all, err := a.streamsOfRequest(r, logql.ParseLog) // what is behind the selector does not matter
	if err != nil {
		return nil, err
	}
	values := valuesOf(all)
	type detected struct {
		Label       string `json:"label"`
		Cardinality int    `json:"cardinality"`
	}
	list := []detected{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, detected{name, len(values[name])})
	}
	return r.members(map[string]any{"detectedLabels": list}), nil
}

// field is a label of entries, and the values that were seen.
type field struct {
	parsed bool
	values map[string]bool
}

// fields returns the labels of some of the newest entries of a query, with those that
// json finds.
func (a *API) fields(r *request) (all map[string]*field, limit int, err error) {
	l, err := logql.ParseLog(r.values.Get("query"))
	if err != nil {
		return nil, 0, err
	}
	in, err := r.times()
	if err != nil {
		return nil, 0, err
	}
	lines, err := r.number("line_limit", lineLimit, maxLines)
	if err != nil {
		return nil, 0, err
	}
	name := "limit"
	if r.values.Get(name) == "" {
		name = "field_limit" // as older clients say it
	}
	if limit, err = r.number(name, fieldLimit, maxLines); err != nil {
		return nil, 0, err
	}
	if !l.Parses() {
		whole, err := logql.ParseLog(l.String() + " | json")
		if err != nil {
			return nil, 0, err
		}
		l = whole
	}
	all = map[string]*field{}
	bytes := 0
	err = a.scan(r, l, in.lines(false), true, func(e *entry) bool {
		if bytes += e.size(); bytes > maxBytes/2 { // others may have written long lines
			r.warn("only the lines that fit into %d bytes were looked at", maxBytes/2)
			return false
		}
		for _, label := range e.Labels {
			if label.Category == logql.Stream || strings.HasPrefix(label.Name, "__") {
				continue
			}
			f := all[label.Name]
			if f == nil {
				f = &field{parsed: label.Category == logql.Parsed, values: map[string]bool{}}
				all[label.Name] = f
			}
			f.values[label.Value] = true
		}
		lines--
		return lines > 0
	})
	return all, limit, err
}

// detectedFields serves /detected_fields: the labels of entries.
func (a *API) detectedFields(r *request) (answer, error) {
	all, limit, err := a.fields(r)
	if err != nil {
		return nil, err
	}
	type detected struct {
		Label       string   `json:"label"`
		Type        string   `json:"type"`
		Cardinality int      `json:"cardinality"`
		Parsers     []string `json:"parsers"` // null: structured metadata
	}
	list := []detected{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		d := detected{Label: name, Type: typeOf(f.values), Cardinality: len(f.values)}
		if f.parsed {
			d.Parsers = []string{"json"}
		}
		if list = append(list, d); len(list) == limit {
			break
		}
	}
	return r.members(map[string]any{"fields": list, "limit": limit}), nil
}

// typeOf is the type that all values of a field have.
func typeOf(values map[string]bool) string {
	numbers, booleans := 0, 0
	for v := range values {
		if _, err := strconv.ParseInt(v, 10, 64); err == nil {
			numbers++
		} else if v == "true" || v == "false" {
			booleans++
		}
	}
	switch len(values) {
	case numbers:
		return "int"
	case booleans:
		return "boolean"
	}
	return "string"
}

// detectedValues serves /detected_field/{name}/values.
func (a *API) detectedValues(r *request) (answer, error) {
	all, limit, err := a.fields(r)
	if err != nil {
		return nil, err
	}
	values := []string{}
	if f := all[r.Param("label")]; f != nil {
		values = slices.Sorted(maps.Keys(f.values))
	}
	return r.members(map[string]any{"values": values[:min(limit, len(values))], "limit": limit}), nil
}
