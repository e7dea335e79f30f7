package api_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// recorded is a request as Grafana's data source, Explore and Logs Drilldown send it. Only
// labels and times are those of these tests.
type recorded struct {
	Name, Path string
	Params     map[string]string
	Headers    map[string]string
}

// differs is what no two runs have in common.
var differs = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|[0-9a-f]{8}-[0-9a-f-]{27}|"revision": "[^"]*"`)

// TestGrafanaRequests replays the requests and compares the answers with golden files.
func TestGrafanaRequests(t *testing.T) {
	t.Parallel()
	replayGrafana(t, lokiWorld(t), "Bearer good")
}

// replayGrafana sends all requests with an Authorization header.
func replayGrafana(t *testing.T, w *world, authorization string) {
	t.Helper()
	var all []recorded
	text, err := os.ReadFile("testdata/loki/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		v := url.Values{}
		for name, value := range r.Params {
			v.Set(name, value)
		}
		headers := []string{"Authorization", authorization}
		for name, value := range r.Headers {
			headers = append(headers, name, value)
		}
		a := w.do("GET", r.Path+"?"+v.Encode(), "", headers...)
		var indented bytes.Buffer
		if a.code != 200 || json.Indent(&indented, a.body, "", " ") != nil {
			t.Errorf("%s: %d %s", r.Name, a.code, a.body)
			continue
		}
		got := differs.ReplaceAll(indented.Bytes(), []byte("…"))
		golden := filepath.Join("testdata", "loki", r.Name+".json")
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n got %s\nwant %s", r.Name, err, got, want)
		}
	}
}

// variables replaces those of Grafana that queries of dashboards may have, for panels
// whose points have a distance.
func variables(step string) *strings.Replacer {
	return strings.NewReplacer("$__auto", step, "$__interval", step, "$__range", "10m", "$namespace", ".*", "$search", "")
}

// TestGrafanaDashboard replays each query of the example's dashboard, with the steps of a
// long range and of a short one: each has an answer with something in it, and all of them
// go to the data source that the reader chooses.
func TestGrafanaDashboard(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	text, err := os.ReadFile("../../../deploy/examples/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Templating struct {
			List []struct {
				Name, Type string
				Query      json.RawMessage
			}
		}
		Panels []struct {
			Title      string
			Type       string
			Datasource struct{ Type, UID string }
			Targets    []struct {
				Expr, QueryType string
				Datasource      struct{ Type, UID string }
			}
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	at := noon.Add(10 * time.Minute)
	queries := 0
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries++
			if target.Datasource.Type != "loki" || p.Datasource.UID != "${source}" || target.Datasource.UID != "${source}" {
				t.Errorf("%s does not use the data source that is chosen", p.Title)
			}
			for _, step := range []string{"60000ms", "200ms"} {
				expr := variables(step).Replace(target.Expr)
				if strings.Contains(expr, "$") {
					t.Errorf("%s: %s has a variable that this test does not know", p.Title, target.Expr)
				}
				path := "/loki/api/v1/query_range?" + span("query", expr, "step", step, "limit", "1000")
				if target.QueryType == "instant" {
					path = "/loki/api/v1/query?" + url.Values{"query": {expr}, "time": {at.Format(time.RFC3339)}}.Encode()
				}
				a := w.do("GET", path, "", "X-Loki-Response-Encoding-Flags", "categorize-labels")
				if a.code != 200 {
					t.Errorf("%s: %d %s", p.Title, a.code, a.body)
					continue
				}
				if result, ok := a.at("data.result").([]any); !ok || len(result) == 0 {
					t.Errorf("%s has an empty answer: %s", p.Title, a.body)
				}
			}
		}
	}
	named := slices.ContainsFunc(dashboard.Templating.List, func(v struct {
		Name, Type string
		Query      json.RawMessage
	}) bool {
		return v.Name == "source" && v.Type == "datasource" && string(v.Query) == `"loki"`
	})
	if queries < 6 || !named {
		t.Errorf("%d queries, the variable of the data source is there: %v", queries, named)
	}
}
