package loki_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tidings.example/eventsvc/internal/api/apitest"
)

// TestGrafanaWithPassword: what Grafana sends is answered the same with a user and a password.
func TestGrafanaWithPassword(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t, apitest.WithPasswords(nil))
	replayGrafana(t, w, apitest.BasicHeader("grafana", "s3cret"))

	srv := w.Serve()
	t.Cleanup(srv.Stop)
	address := srv.URL + "/loki/api/v1/tail?" + url.Values{"query": {`{reason="Tailed"}`}, "start": {"2026-01-01T00:00:00Z"}}.Encode()
	conn, res, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {apitest.BasicHeader("grafana", "s3cret")}}})
	if err != nil {
		t.Fatalf("%v: %v", err, res)
	}
	defer func() { _ = conn.CloseNow() }()
	lokiEvent{name: "t", namespace: "shop", kind: "Pod", reason: "Tailed", note: "tailed with a password", at: noon.Add(5 * time.Minute)}.create(w)
	tail := &apitest.Tailed{T: t, Conn: conn}
	if got := tail.Next(); got != "tailed with a password" {
		t.Errorf("tailed %q", got)
	}
	if _, res, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {apitest.BasicHeader("grafana", "wrong")}}}); err == nil || res.StatusCode != 401 {
		t.Errorf("with a wrong password: %v, %v", res, err)
	}
}

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
func replayGrafana(t *testing.T, w *apitest.World, authorization string) {
	t.Helper()
	var all []recorded
	text, err := os.ReadFile("testdata/grafana.json")
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
		a := w.Do("GET", r.Path+"?"+v.Encode(), "", headers...)
		var indented bytes.Buffer
		if a.Code != 200 || json.Indent(&indented, a.Body, "", " ") != nil {
			t.Errorf("%s: %d %s", r.Name, a.Code, a.Body)
			continue
		}
		got := differs.ReplaceAll(indented.Bytes(), []byte("…"))
		golden := filepath.Join("testdata", r.Name+".json")
		if *apitest.Update {
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
	text, err := os.ReadFile("../../../../deploy/examples/grafana-dashboard.json")
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
				a := w.Do("GET", path, "", "X-Loki-Response-Encoding-Flags", "categorize-labels")
				if a.Code != 200 {
					t.Errorf("%s: %d %s", p.Title, a.Code, a.Body)
					continue
				}
				if result, ok := a.At("data.result").([]any); !ok || len(result) == 0 {
					t.Errorf("%s has an empty answer: %s", p.Title, a.Body)
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
