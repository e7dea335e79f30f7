package loki_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/waittest"
)

// TestLokiTail: the newest lines first, then those that come, filtered; an event that is
// observed again is a line again, one that is only edited or deleted is not.
func TestLokiTail(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t)
	srv := w.Serve()
	c := w.Tail(t, srv, "good", `{namespace="shop"} | keep kind`, "limit", "2")
	apitest.Equal(t, c.Next(), "Scaled up to 3, Container image pulled")
	shop := "/apis/events.k8s.io/v1/namespaces/shop/events/"
	merge := []string{"Content-Type", "application/merge-patch+json"}
	w.Do("PATCH", shop+"a", `{"metadata":{"labels":{"x":"y"}}}`, merge...).Must(200)
	lokiEvent{name: "f", namespace: "pay", kind: "Pod", reason: "R", note: "elsewhere", at: noon}.create(w)
	w.Do("DELETE", shop+"b", "").Must(200)
	w.Do("PATCH", shop+"a", `{"series":{"count":9,"lastObservedTime":"2026-11-20T12:05:00.000000Z"}}`, merge...).Must(200)
	apitest.Equal(t, c.Next(), "Back-off restarting failed container")
	lokiEvent{name: "g", namespace: "shop", kind: "Pod", reason: "R", note: "new", at: noon}.create(w)
	apitest.Equal(t, c.Next(), "new")

	filtered := w.Tail(t, srv, "good", `{} |= "wanted" | json | metadata_name="i"`, "start", "2027-01-01T00:00:00Z", "end", "2028-01-01T00:00:00Z")
	lokiEvent{name: "h", namespace: "shop", kind: "Pod", reason: "R", note: "wanted, but for its name", at: noon}.create(w)
	lokiEvent{name: "i", namespace: "shop", kind: "Pod", reason: "R", note: "wanted", at: noon}.create(w)
	apitest.Equal(t, filtered.Next(), "wanted")

	_ = filtered.Conn.CloseNow()
	w.Server.Drain(t.Context())
	if _, err := c.Read(); err == nil {
		_, err = c.Read() // a message may have been on its way
		for err == nil {
			_, err = c.Read()
		}
		if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
			t.Error(err)
		}
	}
}

// TestLokiTailParameters: a tail that cannot be served says so, although its client may have no other one.
func TestLokiTailParameters(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.MaxClientWatches = 1 })
	srv := w.Serve()
	w.Tail(t, srv, "good", `{}`)
	apitest.Equal(t, w.RefusedTail(t, srv, `{`), "400")
	apitest.Equal(t, w.RefusedTail(t, srv, `{}`, "delay_for", "6"), "400")
}

// TestLokiLongLines: what a request keeps of lines is bounded, wherever it keeps them. Long
// labels are decided on a few at a time, and none is left out.
func TestLokiLongLines(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for i := range 33 { // of more than 1 MiB, which each entry has as its line and as a label
		w.Do("POST", apitest.CorePath, fmt.Sprintf(`{"metadata":{"name":"e%d"},"involvedObject":{"namespace":"default"},"message":"%s","reason":"%d%s"}`,
			i, strings.Repeat("x", 1<<20), i, strings.Repeat("r", 100<<10))).Must(201)
	}
	for selector, want := range map[string]int{`{}`: 33, `{reason=~"2.*"}`: 11, `{reason!~"2.*"}`: 22} {
		values := w.Do("GET", "/loki/api/v1/label/reason/values?query="+url.QueryEscape(selector), "").Must(200).At("data")
		apitest.Equal(t, len(values.([]any)), want)
	}
	const want = "the lines have more than 16777216 bytes: ask with a lower limit\n"
	apitest.Equal(t, string(w.Do("GET", "/loki/api/v1/query_range?limit=5000&query="+url.QueryEscape(`{} | json`), "").Must(400).Body), want)
	for _, path := range []string{"detected_fields?query=", "detected_field/x/values?query="} { // what others wrote is no error of who asks
		apitest.Equal(t, w.Do("GET", "/loki/api/v1/"+path+url.QueryEscape(`{} | json`), "").Must(200).At("warnings"), any([]any{"only the lines that fit into 8388608 bytes were looked at"}))
	}
	apitest.Equal(t, w.RefusedTail(t, w.Serve(), `{} | json`), "400")
}

// TestLokiTailLongMessages: lines that are long in JSON come in several messages, and none is left out.
func TestLokiTailLongMessages(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	note := strings.Repeat("<", 1<<20) // each is six bytes in a message
	create := func(i int) {
		w.Do("POST", apitest.CorePath, fmt.Sprintf(`{"metadata":{"name":"e%d"},"involvedObject":{"namespace":"default"},"message":"%d%s"}`, i, i, note)).Must(201)
	}
	for i := range 4 {
		create(i)
	}
	c := w.Tail(t, w.Serve(), "good", `{}`)
	c.Conn.SetReadLimit(-1)
	for i := range 6 {
		if line := c.Next(); line[0] != byte('0'+i) || len(line) != 1+len(note) {
			t.Fatalf("message %d begins %.20q and has %d bytes", i, line, len(line))
		}
		if i > 2 && i < 5 {
			create(i + 1)
		}
	}
}

// lossy is a store whose first watch loses changes when it is told to.
type lossy struct {
	store.Store
	lose chan struct{} // ends the first watch
	fail error         // of the watch after it
	mu   sync.Mutex
	n    int // watches that were opened
}

