package api_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/resource"
	"tidings.example/eventsvc/internal/basic"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/bearer"
)

// withPasswords lets in the user grafana with the password s3cret, and says how often it was asked.
func withPasswords(asked *[]string) func(*api.Config) {
	return func(c *api.Config) {
		c.Resource = resource.Config{PublicURL: "https://events.example", Issuers: func() []string { return []string{"https://tokens.example"} }}
		c.Basic = func(ctx context.Context, user, password, source string) (*bearer.Caller, error) {
			if asked != nil {
				*asked = append(*asked, user+":"+password+"@"+source)
			}
			switch password {
			case "s3cret":
				return verify(ctx, "good")
			case "busy":
				return nil, &basic.BusyError{Reason: "the endpoint is busy", Status: 429, RetryAfter: 7 * time.Second}
			case "down":
				return nil, &basic.BusyError{Reason: "the endpoint is down", Status: 503, RetryAfter: 5 * time.Second}
			}
			return nil, &bearer.Error{Reason: "refused", Status: http.StatusUnauthorized}
		}
	}
}

func basicHeader(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// TestGrafanaWithPassword: what Grafana sends is answered the same with a user and a password.
func TestGrafanaWithPassword(t *testing.T) {
	t.Parallel()
	w := lokiWorld(t, withPasswords(nil))
	replayGrafana(t, w, basicHeader("grafana", "s3cret"))

	srv := w.serve()
	t.Cleanup(srv.stop)
	address := srv.URL + "/loki/api/v1/tail?" + url.Values{"query": {`{reason="Tailed"}`}, "start": {"2026-01-01T00:00:00Z"}}.Encode()
	conn, res, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {basicHeader("grafana", "s3cret")}}})
	if err != nil {
		t.Fatalf("%v: %v", err, res)
	}
	defer func() { _ = conn.CloseNow() }()
	lokiEvent{name: "t", namespace: "shop", kind: "Pod", reason: "Tailed", note: "tailed with a password", at: noon.Add(5 * time.Minute)}.create(w)
	tail := &tailed{t, conn}
	if got := tail.next(); got != "tailed with a password" {
		t.Errorf("tailed %q", got)
	}
	if _, res, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {basicHeader("grafana", "wrong")}}}); err == nil || res.StatusCode != 401 {
		t.Errorf("with a wrong password: %v, %v", res, err)
	}
}

// TestBasicPaths: a user and a password are good for what machines read, and for no path of Kubernetes.
func TestBasicPaths(t *testing.T) {
	t.Parallel()
	var asked []string
	w := newWorld(t, withPasswords(&asked))
	for path, want := range map[string]int{
		"/loki/api/v1/labels": 200, "/loki/nothing": 404, "/query/v1/facets": 200, "/query/v1/nothing": 404,
		"/": 401, "/api": 401, "/apis": 401, "/openapi/v3": 401, eventsPath: 401, corePath: 401, "/lokix": 401, "/loki/../apis": 404, "/queryx": 401,
	} {
		asked = nil
		a := w.do("GET", path, "", "Authorization", basicHeader("grafana", "s3cret"))
		challenged := slices.Contains(a.header["Www-Authenticate"], `Basic realm="eventsvc", charset="UTF-8"`)
		if a.code != want || (len(asked) > 0) == (want == 401) || challenged {
			t.Errorf("%s: %d, asked %v, %v", path, a.code, asked, a.header["Www-Authenticate"])
		}
	}
	w.do("POST", eventsPath, newEvent("a"), "Authorization", basicHeader("grafana", "s3cret")).must(401)
}

// TestBasicAnswers: a refusal asks for a password only who has sent one, so that no browser opens a dialog, and an endpoint that does not
// know is no refusal.
func TestBasicAnswers(t *testing.T) {
	t.Parallel()
	var asked []string
	w := newWorld(t, withPasswords(&asked))
	const root = `Bearer resource_metadata="https://events.example/.well-known/oauth-protected-resource"`
	challenge := `Basic realm="eventsvc", charset="UTF-8"`
	for _, path := range []string{"/loki/api/v1/labels", "/query/v1/facets"} {
		for name, c := range map[string]struct {
			header     string
			code       int
			retry      string
			challenges []string
			asked      bool
		}{
			"right":           {basicHeader("grafana", "s3cret"), 200, "", nil, true},
			"wrong":           {basicHeader("grafana", "wrong"), 401, "", []string{root, challenge}, true},
			"empty":           {basicHeader("grafana", ""), 401, "", []string{root, challenge}, true},
			"as it is":        {basicHeader("grafana", "+%:ü"), 401, "", []string{root, challenge}, true},
			"busy":            {basicHeader("grafana", "busy"), 429, "7", nil, true},
			"down":            {basicHeader("grafana", "down"), 503, "5", nil, true},
			"a token":         {basicHeader("any", "e30.e30.e30"), 401, "", []string{root}, false},
			"no token quite":  {basicHeader("any", "W10.e30.e30"), 401, "", []string{root, challenge}, true},
			"two parts":       {basicHeader("any", "e30.e30"), 401, "", []string{root, challenge}, true},
			"no base64":       {"Basic !", 401, "", []string{root}, false},
			"no password":     {"Basic " + base64.StdEncoding.EncodeToString([]byte("grafana")), 401, "", []string{root}, false},
			"nothing":         {"", 401, "", []string{root}, false},
			"a bearer token":  {"Bearer bad", 401, "", []string{root}, false},
			"a scheme of use": {"Digest username=x", 401, "", []string{root}, false},
		} {
			asked = nil
			a := w.do("GET", path, "", "Authorization", c.header, "X-Forwarded-For", "203.0.113.9", "Origin", "https://evil.example")
			if a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s, %s: other pages may read it", path, name)
			}
			if a.code != c.code || a.header.Get("Retry-After") != c.retry || !slices.Equal(a.header["Www-Authenticate"], c.challenges) || (len(asked) == 1) != c.asked {
				t.Errorf("%s, %s: %d %v, asked %v: %s", path, name, a.code, a.header, asked, a.body)
			}
			if name == "as it is" && !strings.HasPrefix(asked[0], "grafana:+%:ü@192.0.2.1") {
				t.Errorf("asked %q", asked)
			}
		}
	}
}

