package queries_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/event"
)

// TestNode finds what happened on a node, whichever way an event says so: in queries, facets, groups, searches and
// LogQL.
func TestNode(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	for i, more := range []string{
		`"reportingController":"kubelet","reportingInstance":"node-1"`,
		`"reportingController":"kubelet","reportingInstance":"x","regarding":{"kind":"Node","name":"node-1"}`,
		`"reportingController":"c","reportingInstance":"i","labels":"node-1"`,
		`"reportingController":"c","reportingInstance":"node-1"`, // any controller may be called so
	} {
		more, labelled := strings.CutSuffix(more, `,"labels":"node-1"`)
		labels := ""
		if labelled {
			labels = fmt.Sprintf(`,"labels":{%q:"node-1"}`, event.NodeLabel)
		}
		w.Do("POST", "/apis/events.k8s.io/v1/namespaces/default/events", fmt.Sprintf(`{"metadata":{"name":"on-%d"%s},"eventTime":%q,"action":"Do","type":"Normal","reason":"OnNode",%s}`,
			i, labels, apitest.StoryEnd.Add(-time.Duration(i+1)*time.Minute).Format("2006-01-02T15:04:05.000000Z07:00"), more)).Must(201)
	}
	second := apitest.StoryEnd.Add(-time.Minute).Format(time.RFC3339)
	w.Do("POST", "/api/v1/namespaces/default/events", fmt.Sprintf(`{"metadata":{"name":"old"},"firstTimestamp":%q,"lastTimestamp":%q,"count":1,"type":"Normal","reason":"OnNode",
		"source":{"component":"kubelet","host":"node-1"},"involvedObject":{"kind":"Pod","namespace":"default","name":"x"}}`, second, second)).Must(201)
	for name, parameters := range map[string][]string{
		"field": {"fieldSelector", "node=node-1"}, "pattern": {"search", "node:node-* reason:OnNode"}, "search": {"search", "node:NODE-1"}, "word": {"search", "node-1"},
	} {
		a := w.Do("GET", apitest.QueryPath("events", parameters...), "").Must(200)
		if n := len(a.At("items").([]any)); n != 4 {
			t.Errorf("%s: %d events, want 4", name, n)
		}
	}
	facets := w.Do("GET", apitest.QueryPath("facets", "search", "reason:OnNode"), "").Must(200)
	apitest.Equal(t, fmt.Sprint(facets.At("facets.node")), "[map[count:4 value:node-1] map[count:1 value:]]")
	groups := w.Do("GET", apitest.QueryPath("groups", "by", "node", "search", "reason:OnNode -node:"+`""`), "").Must(200)
	apitest.Equal(t, fmt.Sprint(groups.At("counted")), "occurrences") // from the index
	apitest.Equal(t, fmt.Sprint(apitest.Field(groups.At("groups").([]any)[0], "count")), "4")
	at := url.Values{"start": {apitest.StoryEnd.Add(-time.Hour).Format(time.RFC3339)}, "end": {apitest.StoryEnd.Format(time.RFC3339)}, "query": {`{node="node-1"}`}}
	apitest.Equal(t, fmt.Sprint(w.Do("GET", "/loki/api/v1/label/node/values?"+at.Encode(), "").Must(200).At("data")), "[node-1]")
}

