package ctl

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/shared/printable"
)

// rows are an answer as a table.
type rows struct {
	header []string // as a table has it
	names  []string // as CSV has it
	cells  [][]string
}

// write writes rows as --output says. If there are none, it says so where messages go.
func (o *output) write(r rows, nothing string) error {
	if o.form == "csv" {
		w := csv.NewWriter(o)
		if !o.plain { // a terminal must not see control characters
			for _, line := range r.cells {
				clean(line)
			}
		}
		if o.safe {
			query.EscapeFormulas(r.cells)
		}
		_ = w.Write(r.names) // WriteAll returns its error
		return w.WriteAll(r.cells)
	}
	if len(r.cells) == 0 {
		_, err := fmt.Fprintln(o.err, nothing)
		return err
	}
	g := &grid{w: o, header: r.header, width: o.width, colour: o.colour}
	return g.write(r.cells)
}

// clean makes cells harmless for a terminal.
func clean(cells []string) {
	for i := range cells {
		cells[i] = printable.OneLine(cells[i])
	}
}

// when returns a time as a table or as CSV has it.
func (o *output) when(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case o.form != "csv":
		return t.Local().Format(time.DateTime)
	case t.Nanosecond() == 0:
		return t.UTC().Format(time.RFC3339)
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// eventNames are the columns of events in CSV, as the API has them.
var eventNames = []string{
	"observed", "type", "reason", "kind", "object_namespace", "object", "uid", "note", "count", "namespace", "name", "reporter", "cluster", "owner", "node", "revision",
}

// ownerOf returns the owner of the object of an event, as kind/name, if a mirror has found one.
func ownerOf(ev *eventsv1.Event) string {
	return event.OwnerOf(func(key string) string { return ev.Labels[key] })
}

// nodeOf returns the node on which an event happened.
func nodeOf(ev *eventsv1.Event) string {
	r := ev.Regarding
	return cmp.Or(ev.Labels[event.NodeLabel], event.NodeOf(r.Kind, r.Name, ev.DeprecatedSource.Host, ev.ReportingController, ev.ReportingInstance))
}

// eventRow returns the cells of an event that was observed at a time.
func (o *output) eventRow(at time.Time, ev *eventsv1.Event) []string {
	count := strconv.Itoa(int(occurrences(ev)))
	switch o.form {
	case "csv":
		r := ev.Regarding
		return []string{
			o.when(at), ev.Type, ev.Reason, r.Kind, r.Namespace, r.Name, string(r.UID), ev.Note, count, ev.Namespace, ev.Name, event.Reporter(ev.ReportingController, ev.DeprecatedSource.Component),
			ev.Labels[event.ClusterLabel], ownerOf(ev), nodeOf(ev), ev.ResourceVersion,
		}
	case "wide":
		return []string{
			o.when(at), ev.Namespace, ev.Type, ev.Reason, objectOf(ev), count, event.Reporter(ev.ReportingController, ev.DeprecatedSource.Component), ev.Labels[event.ClusterLabel], ownerOf(ev), nodeOf(ev), ev.Name, ev.Note,
		}
	}
	return []string{o.when(at), ev.Namespace, ev.Type, ev.Reason, objectOf(ev), count, ev.Note}
}

// eventHeader returns the header for such cells.
func (o *output) eventHeader() []string {
	if o.form == "wide" {
		return []string{"TIME", "NAMESPACE", "TYPE", "REASON", "OBJECT", "COUNT", "REPORTER", "CLUSTER", "OWNER", "NODE", "EVENT", "NOTE"}
	}
	return []string{"TIME", "NAMESPACE", "TYPE", "REASON", "OBJECT", "COUNT", "NOTE"}
}

func (q *queryCmd) events(a *answer, o *output) error {
	r := rows{header: o.eventHeader(), names: eventNames}
	for _, raw := range a.Items {
		s, err := decode(raw)
		if err != nil {
			return err
		}
		r.cells = append(r.cells, o.eventRow(lastSeen(s.event), s.event))
	}
	return o.write(r, "No events found.")
}

func (q *queryCmd) object(a *answer, o *output) error {
	r := rows{header: o.eventHeader(), names: append(slices.Clip(eventNames), "deleted")}
	versions, err := decodeRows[version](a.Items)
	if err != nil {
		return err
	}
	for _, v := range versions {
		s, err := decode(v.Event)
		if err != nil {
			return err
		}
		if o.form != "csv" && v.Deleted {
			s.event.Note = "(the event was deleted) " + s.event.Note
		}
		line := o.eventRow(v.Time, s.event)
		if o.form == "csv" {
			line = append(line, strconv.FormatBool(v.Deleted))
		}
		r.cells = append(r.cells, line)
	}
	return o.write(r, "Nothing is known about this object.")
}

func (q *queryCmd) deleted(a *answer, o *output) error {
	r := rows{header: slices.Insert(o.eventHeader(), 1, "BY"), names: append(slices.Clip(eventNames), "user", "client", "audit")}
	r.names[0] = "deleted"
	deletions, err := decodeRows[version](a.Items)
	if err != nil {
		return err
	}
	for _, d := range deletions {
		s, err := decode(d.Event)
		if err != nil {
			return err
		}
		line := o.eventRow(d.Time, s.event)
		if o.form == "csv" {
			line = append(line, d.By.User, d.By.Client, d.By.Audit)
		} else {
			line = slices.Insert(line, 1, cmp.Or(d.By.User, d.By.Client, d.By.Audit))
		}
		r.cells = append(r.cells, line)
	}
	return o.write(r, "Nobody has deleted events in this range.")
}

func (q *queryCmd) clusters(a *answer, o *output) error {
	r := rows{
		header: []string{"CLUSTER", "COMPLETE UNTIL", "BEHIND", "LAST EVENT", "GAPS", "MIRROR"},
		names:  []string{"name", "completeUntil", "lag", "lastEvent", "gaps", "mirror"},
	}
	clusters, err := decodeRows[mirrored](a.Items)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		behind := strconv.FormatInt(c.Lag, 10)
		if o.form != "csv" {
			behind = (time.Duration(c.Lag) * time.Second).String()
		}
		r.cells = append(r.cells, []string{c.Name, o.when(c.CompleteUntil), behind, o.when(c.LastEvent), strconv.Itoa(c.Gaps), c.Mirror})
	}
	return o.write(r, "No mirror has told how far a cluster is copied.")
}