func (s *lossy) Watch(ctx context.Context, q store.WatchQuery) (store.Watcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; s.n == 2 && s.fail != nil {
		return nil, s.fail
	}
	w, err := s.Store.Watch(ctx, q)
	if s.n == 1 && err == nil {
		return &lossyWatcher{w, s.lose}, nil
	}
	return w, err
}

type lossyWatcher struct {
	store.Watcher
	lose chan struct{}
}

func (w *lossyWatcher) Next(ctx context.Context) (store.Batch, error) {
	select {
	case <-w.lose:
		return store.Batch{}, &store.ExpiredError{Oldest: 7}
	case <-ctx.Done():
		return store.Batch{}, ctx.Err()
	}
}

// TestLokiTailLosesLines: a tail that was too slow says so and goes on. If it cannot, it ends with a reason.
func TestLokiTailLosesLines(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, fail error) (*apitest.World, *apitest.Tailed) {
		t.Helper()
		w := apitest.New(t)
		s := &lossy{Store: w.DB, lose: make(chan struct{}), fail: fail}
		w.Config.Store = s
		var err error
		if w.Server, err = api.New(w.Config); err != nil {
			t.Fatal(err)
		}
		c := w.Tail(t, w.Serve(), "good", `{}`)
		lokiEvent{name: "a", namespace: "shop", kind: "Pod", reason: "R", note: "lost", at: noon}.create(w)
		close(s.lose)
		return w, c
	}
	t.Run("goes on", func(t *testing.T) {
		t.Parallel()
		w, c := open(t, nil)
		message, err := c.Read()
		if err != nil || !strings.Contains(string(message), `"dropped_entries":[{"timestamp":"`) {
			t.Fatalf("%v: %s", err, message)
		}
		lokiEvent{name: "b", namespace: "shop", kind: "Pod", reason: "R", note: "new", at: noon}.create(w)
		apitest.Equal(t, c.Next(), "new")
	})
	t.Run("cannot go on", func(t *testing.T) {
		t.Parallel()
		_, c := open(t, store.ErrUnavailable)
		_, err := c.Read()
		if end, ok := errors.AsType[websocket.CloseError](err); !ok || !strings.Contains(end.Reason, "lines were lost") {
			t.Error(err)
		}
	})
}

// TestLokiTailTakesTurns: a tail holds a seat while it matches a change, which may take
// minutes, none while it waits, and stops when its client leaves or the server does.
func TestLokiTailTakesTurns(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(*apitest.World, *apitest.Tailed){
		"the client leaves": func(_ *apitest.World, c *apitest.Tailed) { _ = c.Conn.CloseNow() },
		"the server stops":  func(w *apitest.World, _ *apitest.Tailed) { go w.Server.Drain(w.T.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := prometheus.NewRegistry()
			w := apitest.New(t, func(c *api.Config) { c.Registry = reg })
			working := func() float64 { return w.Metric("eventsvc_requests_working", "watch") }
			c := w.Tail(t, w.Serve(), "good", `{} |~ "(?:(?:.{0,30}){0,30})zzN" or "short"`)
			lokiEvent{name: "a", namespace: "shop", kind: "Pod", reason: "R", note: "short", at: noon}.create(w)
			apitest.Equal(t, c.Next(), "short")
			apitest.Equal(t, working(), 0.0)
			w.Do("POST", apitest.CorePath, `{"metadata":{"name":"b"},"involvedObject":{"namespace":"default"},"message":"`+strings.Repeat("x", 1<<20)+`"}`).Must(201)
			waittest.Until(t, "the tail has a seat", func() bool { return working() == 1 })
			ends(w, c)
			waittest.Until(t, "the tail has ended", func() bool { return apitest.Sum(t, reg, "eventsvc_watches") == 0 && working() == 0 })
		})
	}
}

// TestLokiRights: a caller sees the namespaces that it may list, whatever it asks, and one
// without any gets the 403 of a list.
func TestLokiRights(t *testing.T) {
	t.Parallel()
	w, current := apitest.NewPolicyWorld(t, `
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
		all := string(w.As("good", "GET", "/loki/api/v1/"+path, "").Must(200).Body)
		some := string(w.As("one", "GET", "/loki/api/v1/"+path, "").Must(200).Body)
		if all == some || strings.Contains(some, "pay") || strings.Contains(some, "Secret") || strings.Contains(some, "hidden") {
			t.Errorf("%s:\n%s\n%s", path, all, some)
		}
		if a := w.As("none", "GET", "/loki/api/v1/"+path, "").Must(403); !strings.Contains(string(a.Body), "cannot list resource") {
			t.Errorf("%s: %s", path, a.Body)
		}
	}
	srv := w.Serve()
	c := w.Tail(t, srv, "one", `{}`)
	apitest.Equal(t, c.Next(), "seen")
	lokiEvent{name: "c", namespace: "pay", kind: "Pod", reason: "R", note: "hidden too", at: noon}.create(w)
	lokiEvent{name: "d", namespace: "shop", kind: "Pod", reason: "R", note: "seen too", at: noon}.create(w)
	apitest.Equal(t, c.Next(), "seen too")
	current.Store(apitest.ParsePolicy(t, "roles: []\n"))
	w.Server.PolicyChanged()
	if _, err := c.Read(); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Error(err)
	}
}
