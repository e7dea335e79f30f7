package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/shared/bearer"
	"tidings.example/shared/waittest"
)

// TestWithoutAToken: every path is answered 401, unknown ones too, except the
// probes and the version.
func TestWithoutAToken(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for _, c := range []struct{ method, path string }{
		{"GET", "/"}, {"GET", "/api"}, {"GET", "/apis"}, {"GET", "/openapi/v3"}, {"GET", "/openapi/v2"}, {"GET", "/nowhere"},
		{"GET", apitest.EventsPath}, {"GET", apitest.EventsPath + "/a"}, {"POST", apitest.EventsPath}, {"PUT", apitest.EventsPath + "/a"}, {"PATCH", apitest.EventsPath + "/a"},
		{"DELETE", apitest.EventsPath + "/a"}, {"DELETE", apitest.EventsPath}, {"GET", apitest.EventsPath + "?watch=1"}, {"GET", apitest.CorePath}, {"OPTIONS", apitest.EventsPath},
		{"POST", apitest.BulkPath}, {"POST", "/version"}, {"POST", "/healthz"}, {"GET", "/metrics"}, {"GET", "/apis/events.k8s.io/v2"}, {"GET", "/readyz/keys"},
	} {
		for _, token := range []string{"", "Bearer", "Bearer ", "Bearer bad", "Bearer  good", "Bearer good x", "Basic Z29vZA=="} {
			a := w.Do(c.method, c.path, "", "Authorization", token).Must(401)
			apitest.Equal(t, string(a.Body), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`+"\n")
			if a.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s with %q: no challenge", c.method, c.path, token)
			}
		}
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/readyz?verbose", "/version"} {
		w.Do("GET", path, "", "Authorization", "").Must(200)
	}
	apitest.Equal(t, string(w.Do("GET", "/livez", "", "Authorization", "").Body), "ok")
}

func TestUnknownKeysAre503(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) {
		c.Verify = func(context.Context, string) (*bearer.Caller, error) {
			return nil, &bearer.Error{Reason: "no keys", Status: http.StatusServiceUnavailable}
		}
	})
	st := w.Do("GET", apitest.EventsPath, "").Must(503).Status()
	apitest.Equal(t, string(st.Reason), "ServiceUnavailable")
}

// slowReader is who takes no answer until it is told to.
type slowReader struct {
	*httptest.ResponseRecorder
	arrived, proceed chan struct{}
}

func (r *slowReader) Write(b []byte) (int, error) {
	r.arrived <- struct{}{}
	<-r.proceed
	return r.ResponseRecorder.Write(b)
}

// TestRefusalsAreBounded: only a limited number of callers with bad tokens may
// wait. They take no seats from others, and callers whose tokens cannot be
// checked because keys are missing are not counted among them.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) {
		c.MaxClientRequests, c.Registry = 1, prometheus.NewRegistry()
		c.Verify = func(ctx context.Context, token string) (*bearer.Caller, error) {
			if token == "unknown" {
				return nil, &bearer.Error{Reason: "no keys", Status: http.StatusServiceUnavailable}
			}
			return apitest.Verify(ctx, token)
		}
	})
	first := &slowReader{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	var wait sync.WaitGroup
	wait.Go(func() {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, apitest.EventsPath, nil)
		req.Header.Set("Authorization", "Bearer bad")
		w.Server.ServeHTTP(first, req)
	})
	waittest.Within(t, first.arrived)
	if a := w.As("bad", "GET", apitest.EventsPath, "").Must(429); a.Header.Get("Retry-After") != "1" {
		t.Errorf("%v", a.Header)
	}
	if n := w.Metric("eventsvc_requests_refused_total", "client-requests"); n != 1 {
		t.Errorf("%v are counted", n)
	}
	w.As("unknown", "GET", apitest.EventsPath, "").Must(503)
	w.As("good", "GET", apitest.EventsPath+"/a", "").Must(404)
	close(first.proceed)
	waittest.Join(t, &wait)
	if first.Code != http.StatusUnauthorized {
		t.Errorf("the first is answered with %d", first.Code)
	}
	w.As("bad", "GET", apitest.EventsPath, "").Must(401)
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	const found, method = "the server could not find the requested resource", "the server does not allow this method on the requested resource"
	for _, c := range []struct {
		method, path string
		code         int
		text         string // "": plain text
	}{
		{"GET", "/nowhere", 404, ""},
		{"GET", "/apis/other.example/v1/namespaces/default/events", 404, ""},
		{"GET", "/apis/events.k8s.iox", 404, ""},
		{"GET", "/apis/events.k8s.io/v2", 404, found},
		{"GET", "/apis/events.k8s.io/v1beta1/events", 404, found},
		{"GET", "/apis/events.k8s.io/v1/pods", 404, found},
		{"GET", "/api/v1/namespaces/default/widgets", 404, found},
		{"GET", apitest.EventsPath + "/a/status", 404, found},
		{"GET", apitest.EventsPath + "/a%2Fb", 404, found},
		{"GET", apitest.EventsPath + "//", 404, found},
		{"GET", apitest.EventsPath + "/a//", 404, found},
		{"GET", apitest.EventsPath + "/a", 404, `events.events.k8s.io "a" not found`},
		{"GET", apitest.CorePath + "/a", 404, `events "a" not found`},
		{"GET", "/apis/events.k8s.io/v1/namespaces//events", 404, found},
		{"DELETE", "/apis/events.k8s.io/v1/namespaces//events", 404, found},
		{"PUT", "/api/v1/namespaces//events/a", 404, found},
		{"DELETE", "/api/v1/namespaces/%2fevents", 404, found},
		{"HEAD", apitest.EventsPath, 405, method},
		{"OPTIONS", apitest.EventsPath, 405, method},
		{"PUT", "/apis/events.k8s.io/v1/events", 405, method},
		{"DELETE", "/version", 405, method},
	} {
		a := w.Do(c.method, c.path, "").Must(c.code)
		if c.text == "" {
			apitest.Equal(t, string(a.Body), "404 page not found\n")
			apitest.Equal(t, a.Header.Get("Content-Type"), "text/plain; charset=utf-8")
			continue
		}
		st := a.Status()
		apitest.Equal(t, st.Message, c.text)
		if st.Details == nil {
			t.Errorf("%s %s: no details", c.method, c.path)
		}
	}
}

func TestNamesAreDecoded(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Do("POST", apitest.CorePath, `{"metadata":{"name":"a b+c"},"involvedObject":{"namespace":"default"}}`).Must(201)
	apitest.Equal(t, w.Do("GET", apitest.CorePath+"/a%20b%2Bc", "").Must(200).At("metadata.name"), any("a b+c"))
	apitest.Equal(t, w.Do("GET", apitest.CorePath+"/a%20b+c", "").Must(200).At("metadata.name"), any("a b+c"))
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a")
	a := w.Do("GET", apitest.EventsPath+"/a", "", "Audit-Id", "mine").Must(200)
	apitest.Equal(t, a.Header.Get("Audit-Id"), "mine")
	apitest.Equal(t, a.Header.Get("Cache-Control"), "no-cache, private")
	apitest.Equal(t, a.Header.Get("Content-Type"), "application/json")
	if len(w.Do("GET", apitest.EventsPath+"/b", "").Must(404).Header.Get("Audit-Id")) != 36 {
		t.Error("no audit id was made")
	}
}

func TestIndentation(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Create("a")
	for _, c := range []struct {
		query, agent string
		want         bool
	}{
		{"", "kubectl/v1.37", false}, {"?pretty=true", "", true}, {"?pretty=1", "", true}, {"?pretty=false", "curl/8", false},
		{"", "curl/8", true}, {"", "Wget/1", true}, {"", "Mozilla/5.0 (X)", true},
	} {
		for _, path := range []string{apitest.EventsPath, apitest.EventsPath + "/a", apitest.EventsPath + "/none"} {
			a := w.Do("GET", path+c.query, "", "User-Agent", c.agent)
			if got := len(a.Body) > 3 && string(a.Body[:4]) == "{\n  "; got != c.want {
				t.Errorf("%s with %q: indented is %v", path+c.query, c.agent, got)
			}
		}
	}
}

// TestAbortedLists: a list that cannot be finished must not look complete.
func TestAbortedLists(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	big := make([]byte, 400<<10)
	for i := range big {
		big[i] = 'x'
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		w.Do("POST", apitest.CorePath, `{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"default"},"message":"`+string(big)+`"}`).Must(201)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cut := &cutter{ResponseRecorder: httptest.NewRecorder(), after: cancel}
	req := httptest.NewRequestWithContext(ctx, "GET", apitest.CorePath, nil)
	req.Header.Set("Authorization", "Bearer good")
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Error("the handler returned as if the list were whole")
		}
	}()
	w.Server.ServeHTTP(cut, req)
}

// cutter ends the request while its answer is being written.
type cutter struct {
	*httptest.ResponseRecorder
	after func()
}

func (c *cutter) Write(b []byte) (int, error) {
	c.after()
	return 0, context.Canceled
}
