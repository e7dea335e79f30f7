// Package answer has what a server answers to questions of /query/v1, and draws histograms in a terminal.
//
// # Contract
//
// An [Answer] decodes from JSON, of any path of the API, and takes the rows of further pages. It keeps every member, so that it
// can be passed on as it came. [Histogram] writes text whose lines fit the terminal, without control characters of the server's.
//
// # Errors
//
// What no server that knows the API would send is an error, never a panic or a drawing.
//
// # Concurrency
//
// Values are used by one goroutine.
//
// # What it does not know
//
// Requests, flags, and what the other answers look like.
package answer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Answer is an answer to a question, of any path of the API, with the rows of all pages that were read.
type Answer struct {
	Range struct{ From, To time.Time }
	// HistoryFrom is when the first observation was made that the server still knows.
	HistoryFrom time.Time
	Gaps        []struct {
		From, To time.Time
		Cluster  string
	}
	Namespaces    []string // to which the answer is restricted, by the rights of the caller or by the question
	Partial       bool
	PartialReason string
	Continue      string

	Items   []json.RawMessage // of events: events; of object: happened
	Groups  []json.RawMessage // group
	Changes []json.RawMessage // change
	Facets  map[string][]ValueCount
	Other   map[string]int64
	Step    Span
	Buckets []Bucket
	Total   int64

	Whole map[string]json.RawMessage `json:"-"` // every member as it came
}

// ValueCount is a value of a dimension.
type ValueCount struct {
	Value string
	Count int64
}

// Bucket is a step of a histogram that is not empty.
type Bucket struct {
	Start  time.Time
	Count  int64
	Counts json.RawMessage // by values: objects in objects, as deep as there are dimensions
	Other  int64
}

// Group is what has the same values of some dimensions.
type Group struct {
	By          map[string]json.RawMessage
	Count       int64
	First, Last time.Time
	Events      string // path of the events
	Sample      json.RawMessage
}

// Change is something that is different from before.
type Change struct {
	By         map[string]string
	Object     string
	Namespaces []string // if there are several
	Kind       string
	Now        int64
	Before     float64
	Score      float64
	First      time.Time
	Why        string
	Events     string // path of the events
	Sample     json.RawMessage
}

// Happened is a version of an event about an object, or its deletion.
type Happened struct {
	Time    time.Time
	Deleted bool
	Event   json.RawMessage
}

// UnmarshalJSON keeps every member besides those that are shown.
func (a *Answer) UnmarshalJSON(text []byte) error {
	type members Answer // without this method
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
func (a *Answer) rowsOf() (name string, rows *[]json.RawMessage) {
	switch {
	case a.Whole["groups"] != nil:
		return "groups", &a.Groups
	case a.Whole["changes"] != nil:
		return "changes", &a.Changes
	}
	return "items", &a.Items
}

// Rows returns how many there are so far; a is nil before the first page.
func (a *Answer) Rows() int {
	if a == nil {
		return 0
	}
	_, rows := a.rowsOf()
	return len(*rows)
}

// With adds the next page, or returns it if it is the first.
func (a *Answer) With(page *Answer) *Answer {
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

// Notices returns what a reader has to know of the answer, each on one line. Asked says that namespaces were asked for.
func (a *Answer) Notices(asked bool) (lines []string) {
	if a.Partial {
		lines = append(lines, "the answer is not complete: "+a.PartialReason)
	}
	if len(a.Namespaces) > 0 && !asked {
		lines = append(lines, "only what you may list is shown: namespaces "+AtMost(a.Namespaces))
	}
	var gaps []string
	for _, gap := range a.Gaps {
		gaps = append(gaps, strings.TrimPrefix(gap.Cluster+" ", " ")+"from "+gap.From.Local().Format(time.DateTime)+" to "+gap.To.Local().Format(time.DateTime))
	}
	if len(gaps) > 0 {
		lines = append(lines, "events may be missing, because the mirror was away: "+AtMost(gaps))
	}
	if a.Continue != "" {
		lines = append(lines, fmt.Sprintf("there are more than these %d: --limit sets how many are shown", a.Rows()))
	}
	return lines
}

// AtMost names the first of many.
func AtMost(all []string) string {
	if len(all) <= maxNamed {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNamed], ", "), len(all)-maxNamed)
}

// DecodeRows decodes rows of an answer.
func DecodeRows[T any](rows []json.RawMessage) ([]T, error) {
	all := make([]T, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row, &all[i]); err != nil {
			return nil, fmt.Errorf("the server sent a row that cannot be read: %w", err)
		}
	}
	return all, nil
}

// ValueOf returns the value of a dimension for people: a text, or an object.
func ValueOf(raw json.RawMessage) string {
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

// PathCount is a count of the values of some dimensions.
type PathCount struct {
	Path  []string
	Count int64
}

// Paths returns the counts of a bucket, most frequent first.
func (b *Bucket) Paths() ([]PathCount, error) {
	var all []PathCount
	if err := flatten(b.Counts, nil, &all); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b PathCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), slices.Compare(a.Path, b.Path))
	})
	return all, nil
}

// counts returns the counts of a bucket by the values of its dimensions, for people.
func (b *Bucket) counts() (map[string]int64, error) {
	all, err := b.Paths()
	counts := map[string]int64{}
	for _, p := range all {
		values := make([]string, len(p.Path))
		for i := range values {
			values[i] = cmp.Or(p.Path[i], NoValue)
		}
		counts[strings.Join(values, ", ")] += p.Count
	}
	if b.Other > 0 {
		counts[OtherValues] += b.Other
	}
	return counts, err
}

// OtherValues stands for all values that are not named.
const OtherValues = "(other)"

func flatten(raw json.RawMessage, path []string, into *[]PathCount) error {
	if len(raw) == 0 {
		return nil
	}
	var n int64
	if json.Unmarshal(raw, &n) == nil {
		*into = append(*into, PathCount{path, n})
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

// NoValue stands for an empty value.
const NoValue = "(none)"

// maxBy is how deep counts may be nested.
const maxBy = 10