// TestHints: an answer without a row says which terms of the search fit nothing, and what may have been meant.
func TestHints(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	for text, want := range map[string]string{
		"reason:BakOff":       "reason:BakOff fits nothing in this range: probably BackOff was meant",
		"ns:shap":             "ns:shap fits nothing in this range: probably shop was meant",
		"kind:pod reason:zzz": "reason:zzz fits nothing in this range",
		"reson:BackOff":       "reson:BackOff is a word, as there is no field reson: probably reason was meant",
		"BakOff":              "BakOff is perhaps a mistyped BackOff, which is a reason",
		"nothing-like-it":     "",
		"no shap host":        "", // words of a sentence
		"shap":                "shap is perhaps a mistyped shop, which is a namespace",
		"no-such shap-1":      "",
		"count>10":            "count>10 is a word: numbers cannot be compared: ask for groups, which are sorted by their count",
		"api-.*":              "api-.* is a word: there are no regular expressions: write words, OR, or * in the value of a field, as in name:web-*",
		"web-[0-9]+":          "web-[0-9]+ is a word: there are no regular expressions: write words, OR, or * in the value of a field, as in name:web-*",
		"-type:nothing zzz":   "",
		"reason=~Back.*":      "reason=~Back.* fits nothing in this range: there are no regular expressions: write words, OR, or * in the value of a field, as in name:web-*",
		"name:/web/":          "name:/web/ fits nothing in this range: there are no regular expressions: write words, OR, or * in the value of a field, as in name:web-*",
		"reason!~Back":        "reason!~Back is a word: there are no regular expressions: write words, OR, or * in the value of a field, as in name:web-*",
		"BackOff or Pulled":   "or is a word: write OR, AND and NOT in capital letters",
		"!BackOff":            "!BackOff is a word: write - in place of ! to leave something out",
		"-n shop":             "-n is a word: there are no flags here: write ns:NAME for a namespace shop is a namespace: write namespace:shop",
		"pod:web":             "pod:web is a word, as there is no field pod: write pod/web",
		"app=web":             "app=web is a word, as there is no field app: write label:app=web for a label",
		"severity:high":       "severity:high is a word, as there is no field severity: there are type, reason, kind, namespace, reporter, cluster, owner, node, name, uid, path, event, note, pattern and label",
		"warning":             "warning is a type: write type:Warning",
		"https://nothing":     "",

		"type:normal reason:BackOff":        "each of type:normal, reason:BackOff fits something in this range, but nothing fits all terms",
		"type:normal reason:backoff zzz":    "each of type:normal, reason:backoff fits something in this range, but nothing fits all terms",
		"type:normal reason:BackOff ns:zzz": "ns:zzz fits nothing in this range",
	} {
		for _, path := range []string{"events", "facets", "histogram", "groups"} {
			parameters := []string{"search", text}
			if path == "groups" {
				parameters = append(parameters, "by", "type")
			}
			hints, _ := w.Do("GET", apitest.QueryPath(path, parameters...), "").Must(200).At("hints").([]any)
			if got := strings.Trim(fmt.Sprint(hints), "[]"); got != want {
				t.Errorf("%s: %s: %q, want %q", path, text, got, want)
			}
		}
	}
	if hints := w.Do("GET", apitest.QueryPath("events", "search", "type:warning"), "").Must(200).At("hints"); hints != nil {
		t.Errorf("an answer with events has hints: %v", hints)
	}
}

// TestGroupsByObject: objects of one name in two namespaces or clusters are two, also without a UID, and their links
// show their own events.
func TestGroupsByObject(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	n := 0
	for _, in := range []struct{ namespace, cluster string }{{"shop", "east"}, {"shop", "west"}, {"mail", ""}} {
		for range 2 {
			n++
			w.Do("POST", "/apis/events.k8s.io/v1/namespaces/"+in.namespace+"/events", fmt.Sprintf(`{"metadata":{"name":"same-%d","labels":{%q:%q}},"eventTime":%q,"action":"Do",
				"reportingController":"c","reportingInstance":"i","type":"Normal","reason":"Same","regarding":{"kind":"Thing","namespace":%q,"name":"one"}}`,
				n, event.ClusterLabel, in.cluster, apitest.StoryEnd.Add(-time.Minute).Format("2006-01-02T15:04:05.000000Z07:00"), in.namespace)).Must(201)
		}
	}
	groups := w.Do("GET", apitest.QueryPath("groups", "by", "object", "search", "reason:Same"), "").Must(200).At("groups").([]any)
	if len(groups) != 3 {
		t.Fatalf("%d groups, want 3", len(groups))
	}
	for _, g := range groups {
		items := w.Do("GET", apitest.Field(g, "events").(string), "").Must(200).At("items").([]any)
		if len(items) != 2 || apitest.Field(g, "count") != any(2.0) || apitest.Field(items[0], "metadata.namespace") != apitest.Field(g, "by.namespace") {
			t.Errorf("%v: %d events", apitest.Field(g, "by"), len(items))
		}
	}
}

// TestNamesWithASlash: pod/web and shop/web find what the same search by fields finds, and a * at an end of a word is
// none.
func TestNamesWithASlash(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	found := func(search string) string {
		var names []string
		for _, item := range w.Do("GET", apitest.QueryPath("events", "search", search, "limit", "500"), "").Must(200).At("items").([]any) {
			names = append(names, fmt.Sprint(apitest.Field(item, "metadata.name")))
		}
		return strings.Join(names, " ")
	}
	for text, fields := range map[string]string{"pod/p-s": "kind:pod name:*p-s*", "po/p-*p": "kind:pod name:*p-*p*", "shop/shop": "ns:shop name:*shop*", "BackO*": "BackO"} {
		if got, want := found(text), found(fields); got != want || got == "" {
			t.Errorf("%s finds %q, and %s %q", text, got, fields, want)
		}
	}
}