func (q *queryCmd) groups(a *answer, o *output) error {
	groups, err := decodeRows[group](a.Groups)
	if err != nil {
		return err
	}
	r := rows{header: []string{"COUNT", "FIRST", "LAST", "STATE"}}
	for _, name := range q.GroupBy {
		r.header, r.names = append(r.header, strings.ToUpper(name)), append(r.names, groupNames(name)...)
	}
	r.header, r.names = append(r.header, "NOTE"), append(r.names, "count", "first", "last", "state", "events")
	for _, g := range groups {
		var line []string
		counted := []string{strconv.FormatInt(g.Count, 10), o.when(g.First), o.when(g.Last), g.State}
		for _, name := range q.GroupBy {
			if o.form == "csv" {
				line = append(line, valuesOf(name, g.By[name])...)
			} else {
				line = append(line, valueOf(g.By[name]))
			}
		}
		if o.form == "csv" {
			line = append(append(line, counted...), g.Events)
		} else {
			line = append(append(counted, line...), noteOf(g.Sample))
		}
		r.cells = append(r.cells, line)
	}
	return o.write(r, "No events found.")
}

// groupNames returns the columns of a dimension in CSV, as the API has them.
func groupNames(dimension string) []string {
	if dimension == objectDimension {
		return []string{"object_kind", "object_namespace", "object_name", "object_uid"}
	}
	return []string{dimension}
}

// objectDimension is the only dimension whose values are no texts.
const objectDimension = "object"

// valuesOf returns the cells of these columns.
func valuesOf(dimension string, raw json.RawMessage) []string {
	if dimension != objectDimension {
		return []string{valueOf(raw)}
	}
	var o struct{ Kind, Namespace, Name, UID string }
	_ = json.Unmarshal(raw, &o) // what it lacks stays empty
	return []string{o.Kind, o.Namespace, o.Name, o.UID}
}

// noteOf returns the note of a sample; there may be none.
func noteOf(raw json.RawMessage) string {
	s, err := decode(raw)
	if err != nil {
		return ""
	}
	return s.event.Note
}

func (q *queryCmd) facets(a *answer, o *output) error {
	r := rows{header: []string{"DIMENSION", "COUNT", "SHARE", "VALUE"}, names: []string{"dimension", "value", "count", "other"}}
	order := q.By
	if len(order) == 0 {
		order = slices.Clone(facetOrder)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Facets)) { // what a newer server has besides
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	for _, name := range order {
		if a.Total == 0 {
			break
		}
		for _, v := range a.Facets[name] {
			r.cells = append(r.cells, facetRow(o, name, v, a.Total, false))
		}
		if n := a.Other[name]; n > 0 {
			r.cells = append(r.cells, facetRow(o, name, valueCount{Count: n}, a.Total, true))
		}
	}
	return o.write(r, "No events found.")
}

// facetOrder is the order of dimensions if none is asked for.
var facetOrder = event.DimensionNames

