package queries

import (
	"context"
	"encoding/json"
	"strconv"

	"tidings.example/eventsvc/internal/query"
)

type groupsAnswer struct {
	counted
	Groups   []group `json:"groups"`
	Continue string  `json:"continue,omitempty"`
}

type group struct {
	By     map[string]any  `json:"by"`
	Count  int64           `json:"count"`
	First  string          `json:"first"`
	Last   string          `json:"last"`
	Events string          `json:"events"`           // path of the events
	Sample json.RawMessage `json:"sample,omitempty"` // the newest of them that exists
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
	out := groupsAnswer{counted: r.counted(), Groups: make([]group, len(groups))}
	if next != nil {
		out.Continue = r.afterGroup(*next)
	}
	for i := range groups {
		g := &groups[i]
		out.Groups[i] = group{By: values(r.by, g.Key), Count: g.Count, First: stamp(g.First), Last: stamp(g.Last), Events: r.linkEvents(r.by, g.Key)}
		if g.Sample == nil {
			continue
		}
		if out.Groups[i].Sample, err = r.render(g.Sample.View()); err != nil {
			return nil, err
		}
	}
	columns := append(namesOfValues(r.by, "object_kind", "object_namespace", "object_name", "object_uid"), "count", "first", "last", "events")
	return &answer{json: out, columns: columns, next: out.Continue, rows: func() ([][]string, error) {
		rows := make([][]string, len(groups))
		for i := range groups {
			g := &groups[i]
			rows[i] = append(g.Key.Values(r.by), strconv.FormatInt(g.Count, 10), stamp(g.First), stamp(g.Last), out.Groups[i].Events)
		}
		return rows, nil
	}, behind: func(row int) string { return r.afterGroup(groups[row].Place(r.order, r.by)) }}, nil
}

// values returns the values of a group's dimensions, by name; with an object that has no UID, also the namespace and the cluster of
// its events.
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
