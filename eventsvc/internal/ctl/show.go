package ctl

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/shared/printable"
)

// column is a column for people: what is over it, and the column of the server's table that it has, or what is made of
// several.
type column struct {
	header, name string
	made         func(row) string
}

// The columns of events, which other tables have too.
var (
	colTime   = column{header: "TIME", name: "observed"}
	colType   = column{header: "TYPE", name: "type"}
	colNote   = column{header: "NOTE", name: "note"}
	colCount  = column{header: "COUNT", name: "count"}
	colState  = column{header: "STATE", name: "state"}
	colEvent  = []column{{header: "NAMESPACE", name: "namespace"}, colType, {header: "REASON", name: "reason"}, {header: "OBJECT", made: objectOfRow}, colCount}
	colMore   = []column{{header: "REPORTER", name: "reporter"}, {header: "CLUSTER", name: "cluster"}, {header: "OWNER", name: "owner"}, {header: "NODE", name: "node"}, {header: "EVENT", name: "name"}}
	ofCluster = []column{
		{header: "CLUSTER", name: "name"}, {header: "COMPLETE UNTIL", name: "completeUntil"}, {header: "BEHIND", made: behind},
		{header: "LAST EVENT", name: "lastEvent"}, {header: "GAPS", name: "gaps"}, {header: "MIRROR", name: "mirror"},
	}
)

// ofEvents returns the columns of events, which begin and end with some.
func (o *output) ofEvents(begin []column, note column) []column {
	all := append(slices.Clip(begin), colEvent...)
	if o.form == "wide" {
		all = append(all, colMore...)
	}
	return append(all, note)
}

func (q *queryCmd) events(o *output, _ []row) []column { return o.ofEvents([]column{colTime}, colNote) }

func (q *queryCmd) object(o *output, _ []row) []column {
	return o.ofEvents([]column{colTime}, column{header: "NOTE", made: func(r row) string {
		if r.get("deleted") == "true" {
			return "(the event was deleted) " + r.get("note")
		}
		return r.get("note")
	}})
}

func (q *queryCmd) deleted(o *output, _ []row) []column {
	return o.ofEvents([]column{{header: "TIME", name: "deleted"}, {header: "BY", made: func(r row) string {
		return cmp.Or(r.get("user"), r.get("client"), r.get("audit"))
	}}}, colNote)
}

func (q *queryCmd) clusters(*output, []row) []column { return ofCluster }

func (q *queryCmd) groups(*output, []row) []column {
	all := []column{colCount, {header: "FIRST", name: "first"}, {header: "LAST", name: "last"}, colState}
	for _, name := range q.GroupBy {
		one := column{header: strings.ToUpper(name), name: name}
		if name == objectDimension {
			one.made = groupedObject
		}
		all = append(all, one)
	}
	return append(all, colNote)
}

func (q *queryCmd) facets(_ *output, rows []row) []column {
	sums := map[string]float64{} // by dimension; all are the same, as far as values are told
	total := 1.0
	for _, r := range rows {
		sums[r.get("dimension")] += r.number("count")
		total = max(total, sums[r.get("dimension")])
	}
	share := func(r row) string { return strconv.FormatFloat(100*r.number("count")/total, 'f', 1, 64) + "%" }
	return []column{{header: "DIMENSION", name: "dimension"}, colCount, {header: "SHARE", made: share}, {header: "VALUE", made: func(r row) string {
		if r.get("other") == "true" {
			return otherValues
		}
		return cmp.Or(r.get("value"), noValue)
	}}}
}

func (q *queryCmd) changes(o *output, _ []row) []column {
	before := column{header: "BEFORE", made: func(r row) string {
		if strings.Contains(r.get("before"), ".") {
			return r.rounded("before")
		}
		return r.get("before")
	}}
	all := []column{{header: "CHANGE", name: "change"}, colState, {header: "NOW", name: "now"}, before}
	what, why := column{header: "WHAT", made: what}, column{header: "WHY", name: "why"}
	if o.form != "wide" {
		return append(all, colType, what, why)
	}
	score := column{header: "SCORE", made: func(r row) string { return r.rounded("score") }}
	return append(all, score, column{header: "FIRST", name: "first"}, colType, colMore[0], what, why, column{header: "STATISTICS", name: "statistics"}, colNote)
}

