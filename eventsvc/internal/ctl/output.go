package ctl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/terminal"
)

// seen is an event, with its JSON as the server sent it.
type seen struct {
	event *eventsv1.Event
	raw   json.RawMessage
}

func decode(raw json.RawMessage) (seen, error) {
	var ev eventsv1.Event
	if err := json.Unmarshal(raw, &ev); err != nil {
		return seen{}, fmt.Errorf("the server sent what is no event: %w", err)
	}
	return seen{event: &ev, raw: raw}, nil
}

func decodePage(page *client.Page) ([]seen, error) {
	events := make([]seen, len(page.Items))
	for i, item := range page.Items {
		var err error
		if events[i], err = decode(item); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// object returns the event's JSON with kind and apiVersion, which items of a list lack.
func (s seen) object(groupDomain string) []byte {
	if s.event.Kind != "" {
		return s.raw
	}
	head := fmt.Sprintf(`{"kind":"Event","apiVersion":"events.%s/v1",`, groupDomain)
	return append([]byte(head), bytes.TrimPrefix(bytes.TrimSpace(s.raw), []byte("{"))...)
}

// writeJSON writes an object as --output says: json is indented, ndjson is one line.
func writeJSON(out *bytes.Buffer, output string, object []byte) error {
	if output == "ndjson" {
		out.Write(bytes.TrimSpace(object))
	} else if err := json.Indent(out, object, "", "  "); err != nil {
		return err
	}
	return out.WriteByte('\n')
}

// jsonList writes events as the items of one list or, for ndjson, each on a line.
type jsonList struct {
	w              *bufio.Writer
	domain, output string
	separator      string // before the next item
}

func newJSONList(w io.Writer, domain, output string) *jsonList {
	l := &jsonList{w: bufio.NewWriterSize(w, 64<<10), domain: domain, output: output}
	if output == "json" {
		fmt.Fprintf(l.w, "{\n  \"kind\": \"EventList\",\n  \"apiVersion\": \"events.%s/v1\",\n  \"items\": [", domain)
	}
	return l
}

func (l *jsonList) add(s seen) error {
	var text bytes.Buffer
	var err error
	if l.output == "ndjson" {
		err = writeJSON(&text, l.output, s.object(l.domain))
	} else {
		text.WriteString(l.separator + "\n    ")
		l.separator = ","
		err = json.Indent(&text, s.object(l.domain), "    ", "  ")
	}
	if err == nil {
		_, err = l.w.Write(text.Bytes())
	}
	return err
}

func (l *jsonList) end() error {
	after := ""
	switch {
	case l.output == "ndjson":
	case l.separator == "":
		after = "]\n}\n"
	default:
		after = "\n  ]\n}\n"
	}
	_, _ = l.w.WriteString(after) // Flush returns its error
	return l.w.Flush()
}

// table writes events as aligned rows, the note last because it is the longest.
type table struct {
	w          io.Writer
	namespaces bool // with a namespace column
	times      bool // with times instead of ages, for output that stays on the screen
	width      int  // of the terminal, at which notes are cut; 0: not cut
	colour     bool
	widths     []int
	began      bool
}

func newTable(w io.Writer, namespaces, times, wide bool) *table {
	t := &table{w: w, namespaces: namespaces, times: times, colour: terminal.Colourful(w), width: terminal.Width(w)}
	if wide {
		t.width = 0
	}
	return t
}

// The columns. That of the namespace is optional.
var tableHeader = []string{"LAST SEEN", "NAMESPACE", "TYPE", "REASON", "OBJECT", "COUNT", "NOTE"}

// The colours of types (ECMA-48). Other types have none.
const colourWarning, colourOff = "\x1b[33m", "\x1b[0m"

// cells returns the cells of an event.
func (t *table) cells(ev *eventsv1.Event, now time.Time) []string {
	last := lastSeen(ev)
	when := "<unknown>"
	switch {
	case last.IsZero():
	case t.times:
		when = last.Local().Format(time.DateTime)
	default:
		when = duration.HumanDuration(now.Sub(last))
	}
	object := strings.ToLower(ev.Regarding.Kind)
	if ev.Regarding.Name != "" {
		object += "/" + ev.Regarding.Name
	}
	cells := []string{when, ev.Namespace, ev.Type, ev.Reason, object, fmt.Sprint(occurrences(ev)), ev.Note}
	if !t.namespaces {
		cells = slices.Delete(cells, 1, 2)
	}
	for i := range cells {
		if cells[i] = terminal.OneLine(cells[i]); cells[i] == "" {
			cells[i] = "-"
		}
	}
	return cells
}

// rows writes events, after a header if they are the first. Columns only become wider, so that later rows stay aligned.
func (t *table) rows(events []seen) error {
	now := time.Now()
	var all [][]string
	if !t.began {
		header := slices.Clone(tableHeader)
		if t.times {
			header[0] = "TIME"
		}
		if !t.namespaces {
			header = slices.Delete(header, 1, 2)
		}
		all, t.began, t.widths = append(all, header), true, make([]int, len(header))
	}
	for _, s := range events {
		all = append(all, t.cells(s.event, now))
	}
	for _, cells := range all {
		for i, cell := range cells {
			t.widths[i] = max(t.widths[i], terminal.Columns(cell))
		}
	}
	var out bytes.Buffer
	for _, cells := range all {
		t.row(&out, cells)
	}
	_, err := t.w.Write(out.Bytes())
	return err
}

func (t *table) row(out *bytes.Buffer, cells []string) {
	used := 0
	last := len(cells) - 1
	for i, cell := range cells[:last] {
		text := terminal.Pad(cell, t.widths[i]) + "   "
		used += terminal.Columns(text)
		if t.colour && cell == "Warning" {
			text = colourWarning + cell + colourOff + text[len(cell):]
		}
		out.WriteString(text)
	}
	note := cells[last]
	if t.width > 0 {
		note = terminal.Cut(note, max(t.width-used, minNote))
	}
	out.WriteString(note + "\n")
}

// minNote is the shortest width to which a note is cut, even if the line is then too long.
const minNote = 20
