package queries

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/query"
)

type deletedAnswer struct {
	head
	Items    []deletion `json:"items"`
	Continue string     `json:"continue,omitempty"`
	Total    *int       `json:"total,omitempty"` // of all pages, if this is the only one
}

// deletion is an event that somebody has deleted. An import reads it, so it has what an export has beside the event.
type deletion struct {
	Time     string          `json:"time"`
	Revision string          `json:"revision"` // of the deletion
	By       codec.Deleter   `json:"by"`
	Believed *bool           `json:"believed,omitempty"` // false: the server does not believe what it seems to report of a mirror
	Source   uint64          `json:"source,omitempty"`   // the version that it had elsewhere
	Event    json.RawMessage `json:"event"`
}

// answerDeleted tells what somebody has deleted.
func answerDeleted(ctx context.Context, r *request) (*answer, error) {
	found, next, err := r.shot.Deleted(ctx, query.ObjectPage{Page: query.Page{After: r.place()}, Limit: r.limit, Bytes: pageBytes})
	if err != nil {
		return nil, err
	}
	out := deletedAnswer{head: r.head(), Items: make([]deletion, len(found)), Continue: r.behind(next)}
	versions := make([]query.Happened, len(found))
	for i := range found {
		f, item := &found[i], &out.Items[i]
		versions[i] = query.Happened{Record: f.Record, At: f.At, Count: countOf(f.Attributes)}
		*item = deletion{Time: stamp(f.At.Time), Revision: strconv.FormatUint(f.Revision, 10), Source: f.Attributes.Version()}
		if f.Attributes.ClaimsReport() && !f.Attributes.Believed() {
			item.Believed = new(bool)
		}
		if item.By, err = codec.DeleterOf(f.By); err != nil {
			return nil, err
		}
		if item.Event, err = r.render(f.Record.View()); err != nil {
			return nil, err
		}
	}
	if r.cursor == nil && out.Continue == "" {
		out.Total = new(len(found))
	}
	columns := append(slices.Clip(eventColumns), "user", "client", "audit")
	columns[0] = "deleted"
	return &answer{json: out, columns: columns, next: out.Continue, rows: func() ([][]string, error) {
		lines, err := r.eventTable(versions)
		for i := range lines {
			by := &out.Items[i].By
			lines[i] = append(lines[i], by.User, by.Client, by.Audit)
		}
		return lines, err
	}, behind: func(row int) string { return r.after(found[row].At) }}, nil
}
