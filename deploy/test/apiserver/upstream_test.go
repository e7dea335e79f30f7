package apiserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// asked is a request that both servers get.
type asked struct{ method, path, media, body string }

// TestUpstream asks kube-apiserver and eventsvc, which serves the same group, the same in turn: deletes that ignore
// errors of reading, apply with the UID of what does not exist, patches that repeat an owner. Both answer alike, word
// by word.
func TestUpstream(t *testing.T) {
	c := (&cluster{t: t, dir: t.TempDir()}).start("--feature-gates=AllowUnsafeMalformedObjectDeletion=true")
	c.grant(nil)
	h := startHistory(t, c, "--group-domain=k8s.io")
	theirs, err := rest.TransportFor(c.config)
	if err != nil {
		t.Fatal(err)
	}
	const (
		events   = "/apis/events.k8s.io/v1/namespaces/default/events"
		ignore   = "ignoreStoreReadErrorWithClusterBreakingPotential"
		apply    = "application/apply-patch+yaml"
		jsonPath = "application/json-patch+json"
		merge    = "application/merge-patch+json"
		owner    = `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}`
		second   = `{"apiVersion":"v1","kind":"Pod","name":"q","uid":"v"}`
	)
	create := func(name, owners string) asked {
		return asked{"POST", events + "?fieldManager=maker", "application/json", event(name, owners)}
	}
	for _, a := range []asked{
		create("a", "[]"), create("b", "[]"),
		{"DELETE", events + "/a?" + ignore + "=true", "", ""},
		{"DELETE", events + "/a?" + ignore + "=true&dryRun=All", "", ""},
		{"DELETE", events + "/a?" + ignore + "=true&gracePeriodSeconds=0", "", ""},
		{"DELETE", events + "/a?" + ignore + "=true&propagationPolicy=Background", "", ""},
		{"DELETE", events + "/a?" + ignore + "=true&orphanDependents=true", "", ""},
		{"DELETE", events + "/a?" + ignore + "=maybe", "", ""},
		{"DELETE", events + "/none?" + ignore + "=true", "", ""},
		{"DELETE", events + "/a", "application/json", options(`"` + ignore + `":true`)},
		{"DELETE", events + "/a", "application/json", options(`"` + ignore + `":true,"preconditions":{"uid":"x"}`)},
		{"DELETE", events + "/a", "application/json", options(`"` + ignore + `":"true"`)},
		{"DELETE", events + "?" + ignore + "=true", "", ""},
		{"DELETE", events + "?" + ignore + "=true&dryRun=All", "", ""},
		{"DELETE", events, "application/json", options(`"` + ignore + `":true`)},
		{"GET", events, "", ""},
		{"DELETE", events + "/a?" + ignore + "=false", "", ""},
		{"DELETE", events + "?" + ignore + "=false", "", ""},
		{"GET", events, "", ""},

		{"PATCH", events + "/new?fieldManager=m", apply, applied("new", `"uid":"zzz"`)},
		{"PATCH", events + "/new?fieldManager=m&force=true", apply, applied("new", `"uid":"zzz"`)},
		{"PATCH", events + "/new?fieldManager=m&dryRun=All", apply, applied("new", `"uid":"zzz"`)},
		{"PATCH", events + "/new?fieldManager=m", apply, applied("new", `"uid":"zzz","resourceVersion":"1"`)},
		{"PATCH", events + "/new?fieldManager=m", apply, applied("new", `"labels":{"x":"y"}`)},
		{"PATCH", events + "/new?fieldManager=m", apply, applied("new", `"uid":"zzz"`)},
		{"PATCH", events + "/new", merge, `{"metadata":{"uid":"zzz"}}`},

		create("c", "["+owner+"]"),
		{"PATCH", events + "/c?fieldManager=adds", jsonPath, `[{"op":"add","path":"/metadata/ownerReferences/-","value":` + owner + `}]`},
		{"PATCH", events + "/c?fieldManager=adds-twice", jsonPath, `[{"op":"add","path":"/metadata/ownerReferences/-","value":` + second + `},{"op":"add","path":"/metadata/ownerReferences/-","value":` + second + `}]`},
		{"PATCH", events + "/c?fieldManager=replaces", jsonPath, `[{"op":"replace","path":"/metadata/ownerReferences","value":[` + owner + `,` + owner + `]}]`},
		{"PATCH", events + "/c?fieldManager=merges", merge, `{"metadata":{"ownerReferences":[` + second + `,` + owner + `,` + second + `]}}`},
		{"PATCH", events + "/c?fieldManager=applies", apply, applied("c", `"ownerReferences":[`+owner+`,`+owner+`]`)},
		create("d", "["+owner+","+owner+"]"),
		{"GET", events + "/d", "", ""},
		{"PATCH", events + "/d", merge, `{"metadata":{"generation":-1,"ownerReferences":[{"kind":"Pod"}],"finalizers":["x y"],"labels":{"a b":"c"}}}`},
		{"PATCH", events + "/d", merge, `{"note":"other","reason":"Other","metadata":{"uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"}}`},
		create("e", `[{"kind":"Pod"}]`),
		{"POST", events, "application/json", applied("e", `"labels":{"a b":"c"},"generation":-1,"finalizers":["x y"]`)},
	} {
		want := answerOf(t, theirs, c.url, "admin-token", a)
		got := answerOf(t, http.DefaultTransport, h.url, h.token, a)
		if got != want && !deliberate(a, got, want) {
			t.Errorf("%s %s %s\n got %s\nwant %s", a.method, a.path, a.body, got, want)
		}
	}
}

