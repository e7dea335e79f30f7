package events_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
)

// TestArrivals: the metric has when an event of each cluster was last written, by a client that may create in every
// namespace, and its series are bounded.
func TestArrivals(t *testing.T) {
	t.Parallel()
	now := &apitest.Clock{Now: time.Unix(1000, 0)}
	w, _ := apitest.NewPolicyWorld(t, `bindings:
- {role: "events:admin", subjects: [{clientID: root}]}
- {role: "events:admin", namespaces: [team-a], subjects: [{clientID: team}]}`,
		func(c *api.Config) { c.Now, c.Registry = now.Read, prometheus.NewRegistry() })
	const folder = "/apis/events.k8s.io/v1/namespaces/team-a/events"
	of := func(name, cluster string) string {
		return strings.Replace(apitest.GapReport(name, "30", ""), `"east"`, fmt.Sprintf("%q", cluster), 1)
	}
	expect := func(step, cluster string, want float64) {
		t.Helper()
		if got := w.Metric("eventsvc_cluster_last_event_timestamp_seconds", cluster); got != want {
			t.Errorf("%s: %s was last heard of at %v, want %v", step, cluster, got, want)
		}
		now.Add(time.Second)
	}
	expect("nothing is written", "east", 0)
	w.As("root", "POST", folder, of("a", "east")).Must(201)
	expect("a new event", "east", 1001)
	w.As("root", "PUT", folder+"/a", strings.Replace(of("a", "east"), `"labels":{`, `"labels":{"more":"yes",`, 1)).Must(200)
	expect("a replaced one", "east", 1002)
	w.As("root", "PUT", folder+"/b", of("b", "west")).Must(201)
	expect("one of another cluster", "west", 1003)
	expect("that one alone", "east", 1002)

	w.As("team", "POST", folder, of("c", "east")).Must(201)
	w.As("team", "POST", folder, of("d", "north")).Must(201)
	w.As("root", "POST", folder+"?dryRun=All", of("e", "east")).Must(201)
	w.As("root", "POST", folder, of("a", "east")).Must(409)
	w.As("root", "POST", folder, strings.Replace(of("e", "east"), `"eventTime":"2026`, `"eventTime":"never`, 1)).Must(400)
	expect("writes that do not count", "east", 1002)
	expect("nor do those of a new cluster", "north", 0)

	for n := range 110 {
		w.As("root", "POST", folder, of(fmt.Sprintf("many-%d", n), fmt.Sprintf("cluster-%d", n))).Must(201)
	}
	expect("many clusters", "cluster-97", 1007)
	expect("too many", "cluster-98", 0)
	expect("they are counted together", "other", 1007)
}
