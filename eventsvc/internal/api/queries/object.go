package queries

import (
	"context"
	"slices"
	"strconv"
	"time"

	"tidings.example/eventsvc/internal/query"
)

type objectAnswer struct {
	head
	Series   []came `json:"series,omitempty"` // on the first page
	Continue string `json:"continue,omitempty"`
}

// came is how a reason came to an object in the whole range.
type came struct {
	Reason string      `json:"reason"`
	Type   string      `json:"type"`
	Count  int64       `json:"count"`
	First  string      `json:"first"`
	Last   string      `json:"last"`
	Every  int64       `json:"every,omitempty"`
	State  query.State `json:"state"`
}

// series says how each reason came to an object.
func (r *request) series(all []query.Series) (out []came) {
	at := func(second int64) string { return stamp(time.Unix(second, 0)) }
	for _, s := range all {
		out = append(out, came{s.Reason, s.Type, s.Count, at(s.First), at(s.Last), int64(s.Every().Seconds()), s.At(r.shot.To)})
	}
	return out
}

// happened is one version of an event about the object, or its deletion, without the event.
type happened struct {
	Time     string `json:"time"` // of the last observation, or of the deletion
	Revision string `json:"revision"`
	Count    int64  `json:"count"` // of the observations so far
	Deleted  bool   `json:"deleted,omitempty"`
}

// subject returns the object that is asked for.
func (r *request) subject() query.Subject {
	return query.Subject{UID: r.given.Get("uid"), Kind: r.given.Get("kind"), Name: r.given.Get("name")}
}

// answerObject tells the life of one object.
func answerObject(ctx context.Context, r *request) (*answer, error) {
	life, err := r.shot.Object(ctx, r.subject(), query.ObjectPage{
		Page: query.Page{OldestFirst: r.order == query.Oldest, After: r.place()}, Limit: r.limit, Bytes: pageBytes,
	})
	if err != nil {
		return nil, err
	}
	found, next := life.Happened, life.Next
	if err := r.hint(ctx, len(found) == 0 && !next.More); err != nil {
		return nil, err
	}
	out := objectAnswer{head: r.head(), Continue: r.behind(next)}
	if r.cursor == nil {
		out.Series = r.series(life.Series)
	}
	return &answer{
		json: out, columns: append(slices.Clip(eventColumns), "deleted"), next: out.Continue,
		lists: []elements{{"items", len(found), func(b []byte, i int) ([]byte, error) {
			f := &found[i]
			return r.appendWith(b, happened{Time: stamp(f.At.Time), Revision: strconv.FormatUint(f.Revision, 10), Count: f.Count, Deleted: f.Deleted}, "event", f.View())
		}}},
		rows: func(row func([]string) error) error {
			return r.eventRows(found, func(i int, cells []string) error { return row(append(cells, strconv.FormatBool(found[i].Deleted))) })
		},
		behind: func(row int) string { return r.after(found[row].At) },
	}, nil
}
