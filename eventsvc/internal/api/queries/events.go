package queries

import (
	"bytes"
	"context"
	"strconv"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

// pageBytes is the size at which a page of events ends. Its events and their text take the
// room of a question.
const pageBytes = flow.Question / 2

type eventsAnswer struct {
	head
	Continue string `json:"continue,omitempty"`
	Total    *int   `json:"total,omitempty"` // of all pages, if this is the only one
}

// answerEvents lists the events of a range.
func answerEvents(ctx context.Context, r *request) (*answer, error) {
	var rows []query.Happened
	size := 0
	next, err := r.shot.Events(ctx, query.Page{OldestFirst: r.order == query.Oldest, After: r.place(), Limit: r.limit}, func(v *store.View, at store.Moment) bool {
		rows = append(rows, query.Happened{Record: v.Clone(), At: at, Count: countOf(v.Attributes)})
		size += len(v.Value)
		return len(rows) < r.limit && size < pageBytes
	})
	if err != nil {
		return nil, err
	}
	if err := r.hint(ctx, len(rows) == 0 && !next.More); err != nil {
		return nil, err
	}
	out := eventsAnswer{head: r.head(), Continue: r.behind(next)}
	if r.cursor == nil && out.Continue == "" {
		out.Total = new(len(rows))
	}
	return &answer{
		json: out, lists: []elements{r.eventList(rows)}, columns: eventColumns, next: out.Continue,
		rows: func(row func([]string) error) error {
			return r.eventRows(rows, func(_ int, cells []string) error { return row(cells) })
		},
		behind: func(row int) string { return r.after(rows[row].At) },
	}, nil
}

// eventList lists events.
func (r *request) eventList(rows []query.Happened) elements {
	return elements{"items", len(rows), func(b []byte, i int) ([]byte, error) {
		b, err := r.render(b, rows[i].View())
		return bytes.TrimSuffix(b, []byte("\n")), err
	}}
}

// countOf returns how often an event was observed in all.
func countOf(a event.Attributes) int64 {
	if o, ok := a.Occurrence(); ok {
		return o.Count
	}
	return 1
}

// eventColumns are the columns of versions of events.
var eventColumns = []string{
	"observed", "type", "reason", "kind", "object_namespace", "object", "uid", "note", "count", "namespace", "name", "reporter", "cluster", "owner", "node", "revision",
}

// eventRows calls row with the row of each version of an event.
func (r *request) eventRows(rows []query.Happened, row func(i int, cells []string) error) error {
	for i := range rows {
		in := &rows[i]
		ev, err := r.Codec.Event(in.View())
		if err != nil {
			return err
		}
		d, o := event.DimensionsOf(in.Namespace, in.Attributes), &ev.Regarding
		if err := row(i, []string{
			stamp(in.At.Time), ev.Type, ev.Reason, o.Kind, o.Namespace, o.Name, string(o.UID), ev.Note, strconv.FormatInt(in.Count, 10),
			ev.Namespace, ev.Name, d.Reporter, d.Cluster, d.Owner, d.Node, strconv.FormatUint(in.Revision, 10),
		}); err != nil {
			return err
		}
	}
	return nil
}