func facetRow(o *output, name string, v valueCount, total int64, other bool) []string {
	count := strconv.FormatInt(v.Count, 10)
	if o.form == "csv" {
		return []string{name, v.Value, count, strconv.FormatBool(other)}
	}
	value := v.Value
	switch {
	case other:
		value = otherValues
	case value == "":
		value = noValue
	}
	return []string{name, count, strconv.FormatFloat(100*float64(v.Count)/float64(total), 'f', 1, 64) + "%", value}
}

func (q *queryCmd) changes(a *answer, o *output) error {
	changes, err := decodeRows[change](a.Changes)
	if err != nil {
		return err
	}
	r := rows{
		header: []string{"CHANGE", "STATE", "NOW", "BEFORE", "TYPE", "WHAT", "WHY"},
		names:  append(append([]string{"change"}, facetOrder...), "object", "now", "before", "score", "first", "last", "state", "why", "statistics", "events"),
	}
	if o.form == "wide" {
		r.header = []string{"CHANGE", "STATE", "NOW", "BEFORE", "SCORE", "FIRST", "TYPE", "REPORTER", "WHAT", "WHY", "STATISTICS", "NOTE"}
	}
	for _, c := range changes {
		r.cells = append(r.cells, o.changeRow(&c))
	}
	if o.form != "csv" {
		fmt.Fprintln(o, printable.OneLine(a.Verdict.Text))
	}
	if len(changes) == 0 && o.form != "csv" {
		return nil
	}
	return o.write(r, "")
}

// changeRow returns the cells of a change.
func (o *output) changeRow(c *change) []string {
	now, precision := strconv.FormatInt(c.Now, 10), 1
	if o.form == "csv" || c.Before == math.Trunc(c.Before) {
		precision = -1 // as many digits as there are
	}
	before := strconv.FormatFloat(c.Before, 'f', precision, 64)
	switch o.form {
	case "csv":
		line := []string{c.Kind}
		for _, name := range facetOrder {
			line = append(line, c.By[name])
		}
		return append(line, c.Object, now, before, strconv.FormatFloat(c.Score, 'f', -1, 64), o.when(c.First), o.when(c.Last), c.State, c.Why, c.Statistics, c.Events)
	case "wide":
		return []string{c.Kind, c.State, now, before, strconv.FormatFloat(c.Score, 'f', 1, 64), o.when(c.First), c.By["type"], c.By["reporter"], what(c), c.Why, c.Statistics, noteOf(c.Sample)}
	}
	return []string{c.Kind, c.State, now, before, c.By["type"], what(c), c.Why}
}

// what names what a change is about besides its type and reporter, as far as possible in terms of a query.
func what(c *change) string {
	var parts []string
	for _, name := range []string{"reason", "kind", "namespace", "cluster", "owner", "node"} {
		if value := c.By[name]; value != "" {
			parts = append(parts, name+"="+value)
		}
	}
	if c.Object != "" {
		parts = append(parts, "name="+c.Object)
	}
	if len(c.Namespaces) > 0 {
		parts = append(parts, "in "+atMost(c.Namespaces))
	}
	return strings.Join(parts, " ")
}

func (q *queryCmd) histogram(a *answer, o *output) error {
	if o.form == "csv" {
		return o.histogramCSV(q, a)
	}
	r := rows{header: []string{"TIME", "COUNT", strings.ToUpper(strings.Join(q.dimensions(), ", "))}}
	for i := range a.Buckets {
		b := &a.Buckets[i]
		text, err := b.text()
		if err != nil {
			return err
		}
		r.cells = append(r.cells, []string{o.when(b.Start), strconv.FormatInt(b.Count, 10), text})
	}
	return o.write(r, "No events found.")
}

// dimensions are those by which a histogram counts.
func (q *queryCmd) dimensions() []string {
	if len(q.By) == 0 {
		return []string{"type"}
	}
	return q.By
}

// histogramCSV writes a row for each value of each bucket, with the columns of the API.
func (o *output) histogramCSV(q *queryCmd, a *answer) error {
	by := q.dimensions()
	r := rows{names: append(append([]string{"start"}, by...), "count", "other")}
	for i := range a.Buckets {
		b := &a.Buckets[i]
		paths, err := b.paths()
		if err != nil {
			return err
		}
		for _, p := range paths {
			line := append([]string{o.when(b.Start)}, p.Path...)
			r.cells = append(r.cells, append(line, strconv.FormatInt(p.Count, 10), "false"))
		}
		if b.Other > 0 {
			line := append([]string{o.when(b.Start)}, make([]string, len(by))...)
			r.cells = append(r.cells, append(line, strconv.FormatInt(b.Other, 10), "true"))
		}
	}
	return o.write(r, "")
}
