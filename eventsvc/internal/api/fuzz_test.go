package api_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
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
func (w *world) with(ctx context.Context, query, method, path, body, kind string) *answer {
	w.t.Helper()
	req := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	req.URL.RawQuery = query
	req.Header.Set("Authorization", "Bearer good")
	req.Header.Set("Content-Type", kind)
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, req)
	return &answer{w.t, rec.Code, rec.Header(), rec.Body.Bytes()}
}

// FuzzListOptions: no query makes a list fail on the server's side.
func FuzzListOptions(f *testing.F) {
	for _, query := range []string{
		"", "limit=1&continue=x", "resourceVersion=1&resourceVersionMatch=Exact", "fieldSelector=metadata.name%3Da", "labelSelector=a+in+(b)",
		"sendInitialEvents=true", "timeout=1s", "limit=-9223372036854775808", "pretty=%00", "%zz", "a;b",
	} {
		f.Add(query)
	}
	w := fuzzWorld(f)
	f.Fuzz(func(t *testing.T, query string) {
		query, q := asSent(query)
		if q.Has("watch") {
			t.Skip() // it would not end
		}
		w := *w
		w.t = t
		for _, path := range []string{
			eventsPath, corePath, "/api/v1/events", namespacesPath, namespacesPath + "/default", eventsPath + "/none", "/apis", "/api/v1", "/openapi/v2", "/version",
		} {
			if a := w.with(t.Context(), query, "GET", path, "", ""); a.code >= 500 && a.code != 504 {
				t.Fatalf("%d %s", a.code, a.body)
			}
		}
	})
}

// FuzzContinue: an invented continue token is refused, or begins a page.
func FuzzContinue(f *testing.F) {
	w := fuzzWorld(f)
	for _, token := range []string{"", "x", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Miwic3RhcnQiOiJhXHUwMDAwIn0",
		base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":2,"start":"a\u0000","remaining":9223372036854775807}`))} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		w := *w
		w.t = t
		for _, path := range []string{eventsPath, "/api/v1/events"} {
			a := w.do("GET", path+"?limit=1&continue="+url.QueryEscape(token), "")
			if a.code != 200 && a.code != 400 && a.code != 410 && a.code != 504 {
				t.Fatalf("%d %s", a.code, a.body)
			}
		}
	})
}

// FuzzPaths: no path and no body make the server fail.
func FuzzPaths(f *testing.F) {
	f.Add("POST", "/a", `{}`)
	f.Add("PUT", "/%00", newEvent("a"))
	f.Add("DELETE", "/a//b", `{"preconditions":null}`)
	f.Add("PATCH", "/..", "[]")
	w := fuzzWorld(f)
	f.Fuzz(func(t *testing.T, method, path, body string) {
		u := url.URL{Path: corePath + path}
		switch method {
		case "GET", "POST", "PUT", "PATCH", "DELETE":
		default:
			t.Skip()
		}
		w := *w
		w.t = t
		for _, kind := range []string{"application/json", "application/yaml", protobuf, jsonPatch, mergePatch, strategicPatch} {
			if a := w.do(method, u.EscapedPath(), body, "Content-Type", kind); a.code >= 500 {
				t.Fatalf("%s %s: %d %s", method, u.EscapedPath(), a.code, a.body)
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
	w := fuzzWorld(f)
	gone, hangUp := context.WithCancel(context.Background())
	hangUp() // so that watches end when they have begun
	f.Fuzz(func(t *testing.T, query string) {
		query, q := asSent(query)
		w := *w
		w.t = t
		for _, c := range []struct{ method, path, body, kind string }{
			{"POST", eventsPath, newEvent("f"), "application/json"}, {"PUT", eventsPath + "/a", newEvent("a"), "application/json"},
			{"PATCH", eventsPath + "/a", `{"metadata":{"labels":{"x":"y"}}}`, mergePatch}, {"PATCH", eventsPath + "/a", "[]", jsonPatch},
			{"PATCH", eventsPath + "/b", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"b"}}`, "application/apply-patch+yaml"},
			{"DELETE", eventsPath + "/none", "", ""}, {"DELETE", eventsPath + "x", "", ""},
		} {
			before := w.db.Revision()
			a := w.with(t.Context(), query, c.method, c.path, c.body, c.kind)
			if a.code >= 500 && a.code != 504 {
				t.Fatalf("%s: %d %s", c.method, a.code, a.body)
			}
			if len(q["dryRun"]) == 1 && q.Get("dryRun") == "All" && w.db.Revision() != before {
				t.Fatalf("%s: a dry run has written", c.method)
			}
		}
		w.do("DELETE", eventsPath+"/f", "")
		for _, path := range []string{eventsPath, namespacesPath, "/api/v1/watch/events"} {
			if a := w.with(gone, "watch=1&"+query, "GET", path, "", ""); a.code >= 500 && a.code != 504 {
				t.Fatalf("watch of %s: %d %s", path, a.code, a.body)
			}
		}
	})
}
