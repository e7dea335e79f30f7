package queries

import (
	"context"
	"strconv"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

type groupsAnswer struct {
	counted
	Continue string `json:"continue,omitempty"`
}

// group is one group, without its sample: the newest of its events that exists.
type group struct {
	By     map[string]any `json:"by"`
	Count  int64          `json:"count"`
	First  string         `json:"first"`
	Last   string         `json:"last"`
	Every  int64          `json:"every,omitempty"` // seconds between two observations, as usual
	State  query.State    `json:"state"`
	Events string         `json:"events"` // path of the events
}

// answerGroups counts by dimensions.
func answerGroups(ctx context.Context, r *request) (*answer, error) {
	groups, next, err := r.shot.Groups(ctx, r.by, query.GroupPage{Order: r.order, After: r.group(), Limit: r.limit, Bytes: pageBytes})
	if err != nil {
		return nil, err
	}
	if err := r.hint(ctx, len(groups) == 0); err != nil {
		return nil, err
	}
	out := groupsAnswer{counted: r.counted()}
	if next != nil {
		out.Continue = r.afterGroup(*next)
	}
	return &answer{
		json: out, next: out.Continue,
		lists: []elements{{"groups", len(groups), func(b []byte, i int) ([]byte, error) {
			g := &groups[i]
			var sample *store.View
			if g.Sample != nil {
				sample = g.Sample.View()
			}
			return r.appendWith(b, group{
				By: values(r.by, g.Key), Count: g.Count, First: stamp(g.First), Last: stamp(g.Last), Every: int64(g.Every.Seconds()), State: g.State,
				Events: r.linkEvents(r.by, g.Key),
			}, "sample", sample)
		}}},
		columns: append(namesOfValues(r.by, "object_kind", "object_namespace", "object_name", "object_uid"), "count", "first", "last", "state", "events", "note"),
		rows: func(row func([]string) error) error {
			for i := range groups {
				g := &groups[i]
				if err := row(append(g.Key.Values(r.by), strconv.FormatInt(g.Count, 10), stamp(g.First), stamp(g.Last), string(g.State), r.linkEvents(r.by, g.Key), noteOf(g.Sample))); err != nil {
					return err
				}
			}
			return nil
		},
		behind: func(row int) string { return r.afterGroup(groups[row].Place(r.order, r.by)) },
	}, nil
}

// noteOf returns the note of a sample, which may be missing.
func noteOf(sample *store.Record) string {
	if sample == nil {
		return ""
	}
	note, _ := codec.Note(sample.View()) // what is damaged is counted where it is read
	return string(note)
}

// values returns the values of a group's dimensions, by name; with an object that has no UID, also the namespace and
// the cluster of its events.
func values(by []query.Dimension, k query.Key) map[string]any {
	out := map[string]any{}
	for _, d := range by {
		if d == query.Object {
			out[string(d)] = k.Object
			if k.Object.UID == "" {
				out[string(query.Namespace)], out[string(query.Cluster)] = k.Dimensions.Namespace, k.Dimensions.Cluster
			}
			continue
		}
		out[string(d)] = k.Values([]query.Dimension{d})[0]
	}
	return out
}

// namesOfValues names what [query.Key.Values] returns. The object has four values.
func namesOfValues(by []query.Dimension, object ...string) []string {
	var all []string
	for _, d := range by {
		if d == query.Object {
			all = append(all, object...)
			continue
		}
		all = append(all, string(d))
	}
	return all
}
