package mcp

import (
	"fmt"
	"strconv"

	"tidings.example/eventsvc/internal/api/queries"
)

// line is a line of an answer.
type line struct {
	text string
	row  int // of the table, the last that is in it
}

// columns returns the places of the columns of a table.
func columns(t *queries.Table) map[string]int {
	at := map[string]int{}
	for i, name := range t.Columns {
		at[name] = i
	}
	return at
}

// rows ends a page with the head of the columns and as many lines as are asked for and fit, and says how to get those
// that follow.
func (c *call) rows(p *page, t *queries.Table, head string, lines []line) string {
	if len(lines) == 0 {
		head = "none"
	}
	p.add(head)
	n := len(lines)
	if most, err := strconv.Atoi(c.value(limitName)); err == nil {
		n = min(n, most)
	}
	size := 0
	for i := range n {
		size += len(lines[i].text) + 1
	}
	rest := c.rest(t, lines, n)
	for ; n > 1 && size+len(rest) > p.left(); rest = c.rest(t, lines, n) {
		n--
		size -= len(lines[n].text) + 1
	}
	for _, l := range lines[:n] {
		p.add(l.text)
	}
	p.add(rest)
	return p.String()
}

// rest returns the last line of an answer, which says how many lines are left out and how to ask for them. The line is
// empty if none are.
func (c *call) rest(t *queries.Table, lines []line, n int) string {
	switch {
	case n == len(lines) && t.Next == "":
		return ""
	case t.Behind == nil:
		return fmt.Sprintf("%d more: ask with detail=full, or about one namespace", len(lines)-n)
	}
	behind := t.Next
	if n < len(lines) {
		behind = t.Behind(lines[n-1].row)
	}
	if len(behind) > maxCursor {
		return "more follow, behind a name that is too long to go on from: ask about a shorter time, or about one namespace"
	}
	return `more follow: call again with the same arguments and cursor="` + behind + `"`
}

// happened begins the line of a version of an event: when, its type by one letter if it is a usual one, and its reason.
func (c *call) happened(row []string, at map[string]int) string {
	t := row[at["type"]]
	switch t {
	case "Normal", "Warning":
		t = t[:1]
	default:
		t = token(t)
	}
	return seconds(row[at["observed"]]) + " " + t + " " + token(row[at["reason"]])
}

// note is the note of a version of an event.
func (c *call) note(row []string, at map[string]int) string {
	if c.full() {
		return quote(row[at["note"]], fullNote)
	}
	return quote(row[at["note"]], usualNote)
}

// regarding is the object of a version of an event.
func regarding(row []string, at map[string]int) string {
	return token(row[at["kind"]]) + "/" + token(row[at["object_namespace"]]) + "/" + token(row[at["object"]])
}

// same reports whether a version says the same as another.
func same(a, b []string, at map[string]int) bool {
	for _, column := range []string{"type", "reason", "kind", "object_namespace", "object", "uid", "note", "deleted"} {
		if a[at[column]] != b[at[column]] {
			return false
		}
	}
	return true
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
