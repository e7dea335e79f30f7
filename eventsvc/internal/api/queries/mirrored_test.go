package queries_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/shared/waittest"
)

// run follows the cursors until the test ends.
func run(w *apitest.World) {
	ctx, stop := context.WithCancel(w.T.Context())
	done := make(chan error, 1)
	go func() { done <- w.Server.Run(ctx) }()
	w.T.Cleanup(func() {
		stop()
		if err := waittest.Within(w.T, done); err != nil {
			w.T.Error(err)
		}
	})
}

// TestMirroredClusters: the cursors of mirrors tell until when each cluster is complete, in an answer and as a metric:
// those that are there at the start and those that come, change and go. Who sees only some clusters is told of these.
func TestMirroredClusters(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/namespaces/kube-system/events"
	clock := &apitest.Clock{Now: time.Date(2026, 3, 4, 13, 10, 0, 0, time.UTC)}
	w, _ := apitest.NewPolicyWorld(t, `bindings:
- {role: "events:admin", subjects: [{clientID: root}]}
- {role: "events:read", clusters: [west], subjects: [{clientID: west}]}
- {role: "events:read", namespaces: [shop], subjects: [{clientID: shop}]}`, func(c *api.Config) {
		c.Now, c.Registry = clock.Read, prometheus.NewRegistry()
	})
	w.As("root", "POST", path, apitest.CursorEvent("eventsvc-mirror.east", "east", 8)).Must(201)
	w.As("root", "POST", path, apitest.CursorEvent("no-time", "no-time", 8)).Must(201)
	w.As("root", "PATCH", path+"/no-time", `{"metadata":{"annotations":{"mirror.tidings.example/cursor-time":null}}}`, "Content-Type", apitest.MergePatch).Must(200)
	w.As("root", "POST", "/apis/events.k8s.io/v1/namespaces/team-a/events", apitest.GapReport("gap", "30", "")).Must(201)
	run(w)
	rows := func(as string) (text string) {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(string(w.As(as, "GET", "/query/v1/clusters?from=2026-01-01T00:00:00Z", "", "Accept", "text/csv").Must(200).Body)), "\n")
		return strings.Join(strings.Fields(strings.Join(lines[1:], " ")), " ")
	}
	becomes := func(step, want string) {
		t.Helper()
		waittest.Until(t, step, func() bool { return rows("root") == want })
	}
	const east = "east,2026-03-04T13:08:00Z,120,0,false,2026-03-04T13:08:30Z,%d,v1"
	becomes("the cursor that was there", fmt.Sprintf(east, 1))
	w.As("root", "POST", path, apitest.CursorEvent("eventsvc-mirror.west.a", "west", 9)).Must(201)
	w.As("root", "POST", path, apitest.CursorEvent("eventsvc-mirror.west.b", "west", 7)).Must(201)
	const west = "west,2026-03-04T13:07:00Z,180,0,false,2026-03-04T13:09:30Z,0,v1"
	both := fmt.Sprintf(east, 1) + " " + west
	becomes("the earliest cursor counts", both)
	if got := w.Metric("eventsvc_cluster_complete_seconds", "west"); got != 180 {
		t.Errorf("west is complete since %v s", got)
	}
	if rows("west") != west || rows("shop") != "" {
		t.Errorf("others are told of %q and %q", rows("west"), rows("shop"))
	}
	w.As("root", "PATCH", path+"/eventsvc-mirror.west.b", `{"metadata":{"annotations":{"mirror.tidings.example/cursor-time":"2026-03-04T13:11:00Z"}}}`, "Content-Type", apitest.MergePatch).Must(200)
	becomes("a cursor moves", strings.Replace(both, "13:07:00Z,180,0", "13:09:00Z,60,240", 1))
	w.As("root", "DELETE", path+"/eventsvc-mirror.west.a", "").Must(200)
	becomes("a clock that is ahead is no lag", strings.Replace(strings.Replace(both, "13:07:00Z,180,0", "13:11:00Z,0,240", 1), "13:09:30Z", "13:07:30Z", 1))
	late := func(when string) (text string) {
		t.Helper()
		told, _ := w.As("root", "GET", "/query/v1/events?from=2026-03-04T13:00:00Z", "").Must(200).At("late").([]any)
		for _, l := range told {
			text += fmt.Sprint(apitest.Field(l, "cluster"), " ", apitest.Field(l, "from"), " ")
		}
		return when + strings.TrimSpace(text)
	}
	clock.Add(3*time.Minute + time.Second)
	apitest.Equal(t, late("the first heartbeat is five minutes old: "), "the first heartbeat is five minutes old: east 2026-03-04T13:08:00Z")
	clock.Add(10*time.Minute - time.Second)
	apitest.Equal(t, late("three times four minutes: "), "three times four minutes: east 2026-03-04T13:08:00Z")
	clock.Add(time.Second)
	apitest.Equal(t, late("and a second: "), "and a second: east 2026-03-04T13:08:00Z west 2026-03-04T13:11:00Z")
	clock.Add(-13*time.Minute - time.Second)
	w.As("root", "DELETE", path+"/eventsvc-mirror.west.b", "").Must(200)
	becomes("a cursor goes", fmt.Sprintf(east, 1))
	w.As("root", "GET", "/query/v1/clusters?revision=3", "").Must(400)
	link := w.As("root", "GET", "/query/v1/clusters", "").Must(200).At("permalink").(string)
	w.As("root", "GET", link, "").Must(200)
}

