package httpserver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/httpserver"
)

// logLines returns a logger and what it has logged.
func logLines() (*slog.Logger, *bytes.Buffer) {
	var out bytes.Buffer
	drop := func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case "time", "ms", "remote", "stack":
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: drop})), &out
}

func TestAccess(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header  map[string]string
		path    string
		handler http.HandlerFunc
		code    int
		body    string
		log     string
	}{
		"answer with the caller's id, an annotation and a trace": {
			header: map[string]string{"X-Request-Id": "abc-1", "User-Agent": "curl", "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
			path:   "/x?secret=1",
			handler: func(w http.ResponseWriter, r *http.Request) {
				httpserver.Annotate(r.Context(), slog.String("caller", httpserver.RequestID(r.Context())))
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, "made")
			},
			code: 201, body: "made",
			log: "level=INFO msg=request request_id=abc-1 method=GET path=/x code=201 bytes=4 agent=curl trace_id=0af7651916cd43dd8448eb211c80319c caller=abc-1\n",
		},
		"nothing written": {
			header: map[string]string{"X-Request-Id": "id"}, path: "/", handler: func(http.ResponseWriter, *http.Request) {}, code: 200,
			log: "level=INFO msg=request request_id=id method=GET path=/ code=200 bytes=0 agent=\"\"\n",
		},
		"line feeds and long texts of the caller": {
			header: map[string]string{"X-Request-Id": "id", "User-Agent": "a\tb" + strings.Repeat("c", 300)}, path: "/a%0Ab",
			handler: func(http.ResponseWriter, *http.Request) {}, code: 200,
			log: "level=INFO msg=request request_id=id method=GET path=\"/a\\nb\" code=200 bytes=0 agent=\"a\\tb" + strings.Repeat("c", 253) + "…\"\n",
		},
		"panic": {
			header: map[string]string{"X-Request-Id": "id"}, path: "/",
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				panic(errors.New("secret detail"))
			},
			code: 500, body: "internal error\n",
			log: "level=ERROR msg=\"panic while serving a request\" request_id=id panic=\"secret detail\"\n" +
				"level=INFO msg=request request_id=id method=GET path=/ code=500 bytes=15 agent=\"\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, out := logLines()
			req := httptest.NewRequest("GET", test.path, nil)
			for key, value := range test.header {
				req.Header.Set(key, value)
			}
			rec := httptest.NewRecorder()
			httpserver.Access(log, prometheus.NewRegistry(), test.handler).ServeHTTP(rec, req)
			if rec.Code != test.code || rec.Body.String() != test.body {
				t.Errorf("answer %d %q, want %d %q", rec.Code, rec.Body, test.code, test.body)
			}
			if rec.Header().Get("X-Request-Id") != test.header["X-Request-Id"] {
				t.Errorf("request id answered: %q", rec.Header().Get("X-Request-Id"))
			}
			if encoding := rec.Header().Get("Content-Encoding"); encoding != "" {
				t.Errorf("the answer has the Content-Encoding %s of another", encoding)
			}
			if diff := cmp.Diff(test.log, out.String()); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAccessMakesRequestIDs(t *testing.T) {
	t.Parallel()
	log, _ := logLines()
	handler := httpserver.Access(log, prometheus.NewRegistry(), http.NotFoundHandler())
	seen := map[string]bool{}
	for _, bad := range []string{"", "a b", "a\nb", "ä", `"><script>`, strings.Repeat("x", 65)} {
		req := httptest.NewRequest("GET", "/", nil)
		req.Header["X-Request-Id"] = []string{bad}
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, req)
		id := rec.Header().Get("X-Request-Id")
		if id == bad || len(id) < 16 || seen[id] {
			t.Errorf("for %q the id is %q", bad, id)
		}
		seen[id] = true
	}
}

func TestAccessCutsHalfAnswers(t *testing.T) {
	t.Parallel()
	log, out := logLines()
	srv := httptest.NewServer(httpserver.Access(log, prometheus.NewRegistry(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic("late")
	})))
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	srv.Close()
	if string(body) != "half" || err == nil {
		t.Errorf("read %q, %v; want half an answer and an error", body, err)
	}
	if lines := strings.Count(out.String(), "panic"); lines != 2 { // the message and its attribute, in one line
		t.Errorf("the panic is logged more than once, or never:\n%s", out)
	}
}

func TestAccessMetrics(t *testing.T) {
	t.Parallel()
	log, _ := logLines()
	reg := prometheus.NewRegistry()
	gone, leave := context.WithCancel(t.Context())
	leave()
	handler := httpserver.Access(log, reg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Context().Err() != nil:
		case r.URL.Path == "/watch":
			httpserver.SetVerb(r.Context(), "watch")
		case r.URL.Path == "/none":
			w.WriteHeader(http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusOK)
		}
	}))
	ask := func(ctx context.Context, method, path, agent string) {
		r := httptest.NewRequestWithContext(ctx, method, path, nil)
		r.Header.Set("User-Agent", agent)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	ask(t.Context(), "GET", "/", "")
	ask(t.Context(), "GET", "/none", "curl/8.5.0")
	ask(t.Context(), "GET", "/watch", "manager/v0.0.0 (linux/amd64) kubernetes/abcdef")
	ask(t.Context(), "BREW", "/", "")
	ask(gone, "GET", "/", "")

	got := map[string]float64{}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "http_requests_total" {
				label := metric.GetLabel() // client, code, verb
				got[fmt.Sprint(label[2].GetValue(), " ", label[1].GetValue(), " ", label[0].GetValue())] = metric.GetCounter().GetValue()
			}
		}
	}
	want := map[string]float64{"GET 200 other": 1, "GET 404 curl": 1, "other 200 other": 1, "GET 499 other": 1, "watch 200 client-go": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("http_requests_total (-want +got):\n%s", diff)
	}
}

// discard is a response writer that costs nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkAccess measures what every request costs beside its handler, including its access line.
func BenchmarkAccess(b *testing.B) {
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	body := []byte("answer")
	handler := httpserver.Access(log, prometheus.NewRegistry(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(body)
	}))
	req := httptest.NewRequest("GET", "/apis/events.k8s.io/v1/namespaces/default/events/web-1.17f", nil)
	req.Header.Set("User-Agent", "kubectl/v1.36.0 (linux/amd64) kubernetes/abcdef0")
	w := discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(w, req)
	}
}
