package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/shared/waittest"
)

// cursorEvent is the cursor of a mirror of a cluster, complete until a minute of an hour.
func cursorEvent(name, cluster string, minute int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"tidings.example/cluster":%q},"annotations":{"mirror.tidings.example/cursor":"7",`+
		`"mirror.tidings.example/cursor-time":"2026-03-04T13:%02d:00Z","mirror.tidings.example/last-event":"2026-03-04T13:%02d:30Z","mirror.tidings.example/mirror-version":"v1"}},`+
		`"involvedObject":{"kind":"Cluster","namespace":"kube-system"},"reason":"Mirrored","type":"Normal","reportingComponent":"tidings.example/mirror"}`, name, cluster, minute, minute)
}

// TestMirroredClusters: the cursors of mirrors tell until when each cluster is complete, in an answer and as a metric: those that are there
// at the start and those that come, change and go. Who sees only some clusters is told of these.
func TestMirroredClusters(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/namespaces/kube-system/events"
	clock := &clock{now: time.Date(2026, 3, 4, 13, 10, 0, 0, time.UTC)}
	w, _ := newPolicyWorld(t, `bindings:
- {role: "events:admin", subjects: [{clientID: root}]}
- {role: "events:read", clusters: [west], subjects: [{clientID: west}]}
- {role: "events:read", namespaces: [shop], subjects: [{clientID: shop}]}`, func(c *api.Config) {
		c.Now, c.Registry = clock.read, prometheus.NewRegistry()
	})
	w.as("root", "POST", path, cursorEvent("eventsvc-mirror.east", "east", 8)).must(201)
	w.as("root", "POST", path, cursorEvent("no-time", "no-time", 8)).must(201)
	w.as("root", "PATCH", path+"/no-time", `{"metadata":{"annotations":{"mirror.tidings.example/cursor-time":null}}}`, "Content-Type", mergePatch).must(200)
	w.as("root", "POST", "/apis/events.k8s.io/v1/namespaces/team-a/events", gapReport("gap", "30", "")).must(201)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := waittest.Within(t, done); err != nil {
			t.Error(err)
		}
	})
	rows := func(as string) (text string) {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(string(w.as(as, "GET", "/query/v1/clusters?from=2026-01-01T00:00:00Z", "", "Accept", "text/csv").must(200).body)), "\n")
		return strings.Join(strings.Fields(strings.Join(lines[1:], " ")), " ")
	}
	becomes := func(step, want string) {
		t.Helper()
		waittest.Until(t, step, func() bool { return rows("root") == want })
	}
	const east = "east,2026-03-04T13:08:00Z,120,2026-03-04T13:08:30Z,%d,v1"
	becomes("the cursor that was there", fmt.Sprintf(east, 1))
	w.as("root", "POST", path, cursorEvent("eventsvc-mirror.west.a", "west", 9)).must(201)
	w.as("root", "POST", path, cursorEvent("eventsvc-mirror.west.b", "west", 7)).must(201)
	const west = "west,2026-03-04T13:07:00Z,180,2026-03-04T13:09:30Z,0,v1"
	both := fmt.Sprintf(east, 1) + " " + west
	becomes("the earliest cursor counts", both)
	if got := w.metric("eventsvc_cluster_complete_seconds", "west"); got != 180 {
		t.Errorf("west is complete since %v s", got)
	}
	if rows("west") != west || rows("shop") != "" {
		t.Errorf("others are told of %q and %q", rows("west"), rows("shop"))
	}
	w.as("root", "PATCH", path+"/eventsvc-mirror.west.b", `{"metadata":{"annotations":{"mirror.tidings.example/cursor-time":"2026-03-04T13:11:00Z"}}}`, "Content-Type", mergePatch).must(200)
	becomes("a cursor moves", strings.Replace(both, "13:07:00Z,180", "13:09:00Z,60", 1))
	w.as("root", "DELETE", path+"/eventsvc-mirror.west.a", "").must(200)
	becomes("a clock that is ahead is no lag", strings.Replace(strings.Replace(both, "13:07:00Z,180", "13:11:00Z,0", 1), "13:09:30Z", "13:07:30Z", 1))
	w.as("root", "DELETE", path+"/eventsvc-mirror.west.b", "").must(200)
	becomes("a cursor goes", fmt.Sprintf(east, 1))
	w.as("root", "GET", "/query/v1/clusters?revision=3", "").must(400)
	link := w.as("root", "GET", "/query/v1/clusters", "").must(200).at("permalink").(string)
	w.as("root", "GET", link, "").must(200)
}
