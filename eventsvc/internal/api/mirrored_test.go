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

// run follows the cursors until the test ends.
func (w *world) run() {
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.server.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := waittest.Within(w.t, done); err != nil {
			w.t.Error(err)
		}
	})
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
	w.run()
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

// TestForgedCursors: a cursor is believed if its writer may create events of its cluster in every namespace. One of anybody else is an
// ordinary event: no answer and no metric knows it, and the cluster's own is not believed any more once somebody else has moved it.
func TestForgedCursors(t *testing.T) {
	t.Parallel()
	const folder = "/api/v1/namespaces/kube-system/events"
	for name, c := range map[string]struct {
		write func(*world)
		want  string // name of the cluster and minute until when it is complete
	}{
		"root creates":       {func(w *world) { w.as("root", "POST", folder, cursorEvent("c", "east", 8)).must(201) }, "east 08"},
		"its mirror creates": {func(w *world) { w.as("east", "POST", folder, cursorEvent("c", "east", 8)).must(201) }, "east 08"},
		"its mirror in bulk": {func(w *world) {
			w.bulk("east", "", strings.Replace(cursorEvent("c", "east", 8), `{"name"`, `{"namespace":"kube-system","name"`, 1)).results(1)
		}, "east 08"},
		"team creates": {func(w *world) { w.as("team", "POST", folder, cursorEvent("c", "east", 8)).must(201) }, ""},
		"team in bulk": {func(w *world) {
			w.bulk("team", "", strings.Replace(cursorEvent("c", "east", 8), `{"name"`, `{"namespace":"kube-system","name"`, 1)).results(1)
		}, ""},
		"team invents by PUT": {func(w *world) { w.as("team", "PUT", folder+"/c", cursorEvent("c", "new", 8)).must(201) }, ""},
		"many are forged": {func(w *world) {
			for i := range 50 {
				w.as("team", "POST", folder, cursorEvent(fmt.Sprint("forged-", i), "east", 1)).must(201)
			}
			w.as("root", "POST", folder, cursorEvent("c", "east", 8)).must(201)
		}, "east 08"},
		"team moves it back": {func(w *world) {
			w.as("root", "POST", folder, cursorEvent("c", "east", 8)).must(201)
			w.as("team", "PUT", folder+"/c", cursorEvent("c", "east", 1)).must(200)
		}, ""},
		"team labels it": {func(w *world) {
			w.as("root", "POST", folder, cursorEvent("c", "east", 8)).must(201)
			w.as("team", "PATCH", folder+"/c", `{"metadata":{"labels":{"seen":"yes"}}}`, "Content-Type", mergePatch).must(200)
		}, "east 08"},
		"its mirror goes on": {func(w *world) {
			w.as("team", "POST", folder, cursorEvent("c", "east", 8)).must(201)
			w.as("east", "PUT", folder+"/c", cursorEvent("c", "east", 8)).must(200)
		}, "east 08"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &clock{now: time.Date(2026, 3, 4, 13, 10, 0, 0, time.UTC)}
			w, _ := newPolicyWorld(t, `bindings:
- {role: "events:admin", subjects: [{clientID: root}]}
- {role: "events:admin", clusters: [east], subjects: [{clientID: east}]}
- {role: "events:admin", namespaces: [kube-system], subjects: [{clientID: team}]}`, func(c *api.Config) { c.Now = clock.read })
			first, second := cursorEvent("first", "a", 9), cursorEvent("second", "z", 9)
			w.as("root", "POST", folder, first).must(201)
			c.write(w)
			told := func() (text string) {
				for _, row := range w.as("root", "GET", "/query/v1/clusters?from=2026-01-01T00:00:00Z", "").must(200).at("items").([]any) {
					if name := field(row, "name"); name != "a" && name != "z" {
						text += fmt.Sprint(name, " ", field(row, "completeUntil").(string)[14:16])
					}
				}
				return text
			}
			follows := func(cluster string) {
				t.Helper()
				waittest.Until(t, "the cursor of "+cluster, func() bool {
					return strings.Contains(string(w.as("root", "GET", "/query/v1/clusters", "").must(200).body), `"name":"`+cluster+`"`)
				})
			}
			w.run()
			follows("a") // the list is read
			equal(t, told(), c.want)
			w.as("root", "DELETE", folder, "").must(200)
			c.write(w)
			w.as("root", "POST", folder, second).must(201)
			follows("z") // and so everything before
			equal(t, told(), c.want)
		})
	}
}
