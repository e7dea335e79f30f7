package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/shared/waittest"
)

// tailed is an open tail.
type tailed struct {
	t    *testing.T
	conn *websocket.Conn
}

// tail opens a tail with a token.
func (w *world) tail(t *testing.T, srv *running, token, query string, more ...string) *tailed {
	t.Helper()
	v := url.Values{"query": {query}, "start": {"2026-01-01T00:00:00Z"}}
	for i := 0; i < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	conn, res, err := websocket.Dial(t.Context(), srv.URL+"/loki/api/v1/tail?"+v.Encode(),
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatalf("%v: %v", err, res)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &tailed{t, conn}
}

// read waits for the next message, or for the end of the tail.
func (c *tailed) read() ([]byte, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), waittest.Most)
	defer cancel()
	_, message, err := c.conn.Read(ctx)
	if ctx.Err() != nil {
		waittest.Lost(c.t, "the tail sends nothing and does not end")
	}
	return message, err
}

// next is the lines of the next message.
func (c *tailed) next() string {
	c.t.Helper()
	message, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	var m struct {
		Streams []struct{ Values [][]any }
		Dropped []any `json:"dropped_entries"`
	}
	if err := json.Unmarshal(message, &m); err != nil || len(m.Dropped) > 0 {
		c.t.Fatalf("%v: %s", err, message)
	}
	var lines []string
	for _, s := range m.Streams {
		for _, v := range s.Values {
			lines = append(lines, v[1].(string))
		}
	}
	return strings.Join(lines, ", ")
}

// TestLokiTail: the newest lines first, then those that come, filtered; an event that is
// observed again is a line again, one that is only edited or deleted is not.
func TestLokiTail(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	srv := w.serve()
	c := w.tail(t, srv, "good", `{namespace="shop"} | keep kind`, "limit", "2")
	equal(t, c.next(), "Scaled up to 3, Container image pulled")
	shop := "/apis/events.k8s.io/v1/namespaces/shop/events/"
	merge := []string{"Content-Type", "application/merge-patch+json"}
	w.do("PATCH", shop+"a", `{"metadata":{"labels":{"x":"y"}}}`, merge...).must(200)
	lokiEvent{name: "f", namespace: "pay", kind: "Pod", reason: "R", note: "elsewhere", at: noon}.create(w)
	w.do("DELETE", shop+"b", "").must(200)
	w.do("PATCH", shop+"a", `{"series":{"count":9,"lastObservedTime":"2026-11-20T12:05:00.000000Z"}}`, merge...).must(200)
	equal(t, c.next(), "Back-off restarting failed container")
	lokiEvent{name: "g", namespace: "shop", kind: "Pod", reason: "R", note: "new", at: noon}.create(w)
	equal(t, c.next(), "new")

	filtered := w.tail(t, srv, "good", `{} |= "wanted" | json | metadata_name="i"`, "start", "2027-01-01T00:00:00Z", "end", "2028-01-01T00:00:00Z")
	lokiEvent{name: "h", namespace: "shop", kind: "Pod", reason: "R", note: "wanted, but for its name", at: noon}.create(w)
	lokiEvent{name: "i", namespace: "shop", kind: "Pod", reason: "R", note: "wanted", at: noon}.create(w)
	equal(t, filtered.next(), "wanted")

	_ = filtered.conn.CloseNow()
	w.server.Drain(t.Context())
	if _, err := c.read(); err == nil {
		_, err = c.read() // a message may have been on its way
		for err == nil {
			_, err = c.read()
		}
		if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
			t.Error(err)
		}
	}
}

