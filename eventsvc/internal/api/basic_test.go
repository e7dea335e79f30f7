package api_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/basic"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/bearer"
)

// TestBasicPaths: a user and a password are good for what machines read, and for no path of Kubernetes.
func TestBasicPaths(t *testing.T) {
	t.Parallel()
	var asked []string
	w := apitest.New(t, apitest.WithPasswords(&asked))
	for path, want := range map[string]int{
		"/loki/api/v1/labels": 200, "/loki/nothing": 404, "/query/v1/facets": 200, "/query/v1/nothing": 404,
		"/": 401, "/api": 401, "/apis": 401, "/openapi/v3": 401, apitest.EventsPath: 401, apitest.CorePath: 401, "/lokix": 401, "/loki/../apis": 404, "/queryx": 401,
	} {
		asked = nil
		a := w.Do("GET", path, "", "Authorization", apitest.BasicHeader("grafana", "s3cret"))
		challenged := slices.Contains(a.Header["Www-Authenticate"], `Basic realm="eventsvc", charset="UTF-8"`)
		if a.Code != want || (len(asked) > 0) == (want == 401) || challenged {
			t.Errorf("%s: %d, asked %v, %v", path, a.Code, asked, a.Header["Www-Authenticate"])
		}
	}
	w.Do("POST", apitest.EventsPath, apitest.NewEvent("a"), "Authorization", apitest.BasicHeader("grafana", "s3cret")).Must(401)
}

// TestBasicAnswers: a refusal asks for a password only who has sent one, so that no browser opens a dialog, and an
// endpoint that does not know is no refusal.
func TestBasicAnswers(t *testing.T) {
	t.Parallel()
	var asked []string
	w := apitest.New(t, apitest.WithPasswords(&asked))
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
			"right":           {apitest.BasicHeader("grafana", "s3cret"), 200, "", nil, true},
			"wrong":           {apitest.BasicHeader("grafana", "wrong"), 401, "", []string{root, challenge}, true},
			"empty":           {apitest.BasicHeader("grafana", ""), 401, "", []string{root, challenge}, true},
			"as it is":        {apitest.BasicHeader("grafana", "+%:ü"), 401, "", []string{root, challenge}, true},
			"busy":            {apitest.BasicHeader("grafana", "busy"), 429, "7", nil, true},
			"down":            {apitest.BasicHeader("grafana", "down"), 503, "5", nil, true},
			"a token":         {apitest.BasicHeader("any", "e30.e30.e30"), 401, "", []string{root}, false},
			"no token quite":  {apitest.BasicHeader("any", "W10.e30.e30"), 401, "", []string{root, challenge}, true},
			"two parts":       {apitest.BasicHeader("any", "e30.e30"), 401, "", []string{root, challenge}, true},
			"no base64":       {"Basic !", 401, "", []string{root}, false},
			"no password":     {"Basic " + base64.StdEncoding.EncodeToString([]byte("grafana")), 401, "", []string{root}, false},
			"nothing":         {"", 401, "", []string{root}, false},
			"a bearer token":  {"Bearer bad", 401, "", []string{root}, false},
			"a scheme of use": {"Digest username=x", 401, "", []string{root}, false},
		} {
			asked = nil
			a := w.Do("GET", path, "", "Authorization", c.header, "X-Forwarded-For", "203.0.113.9", "Origin", "https://evil.example")
			if a.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s, %s: other pages may read it", path, name)
			}
			if a.Code != c.code || a.Header.Get("Retry-After") != c.retry || !slices.Equal(a.Header["Www-Authenticate"], c.challenges) || (len(asked) == 1) != c.asked {
				t.Errorf("%s, %s: %d %v, asked %v: %s", path, name, a.Code, a.Header, asked, a.Body)
			}
			if name == "as it is" && !strings.HasPrefix(asked[0], "grafana:+%:ü@192.0.2.1") {
				t.Errorf("asked %q", asked)
			}
		}
	}
}

// roundTrip answers requests for tokens.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// BenchmarkPassword compares a request with a user and a password, whose token is kept, with the same request with a
// token.
func BenchmarkPassword(b *testing.B) {
	signed := func(ctx context.Context, _ string) (*bearer.Caller, error) {
		caller, err := apitest.Verify(ctx, "good")
		if err == nil {
			caller.Expires = time.Now().Add(time.Hour)
		}
		return caller, err
	}
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Request: r, Body: io.NopCloser(strings.NewReader(`{"access_token":"good","token_type":"Bearer"}`))}, nil
	})}
	w := apitest.Open(b, bolt.Options{}, func(c *api.Config) {
		c.Basic = basic.New(basic.Config{TokenURL: "https://tokens.example", Client: client, Verify: signed, Log: c.Log}).Verify
	})
	w.Do("POST", apitest.EventsPath, apitest.NewEvent("a")).Must(201)
	handler := w.Handler()
	for name, authorization := range map[string]string{"token": "Bearer good", "password": apitest.BasicHeader("grafana", "s3cret")} {
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
