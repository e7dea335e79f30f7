package bearer_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"tidings.example/shared/bearer"
)

func TestToken(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		headers   []string
		query     string
		token     string
		status    int
		challenge string
	}{
		{"good", []string{"Bearer a.b.c"}, "", "a.b.c", 0, ""},
		{"no header", nil, "", "", 401, "Bearer"},
		{"token only in the query", nil, "access_token=a", "", 401, "Bearer"},
		{"scheme Basic", []string{"Basic YTpi"}, "", "", 401, "Bearer"},
		{"header empty", []string{""}, "", "", 401, "Bearer"},
		{"no value", []string{"Bearer"}, "", "", 401, `Bearer error="invalid_request", error_description="empty token"`},
		{"empty value", []string{"Bearer "}, "", "", 401, `Bearer error="invalid_request", error_description="empty token"`},
		{"two headers", []string{"Bearer a", "Bearer a"}, "", "", 401, `Bearer error="invalid_request", error_description="several Authorization headers"`},
		{"header and query", []string{"Bearer a"}, "x=1&access_token=b", "", 401, `Bearer error="invalid_request", error_description="tokens in header and query"`},
		{"header and escaped query", []string{"Bearer a"}, "access%5Ftoken=b", "a", 0, ""}, // ignored, never read
		{"a parameter of similar name", []string{"Bearer a"}, "no_access_token=b", "a", 0, ""},
		{"scheme in lower case", []string{"bearer a"}, "", "a", 0, ""},
		{"scheme in upper case", []string{"BEARER a"}, "", "a", 0, ""},
		{"two blanks: left to verification", []string{"Bearer  a"}, "", " a", 0, ""},
		{"scheme with a tail", []string{"Bearerx a"}, "", "", 401, "Bearer"},
		{"scheme before a tab", []string{"Bearer\ta"}, "", "", 401, "Bearer"},
	} {
		r := &http.Request{Header: http.Header{}, URL: &url.URL{RawQuery: test.query}}
		if test.headers != nil {
			r.Header["Authorization"] = test.headers
		}
		got, err := bearer.Token(r)
		var refusal *bearer.Error
		errors.As(err, &refusal)
		if got != test.token || (err == nil) != (test.status == 0) || refusal != nil && refusal.Status != test.status || bearer.Challenge(err, "") != test.challenge {
			t.Errorf("%s: %q, %+v, challenge %q", test.name, got, refusal, bearer.Challenge(err, ""))
		}
	}
}

func TestChallenge(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"": errors.New("another error"),
		`Bearer error="insufficient_scope", scope="events:write"`: bearer.InsufficientScope("events:write"),
		`Bearer error="insufficient_scope", scope="ab"`:           bearer.InsufficientScope("a\"\\\r\nbä"),
	} {
		if got := bearer.Challenge(err, ""); got != want {
			t.Errorf("Challenge(%v) = %s, want %s", err, got, want)
		}
	}
	if got := bearer.Challenge(&bearer.Error{Status: http.StatusServiceUnavailable}, ""); got != "" {
		t.Errorf("a challenge for a 503: %s", got)
	}
}

// TestChallengeWithMetadata: every challenge names the document, and no scope that the refusal does not name.
func TestChallengeWithMetadata(t *testing.T) {
	t.Parallel()
	const document = "https://events.example/.well-known/oauth-protected-resource"
	for want, err := range map[string]error{
		`Bearer resource_metadata="` + document + `"`:                                                   &bearer.Error{Status: http.StatusUnauthorized},
		`Bearer error="invalid_token", resource_metadata="` + document + `"`:                            &bearer.Error{Status: http.StatusUnauthorized, Code: "invalid_token"},
		`Bearer error="insufficient_scope", resource_metadata="` + document + `"`:                       bearer.InsufficientScope(""),
		`Bearer error="insufficient_scope", scope="events:write", resource_metadata="` + document + `"`: bearer.InsufficientScope("events:write"),
	} {
		if got := bearer.Challenge(err, document); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := bearer.Challenge(&bearer.Error{Status: http.StatusServiceUnavailable}, document); got != "" {
		t.Errorf("a challenge for a 503: %s", got)
	}
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	verify := func(_ context.Context, token string) (*bearer.Caller, error) {
		switch token {
		case "good":
			return &bearer.Caller{Subject: "client-1"}, nil
		case "later":
			return nil, &bearer.Error{Reason: "keys unavailable", Status: http.StatusServiceUnavailable}
		}
		return nil, &bearer.Error{Reason: "secret reason", Status: http.StatusUnauthorized, Code: "invalid_token"}
	}
	e := echo.New()
	e.Use(bearer.Middleware(verify,
		func(r *http.Request) bool { return r.URL.Path == "/public" },
		func(c echo.Context, err error) error {
			var refusal *bearer.Error
			errors.As(err, &refusal)
			return c.String(refusal.Status, "refused")
		}))
	e.GET("/*", func(c echo.Context) error {
		caller, ok := bearer.FromContext(c.Request().Context())
		if !ok {
			return c.String(http.StatusOK, "nobody")
		}
		return c.String(http.StatusOK, caller.Subject)
	})
	for _, test := range []struct {
		path, header    string
		code            int
		body, challenge string
	}{
		{"/x", "Bearer good", 200, "client-1", ""},
		{"/x", "Bearer bad", 401, "refused", `Bearer error="invalid_token"`},
		{"/x", "Bearer later", 503, "refused", ""},
		{"/x", "", 401, "refused", "Bearer"},
		{"/public", "", 200, "nobody", ""},
		{"/public", "Bearer bad", 200, "nobody", ""},
	} {
		req := httptest.NewRequest(http.MethodGet, test.path, nil)
		if test.header != "" {
			req.Header.Set("Authorization", test.header)
		}
		rec := httptest.NewRecorder()
		e.ServeHTTP(rec, req)
		if rec.Code != test.code || rec.Body.String() != test.body || rec.Header().Get("WWW-Authenticate") != test.challenge {
			t.Errorf("%s with %q: %d %q %v", test.path, test.header, rec.Code, rec.Body, rec.Header())
		}
	}
}

// FuzzAuthorization: every header gives either a token that was sent or a refusal, and hostile tokens are never
// accepted.
func FuzzAuthorization(f *testing.F) {
	made := token(good, claims())
	for _, seed := range []string{"Bearer " + made, "Bearer", "bearer  x", "Basic YTpi", "Bearer " + join(alg("none"), claims(), func([]byte) []byte { return nil }), "Bearer {}.{}.{}"} {
		f.Add(seed, "access_token=x")
	}
	v := newVerifier(f, nil)
	f.Fuzz(func(t *testing.T, header, query string) {
		r := &http.Request{Header: http.Header{"Authorization": {header}}, URL: &url.URL{RawQuery: query}}
		sent, err := bearer.Token(r)
		if err != nil {
			if sent != "" {
				t.Fatalf("a token and an error: %q, %v", sent, err)
			}
			return
		}
		if !strings.HasSuffix(header, sent) {
			t.Fatalf("token %q was not sent in %q", sent, header)
		}
		if caller, err := v.Verify(t.Context(), sent); err == nil && sent != made {
			t.Fatalf("accepted a token nobody signed: %q as %+v", sent, caller)
		}
	})
}