// refusedTail is the status and Retry-After of a tail that is refused.
func (w *world) refusedTail(t *testing.T, srv *running, query string) string {
	t.Helper()
	conn, res, err := websocket.Dial(t.Context(), srv.URL+"/loki/api/v1/tail?query="+url.QueryEscape(query), //nolint:bodyclose // by the library
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer good"}}})
	if err == nil {
		_ = conn.CloseNow()
		return "opened"
	}
	return strings.TrimSpace(fmt.Sprint(res.StatusCode, " ", res.Header.Get("Retry-After")))
}

// TestLokiTailLimits: a tail counts as a watch, and tails of a client have a limit besides,
// which is counted apart and does not matter to other watches.
func TestLokiTailLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *api.Config) { c.MaxClientWatches = 1 })
	srv := w.serve()
	w.tail(t, srv, "good", `{}`)
	equal(t, w.refusedTail(t, srv, `{}`), "429 1")
	equal(t, w.refusedTail(t, srv, `{`), "400")
	equal(t, w.refusedTail(t, srv, `{}&delay_for=6`), "400")

	w = newWorld(t, func(c *api.Config) { c.MaxClientWatches, c.Registry = 12, prometheus.NewRegistry() })
	srv = w.serve()
	var open []*tailed
	for range 10 {
		open = append(open, w.tail(t, srv, "good", `{}`))
	}
	equal(t, w.refusedTail(t, srv, `{}`), "429 1")
	equal(t, w.metric("eventsvc_requests_refused_total", "client-tails"), 1.0)
	w.watch(srv, corePath+"?watch=true") // is no tail
	_ = open[0].conn.CloseNow()
	waittest.Until(t, "a tail can be opened when another one has ended", func() bool { return w.refusedTail(t, srv, `{}`) == "opened" })
}

// TestLokiLongLines: what a request keeps of lines is bounded, wherever it keeps them. Long
// labels are decided on a few at a time, and none is left out.
func TestLokiLongLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 33 { // of more than 1 MiB, which each entry has as its line and as a label
		w.do("POST", corePath, fmt.Sprintf(`{"metadata":{"name":"e%d"},"involvedObject":{"namespace":"default"},"message":"%s","reason":"%d%s"}`,
			i, strings.Repeat("x", 1<<20), i, strings.Repeat("r", 100<<10))).must(201)
	}
	for selector, want := range map[string]int{`{}`: 33, `{reason=~"2.*"}`: 11, `{reason!~"2.*"}`: 22} {
		values := w.do("GET", "/loki/api/v1/label/reason/values?query="+url.QueryEscape(selector), "").must(200).at("data")
		equal(t, len(values.([]any)), want)
	}
	const want = "the lines have more than 16777216 bytes: ask with a lower limit\n"
	for _, path := range []string{"query_range?limit=5000&query=", "detected_fields?line_limit=5000&query=", "detected_field/x/values?line_limit=5000&query="} {
		equal(t, string(w.do("GET", "/loki/api/v1/"+path+url.QueryEscape(`{} | json`), "").must(400).body), want)
	}
	equal(t, w.refusedTail(t, w.serve(), `{} | json`), "400")
}

// TestLokiTailLongMessages: lines that are long in JSON come in several messages, and none is left out.
func TestLokiTailLongMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	note := strings.Repeat("<", 1<<20) // each is six bytes in a message
	create := func(i int) {
		w.do("POST", corePath, fmt.Sprintf(`{"metadata":{"name":"e%d"},"involvedObject":{"namespace":"default"},"message":"%d%s"}`, i, i, note)).must(201)
	}
	for i := range 4 {
		create(i)
	}
	c := w.tail(t, w.serve(), "good", `{}`)
	c.conn.SetReadLimit(-1)
	for i := range 6 {
		if line := c.next(); line[0] != byte('0'+i) || len(line) != 1+len(note) {
			t.Fatalf("message %d begins %.20q and has %d bytes", i, line, len(line))
		}
		if i > 2 && i < 5 {
			create(i + 1)
		}
	}
}

