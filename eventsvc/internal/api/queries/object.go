package queries

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"tidings.example/eventsvc/internal/query"
)

type objectAnswer struct {
	head
	Items    []happened `json:"items"`
	Continue string     `json:"continue,omitempty"`
}

// happened is one version of an event about the object, or its deletion.
type happened struct {
	Time     string          `json:"time"` // of the last observation, or of the deletion
	Revision string          `json:"revision"`
	Count    int64           `json:"count"` // of the observations so far
	Deleted  bool            `json:"deleted,omitempty"`
	Event    json.RawMessage `json:"event"`
}

// subject returns the object that is asked for.
func (r *request) subject() query.Subject {
	return query.Subject{UID: r.given.Get("uid"), Kind: r.given.Get("kind"), Name: r.given.Get("name")}
}

// answerObject tells the life of one object.
func answerObject(ctx context.Context, r *request) (*answer, error) {
	found, next, err := r.shot.Object(ctx, r.subject(), query.ObjectPage{
		Page: query.Page{OldestFirst: r.order == query.Oldest, After: r.place()}, Limit: r.limit, Bytes: pageBytes,
	})
	if err != nil {
		return nil, err
	}
	if err := r.hint(ctx, len(found) == 0 && !next.More); err != nil {
		return nil, err
	}
	out := objectAnswer{head: r.head(), Items: make([]happened, len(found)), Continue: r.behind(next)}
	for i := range found {
		f := &found[i]
		out.Items[i] = happened{Time: stamp(f.At.Time), Revision: strconv.FormatUint(f.Revision, 10), Count: f.Count, Deleted: f.Deleted}
		if out.Items[i].Event, err = r.render(f.View()); err != nil {
			return nil, err
		}
	}
	columns := append(slices.Clip(eventColumns), "deleted")
	return &answer{json: out, columns: columns, next: out.Continue, rows: func() ([][]string, error) {
		lines, err := r.eventTable(found)
		for i := range lines {
			lines[i] = append(lines[i], strconv.FormatBool(found[i].Deleted))
		}
		return lines, err
	}, behind: func(row int) string { return r.after(found[row].At) }}, nil
}
