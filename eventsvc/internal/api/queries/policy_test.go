package queries_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
)

// markedNamespaces each have events whose every text says which namespace they are of.
var markedNamespaces = []string{"team-a", "team-b", "default"}

// mark stores the events of a namespace: as many as it has letters.
func mark(w *apitest.World, namespace string) {
	w.T.Helper()
	for i := range len(namespace) {
		secret := "secret-" + namespace
		w.As("root", "POST", "/apis/events.k8s.io/v1/namespaces/"+namespace+"/events", fmt.Sprintf(`{"metadata":{"name":"%s-%d","labels":{"tidings.example/cluster":%q}},
			"eventTime":%q,"reportingController":%q,"reportingInstance":"i","action":"Do","type":"Warning","reason":%q,"note":"hello from %s",
			"regarding":{"kind":%q,"namespace":%q,"name":%q,"uid":"uid"}}`, secret, i, secret,
			apitest.StoryEnd.Add(-time.Duration(i)*time.Minute).Format("2006-01-02T15:04:05.000000Z07:00"), secret+".example/ctl", secret, secret, secret, namespace, secret)).Must(201)
	}
}

// queryKinds are questions that each would show something of every namespace; some do not
// show all of them.
func queryKinds() map[string]string {
	return map[string]string{
		"events":            apitest.QueryPath("events"),
		"events by text":    apitest.QueryPath("events", "search", "hello", "order", "oldest"),
		"events by reason":  apitest.QueryPath("events", "fieldSelector", "type=Warning"),
		"histogram":         apitest.QueryPath("histogram", "by", "reason,cluster,kind"),
		"histogram by text": apitest.QueryPath("histogram", "by", "namespace,reporter", "search", "hello"),
		"facets":            apitest.QueryPath("facets"),
		"facets by field":   apitest.QueryPath("facets", "fieldSelector", "regarding.uid=uid"),
		"groups":            apitest.QueryPath("groups", "by", "reason,reporter"),
		"groups of objects": apitest.QueryPath("groups", "by", "object"),
		"object":            apitest.QueryPath("object", "uid", "uid"),
		"some: groups":      apitest.QueryPath("groups", "by", "type"),
		"some: changes":     apitest.QueryPath("changes", "at", "2026-03-04T13:00:01Z"),
	}
}

// TestQueryPolicy: every caller sees of every kind of question what its lists show, and
// nothing of other namespaces: no counts, names, values or samples. A namespace that is
// asked for and is not granted is refused with the very answer of its list.
func TestQueryPolicy(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return apitest.StoryEnd }
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy(), func(c *api.Config) { c.Now = now })
	for _, namespace := range markedNamespaces {
		mark(w, namespace)
	}
	callers := []string{"root", "nobody", "x+events:read", "x+events:write", "x+events", "team", "prefix", "team+events:read", "only-list", "only-get", "only-watch"}
	for _, caller := range callers {
		for name, path := range queryKinds() {
			for _, asked := range [][]string{nil, {"team-a"}, {"team-b"}, {"default"}, {"team-a", "team-b"}, {"default", "team-a"}} {
				for _, accept := range []string{"application/json", "text/csv", "application/vnd.tidings.table+json"} {
					tryQuery(w, caller, name, path, asked, accept)
				}
			}
		}
	}
}

// TestDeletedPolicy: every caller sees what was deleted in the namespaces that it may list, with who did it, and
// nothing of others.
func TestDeletedPolicy(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy(), func(c *api.Config) { c.Now = func() time.Time { return apitest.StoryEnd } })
	for _, namespace := range markedNamespaces {
		mark(w, namespace)
		w.As("root", "DELETE", "/apis/events.k8s.io/v1/namespaces/"+namespace+"/events", "").Must(200)
	}
	path := apitest.QueryPath("deleted", "from", "2026-01-01T00:00:00Z", "to", "2100-01-01T00:00:00Z")
	for _, caller := range []string{"root", "nobody", "x+events:read", "team", "prefix", "team+events:read", "only-list", "only-get", "only-watch"} {
		for _, asked := range [][]string{nil, {"team-a"}, {"team-b"}, {"default"}, {"team-a", "team-b"}, {"default", "team-a"}} {
			for _, accept := range []string{"application/json", "text/csv", "application/vnd.tidings.table+json"} {
				tryQuery(w, caller, "deleted", path, asked, accept)
			}
		}
	}
	item := w.As("root", "GET", path, "").Must(200).At("items").([]any)[0]
	if by := apitest.Field(item, "by").(map[string]any); by["user"] != "root" || by["audit"] == "" {
		t.Errorf("deleted by %v", by)
	}
}

