package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
)

// ask sends a query and returns its answer as it was decoded.
func (w *world) ask(path string, parameters ...string) map[string]any {
	w.t.Helper()
	return w.do("GET", queryPath(path, parameters...), "").must(200).object()
}

// queryPath is the path of a query. Parameters are pairs of name and value.
func queryPath(path string, parameters ...string) string {
	q := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		q.Add(parameters[i], parameters[i+1])
	}
	return "/query/v1/" + path + "?" + q.Encode()
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", "b", "c")
	for _, path := range []string{
		queryPath("events", "from", "2026-01-01T00:00:00Z", "text", "hello"),
		queryPath("histogram", "from", "2026-01-01T00:00:00Z", "by", "type,reason"),
		queryPath("facets", "from", "2026-01-01T00:00:00Z"),
		queryPath("groups", "from", "2026-01-01T00:00:00Z", "by", "object"),
		queryPath("object", "kind", "Pod", "name", "p1", "limit", "1"),
		queryPath("changes", "at", "2026-01-02T03:14:05Z"),
	} {
		a := w.do("GET", path, "")
		var v any
		_ = json.Unmarshal(a.body, &v)
		b, _ := json.MarshalIndent(v, "", " ")
		fmt.Println(a.code, path, string(b))
		a = w.do("GET", path, "", "Accept", "text/csv")
		fmt.Println(a.code, a.header, string(a.body))
	}
}
