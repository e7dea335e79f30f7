package ctl

import (
	"cmp"
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

	Items   []json.RawMessage // events, versions of an object, or clusters
	Groups  []json.RawMessage // group
	Changes []json.RawMessage // change
	Verdict struct{ Text string }
	Facets  map[string][]valueCount
	Other   map[string]int64
	Buckets []bucket
	Total   int64

	Whole map[string]json.RawMessage `json:"-"` // every member as it came
}

// valueCount is a value of a dimension.
type valueCount struct {
	Value string
	Count int64
}

// bucket is a step of a histogram that is not empty.
type bucket struct {
	Start  time.Time
	Count  int64
	Counts json.RawMessage // by values: objects in objects, as deep as there are dimensions
	Other  int64
}

// group is what has the same values of some dimensions.
type group struct {
	By          map[string]json.RawMessage
	Count       int64
	First, Last time.Time
	State       string
	Events      string // path of the events
	Sample      json.RawMessage
}

// change is something that is different from before.
type change struct {
	By         map[string]string
	Object     string
	Namespaces []string // if there are several
	Kind       string
	Now        int64
	Before     float64
	Score      float64
	First      time.Time
	Last       time.Time
	State      string
	Why        string
	Statistics string // what the score is made of
	Events     string // path of the events
	Sample     json.RawMessage
}

// version is a version of an event about an object, or its deletion.
type version struct {
	Time    time.Time
	Deleted bool
	By      struct{ User, Client, Audit string } // who deleted it
	Event   json.RawMessage
}

// mirrored says how far a cluster is copied.
type mirrored struct {
	Name                     string
	CompleteUntil, LastEvent time.Time
	Lag                      int64 // seconds since it was complete
	Gaps                     int   // in the range
	Mirror                   string
}

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
	return nil
}

// rowsOf returns the rows of an answer with pages, and the name of the member that has them.
func (a *answer) rowsOf() (name string, rows *[]json.RawMessage) {
	switch {
	case a.Whole["groups"] != nil:
		return "groups", &a.Groups
	case a.Whole["changes"] != nil:
		return "changes", &a.Changes
	}
	return "items", &a.Items
}

// rows returns how many there are so far; a is nil before the first page.
func (a *answer) rows() int {
	if a == nil {
		return 0
	}
	_, rows := a.rowsOf()
	return len(*rows)
}

// with adds the next page, or returns it if it is the first.
func (a *answer) with(page *answer) *answer {
	if a == nil {
		return page
	}
	name, rows := a.rowsOf()
	_, more := page.rowsOf()
	*rows = append(*rows, *more...)
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
	a.Whole[name], _ = json.Marshal(*rows) // they were read from JSON: no error
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
	var dropped []string
	for _, d := range a.Dropped {
		dropped = append(dropped, fmt.Sprintf("%d by %s%s", d.Count, d.Rule, strings.TrimSuffix(" of "+d.Cluster, " of ")))
	}
	if len(dropped) > 0 {
		lines = append(lines, "rules of the mirror dropped changes of events in these hours: "+atMost(dropped))
	}
	if a.Continue != "" {
		lines = append(lines, fmt.Sprintf("there are more than these %d: --limit sets how many are shown", a.rows()))
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

// decodeRows decodes rows of an answer.
func decodeRows[T any](rows []json.RawMessage) ([]T, error) {
	all := make([]T, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row, &all[i]); err != nil {
			return nil, fmt.Errorf("the server sent a row that cannot be read: %w", err)
		}
	}
	return all, nil
}

// valueOf returns the value of a dimension for people: a text, or an object.
func valueOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var object struct{ Kind, Namespace, Name string }
	if json.Unmarshal(raw, &object) == nil && object.Kind+object.Name != "" {
		text = strings.ToLower(object.Kind)
		if object.Name != "" {
			text += "/" + object.Name
		}
		if object.Namespace != "" {
			text = object.Namespace + "/" + text
		}
	}
	return text
}

// pathCount is a count of the values of some dimensions.
type pathCount struct {
	Path  []string
	Count int64
}

// paths returns the counts of a bucket, most frequent first.
func (b *bucket) paths() ([]pathCount, error) {
	var all []pathCount
	if err := flatten(b.Counts, nil, &all); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b pathCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), slices.Compare(a.Path, b.Path))
	})
	return all, nil
}

// text returns the counts of a bucket for people, the most frequent values first.
func (b *bucket) text() (string, error) {
	all, err := b.paths()
	var parts []string
	for _, p := range all {
		for i, value := range p.Path {
			p.Path[i] = cmp.Or(value, noValue)
		}
		parts = append(parts, fmt.Sprintf("%s %d", strings.Join(p.Path, " "), p.Count))
	}
	if b.Other > 0 {
		parts = append(parts, fmt.Sprintf("%s %d", otherValues, b.Other))
	}
	return strings.Join(parts, ", "), err
}

// otherValues stands for all values that are not named.
const otherValues = "(other)"

func flatten(raw json.RawMessage, path []string, into *[]pathCount) error {
	if len(raw) == 0 {
		return nil
	}
	var n int64
	if json.Unmarshal(raw, &n) == nil {
		*into = append(*into, pathCount{path, n})
		return nil
	}
	var deeper map[string]json.RawMessage
	if err := json.Unmarshal(raw, &deeper); err != nil || len(path) == maxBy {
		return fmt.Errorf("the server sent counts that cannot be read: %.100s", raw)
	}
	for value, inner := range deeper {
		if err := flatten(inner, append(slices.Clip(path), value), into); err != nil {
			return err
		}
	}
	return nil
}

// noValue stands for an empty value.
const noValue = "(none)"

// maxBy is how deep counts may be nested.
const maxBy = 10
