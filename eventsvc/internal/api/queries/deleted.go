package queries

import (
	"context"
	"slices"
	"strconv"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/query"
)

type deletedAnswer struct {
	head
	Continue string `json:"continue,omitempty"`
	Total    *int   `json:"total,omitempty"` // of all pages, if this is the only one
}

// deletion is an event that somebody has deleted, without the event. An import reads it, so it has what an export has
// beside the event.
type deletion struct {
	Time     string        `json:"time"`
	Revision string        `json:"revision"` // of the deletion
	By       codec.Deleter `json:"by"`
	Believed *bool         `json:"believed,omitempty"` // false: the server does not believe what it seems to report of a mirror
	Source   uint64        `json:"source,omitempty"`   // the version that it had elsewhere
}

// answerDeleted tells what somebody has deleted.
func answerDeleted(ctx context.Context, r *request) (*answer, error) {
	found, next, err := r.shot.Deleted(ctx, query.ObjectPage{Page: query.Page{After: r.place()}, Limit: r.limit, Bytes: pageBytes})
	if err != nil {
		return nil, err
	}
	out := deletedAnswer{head: r.head(), Continue: r.behind(next)}
	items := make([]deletion, len(found))
	versions := make([]query.Happened, len(found))
	for i := range found {
		f, item := &found[i], &items[i]
		versions[i] = query.Happened{Record: f.Record, At: f.At, Count: countOf(f.Attributes)}
		*item = deletion{Time: stamp(f.At.Time), Revision: strconv.FormatUint(f.Revision, 10), Source: f.Attributes.Version()}
		if f.Attributes.ClaimsReport() && !f.Attributes.Believed() {
			item.Believed = new(bool)
		}
		if item.By, err = codec.DeleterOf(f.By); err != nil {
			return nil, err
		}
	}
	if r.cursor == nil && out.Continue == "" {
		out.Total = new(len(found))
	}
	columns := append(slices.Clip(eventColumns), "user", "client", "audit")
	columns[0] = "deleted"
	return &answer{
		json: out, columns: columns, next: out.Continue,
		lists: []elements{{"items", len(items), func(b []byte, i int) ([]byte, error) {
			return r.appendWith(b, items[i], "event", found[i].Record.View())
		}}},
		rows: func(row func([]string) error) error {
			return r.eventRows(versions, func(i int, cells []string) error {
				by := &items[i].By
				return row(append(cells, by.User, by.Client, by.Audit))
			})
		},
		behind: func(row int) string { return r.after(found[row].At) },
	}, nil
}