// TestBasicMCP: agents may send a user and a password too. A refusal leads to the document of /mcp, before it says anything of
// the request.
func TestBasicMCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withMCP, withPasswords(nil))
	const document = `Bearer resource_metadata="https://events.example/.well-known/oauth-protected-resource/mcp"`
	challenge := `Basic realm="eventsvc", charset="UTF-8"`
	for name, c := range map[string]struct {
		header     string
		code       int
		challenges []string
	}{
		"right":          {basicHeader("grafana", "s3cret"), 200, nil},
		"wrong":          {basicHeader("grafana", "wrong"), 401, []string{document, challenge}},
		"empty":          {basicHeader("grafana", ""), 401, []string{document, challenge}},
		"a token":        {basicHeader("any", "e30.e30.e30"), 401, []string{document}},
		"nothing":        {"", 401, []string{document}},
		"busy":           {basicHeader("grafana", "busy"), 429, nil},
		"the endpoint":   {basicHeader("grafana", "down"), 503, nil},
		"another client": {"Bearer good", 200, nil},
	} {
		headers := append(modernHeaders("tools/call", "events_search"), "Authorization", c.header)
		a := w.do("POST", "/mcp", modern("tools/call", calling("events_search", "{}")), headers...)
		if a.code != c.code || !slices.Equal(a.header["Www-Authenticate"], c.challenges) {
			t.Errorf("%s: %d %v: %s", name, a.code, a.header["Www-Authenticate"], a.body)
			continue
		}
		if c.code != 200 {
			continue
		}
		if text, failed := toolText(t, a.body); failed || !strings.HasPrefix(text, "range ") {
			t.Errorf("%s: %s", name, text)
		}
	}
	w.do("GET", "/mcp", "", "Authorization", basicHeader("grafana", "wrong")).must(401)
	w.do("GET", "/mcp", "", "Authorization", basicHeader("grafana", "s3cret")).must(405)
	w.do("POST", "/mcp/x", "", "Authorization", basicHeader("grafana", "s3cret")).must(401)
	for path, want := range map[string]int{"": 200, "/mcp": 200} {
		w.do("GET", resource.WellKnown+path, "").must(want)
	}
	off := newWorld(t, withPasswords(nil))
	off.do("GET", resource.WellKnown, "").must(200)
	off.do("GET", resource.WellKnown+"/mcp", "").must(404)
	off.do("POST", "/mcp", "{}", "Authorization", basicHeader("grafana", "s3cret")).must(404)
}

// roundTrip answers requests for tokens.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// BenchmarkPassword compares a request with a user and a password, whose token is kept, with the same request with a token.
func BenchmarkPassword(b *testing.B) {
	signed := func(ctx context.Context, _ string) (*bearer.Caller, error) {
		caller, err := verify(ctx, "good")
		if err == nil {
			caller.Expires = time.Now().Add(time.Hour)
		}
		return caller, err
	}
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Request: r, Body: io.NopCloser(strings.NewReader(`{"access_token":"good","token_type":"Bearer"}`))}, nil
	})}
	w := openWorld(b, bolt.Options{}, func(c *api.Config) {
		c.Basic = basic.New(basic.Config{TokenURL: "https://tokens.example", Client: client, Verify: signed, Log: c.Log}).Verify
	})
	w.do("POST", eventsPath, newEvent("a")).must(201)
	handler := w.handler()
	for name, authorization := range map[string]string{"token": "Bearer good", "password": basicHeader("grafana", "s3cret")} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r := httptest.NewRequest("GET", "/query/v1/events?limit=20", nil)
				r.Header.Set("Authorization", authorization)
				rec := httptest.NewRecorder()
				if handler.ServeHTTP(rec, r); rec.Code != 200 {
					b.Fatal(rec.Code, rec.Body)
				}
			}
		})
	}
}