// deliberate tells whether two answers differ in what eventsvc does otherwise on purpose: a collection that was deleted
// is a Status, as the requirements have it; a patch that the merge refuses is a bad request, no error of the server; a
// body of a wrong type is named.
func deliberate(a asked, got, want string) bool {
	switch {
	case a.method == "DELETE" && strings.HasPrefix(want, `200 {"apiVersion":"events.k8s.io/v1","items":`):
		return strings.HasPrefix(got, "200 ") && strings.Contains(got, `"message":"deleted 1 events.events.k8s.io"`)
	case strings.HasPrefix(want, "500 "):
		return strings.Replace(strings.Replace(got, `"reason":"BadRequest",`, "", 1), "400", "500", 2) == want
	case strings.HasPrefix(want, "400 "):
		return strings.Replace(got, "the body is not DeleteOptions: ", "", 1) == want
	}
	return false
}

// event is the body of an event with owners.
func event(name, owners string) string {
	return `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"` + name + `","namespace":"default","ownerReferences":` + owners + `},` +
		`"eventTime":"2026-11-01T10:00:00.000000Z","reportingController":"tidings.example/test","reportingInstance":"i","action":"a","reason":"R","type":"Normal",` +
		`"regarding":{"kind":"Pod","namespace":"default","name":"p"}}`
}

// applied is the body of an apply that has more metadata.
func applied(name, meta string) string {
	return strings.Replace(event(name, "[]"), `"ownerReferences":[]`, meta, 1)
}

func options(fields string) string {
	return `{"apiVersion":"v1","kind":"DeleteOptions",` + fields + `}`
}

// own is what differs between two servers.
var own = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|"?(resourceVersion|time|creationTimestamp)"?:"[^"]*"`)

// answerOf returns the code of an answer, and its body without UIDs, resource versions and times.
func answerOf(t *testing.T, over http.RoundTripper, server, token string, a asked) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), a.method, server+a.path, strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "application/json")
	if a.media != "" {
		req.Header.Set("Content-Type", a.media)
	}
	resp, err := over.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%s %s: %v: %s", a.method, a.path, err, body)
	}
	sortManagers(v)
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, " ", own.ReplaceAllString(string(text), "$1"))
}

// sortManagers brings the managers of an event in the order of their names: those of one second have none.
func sortManagers(v map[string]any) {
	meta, _ := v["metadata"].(map[string]any)
	managers, _ := meta["managedFields"].([]any)
	slices.SortFunc(managers, func(a, b any) int {
		name := func(m any) string { return fmt.Sprint(m.(map[string]any)["manager"]) }
		return strings.Compare(name(a), name(b))
	})
}
