package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
)

// markedNamespaces each have events whose every text says which namespace they are of.
var markedNamespaces = []string{"team-a", "team-b", "default"}

// mark stores the events of a namespace: as many as it has letters.
func (w *world) mark(namespace string) {
	w.t.Helper()
	for i := range len(namespace) {
		secret := "secret-" + namespace
		w.as("root", "POST", "/apis/events.k8s.io/v1/namespaces/"+namespace+"/events", fmt.Sprintf(`{"metadata":{"name":"%s-%d","labels":{"tidings.example/cluster":%q}},
			"eventTime":%q,"reportingController":%q,"reportingInstance":"i","action":"Do","type":"Warning","reason":%q,"note":"hello from %s",
			"regarding":{"kind":%q,"namespace":%q,"name":%q,"uid":"uid"}}`, secret, i, secret,
			storyEnd.Add(-time.Duration(i)*time.Minute).Format("2006-01-02T15:04:05.000000Z07:00"), secret+".example/ctl", secret, secret, secret, namespace, secret)).must(201)
	}
}

// queryKinds are questions that each would show something of every namespace; some do not
// show all of them.
func queryKinds() map[string]string {
	return map[string]string{
		"events":            queryPath("events"),
		"events by text":    queryPath("events", "search", "hello", "order", "oldest"),
		"events by reason":  queryPath("events", "fieldSelector", "type=Warning"),
		"histogram":         queryPath("histogram", "by", "reason,cluster,kind"),
		"histogram by text": queryPath("histogram", "by", "namespace,reporter", "search", "hello"),
		"facets":            queryPath("facets"),
		"facets by field":   queryPath("facets", "fieldSelector", "regarding.uid=uid"),
		"groups":            queryPath("groups", "by", "reason,reporter"),
		"groups of objects": queryPath("groups", "by", "object"),
		"object":            queryPath("object", "uid", "uid"),
		"some: groups":      queryPath("groups", "by", "type"),
		"some: changes":     queryPath("changes", "at", "2026-03-04T13:00:01Z"),
	}
}

// TestQueryPolicy: every caller sees of every kind of question what its lists show, and
// nothing of other namespaces: no counts, names, values or samples. A namespace that is
// asked for and is not granted is refused with the very answer of its list.
func TestQueryPolicy(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return storyEnd }
	w, _ := newPolicyWorld(t, fullMatrixPolicy(), func(c *api.Config) { c.Now = now })
	for _, namespace := range markedNamespaces {
		w.mark(namespace)
	}
	callers := []string{"root", "nobody", "x+events:read", "x+events:write", "x+events", "team", "prefix", "team+events:read", "only-list", "only-get", "only-watch"}
	for _, caller := range callers {
		for name, path := range queryKinds() {
			for _, asked := range [][]string{nil, {"team-a"}, {"team-b"}, {"default"}, {"team-a", "team-b"}, {"default", "team-a"}} {
				for _, accept := range []string{"application/json", "text/csv"} {
					w.tryQuery(caller, name, path, asked, accept)
				}
			}
		}
	}
}

// tryQuery does one cell of the matrix.
func (w *world) tryQuery(caller, name, path string, asked []string, accept string) {
	w.t.Helper()
	lists := func(namespace string) bool { return slices.Contains(rights(caller, namespace), "list") }
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
	a := w.as(caller, "GET", path, "", "Accept", accept)
	if refused != "" || len(seen) == 0 {
		list := "/apis/events.k8s.io/v1/events"
		if refused != "" {
			list = "/apis/events.k8s.io/v1/namespaces/" + refused + "/events"
		}
		want := w.as(caller, "GET", list, "", "Accept", accept)
		if want.code != 403 && accept != "text/csv" || a.code != 403 {
			w.t.Fatalf("%s: %d, the list %d: %s", what, a.code, want.code, a.body)
		}
		if accept == "application/json" {
			equal(w.t, string(a.body), string(want.body))
			equal(w.t, a.header.Get("WWW-Authenticate"), want.header.Get("WWW-Authenticate"))
		}
		return
	}
	if a.code != 200 {
		w.t.Fatalf("%s: %d: %s", what, a.code, a.body)
	}
	for _, namespace := range markedNamespaces {
		if shown := strings.Contains(string(a.body), "secret-"+namespace); shown != slices.Contains(seen, namespace) && (shown || !strings.HasPrefix(name, "some")) {
			w.t.Fatalf("%s: %s is shown: %v: %s", what, namespace, shown, a.body)
		}
	}
	if accept == "application/json" {
		w.checkCounts(what, a, seen)
		restricted, _ := a.at("namespaces").([]any)
		if whole := asked == nil && lists(""); whole != (restricted == nil) {
			w.t.Fatalf("%s: restricted to %v", what, restricted)
		}
	}
}

// checkCounts checks that an answer counts the events of some namespaces.
func (w *world) checkCounts(what string, a *answer, seen []string) {
	w.t.Helper()
	want := 0
	for _, namespace := range seen {
		want += len(namespace)
	}
	got := want
	switch {
	case a.at("total") != nil:
		got = int(a.at("total").(float64))
	case a.at("items") != nil:
		got = len(a.at("items").([]any))
	case a.at("groups") != nil:
		got = 0
		for _, g := range a.at("groups").([]any) {
			got += int(field(g, "count").(float64))
		}
	}
	if got != want {
		w.t.Fatalf("%s: counts %d of %d: %s", what, got, want, a.body)
	}
}

// TestQueryAudit: a query is recorded as the list that it is, with the namespaces that it
// looked at and the rules that allow it.
func TestQueryAudit(t *testing.T) {
	t.Parallel()
	log := openAudit(t)
	w, _ := newPolicyWorld(t, fullMatrixPolicy(), func(c *api.Config) { c.Audit = log.Log })
	w.as("prefix", "GET", queryPath("facets"), "").must(200)
	w.as("prefix", "GET", queryPath("facets", "namespace", "team-b", "namespace", "team-a"), "").must(200)
	w.as("prefix", "GET", queryPath("facets", "namespace", "team-b", "namespace", "default"), "").must(403)
	w.as("root", "GET", queryPath("facets"), "").must(200)
	w.as("nobody", "GET", queryPath("facets"), "").must(403)
	var got []string
	_, entries := log.entries()
	for _, e := range entries {
		rule, _, _ := strings.Cut(e.Rule, ",")
		got = append(got, fmt.Sprint(e.User, "|", e.Verb, "|", e.Group, "|", e.Resource, "|", e.Namespace, "|", *e.Allowed, "|", rule))
	}
	equal(t, got, []string{
		`prefix|list|events.k8s.io|events|team-*|true|role "prefix"`,
		`prefix|list|events.k8s.io|events|team-a,team-b|true|role "prefix"`,
		`prefix|list|events.k8s.io|events|default|false|no rule of the policy allows this client to list in the namespace "default"`,
		`root|list|events.k8s.io|events||true|role "events:admin"`,
		`nobody|list|events.k8s.io|events||false|no rule of the policy allows this client to list across all namespaces (namespaces: ["*"])`,
	})
}
