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

// TestOwner finds a whole rollout by the owner that a mirror has found: in lists, queries, facets, groups and LogQL.
func TestOwner(t *testing.T) {
	t.Parallel()
	w := apitest.StoryWorld(t)
	for i, kind := range []string{"Deployment", "ReplicaSet", "Pod"} {
		w.Do("POST", "/apis/events.k8s.io/v1/namespaces/shop/events", fmt.Sprintf(`{"metadata":{"name":"rollout-%d","labels":{%q:"Deployment",%q:"web"}},
			"eventTime":%q,"reportingController":"c","reportingInstance":"i","action":"Do","type":"Normal","reason":"Rollout","regarding":{"kind":%q,"namespace":"shop","name":"x"}}`,
			i, event.OwnerKindLabel, event.OwnerNameLabel, apitest.StoryEnd.Add(-time.Duration(i+1)*time.Minute).Format("2006-01-02T15:04:05.000000Z07:00"), kind)).Must(201)
	}
	has := func(what, path string, v any) {
		t.Helper()
		if got := fmt.Sprint(v); !strings.Contains(got, what) {
			t.Errorf("%s: %s lacks %s", path, got, what)
		}
	}
	const owner = "Deployment/web"
	list := w.Do("GET", "/apis/events.k8s.io/v1/events?labelSelector="+event.OwnerKindLabel+"=Deployment,"+event.OwnerNameLabel+"=web", "").Must(200)
	apitest.Equal(t, len(list.Names()), 3)
	for terms, want := range map[[2]string]int{
		{"fieldSelector", "owner=" + owner}: 3, {"search", "owner:*/web"}: 3, {"search", "owner:Deployment/* kind:Pod"}: 1, {"fieldSelector", "owner!=" + owner}: 12, {"fieldSelector", "owner="}: 12,
	} {
		a := w.Do("GET", apitest.QueryPath("events", terms[0], terms[1]), "").Must(200)
		if n := len(a.At("items").([]any)); n != want {
			t.Errorf("%s: %d events, want %d", terms, n, want)
		}
	}
	facets := w.Do("GET", apitest.QueryPath("facets", "fieldSelector", "owner!="), "").Must(200)
	apitest.Equal(t, fmt.Sprint(facets.At("facets.owner")), "[map[count:3 value:Deployment/web]]")
	groups := w.Do("GET", apitest.QueryPath("groups", "by", "owner,reason", "fieldSelector", "owner!="), "").Must(200)
	has("by:map[owner:Deployment/web reason:Rollout] count:3", "groups", groups.At("groups"))
	apitest.Equal(t, fmt.Sprint(groups.At("counted")), "occurrences") // from the index
	loki := func(path, query string) any {
		at := url.Values{"start": {apitest.StoryEnd.Add(-time.Hour).Format(time.RFC3339)}, "end": {apitest.StoryEnd.Format(time.RFC3339)}, "time": {apitest.StoryEnd.Format(time.RFC3339)}, "query": {query}}
		return w.Do("GET", "/loki/api/v1/"+path+"?"+at.Encode(), "").Must(200).At("data")
	}
	apitest.Equal(t, fmt.Sprint(loki("label/owner/values", "")), "[Deployment/web]")
	for _, selector := range []string{`{owner="Deployment/web"}`, `{owner=~".+/web"}`, `{reason="Rollout"} | owner != ""`} {
		counted := loki("query", "sum by (owner) (count_over_time("+selector+"[1h]))")
		has("metric:map[owner:Deployment/web]", selector, counted)
		has(" 3]", selector, counted)
	}
}