// TestLokiTailTakesTurns: a tail holds a seat while it matches a change, which may take
// minutes, none while it waits, and stops when its client leaves or the server does.
func TestLokiTailTakesTurns(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(*world, *tailed){
		"the client leaves": func(_ *world, c *tailed) { _ = c.conn.CloseNow() },
		"the server stops":  func(w *world, _ *tailed) { go w.server.Drain(w.t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := prometheus.NewRegistry()
			w := newWorld(t, func(c *api.Config) { c.Registry = reg })
			working := func() float64 { return w.metric("eventsvc_requests_working", "watch") }
			c := w.tail(t, w.serve(), "good", `{} |~ "(?:(?:.{0,30}){0,30})zzN" or "short"`)
			lokiEvent{name: "a", namespace: "shop", kind: "Pod", reason: "R", note: "short", at: noon}.create(w)
			equal(t, c.next(), "short")
			equal(t, working(), 0.0)
			w.do("POST", corePath, `{"metadata":{"name":"b"},"involvedObject":{"namespace":"default"},"message":"`+strings.Repeat("x", 1<<20)+`"}`).must(201)
			waittest.Until(t, "the tail has a seat", func() bool { return working() == 1 })
			ends(w, c)
			waittest.Until(t, "the tail has ended", func() bool { return sum(t, reg, "eventsvc_watches") == 0 && working() == 0 })
		})
	}
}

// TestLokiRights: a caller sees the namespaces that it may list, whatever it asks, and one
// without any gets the 403 of a list.
func TestLokiRights(t *testing.T) {
	t.Parallel()
	w, current := newPolicyWorld(t, `
roles:
  - {name: reader, rules: [{verbs: [list, watch], namespaces: [shop]}]}
  - {name: writer, rules: [{verbs: [create, patch], namespaces: ["*"]}]}
  - {name: all, rules: [{verbs: ["*"], namespaces: ["*"]}]}
bindings:
  - {role: reader, subjects: [{clientID: one}]}
  - {role: writer, subjects: [{clientID: none}]}
  - {role: all, subjects: [{clientID: good}]}
`)
	for _, e := range []lokiEvent{
		{name: "a", namespace: "shop", kind: "Pod", reason: "R", note: "seen", at: noon},
		{name: "b", namespace: "pay", kind: "Secret", reason: "S", note: "hidden", at: noon, cluster: "pay-east"},
	} {
		e.create(w)
	}
	for _, path := range []string{
		"query_range?" + span("query", `{} |~ ".*"`), "query_range?" + span("query", `sum by (namespace) (count_over_time({}[5m]))`),
		"query_range?" + span("query", `sum by (namespace) (count_over_time({} |~ ".*" [5m]))`),
		"query?" + span("query", `sum by (kind) (count_over_time({}[5m]))`, "time", "1795176100"), "labels?" + span(), "label/kind/values?" + span(), "series?" + span(),
		"index/stats?" + span(), "index/volume?" + span("query", `{namespace=~".+"}`), "index/volume_range?" + span("query", `{kind=~".+"}`),
		"detected_labels?" + span(), "detected_fields?" + span("query", "{}"), "detected_field/name/values?" + span("query", "{}"),
	} {
		all := string(w.as("good", "GET", "/loki/api/v1/"+path, "").must(200).body)
		some := string(w.as("one", "GET", "/loki/api/v1/"+path, "").must(200).body)
		if all == some || strings.Contains(some, "pay") || strings.Contains(some, "Secret") || strings.Contains(some, "hidden") {
			t.Errorf("%s:\n%s\n%s", path, all, some)
		}
		if a := w.as("none", "GET", "/loki/api/v1/"+path, "").must(403); !strings.Contains(string(a.body), "cannot list resource") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	srv := w.serve()
	c := w.tail(t, srv, "one", `{}`)
	equal(t, c.next(), "seen")
	lokiEvent{name: "c", namespace: "pay", kind: "Pod", reason: "R", note: "hidden too", at: noon}.create(w)
	lokiEvent{name: "d", namespace: "shop", kind: "Pod", reason: "R", note: "seen too", at: noon}.create(w)
	equal(t, c.next(), "seen too")
	current.Store(parsePolicy(t, "roles: []\n"))
	w.server.PolicyChanged()
	if _, err := c.read(); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Error(err)
	}
}
