package ctl

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// answer is an answer of /query/v1, of any of its paths, with the rows of all pages that were read. It keeps every
// member, so that it can be passed on as it came.
type answer struct {
	Range struct{ From, To time.Time }
	// HistoryFrom is when the first observation was made that the server still knows.
	HistoryFrom time.Time
	Gaps        []struct {
		From, To time.Time
		Cluster  string
	}
	Late []struct { // mirrors
		From    time.Time
		Cluster string
	}
	Dropped []struct { // by rules of mirrors
		From, To      time.Time
		Cluster, Rule string
		Count         int64
	}
	Namespaces    []string // to which the answer is restricted, by the rights of the caller or by the question
	Clusters      []string // to which it is restricted by the rights of the caller
	Scope         string   // what a question for changes in some namespaces looked at
	Partial       bool
	PartialReason string
	Hints         []string
	Continue      string
	Total         int64
	Verdict       struct{ Text string } // of changes
	Columns       []string              // of a table

	Whole map[string]json.RawMessage `json:"-"` // every member as it came
	list  string                     // the member that has the rows
	rows  []json.RawMessage
}

const (
	// mediaTable is the media type of a table: an answer whose rows are those of its CSV.
	mediaTable = "application/vnd.tidings.table+json"
	// tableRows is the member of a table that has its rows.
	tableRows = "rows"
)

// UnmarshalJSON keeps every member besides those that are shown.
func (a *answer) UnmarshalJSON(text []byte) error {
	type members answer // without this method
	if err := json.Unmarshal(text, (*members)(a)); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &a.Whole); err != nil {
		return err
	}
	if a.Whole["range"] == nil {
		return fmt.Errorf("the answer has no range")
	}
	if rows := a.Whole[a.list]; rows != nil {
		return json.Unmarshal(rows, &a.rows)
	}
	return nil
}

// count returns how many rows there are so far; a is nil before the first page.
func (a *answer) count() int {
	if a == nil {
		return 0
	}
	return len(a.rows)
}

// table returns the rows of a table.
func (a *answer) table() ([]row, error) {
	at := map[string]int{}
	for i, name := range a.Columns {
		at[name] = i
	}
	all := make([]row, len(a.rows))
	for i, raw := range a.rows {
		all[i].at = at
		if err := json.Unmarshal(raw, &all[i].cells); err != nil || len(all[i].cells) != len(a.Columns) {
			return nil, fmt.Errorf("the server sent a row that cannot be read: %.200s", raw)
		}
	}
	return all, nil
}

// row is a row of a table.
type row struct {
	at    map[string]int // the places of the columns
	cells []string
}

// get returns a cell, which is empty if the table has no such column.
func (r row) get(column string) string {
	if i, ok := r.at[column]; ok {
		return r.cells[i]
	}
	return ""
}

// with adds the next page, or returns it if it is the first.
func (a *answer) with(page *answer) *answer {
	if a == nil {
		return page
	}
	a.rows = append(a.rows, page.rows...)
	a.Continue, a.Whole["continue"] = page.Continue, page.Whole["continue"]
	if page.Continue == "" {
		delete(a.Whole, "continue")
	}
	if page.Partial && !a.Partial {
		a.Partial, a.PartialReason = true, page.PartialReason
		a.Whole["partial"], a.Whole["partialReason"] = page.Whole["partial"], page.Whole["partialReason"]
	}
	if a.Dropped == nil && page.Dropped != nil { // the others are of the same range
		a.Dropped, a.Whole["dropped"] = page.Dropped, page.Whole["dropped"]
	}
	for _, gap := range page.Gaps {
		if !slices.Contains(a.Gaps, gap) {
			a.Gaps = append(a.Gaps, gap)
		}
	}
	a.Whole[a.list], _ = json.Marshal(a.rows) // they were read from JSON: no error
	return a
}

// maxNamed is how many gaps or namespaces a notice names.
const maxNamed = 5

// notices returns what a reader has to know of the answer, each on one line. Asked says that namespaces were asked for.
func (a *answer) notices(asked bool) (lines []string) {
	if a.Partial {
		lines = append(lines, "the answer is not complete: "+a.PartialReason)
	}
	lines = append(lines, a.Hints...)
	if a.Scope != "" {
		lines = append(lines, "looked at "+a.Scope)
	}
	if len(a.Namespaces) > 0 && !asked {
		lines = append(lines, "only what you may list is shown: namespaces "+atMost(a.Namespaces))
	}
	if len(a.Clusters) > 0 {
		lines = append(lines, "only what you may list is shown: clusters "+atMost(a.Clusters))
	}
	var gaps []string
	for _, gap := range a.Gaps {
		gaps = append(gaps, strings.TrimPrefix(gap.Cluster+" ", " ")+"from "+gap.From.Local().Format(time.DateTime)+" to "+gap.To.Local().Format(time.DateTime))
	}
	if len(gaps) > 0 {
		lines = append(lines, "events may be missing, because the mirror was away: "+atMost(gaps))
	}
	var late []string
	for _, l := range a.Late {
		late = append(late, l.Cluster+" since "+l.From.Local().Format(time.DateTime))
	}
	if len(late) > 0 {
		lines = append(lines, "what is newest may be missing, because a mirror is late: "+atMost(late))
	}
	var dropped []string
	for _, d := range a.Dropped {
		dropped = append(dropped, fmt.Sprintf("%d by %s%s", d.Count, d.Rule, strings.TrimSuffix(" of "+d.Cluster, " of ")))
	}
	if len(dropped) > 0 {
		lines = append(lines, "rules of the mirror dropped changes of events in these hours: "+atMost(dropped))
	}
	if a.Continue != "" {
		lines = append(lines, fmt.Sprintf("there are more than these %d: --limit sets how many are shown", a.count()))
	}
	return lines
}

// atMost names the first of many.
func atMost(all []string) string {
	if len(all) <= maxNamed {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNamed], ", "), len(all)-maxNamed)
}
