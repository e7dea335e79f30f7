package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
)

// TestArrivals: the metric has when an event of each cluster was last written, by a client that may create in every namespace,
// and its series are bounded.
func TestArrivals(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Unix(1000, 0)}
	w, _ := newPolicyWorld(t, `bindings:
- {role: "events:admin", subjects: [{clientID: root}]}
- {role: "events:admin", namespaces: [team-a], subjects: [{clientID: team}]}`,
		func(c *api.Config) { c.Now, c.Registry = now.read, prometheus.NewRegistry() })
	const folder = "/apis/events.k8s.io/v1/namespaces/team-a/events"
	of := func(name, cluster string) string {
		return strings.Replace(gapReport(name, "30", ""), `"east"`, fmt.Sprintf("%q", cluster), 1)
	}
	expect := func(step, cluster string, want float64) {
		t.Helper()
		if got := w.metric("eventsvc_cluster_last_event_timestamp_seconds", cluster); got != want {
			t.Errorf("%s: %s was last heard of at %v, want %v", step, cluster, got, want)
		}
		now.add(time.Second)
	}
	expect("nothing is written", "east", 0)
	w.as("root", "POST", folder, of("a", "east")).must(201)
	expect("a new event", "east", 1001)
	w.as("root", "PUT", folder+"/a", strings.Replace(of("a", "east"), `"labels":{`, `"labels":{"more":"yes",`, 1)).must(200)
	expect("a replaced one", "east", 1002)
	w.as("root", "PUT", folder+"/b", of("b", "west")).must(201)
	expect("one of another cluster", "west", 1003)
	expect("that one alone", "east", 1002)

	w.as("team", "POST", folder, of("c", "east")).must(201)
	w.as("team", "POST", folder, of("d", "north")).must(201)
	w.as("root", "POST", folder+"?dryRun=All", of("e", "east")).must(201)
	w.as("root", "POST", folder, of("a", "east")).must(409)
	w.as("root", "POST", folder, strings.Replace(of("e", "east"), `"eventTime":"2026`, `"eventTime":"never`, 1)).must(400)
	expect("writes that do not count", "east", 1002)
	expect("nor do those of a new cluster", "north", 0)

	for n := range 110 {
		w.as("root", "POST", folder, of(fmt.Sprintf("many-%d", n), fmt.Sprintf("cluster-%d", n))).must(201)
	}
	expect("many clusters", "cluster-97", 1007)
	expect("too many", "cluster-98", 0)
	expect("they are counted together", "other", 1007)
}
