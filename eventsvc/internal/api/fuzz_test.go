package api_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/api/apitest"
)

// asSent is a query as a connection can bring it, with control characters and
// blanks escaped, and what of it can be parsed: the handlers see that, whatever
// is damaged beside it.
func asSent(query string) (raw string, values url.Values) {
	var b strings.Builder
	for _, c := range []byte(query) {
		if c <= ' ' || c == 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	values, _ = url.ParseQuery(b.String())
	return b.String(), values
}

// with sends a request with a query as it is.
func with(ctx context.Context, w *apitest.World, query, method, path, body, kind string) *apitest.Answer {
	w.T.Helper()
	req := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	req.URL.RawQuery = query
	req.Header.Set("Authorization", "Bearer good")
	req.Header.Set("Content-Type", kind)
	rec := httptest.NewRecorder()
	w.Server.ServeHTTP(rec, req)
	return &apitest.Answer{T: w.T, Code: rec.Code, Header: rec.Header(), Body: rec.Body.Bytes()}
}

// FuzzListOptions: no query makes a list fail on the server's side.
func FuzzListOptions(f *testing.F) {
	for _, query := range []string{
		"", "limit=1&continue=x", "resourceVersion=1&resourceVersionMatch=Exact", "fieldSelector=metadata.name%3Da", "labelSelector=a+in+(b)",
		"sendInitialEvents=true", "timeout=1s", "limit=-9223372036854775808", "pretty=%00", "%zz", "a;b",
	} {
		f.Add(query)
	}
	w := apitest.FuzzWorld(f)
	f.Fuzz(func(t *testing.T, query string) {
		query, q := asSent(query)
		if q.Has("watch") {
			t.Skip() // it would not end
		}
		w := *w
		w.T = t
		for _, path := range []string{
			apitest.EventsPath, apitest.CorePath, "/api/v1/events", apitest.NamespacesPath, apitest.NamespacesPath + "/default", apitest.EventsPath + "/none", "/apis", "/api/v1", "/openapi/v2", "/version",
		} {
			if a := with(t.Context(), &w, query, "GET", path, "", ""); a.Code >= 500 && a.Code != 504 {
				t.Fatalf("%d %s", a.Code, a.Body)
			}
		}
	})
}

// FuzzContinue: an invented continue token is refused, or begins a page.
func FuzzContinue(f *testing.F) {
	w := apitest.FuzzWorld(f)
	for _, token := range []string{"", "x", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Miwic3RhcnQiOiJhXHUwMDAwIn0",
		base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":2,"start":"a\u0000","remaining":9223372036854775807}`))} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		w := *w
		w.T = t
		for _, path := range []string{apitest.EventsPath, "/api/v1/events"} {
			a := w.Do("GET", path+"?limit=1&continue="+url.QueryEscape(token), "")
			if a.Code != 200 && a.Code != 400 && a.Code != 410 && a.Code != 504 {
				t.Fatalf("%d %s", a.Code, a.Body)
			}
		}
	})
}

// FuzzPaths: no path and no body make the server fail.
func FuzzPaths(f *testing.F) {
	f.Add("POST", "/a", `{}`)
	f.Add("PUT", "/%00", apitest.NewEvent("a"))
	f.Add("DELETE", "/a//b", `{"preconditions":null}`)
	f.Add("PATCH", "/..", "[]")
	w := apitest.FuzzWorld(f)
	f.Fuzz(func(t *testing.T, method, path, body string) {
		u := url.URL{Path: apitest.CorePath + path}
		switch method {
		case "GET", "POST", "PUT", "PATCH", "DELETE":
		default:
			t.Skip()
		}
		w := *w
		w.T = t
		for _, kind := range []string{"application/json", "application/yaml", apitest.Protobuf, apitest.JSONPatch, apitest.MergePatch, apitest.StrategicPatch} {
			if a := w.Do(method, u.EscapedPath(), body, "Content-Type", kind); a.Code >= 500 {
				t.Fatalf("%s %s: %d %s", method, u.EscapedPath(), a.Code, a.Body)
			}
		}
	})
}

// FuzzQueries: no query of a write or a watch makes the server fail, and none
// of a dry run writes.
func FuzzQueries(f *testing.F) {
	for _, query := range []string{
		"", "dryRun=All&dryRun=x", "fieldManager=a%00b&fieldValidation=Strict", "fieldValidation=x&pretty=1", "timeout=-1s", "timeout=1e9s",
		"force=true&fieldManager=m", "force=maybe", "gracePeriodSeconds=-1&propagationPolicy=x", "orphanDependents=true&propagationPolicy=Orphan",
		"resourceVersion=99999999999999999999", "sendInitialEvents=true&allowWatchBookmarks=1", "timeoutSeconds=-9223372036854775808",
		"resourceVersionMatch=NotOlderThan&sendInitialEvents=x", "labelSelector=%21&fieldSelector=%3D", "limit=x&continue=%00", "shardSelector=x",
	} {
		f.Add(query)
	}
	w := apitest.FuzzWorld(f)
	gone, hangUp := context.WithCancel(context.Background())
	hangUp() // so that watches end when they have begun
	f.Fuzz(func(t *testing.T, query string) {
		query, q := asSent(query)
		w := *w
		w.T = t
		for _, c := range []struct{ method, path, body, kind string }{
			{"POST", apitest.EventsPath, apitest.NewEvent("f"), "application/json"}, {"PUT", apitest.EventsPath + "/a", apitest.NewEvent("a"), "application/json"},
			{"PATCH", apitest.EventsPath + "/a", `{"metadata":{"labels":{"x":"y"}}}`, apitest.MergePatch}, {"PATCH", apitest.EventsPath + "/a", "[]", apitest.JSONPatch},
			{"PATCH", apitest.EventsPath + "/b", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"b"}}`, "application/apply-patch+yaml"},
			{"DELETE", apitest.EventsPath + "/none", "", ""}, {"DELETE", apitest.EventsPath + "x", "", ""},
		} {
			before := w.DB.Revision()
			a := with(t.Context(), &w, query, c.method, c.path, c.body, c.kind)
			if a.Code >= 500 && a.Code != 504 {
				t.Fatalf("%s: %d %s", c.method, a.Code, a.Body)
			}
			if len(q["dryRun"]) == 1 && q.Get("dryRun") == "All" && w.DB.Revision() != before {
				t.Fatalf("%s: a dry run has written", c.method)
			}
		}
		w.Do("DELETE", apitest.EventsPath+"/f", "")
		for _, path := range []string{apitest.EventsPath, apitest.NamespacesPath, "/api/v1/watch/events"} {
			if a := with(gone, &w, "watch=1&"+query, "GET", path, "", ""); a.Code >= 500 && a.Code != 504 {
				t.Fatalf("watch of %s: %d %s", path, a.Code, a.Body)
			}
		}
	})
}
