package ctl

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/event"
)

// Completion asks a server for the values of dimensions, as a user waits.
const (
	completeWait  = time.Second
	completeRange = "-7d"
	completeMost  = "200"
)

// plainValue is a value that shells take as it is.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/@%+-]*$`)

// seenValues returns the values of a dimension that the server has seen of late, the most frequent first; none if it
// cannot be asked, or not quickly.
func (a *access) seenValues(dimension string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completeWait)
	defer cancel()
	c, _, err := a.open()
	if err != nil {
		return nil
	}
	p := url.Values{"by": {dimension}, "from": {completeRange}, "limit": {completeMost}}
	found, err := fetch(ctx, c, "facets", tableRows, p)
	if err != nil {
		return nil
	}
	rows, _ := found.table() // none if it cannot be read
	var values []string
	for _, r := range rows {
		if value := r.get("value"); r.get("dimension") == dimension && plainValue.MatchString(value) {
			values = append(values, value)
		}
	}
	return values
}

// Complete returns candidates for a term, or for the value of a setting.
func (q *queryCmd) Complete(setting, last string) []string {
	switch setting {
	case "":
		name, value, ok := strings.Cut(last, "=")
		if !ok {
			return wrapped("", append(slices.Clip(shortFields), "regarding.namespace"), "=")
		}
		field := strings.TrimSuffix(name, "!")
		if !slices.Contains(facetOrder, field) || strings.HasPrefix(value, "=") {
			return nil
		}
		return wrapped(name+"=", q.seenValues(field), "")
	case "namespace":
		return listed(last, q.seenValues("namespace"))
	case "group-by":
		return listed(last, append(slices.Clip(facetOrder), event.PatternDimension, objectDimension))
	case "by":
		return listed(last, append(slices.Clip(facetOrder), event.PatternDimension))
	case "order":
		return []string{"newest", "oldest", "count"}
	}
	return nil
}

// Complete returns candidates for the value of a setting.
func (f *filters) Complete(setting, _ string) []string {
	switch setting {
	case "namespace", "type", "reason":
		return f.seenValues(setting)
	case "reporting-controller":
		return f.seenValues("reporter")
	case "regarding":
		return wrapped("", f.seenValues("kind"), "/")
	}
	return nil
}

// wrapped puts each value wrapped a prefix and a suffix.
func wrapped(prefix string, values []string, suffix string) []string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = prefix + value + suffix
	}
	return all
}

// listed returns candidates for the last of values that are separated by commas.
func listed(last string, values []string) []string {
	return wrapped(last[:strings.LastIndex(last, ",")+1], values, "")
}
