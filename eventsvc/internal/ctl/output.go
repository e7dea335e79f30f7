package ctl

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/yaml"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/printable"
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

func decodeAll(items []json.RawMessage) ([]seen, error) {
	events := make([]seen, len(items))
	for i, item := range items {
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
	object = printable.JSON(object)
	if output == "ndjson" {
		out.Write(bytes.TrimSpace(object))
	} else if err := json.Indent(out, object, "", "  "); err != nil {
		return err
	}
	return out.WriteByte('\n')
}

// jsonList writes events as the items of one list, in JSON or YAML, or, for ndjson, each on a line.
type jsonList struct {
	w              *bufio.Writer
	domain, output string
	separator      string // before the next item
}

func newJSONList(w io.Writer, domain, output string) *jsonList {
	l := &jsonList{w: bufio.NewWriterSize(w, 64<<10), domain: domain, output: output}
	switch output {
	case "yaml":
		fmt.Fprintf(l.w, "apiVersion: events.%s/v1\nkind: EventList\nitems:", domain)
	case "json":
		fmt.Fprintf(l.w, "{\n  \"kind\": \"EventList\",\n  \"apiVersion\": \"events.%s/v1\",\n  \"items\": [", domain)
	}
	return l
}

func (l *jsonList) add(s seen) error {
	var text bytes.Buffer
	var err error
	switch l.output {
	case "ndjson":
		err = writeJSON(&text, l.output, s.object(l.domain))
	case "yaml":
		l.separator = "\n"
		err = writeYAML(&text, s.object(l.domain))
	default:
		text.WriteString(l.separator + "\n    ")
		l.separator = ","
		err = json.Indent(&text, printable.JSON(s.object(l.domain)), "    ", "  ")
	}
	if err == nil {
		_, err = l.w.Write(text.Bytes())
	}
	return err
}

// writeYAML writes an object as an item of a list. One whose text could change what a terminal shows is written as
// JSON, which is YAML too, with escapes.
func writeYAML(out *bytes.Buffer, object []byte) error {
	text, err := yaml.JSONToYAML(object)
	if err != nil {
		return err
	}
	block := strings.TrimSuffix(string(text), "\n")
	if printable.Lines(block) != block {
		block = string(bytes.TrimSpace(printable.JSON(object)))
	}
	out.WriteString("\n- " + strings.ReplaceAll(block, "\n", "\n  "))
	return nil
}

func (l *jsonList) end() error {
	after := ""
	switch {
	case l.output == "ndjson":
	case l.output == "yaml" && l.separator == "":
		after = " []\n"
	case l.output == "yaml":
		after = "\n"
	case l.separator == "":
		after = "]\n}\n"
	default:
		after = "\n  ]\n}\n"
	}
	_, _ = l.w.WriteString(after) // Flush returns its error
	return l.w.Flush()
}

// grid writes aligned rows, and makes their text harmless for a terminal. The last column is the longest: it is cut at
// the width of the terminal.
type grid struct {
	w      io.Writer
	header []string
	width  int // of the terminal; 0: nothing is cut
	colour bool
	widths []int // of the columns; nil: the header is not written yet
}

// write writes rows, after the header if they are the first. Columns only become wider, so that later rows stay
// aligned.
func (g *grid) write(rows [][]string) error {
	var all [][]string
	if g.widths == nil {
		all, g.widths = append(all, g.header), make([]int, len(g.header))
	}
	for _, cells := range rows {
		clean(cells)
		for i := range cells {
			cells[i] = cmp.Or(cells[i], "-")
		}
	}
	all = append(all, rows...)
	for _, cells := range all {
		for i, cell := range cells {
			g.widths[i] = max(g.widths[i], terminal.Columns(cell))
		}
	}
	var out bytes.Buffer
	for _, cells := range all {
		g.row(&out, cells)
	}
	_, err := g.w.Write(out.Bytes())
	return err
}

func (g *grid) row(out *bytes.Buffer, cells []string) {
	used := 0
	last := len(cells) - 1
	for i, cell := range cells[:last] {
		text := terminal.Pad(cell, g.widths[i]) + "   "
		used += terminal.Columns(text)
		if g.colour && cell == corev1.EventTypeWarning {
			text = terminal.Warning + cell + terminal.Off + text[len(cell):]
		}
		out.WriteString(text)
	}
	note := cells[last]
	if g.width > 0 {
		note = terminal.Cut(note, max(g.width-used, minNote))
	}
	out.WriteString(note + "\n")
}

// minNote is the shortest width to which a note is cut, even if the line is then too long.
const minNote = 20

// table writes events as rows, the note last.
type table struct {
	grid
	namespaces bool // with a namespace column
	times      bool // with times instead of ages, for output that stays on the screen
}

func newTable(w io.Writer, namespaces, times, wide bool) *table {
	t := &table{namespaces: namespaces, times: times}
	t.grid = grid{w: w, colour: terminal.Colourful(w), width: terminal.Width(w), header: []string{
		"LAST SEEN", "NAMESPACE", "TYPE", "REASON", "OBJECT", "COUNT", "NOTE",
	}}
	if wide {
		t.width = 0
	}
	if times {
		t.header[0] = "TIME"
	}
	if !namespaces {
		t.header = slices.Delete(t.header, 1, 2)
	}
	return t
}

// cells returns the cells of an event.
func (t *table) cells(ev *eventsv1.Event, now time.Time) []string {
	last := lastSeen(ev)
	when := event.Age(last, now)
	if t.times && !last.IsZero() {
		when = last.Local().Format(time.DateTime)
	}
	object := event.ObjectName(ev.Regarding.Kind, ev.Regarding.Name)
	cells := []string{when, ev.Namespace, ev.Type, ev.Reason, object, fmt.Sprint(event.OccurrenceOf(ev).Count), ev.Note}
	if !t.namespaces {
		cells = slices.Delete(cells, 1, 2)
	}
	return cells
}

// rows writes events.
func (t *table) rows(events []seen) error {
	now := time.Now()
	all := make([][]string, len(events))
	for i, s := range events {
		all[i] = t.cells(s.event, now)
	}
	return t.write(all)
}