// TestForgedCursors: a cursor is believed if its writer may create events of its cluster in every namespace. One of
// anybody else is an ordinary event: no answer and no metric knows it, and the cluster's own is not believed any more
// once somebody else has moved it.
func TestForgedCursors(t *testing.T) {
	t.Parallel()
	const folder = "/api/v1/namespaces/kube-system/events"
	for name, c := range map[string]struct {
		write func(*apitest.World)
		want  string // name of the cluster and minute until when it is complete
	}{
		"root creates":       {func(w *apitest.World) { w.As("root", "POST", folder, apitest.CursorEvent("c", "east", 8)).Must(201) }, "east 08"},
		"its mirror creates": {func(w *apitest.World) { w.As("east", "POST", folder, apitest.CursorEvent("c", "east", 8)).Must(201) }, "east 08"},
		"its mirror in bulk": {func(w *apitest.World) {
			w.Bulk("east", "", strings.Replace(apitest.CursorEvent("c", "east", 8), `{"name"`, `{"namespace":"kube-system","name"`, 1)).Results(1)
		}, "east 08"},
		"team creates": {func(w *apitest.World) { w.As("team", "POST", folder, apitest.CursorEvent("c", "east", 8)).Must(201) }, ""},
		"team in bulk": {func(w *apitest.World) {
			w.Bulk("team", "", strings.Replace(apitest.CursorEvent("c", "east", 8), `{"name"`, `{"namespace":"kube-system","name"`, 1)).Results(1)
		}, ""},
		"team invents by PUT": {func(w *apitest.World) { w.As("team", "PUT", folder+"/c", apitest.CursorEvent("c", "new", 8)).Must(201) }, ""},
		"many are forged": {func(w *apitest.World) {
			for i := range 50 {
				w.As("team", "POST", folder, apitest.CursorEvent(fmt.Sprint("forged-", i), "east", 1)).Must(201)
			}
			w.As("root", "POST", folder, apitest.CursorEvent("c", "east", 8)).Must(201)
		}, "east 08"},
		"team moves it back": {func(w *apitest.World) {
			w.As("root", "POST", folder, apitest.CursorEvent("c", "east", 8)).Must(201)
			w.As("team", "PUT", folder+"/c", apitest.CursorEvent("c", "east", 1)).Must(200)
		}, ""},
		"team labels it": {func(w *apitest.World) {
			w.As("root", "POST", folder, apitest.CursorEvent("c", "east", 8)).Must(201)
			w.As("team", "PATCH", folder+"/c", `{"metadata":{"labels":{"seen":"yes"}}}`, "Content-Type", apitest.MergePatch).Must(200)
		}, "east 08"},
		"its mirror goes on": {func(w *apitest.World) {
			w.As("team", "POST", folder, apitest.CursorEvent("c", "east", 8)).Must(201)
			w.As("east", "PUT", folder+"/c", apitest.CursorEvent("c", "east", 8)).Must(200)
		}, "east 08"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &apitest.Clock{Now: time.Date(2026, 3, 4, 13, 10, 0, 0, time.UTC)}
			w, _ := apitest.NewPolicyWorld(t, `bindings:
- {role: "events:admin", subjects: [{clientID: root}]}
- {role: "events:admin", clusters: [east], subjects: [{clientID: east}]}
- {role: "events:admin", namespaces: [kube-system], subjects: [{clientID: team}]}`, func(c *api.Config) { c.Now = clock.Read })
			first, second := apitest.CursorEvent("first", "a", 9), apitest.CursorEvent("second", "z", 9)
			w.As("root", "POST", folder, first).Must(201)
			c.write(w)
			told := func() (text string) {
				for _, row := range w.As("root", "GET", "/query/v1/clusters?from=2026-01-01T00:00:00Z", "").Must(200).At("items").([]any) {
					if name := apitest.Field(row, "name"); name != "a" && name != "z" {
						text += fmt.Sprint(name, " ", apitest.Field(row, "completeUntil").(string)[14:16])
					}
				}
				return text
			}
			follows := func(cluster string) {
				t.Helper()
				waittest.Until(t, "the cursor of "+cluster, func() bool {
					return strings.Contains(string(w.As("root", "GET", "/query/v1/clusters", "").Must(200).Body), `"name":"`+cluster+`"`)
				})
			}
			run(w)
			follows("a") // the list is read
			apitest.Equal(t, told(), c.want)
			w.As("root", "DELETE", folder, "").Must(200)
			c.write(w)
			w.As("root", "POST", folder, second).Must(201)
			follows("z") // and so everything before
			apitest.Equal(t, told(), c.want)
		})
	}
}
