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
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	groups, next, err := r.shot.Groups(ctx, r.by, query.GroupPage{Order: r.order, After: r.group(), Limit: r.limit, Bytes: pageBytes})
	if err != nil {
		return nil, err
	}
	out := groupsAnswer{counted: r.counted(), Groups: make([]group, len(groups))}
	if next != nil {
		out.Continue = r.next(cursor{Value: next.Value, Key: next.Key})
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
	return &answer{json: out, columns: groupColumns(r.by), next: out.Continue, partial: r.shot.Partial, rows: func() ([][]string, error) {
		rows := make([][]string, len(groups))
		for i := range groups {
			g := &groups[i]
			rows[i] = append(g.Key.Values(r.by), strconv.FormatInt(g.Count, 10), stamp(g.First), stamp(g.Last), out.Groups[i].Events)
		}
		return rows, nil
	}}, nil
}

// values returns the values of a group's dimensions, by name.
func values(by []query.Dimension, k query.Key) map[string]any {
	out := map[string]any{}
	for _, d := range by {
		if d == query.Object {
			out[string(d)] = k.Object
			continue
		}
		out[string(d)] = k.Values([]query.Dimension{d})[0]
	}
	return out
}

func groupColumns(by []query.Dimension) []string {
	var columns []string
	for _, d := range by {
		if d == query.Object {
			columns = append(columns, "object_kind", "object_namespace", "object_name", "object_uid")
			continue
		}
		columns = append(columns, string(d))
	}
	return append(columns, "count", "first", "last", "events")
}
