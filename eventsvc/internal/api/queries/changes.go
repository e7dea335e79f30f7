package queries

import (
	"context"
	"errors"
	"strconv"
	"time"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/query/changes"
	"tidings.example/eventsvc/internal/store"
)

type changesAnswer struct {
	head
	Scope string `json:"scope,omitempty"` // what a question about some namespaces looked at
}

// change is one thing that differs from what was before, without its sample.
type change struct {
	By         map[string]string `json:"by"` // the dimensions that all its events share
	Object     string            `json:"object,omitempty"`
	Also       []string          `json:"also,omitempty"`       // reasons that came together with the one in by
	Namespaces []string          `json:"namespaces,omitempty"` // if there are several
	Kind       changes.Kind      `json:"kind"`
	Now        int64             `json:"now"`
	Before     float64           `json:"before"`
	Score      float64           `json:"score"`
	Why        string            `json:"why"`
	Statistics string            `json:"statistics"`
	First      string            `json:"first,omitempty"`
	Events     string            `json:"events"` // path of the events
}

// answerChanges ranks what changed before an instant.
func answerChanges(ctx context.Context, r *request) (*answer, error) {
	in, err := r.listable()
	if err != nil {
		return nil, err
	}
	q := changes.Query{
		At: r.shot.To, Window: r.shot.To.Sub(r.shot.From), Allows: in.Allows, Namespaces: r.asked,
		Cluster: r.given.Get("cluster"), Revision: r.shot.Revision, Limit: r.limit, Note: codec.Note,
	}
	if q.Object, err = r.shot.Written(ctx, r.subject()); err != nil {
		return nil, err
	}
	terms, err := r.terms()
	if err != nil {
		return nil, err
	}
	bySeries, others := terms.OfSeries()
	if q.Wanted = bySeries; others != nil {
		found, err := r.seriesOf(ctx, in.Allows, *others)
		if err != nil {
			return nil, err
		}
		q.Wanted = func(d event.Dimensions) bool { return bySeries(d) && found[d] }
	}
	a, err := changes.Rank(ctx, r.Timeline, q)
	if _, ok := errors.AsType[*store.ExpiredError](err); ok {
		r.shot.Partly("the state of revision %d is no longer held: what is shown is the newest one", q.Revision)
		q.Revision = 0
		a, err = changes.Rank(ctx, r.Timeline, q)
	}
	if err != nil {
		return nil, err
	}
	for _, reason := range a.Partial {
		r.shot.Partly("%s", reason)
	}
	if err := r.hint(ctx, len(a.Rows) == 0); err != nil {
		return nil, err
	}
	list := make([]change, len(a.Rows))
	for i := range a.Rows {
		list[i] = r.change(&a.Rows[i])
	}
	return &answer{
		json: changesAnswer{head: r.head(), Scope: a.Scope}, list: "changes", n: len(list), scope: a.Scope, columns: changeColumns, rows: each(changeRows(list)),
		element: func(b []byte, i int) ([]byte, error) {
			var sample *store.View
			if a.Rows[i].Sample != nil {
				sample = a.Rows[i].Sample.View()
			}
			return r.appendWith(b, list[i], "sample", sample)
		},
	}, nil
}

// maxSeries is the most series with matching events that are kept in memory.
const maxSeries = 20_000

// seriesOf returns the dimensions of the events in the window that match a search, as the rows of changes have them.
func (r *request) seriesOf(ctx context.Context, allows func(namespace, cluster string) bool, terms query.Terms) (map[event.Dimensions]bool, error) {
	shot, err := r.querier.Snapshot(ctx, query.Query{From: r.shot.From, To: r.shot.To, Revision: r.shot.Revision, Allows: allows, Terms: terms})
	if err != nil {
		return nil, err
	}
	found := map[event.Dimensions]bool{}
	next, err := shot.Events(ctx, query.Page{}, func(v *store.View, _ store.Moment) bool {
		d := event.DimensionsOf(v.Namespace, v.Attributes)
		found[event.Dimensions{Cluster: d.Cluster, Namespace: d.Namespace, Kind: d.Kind, Reason: d.Reason, Type: d.Type}] = true
		return len(found) < maxSeries
	})
	if next.More {
		r.shot.Partly("not all events of the window were compared with the search: it fits too many kinds, reasons and types, or took too long")
	}
	return found, err
}

func (r *request) change(in *changes.Change) change {
	out := change{
		By: map[string]string{}, Object: in.Object, Also: in.Also, Namespaces: in.Namespaces, Kind: in.Kind, Now: in.Now, Before: in.Before,
		Score: in.Score, Why: in.Why, Statistics: in.Statistics, Events: Path + "/events?" + in.Link.Encode(),
	}
	key := query.Key{Dimensions: in.By}
	for i, value := range key.Values(query.Indexed) {
		if value != "" {
			out.By[string(query.Indexed[i])] = value
		}
	}
	if !in.First.IsZero() {
		out.First = in.First.Format(time.RFC3339)
	}
	return out
}

var changeColumns = append(append([]string{"change"}, names(query.Indexed)...), "object", "now", "before", "score", "first", "why", "statistics", "events")

func changeRows(list []change) [][]string {
	rows := make([][]string, len(list))
	for i, c := range list {
		rows[i] = []string{string(c.Kind)}
		for _, d := range query.Indexed {
			rows[i] = append(rows[i], c.By[string(d)])
		}
		number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
		rows[i] = append(rows[i], c.Object, strconv.FormatInt(c.Now, 10), number(c.Before), number(c.Score), c.First, c.Why, c.Statistics, c.Events)
	}
	return rows
}