// tryQuery does one cell of the matrix.
func tryQuery(w *apitest.World, caller, name, path string, asked []string, accept string) {
	w.T.Helper()
	lists := func(namespace string) bool { return slices.Contains(apitest.Rights(caller, namespace), "list") }
	var seen []string
	refused := ""
	for _, namespace := range markedNamespaces {
		switch {
		case asked == nil && lists(namespace), slices.Contains(asked, namespace) && lists(namespace):
			seen = append(seen, namespace)
		case slices.Contains(asked, namespace) && (refused == "" || slices.Index(asked, namespace) < slices.Index(asked, refused)):
			refused = namespace
		}
	}
	for _, namespace := range asked {
		path += "&namespace=" + namespace
	}
	what := fmt.Sprintf("%s by %s in %v as %s", name, caller, asked, accept)
	a := w.As(caller, "GET", path, "", "Accept", accept)
	if refused != "" || len(seen) == 0 {
		list := "/apis/events.k8s.io/v1/events"
		if refused != "" {
			list = "/apis/events.k8s.io/v1/namespaces/" + refused + "/events"
		}
		want := w.As(caller, "GET", list, "", "Accept", accept)
		if want.Code != 403 && accept != "text/csv" || a.Code != 403 {
			w.T.Fatalf("%s: %d, the list %d: %s", what, a.Code, want.Code, a.Body)
		}
		if accept == "application/json" {
			apitest.Equal(w.T, string(a.Body), string(want.Body))
			apitest.Equal(w.T, a.Header.Get("WWW-Authenticate"), want.Header.Get("WWW-Authenticate"))
		}
		return
	}
	if a.Code != 200 {
		w.T.Fatalf("%s: %d: %s", what, a.Code, a.Body)
	}
	for _, namespace := range markedNamespaces {
		if shown := strings.Contains(string(a.Body), "secret-"+namespace); shown != slices.Contains(seen, namespace) && (shown || !strings.HasPrefix(name, "some")) {
			w.T.Fatalf("%s: %s is shown: %v: %s", what, namespace, shown, a.Body)
		}
	}
	if accept == "application/json" {
		checkCounts(w, what, a, seen)
		restricted, _ := a.At("namespaces").([]any)
		if whole := asked == nil && lists(""); whole != (restricted == nil) {
			w.T.Fatalf("%s: restricted to %v", what, restricted)
		}
	}
}

// checkCounts checks that an answer counts the events of some namespaces.
func checkCounts(w *apitest.World, what string, a *apitest.Answer, seen []string) {
	w.T.Helper()
	want := 0
	for _, namespace := range seen {
		want += len(namespace)
	}
	got := want
	switch {
	case a.At("total") != nil:
		got = int(a.At("total").(float64))
	case a.At("items") != nil:
		got = len(a.At("items").([]any))
	case a.At("groups") != nil:
		got = 0
		for _, g := range a.At("groups").([]any) {
			got += int(apitest.Field(g, "count").(float64))
		}
	}
	if got != want {
		w.T.Fatalf("%s: counts %d of %d: %s", what, got, want, a.Body)
	}
}

// TestQueryAudit: a query is recorded as the list that it is, with the namespaces that it
// looked at and the rules that allow it.
func TestQueryAudit(t *testing.T) {
	t.Parallel()
	log := apitest.OpenAudit(t)
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy(), func(c *api.Config) { c.Audit = log.Log })
	w.As("prefix", "GET", apitest.QueryPath("facets"), "").Must(200)
	w.As("prefix", "GET", apitest.QueryPath("facets", "namespace", "team-b", "namespace", "team-a"), "").Must(200)
	w.As("prefix", "GET", apitest.QueryPath("facets", "namespace", "team-b", "namespace", "default"), "").Must(403)
	w.As("root", "GET", apitest.QueryPath("facets"), "").Must(200)
	w.As("nobody", "GET", apitest.QueryPath("facets"), "").Must(403)
	var got []string
	_, entries := log.Entries()
	for _, e := range entries {
		rule, _, _ := strings.Cut(e.Rule, ",")
		got = append(got, fmt.Sprint(e.User, "|", e.Verb, "|", e.Group, "|", e.Resource, "|", e.Namespace, "|", *e.Allowed, "|", rule))
	}
	apitest.Equal(t, got, []string{
		`prefix|list|events.k8s.io|events|team-*|true|role "prefix"`,
		`prefix|list|events.k8s.io|events|team-a,team-b|true|role "prefix"`,
		`prefix|list|events.k8s.io|events|default|false|no rule of the policy allows this client to list in the namespace "default"`,
		`root|list|events.k8s.io|events||true|role "events:admin"`,
		`nobody|list|events.k8s.io|events||false|no rule of the policy allows this client to list across all namespaces (namespaces: ["*"])`,
	})
}
