package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
)

// TestOwner finds a whole rollout by the owner that a mirror has found: in lists, queries, facets, groups and LogQL.
func TestOwner(t *testing.T) {
	t.Parallel()
	w := storyWorld(t)
	for i, kind := range []string{"Deployment", "ReplicaSet", "Pod"} {
		w.do("POST", "/apis/events.k8s.io/v1/namespaces/shop/events", fmt.Sprintf(`{"metadata":{"name":"rollout-%d","labels":{%q:"Deployment",%q:"web"}},
			"eventTime":%q,"reportingController":"c","reportingInstance":"i","action":"Do","type":"Normal","reason":"Rollout","regarding":{"kind":%q,"namespace":"shop","name":"x"}}`,
			i, event.OwnerKindLabel, event.OwnerNameLabel, storyEnd.Add(-time.Duration(i+1)*time.Minute).Format("2006-01-02T15:04:05.000000Z07:00"), kind)).must(201)
	}
	has := func(what, path string, v any) {
		t.Helper()
		if got := fmt.Sprint(v); !strings.Contains(got, what) {
			t.Errorf("%s: %s lacks %s", path, got, what)
		}
	}
	const owner = "Deployment/web"
	list := w.do("GET", "/apis/events.k8s.io/v1/events?labelSelector="+event.OwnerKindLabel+"=Deployment,"+event.OwnerNameLabel+"=web", "").must(200)
	equal(t, len(list.names()), 3)
	for terms, want := range map[string]int{"owner=" + owner: 3, "owner=*/web": 3, "owner=Deployment/*,kind=Pod": 1, "owner!=" + owner: 12, "owner=": 12} {
		a := w.do("GET", queryPath("events", "fieldSelector", terms), "").must(200)
		if n := len(a.at("items").([]any)); n != want {
			t.Errorf("%s: %d events, want %d", terms, n, want)
		}
	}
	facets := w.do("GET", queryPath("facets", "fieldSelector", "owner!="), "").must(200)
	equal(t, fmt.Sprint(facets.at("facets.owner")), "[map[count:3 value:Deployment/web]]")
	groups := w.do("GET", queryPath("groups", "by", "owner,reason", "fieldSelector", "owner!="), "").must(200)
	has("by:map[owner:Deployment/web reason:Rollout] count:3", "groups", groups.at("groups"))
	equal(t, fmt.Sprint(groups.at("counted")), "occurrences") // from the index
	loki := func(path, query string) any {
		at := url.Values{"start": {storyEnd.Add(-time.Hour).Format(time.RFC3339)}, "end": {storyEnd.Format(time.RFC3339)}, "time": {storyEnd.Format(time.RFC3339)}, "query": {query}}
		return w.do("GET", "/loki/api/v1/"+path+"?"+at.Encode(), "").must(200).at("data")
	}
	equal(t, fmt.Sprint(loki("label/owner/values", "")), "[Deployment/web]")
	for _, selector := range []string{`{owner="Deployment/web"}`, `{owner=~".+/web"}`, `{reason="Rollout"} | owner != ""`} {
		counted := loki("query", "sum by (owner) (count_over_time("+selector+"[1h]))")
		has("metric:map[owner:Deployment/web]", selector, counted)
		has(" 3]", selector, counted)
	}
}
