package queries

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/query/changes"
	"tidings.example/eventsvc/internal/store"
)

type changesAnswer struct {
	head
	Scope   string  `json:"scope,omitempty"` // what a question about some namespaces looked at
	Verdict verdict `json:"verdict"`
}

// verdict is the answer in one sentence, and its parts. If nothing differs, it has only text and state.
type verdict struct {
	Text   string            `json:"text"`
	State  query.State       `json:"state"`
	Kind   changes.Kind      `json:"kind,omitempty"`
	By     map[string]string `json:"by,omitempty"`
	Object string            `json:"object,omitempty"`
	Since  string            `json:"since,omitempty"` // the first occurrence
	Last   string            `json:"last,omitempty"`  // the last one
	Every  int64             `json:"every,omitempty"`
	Former *former           `json:"former,omitempty"`
	Events string            `json:"events,omitempty"`
	Cause  *reference        `json:"cause,omitempty"` // what came before it
}

// former is a time before at which something came as it comes now.
type former struct {
	First  string `json:"first"`
	Last   string `json:"last"`
	Count  int64  `json:"count"`
	Events string `json:"events"`
}

// reference names another change.
type reference struct {
	By     map[string]string `json:"by"`
	Object string            `json:"object,omitempty"`
	First  string            `json:"first"`
	Events string            `json:"events"`
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
	Last       string            `json:"last,omitempty"`
	Every      int64             `json:"every,omitempty"` // seconds between two occurrences, as usual
	State      query.State       `json:"state"`
	Former     *former           `json:"former,omitempty"`  // of a row that came again
	Follows    *reference        `json:"follows,omitempty"` // what came before the row
	Events     string            `json:"events"`            // path of the events
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
		q.Finds = others.Filter()
		found, err := r.seriesOf(ctx, in.Allows, *others)
		if err != nil {
			return nil, err
		}
		q.Wanted = func(d event.Dimensions) bool { return found[d] && (bySeries == nil || bySeries(d)) }
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
		list[i] = changeOf(&a.Rows[i])
	}
	return &answer{
		json:  changesAnswer{head: r.head(), Scope: a.Scope, Verdict: verdictOf(&a.Verdict)},
		scope: a.Scope, verdict: a.Verdict.Text, columns: changeColumns, rows: each(changeRows(list, a.Rows)),
		lists: []elements{{"changes", len(list), func(b []byte, i int) ([]byte, error) {
			var sample *store.View
			if a.Rows[i].Sample != nil {
				sample = a.Rows[i].Sample.View()
			}
			return r.appendWith(b, list[i], "sample", sample)
		}}},
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

func changeOf(in *changes.Change) change {
	return change{
		By: valuesOf(in.By), Object: in.Object, Also: in.Also, Namespaces: in.Namespaces, Kind: in.Kind, Now: in.Now, Before: in.Before,
		Score: in.Score, Why: in.Why, Statistics: in.Statistics, First: stampOrNone(in.First), Last: stampOrNone(in.Last),
		Every: int64(in.Every.Seconds()), State: in.State, Former: formerOf(in.Former), Follows: referenceOf(in.Follows), Events: eventsAt(in.Link),
	}
}

func verdictOf(in *changes.Verdict) verdict {
	out := verdict{Text: in.Text, State: in.State, Cause: referenceOf(in.Cause)}
	if c := in.Change; c != nil {
		out.Kind, out.By, out.Object, out.Since, out.Last = c.Kind, valuesOf(c.By), c.Object, stampOrNone(c.First), stampOrNone(c.Last)
		out.Every, out.Former, out.Events = int64(c.Every.Seconds()), formerOf(c.Former), eventsAt(c.Link)
	}
	return out
}

func formerOf(in *changes.Former) *former {
	if in == nil {
		return nil
	}
	return &former{First: stamp(in.First), Last: stamp(in.Last), Count: in.Count, Events: eventsAt(in.Link)}
}

func referenceOf(in *changes.Reference) *reference {
	if in == nil {
		return nil
	}
	return &reference{By: valuesOf(in.By), Object: in.Object, First: stamp(in.First), Events: eventsAt(in.Link)}
}

// valuesOf returns the dimensions that are not empty, by name.
func valuesOf(d event.Dimensions) map[string]string {
	out := map[string]string{}
	key := query.Key{Dimensions: d}
	for i, value := range key.Values(query.Indexed) {
		if value != "" {
			out[string(query.Indexed[i])] = value
		}
	}
	return out
}

// eventsAt returns the path of events.
func eventsAt(parameters url.Values) string { return Path + "/events?" + parameters.Encode() }

// stampOrNone writes a time, and nothing for the zero time.
func stampOrNone(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return stamp(t)
}

var changeColumns = append(append([]string{"change"}, names(query.Indexed)...), "object", "now", "before", "score", "first", "last", "state", "why", "statistics", "events", "namespaces", "note")

func changeRows(list []change, of []changes.Change) [][]string {
	rows := make([][]string, len(list))
	for i, c := range list {
		rows[i] = []string{string(c.Kind)}
		for _, d := range query.Indexed {
			rows[i] = append(rows[i], c.By[string(d)])
		}
		number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
		rows[i] = append(rows[i], c.Object, strconv.FormatInt(c.Now, 10), number(c.Before), number(c.Score), c.First, c.Last, string(c.State), c.Why, c.Statistics, c.Events,
			strings.Join(c.Namespaces, " "), noteOf(of[i].Sample))
	}
	return rows
}