// histogram has a line for each step, with the most frequent values first.
func (q *queryCmd) histogram(_ *output, rows []row) []column {
	by := q.dimensions()
	value := func(r row) string {
		if r.get("other") == "true" {
			return otherValues
		}
		var path []string
		for _, d := range by {
			path = append(path, cmp.Or(r.get(d), noValue))
		}
		return strings.Join(path, " ")
	}
	steps := map[string][]row{}
	for _, r := range rows {
		steps[r.get("start")] = append(steps[r.get("start")], r)
	}
	count := func(r row) string {
		sum := int64(0)
		for _, one := range steps[r.get("start")] {
			n, _ := strconv.ParseInt(one.get("count"), 10, 64)
			sum += n
		}
		return strconv.FormatInt(sum, 10)
	}
	values := func(r row) string {
		var parts []string
		for _, one := range slices.SortedStableFunc(slices.Values(steps[r.get("start")]), func(a, b row) int {
			return cmp.Or(cmp.Compare(a.get("other"), b.get("other")), cmp.Compare(b.number("count"), a.number("count")), cmp.Compare(value(a), value(b)))
		}) {
			parts = append(parts, value(one)+" "+one.get("count"))
		}
		return strings.Join(parts, ", ")
	}
	return []column{{header: "TIME", name: "start"}, {header: "COUNT", made: count}, {header: strings.ToUpper(strings.Join(by, ", ")), made: values}}
}

// dimensions are those by which a histogram counts.
func (q *queryCmd) dimensions() []string {
	if len(q.By) == 0 {
		return []string{"type"}
	}
	return q.By
}

const (
	// objectDimension is the only dimension whose values are no texts.
	objectDimension = "object"
	// otherValues stands for all values that are not named, noValue for an empty one.
	otherValues = "(other)"
	noValue     = "(none)"
)

// facetOrder is the order of dimensions if none is asked for.
var facetOrder = event.DimensionNames

// number returns a cell as a number.
func (r row) number(column string) float64 {
	n, _ := strconv.ParseFloat(r.get(column), 64) // what is no number counts as none
	return n
}

// rounded returns a number with one digit.
func (r row) rounded(column string) string {
	return strconv.FormatFloat(r.number(column), 'f', 1, 64)
}

// objectOfRow returns the object of an event as kubectl names it.
func objectOfRow(r row) string { return event.ObjectName(r.get("kind"), r.get("object")) }

// groupedObject returns the object of a group with its namespace.
func groupedObject(r row) string {
	object, namespace := event.ObjectName(r.get("object_kind"), r.get("object_name")), r.get("object_namespace")
	if object == "" || namespace == "" {
		return object
	}
	return namespace + "/" + object
}

// behind returns how long ago a cluster was complete, and whether that is late.
func behind(r row) string {
	text := (time.Duration(r.number("lag")) * time.Second).String()
	if r.get("late") == "true" {
		return text + ", late"
	}
	return text
}

// what names what a change is about besides its type and reporter, as far as possible in terms of a query.
func what(r row) string {
	var parts []string
	for _, name := range []string{"reason", "kind", "namespace", "cluster", "owner", "node"} {
		if value := r.get(name); value != "" {
			parts = append(parts, name+"="+value)
		}
	}
	if object := r.get("object"); object != "" {
		parts = append(parts, "name="+object)
	}
	if several := strings.Fields(r.get("namespaces")); len(several) > 0 {
		parts = append(parts, "in "+atMost(several))
	}
	return strings.Join(parts, " ")
}

// local returns a text, or the time that it is, as tables show it.
func local(text string) string {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.Local().Format(time.DateTime)
	}
	return text
}

// show shows a table as --output says. If it has no rows, it says so where messages go.
func (o *output) show(q *queryCmd, m mode, a *answer) error {
	rows, err := a.table()
	switch {
	case err != nil:
		return err
	case o.form == "csv":
		return o.csv(a.Columns, rows)
	case a.Verdict.Text != "":
		fmt.Fprintln(o, printable.OneLine(a.Verdict.Text))
	}
	switch {
	case len(rows) == 0 && a.Verdict.Text != "":
		return nil
	case len(rows) == 0:
		_, err := fmt.Fprintln(o.err, cmp.Or(m.nothing, "No events found."))
		return err
	}
	g := &grid{w: o, width: o.width, colour: o.colour}
	columns := m.columns(q, o, rows)
	for _, c := range columns {
		g.header = append(g.header, c.header)
	}
	if m.path == "histogram" { // the first row of each step stands for it
		rows = slices.CompactFunc(rows, func(a, b row) bool { return a.get("start") == b.get("start") })
	}
	var all [][]string
	for _, r := range rows {
		var cells []string
		for _, c := range columns {
			if c.made != nil {
				cells = append(cells, c.made(r))
			} else if c.name == "note" || c.name == "why" { // in which a time is a part of the text
				cells = append(cells, r.get(c.name))
			} else {
				cells = append(cells, local(r.get(c.name)))
			}
		}
		all = append(all, cells)
	}
	return g.write(all)
}

// csv writes a table as the server has it.
func (o *output) csv(columns []string, rows []row) error {
	cells := make([][]string, len(rows))
	for i, r := range rows {
		if cells[i] = r.cells; !o.plain { // a terminal must not see control characters
			clean(cells[i])
		}
	}
	if o.safe {
		query.EscapeFormulas(cells)
	}
	w := csv.NewWriter(o)
	_ = w.Write(columns) // WriteAll returns its error
	return w.WriteAll(cells)
}

// clean makes cells harmless for a terminal.
func clean(cells []string) {
	for i := range cells {
		cells[i] = printable.OneLine(cells[i])
	}
}
