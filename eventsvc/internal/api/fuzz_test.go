package api_test

import (
	"net/url"
	"testing"
)

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
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Skip()
		}
		q.Del("watch")
		w := *w
		w.t = t
		for _, path := range []string{eventsPath, corePath, "/api/v1/events", namespacesPath} {
			if a := w.do("GET", path+"?"+q.Encode(), ""); a.code >= 500 && a.code != 504 {
				t.Fatalf("%d %s", a.code, a.body)
			}
		}
	})
}

// FuzzContinue: a token that somebody made up is refused or begins a page.
func FuzzContinue(f *testing.F) {
	w := fuzzWorld(f)
	for _, token := range []string{"", "x", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Miwic3RhcnQiOiJhXHUwMDAwIn0"} {
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
