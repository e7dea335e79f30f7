package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
)

// TestNode finds what happened on a node, whichever way an event says so: in queries, facets, groups, searches and LogQL.
func TestNode(t *testing.T) {
	t.Parallel()
	w := storyWorld(t)
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
		w.do("POST", "/apis/events.k8s.io/v1/namespaces/default/events", fmt.Sprintf(`{"metadata":{"name":"on-%d"%s},"eventTime":%q,"action":"Do","type":"Normal","reason":"OnNode",%s}`,
			i, labels, storyEnd.Add(-time.Duration(i+1)*time.Minute).Format("2006-01-02T15:04:05.000000Z07:00"), more)).must(201)
	}
	second := storyEnd.Add(-time.Minute).Format(time.RFC3339)
	w.do("POST", "/api/v1/namespaces/default/events", fmt.Sprintf(`{"metadata":{"name":"old"},"firstTimestamp":%q,"lastTimestamp":%q,"count":1,"type":"Normal","reason":"OnNode",
		"source":{"component":"kubelet","host":"node-1"},"involvedObject":{"kind":"Pod","namespace":"default","name":"x"}}`, second, second)).must(201)
	for name, parameters := range map[string][]string{
		"field": {"fieldSelector", "node=node-1"}, "pattern": {"fieldSelector", "node=node-*,reason=OnNode"}, "search": {"search", "node:NODE-1"}, "word": {"search", "node-1"},
	} {
		a := w.do("GET", queryPath("events", parameters...), "").must(200)
		if n := len(a.at("items").([]any)); n != 4 {
			t.Errorf("%s: %d events, want 4", name, n)
		}
	}
	facets := w.do("GET", queryPath("facets", "search", "reason:OnNode"), "").must(200)
	equal(t, fmt.Sprint(facets.at("facets.node")), "[map[count:4 value:node-1] map[count:1 value:]]")
	groups := w.do("GET", queryPath("groups", "by", "node", "search", "reason:OnNode -node:"+`""`), "").must(200)
	equal(t, fmt.Sprint(groups.at("counted")), "occurrences") // from the index
	equal(t, fmt.Sprint(field(groups.at("groups").([]any)[0], "count")), "4")
	at := url.Values{"start": {storyEnd.Add(-time.Hour).Format(time.RFC3339)}, "end": {storyEnd.Format(time.RFC3339)}, "query": {`{node="node-1"}`}}
	equal(t, fmt.Sprint(w.do("GET", "/loki/api/v1/label/node/values?"+at.Encode(), "").must(200).at("data")), "[node-1]")
}

// TestHints: an answer without a row says which terms of the search fit nothing, and what may have been meant.
func TestHints(t *testing.T) {
	t.Parallel()
	w := storyWorld(t)
	for text, want := range map[string]string{
		"reason:BakOff":       "reason:BakOff fits nothing in this range: probably BackOff was meant",
		"ns:shap":             "ns:shap fits nothing in this range: probably shop was meant",
		"kind:pod reason:zzz": "reason:zzz fits nothing in this range",
		"reson:BackOff":       "reson:BackOff is a word, as there is no field reson: probably reason was meant",
		"BakOff":              "BakOff is perhaps a mistyped BackOff, which is a reason",
		"nothing-like-it":     "",
		"-type:nothing zzz":   "",
	} {
		for _, path := range []string{"events", "facets", "histogram", "groups"} {
			parameters := []string{"search", text}
			if path == "groups" {
				parameters = append(parameters, "by", "type")
			}
			hints, _ := w.do("GET", queryPath(path, parameters...), "").must(200).at("hints").([]any)
			if got := strings.Trim(fmt.Sprint(hints), "[]"); got != want {
				t.Errorf("%s: %s: %q, want %q", path, text, got, want)
			}
		}
	}
	if hints := w.do("GET", queryPath("events", "search", "type:warning"), "").must(200).at("hints"); hints != nil {
		t.Errorf("an answer with events has hints: %v", hints)
	}
}

// TestGroupsByObject: objects of one name in two namespaces or clusters are two, also without a UID, and their links show their own
// events.
func TestGroupsByObject(t *testing.T) {
	t.Parallel()
	w := storyWorld(t)
	n := 0
	for _, in := range []struct{ namespace, cluster string }{{"shop", "east"}, {"shop", "west"}, {"mail", ""}} {
		for range 2 {
			n++
			w.do("POST", "/apis/events.k8s.io/v1/namespaces/"+in.namespace+"/events", fmt.Sprintf(`{"metadata":{"name":"same-%d","labels":{%q:%q}},"eventTime":%q,"action":"Do",
				"reportingController":"c","reportingInstance":"i","type":"Normal","reason":"Same","regarding":{"kind":"Thing","namespace":%q,"name":"one"}}`,
				n, event.ClusterLabel, in.cluster, storyEnd.Add(-time.Minute).Format("2006-01-02T15:04:05.000000Z07:00"), in.namespace)).must(201)
		}
	}
	groups := w.do("GET", queryPath("groups", "by", "object", "search", "reason:Same"), "").must(200).at("groups").([]any)
	if len(groups) != 3 {
		t.Fatalf("%d groups, want 3", len(groups))
	}
	for _, g := range groups {
		items := w.do("GET", field(g, "events").(string), "").must(200).at("items").([]any)
		if len(items) != 2 || field(g, "count") != any(2.0) || field(items[0], "metadata.namespace") != field(g, "by.namespace") {
			t.Errorf("%v: %d events", field(g, "by"), len(items))
		}
	}
}
