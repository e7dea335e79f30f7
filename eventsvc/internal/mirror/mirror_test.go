package mirror_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/mirror"
	"tidings.example/eventsvc/internal/mirror/mirrortest"
	"tidings.example/shared/waittest"
)

// front is an address behind which one server after the other answers.
type front struct {
	URL     string
	handler atomic.Pointer[http.Handler]
}

// open opens a front before a server. It may answer instead of it.
func open(t *testing.T, w *apitest.World, instead func(w http.ResponseWriter, r *http.Request, pass http.Handler)) *front {
	t.Helper()
	f := new(front)
	f.lead(w)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pass := *f.handler.Load(); instead != nil {
			instead(w, r, pass)
		} else {
			pass.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	f.URL = server.URL
	return f
}

// lead leads to another server.
func (f *front) lead(w *apitest.World) {
	handler := w.Handler()
	f.handler.Store(&handler)
}

// run copies the cluster a until the returned function is called. It returns what reads a metric.
func run(t *testing.T, source, target string, changes ...func(*mirror.Config)) (metric func(name string, labels ...string) float64, stop func()) {
	t.Helper()
	dial := func(server string) *client.Client {
		c, err := client.New(client.Config{Server: server, Tokens: client.StaticToken("good")})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	registry, log := prometheus.NewRegistry(), new(bytes.Buffer)
	c := mirror.Config{
		Source: dial(source), Target: dial(target), Cluster: "a", Label: "cluster", CursorNamespace: "kube-system",
		Log: slog.New(slog.NewTextHandler(log, nil)), Registry: registry,
	}
	for _, change := range changes {
		change(&c)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mirror.New(c).Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := waittest.Within(t, ended); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the mirror said:\n%s", log)
		}
	})
	t.Cleanup(stop)
	return func(name string, labels ...string) float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				of := map[string]string{}
				for _, l := range m.GetLabel() {
					of[l.GetName()] = l.GetValue()
				}
				if f.GetName() == name && (len(labels) == 0 || of[labels[0]] == labels[1]) {
					return m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
		return -1
	}, stop
}

// events lists the events of a server, by namespace/name.
func events(w *apitest.World, query string) map[string]corev1.Event {
	w.T.Helper()
	var list corev1.EventList
	if err := json.Unmarshal(w.Do("GET", "/api/v1/events?"+query, "").Must(200).Body, &list); err != nil {
		w.T.Fatal(err)
	}
	all := map[string]corev1.Event{}
	for _, ev := range list.Items {
		all[ev.Namespace+"/"+ev.Name] = ev
	}
	return all
}

// merge patches an event.
func merge(w *apitest.World, path, patch string) *apitest.Answer {
	w.T.Helper()
	return w.Do("PATCH", path, patch, "Content-Type", apitest.MergePatch)
}

// create creates an event as old clients do.
func create(w *apitest.World, namespace, name string) {
	w.T.Helper()
	w.Do("POST", "/api/v1/namespaces/"+namespace+"/events", fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"app":"web"}},"involvedObject":{"kind":"Pod","name":"web","namespace":%q},`+
		`"reason":"Old","message":"m","type":"Odd","count":1,"firstTimestamp":"2026-01-02T03:04:05Z","lastTimestamp":"2026-01-02T03:04:05Z",`+
		`"source":{"component":"kubelet","host":"n"}}`, name, namespace)).Must(201)
}

// TestMirror copies two clusters with events of the same names into one server. The source loses its history, starts
// its versions over, and deletes events.
func TestMirror(t *testing.T) {
	t.Parallel()
	target, source, other := apitest.New(t), apitest.New(t), apitest.New(t)
	var gone, busy atomic.Int64 // how many watches, and writes, are refused
	cluster := open(t, source, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/events") && r.URL.Query().Get("watch") != "" && gone.Add(-1) >= 0 {
			_, _ = io.WriteString(w, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","message":"too old","code":410}}`)
			return
		}
		pass.ServeHTTP(w, r)
	})
	hub := open(t, target, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPost && busy.Add(-1) >= 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		pass.ServeHTTP(w, r)
	})

	everything := map[string]corev1.Event{} // of source a, by uid, as last seen
	look := func() {
		for _, ev := range events(source, "") {
			everything[string(ev.UID)] = ev
		}
	}
	arrived := func(what string) {
		t.Helper()
		look()
		waittest.Becomes(t, func() error {
			copies := mirrortest.BySource(t, events(target, "labelSelector=cluster=a"))
			want, got := map[string]corev1.Event{}, map[string]corev1.Event{}
			for uid, ev := range everything {
				want[uid] = mirrortest.Content(ev, "a")
			}
			for uid, ev := range copies {
				got[uid] = mirrortest.Content(ev, "a")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("%s (-source +copies):\n%s", what, diff)
			}
			return nil
		})
	}
	began := time.Now().Truncate(time.Second)
	gaps := func() map[string]corev1.Event {
		return events(target, "fieldSelector=reason=MirrorGap&labelSelector=tidings.example/cluster=a")
	}
	const cursor = "/api/v1/namespaces/kube-system/events/eventsvc-mirror.a"
	at := func() map[string]any { return target.Do("GET", cursor, "").Must(200).Object() }
	busy.Store(2)
	create(source, "default", "same")
	create(source, "shop", "Not_A_DNS_Name")
	source.Create("new-style")
	create(other, "default", "same")
	create(other, "shop", "left-out")
	metric, stop := run(t, cluster.URL, hub.URL)
	otherCluster := open(t, other, nil)
	b := func(c *mirror.Config) { c.Cluster, c.Label, c.Namespaces = "b", "", []string{"default"} }
	_, stopOther := run(t, otherCluster.URL, hub.URL, b)
	arrived("the first list")
	waittest.Until(t, "the same name from another cluster", func() bool {
		return len(mirrortest.BySource(t, events(target, "labelSelector=tidings.example/cluster=b"))) == 1
	})
	cursorOfOther := strings.TrimSuffix(cursor, "a") + "b.default"
	waittest.Until(t, "its cursor", func() bool { return target.Do("GET", cursorOfOther, "").Code == http.StatusOK })
	stopOther()

	// A mirror of one namespace says that its gap is about that one.
	merge(target, cursorOfOther, `{"metadata":{"annotations":{"mirror.tidings.example/cursor":null}}}`).Must(200)
	_, stopOther = run(t, otherCluster.URL, hub.URL, b)
	waittest.Until(t, "the gap of the namespace is recorded", func() bool {
		for _, ev := range events(target, "fieldSelector=reason=MirrorGap&labelSelector=tidings.example/cluster=b") {
			return ev.Annotations["mirror.tidings.example/gap-namespace"] == "default" && strings.Contains(ev.Message, "the events of namespace default of cluster b")
		}
		return false
	})
	stopOther()

	// Updates arrive, labels that are added to a copy stay, and the target keeps what the source deletes.
	for _, ev := range mirrortest.BySource(t, events(target, "labelSelector=cluster=a")) {
		if strings.HasPrefix(ev.Name, "new-style.") {
			merge(target, "/api/v1/namespaces/default/events/"+ev.Name, `{"metadata":{"labels":{"incident":"42"}}}`).Must(200)
		}
	}
	merge(source, apitest.EventsPath+"/new-style", `{"series":{"count":7,"lastObservedTime":"2026-01-02T03:05:05.000006Z"}}`).Must(200)
	merge(source, "/api/v1/namespaces/default/events/same", `{"count":2,"message":"again"}`).Must(200)
	waittest.Until(t, "the update", func() bool {
		for _, ev := range events(target, "labelSelector=incident=42") {
			return ev.Series != nil && ev.Series.Count == 7
		}
		return false
	})
	for _, ev := range events(target, "labelSelector=incident=42") {
		merge(target, "/api/v1/namespaces/default/events/"+ev.Name, `{"metadata":{"labels":{"incident":null}}}`).Must(200)
	}
	arrived("updates")
	source.Do("DELETE", "/api/v1/namespaces/default/events/same", "").Must(200)
	create(source, "default", "same") // another event of the same name
	arrived("an event of the name of one that is gone")
	waittest.Until(t, "lag is over", func() bool { return metric("eventsvc_mirror_lag_seconds") == 0 })

	// A mirror that was stopped misses nothing: a watch from the cursor also shows what was deleted since.
	stop()
	create(source, "default", "while-stopped")
	look()
	source.Do("DELETE", "/api/v1/namespaces/default/events/while-stopped", "").Must(200)
	metric, stop = run(t, cluster.URL, hub.URL)
	arrived("what came and went while it was stopped")
	if n := metric("eventsvc_mirror_lists_total", "reason", "first"); n != 0 {
		t.Errorf("%v lists after a restart", n)
	}
	stop()
	if n := len(gaps()); n != 0 {
		t.Errorf("%d gaps although the mirror could continue from its cursor", n)
	}

	// Nothing can have been deleted because of its age in a moment: the list after each 410 closes the gap.
	gone.Store(3)
	metric, stop = run(t, cluster.URL, hub.URL)
	create(source, "default", "after-410")
	arrived("what came between")
	waittest.Until(t, "three lists after 410", func() bool { return metric("eventsvc_mirror_lists_total", "reason", "gone") == 3 })
	stop()
	if n := len(gaps()); n != 0 {
		t.Errorf("%d gaps that lists have closed", n)
	}

	// After a 410 when the source may have deleted events, it is listed again, and the gap is recorded.
	began = began.Add(-time.Hour)
	merge(target, cursor, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, event.CursorComplete, began.UTC().Format(time.RFC3339))).Must(200)
	before := at()
	gone.Store(1)
	create(source, "default", "after-gap")
	merge(source, "/api/v1/namespaces/default/events/same", `{"metadata":{"labels":{"app":"api"}}}`).Must(200)
	metric, stop = run(t, cluster.URL, hub.URL)
	arrived("after a gap")
	if n := metric("eventsvc_mirror_lists_total", "reason", "gone"); n != 1 {
		t.Errorf("%v lists after 410", n)
	}
	waittest.Until(t, "the gap is recorded", func() bool { return len(gaps()) == 1 })
	first := checkGaps(t, gaps(), began)
	if told := target.Do("GET", "/query/v1/facets", "").Must(200).At("gaps").([]any); len(told) != 2 {
		t.Errorf("queries tell of %v", told)
	}
	waittest.Until(t, "the cursor is saved", func() bool { return mirrortest.Cursor(t, at()) != mirrortest.Cursor(t, before) })
	stop()

	// A mirror that was killed before it could save the cursor finds the same gap again, and records it only once.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": mirrortest.Annotations(t, before)}})
	if err != nil {
		t.Fatal(err)
	}
	merge(target, cursor, string(patch)).Must(200)
	gone.Store(1)
	_, stop = run(t, cluster.URL, hub.URL)
	waittest.Until(t, "the gap is found again", func() bool {
		return gone.Load() <= 0 && mirrortest.Cursor(t, at()) != mirrortest.Cursor(t, before)
	})
	stop()
	if again := checkGaps(t, gaps(), began); !maps.Equal(again, first) {
		t.Errorf("gaps begin at %v, at first at %v", again, first)
	}

	// A cursor without its version is of no use, but it tells that something may be missing.
	merge(target, cursor, `{"metadata":{"annotations":{"mirror.tidings.example/cursor":null}}}`).Must(200)
	metric, stop = run(t, cluster.URL, hub.URL)
	waittest.Until(t, "the second gap is recorded", func() bool { return len(gaps()) == 2 })
	waittest.Until(t, "the cursor is there again", func() bool { return mirrortest.Cursor(t, at()) != "" })

	// A cluster whose versions start over is listed again. The copies of its former events stay.
	former := source
	source = apitest.New(t)
	create(source, "default", "same")
	cluster.lead(source)
	former.Server.Drain(t.Context()) // its watches end
	arrived("a new cluster under the old name")
	if n := metric("eventsvc_mirror_lists_total", "reason", "rewound"); n != 1 {
		t.Errorf("%v lists after the versions started over", n)
	}
	waittest.Until(t, "the third gap is recorded", func() bool { return len(gaps()) == 3 })
	checkGaps(t, gaps(), began)
	if n := metric("eventsvc_mirror_gaps_total"); n != 2 { // of this mirror
		t.Errorf("%v gaps are counted", n)
	}
	stop()
}

// checkGaps checks what the mirror recorded about gaps, none of which began before a time. It returns their begins by
// name.
func checkGaps(t *testing.T, gaps map[string]corev1.Event, began time.Time) map[string]time.Time {
	t.Helper()
	begins := map[string]time.Time{}
	for name, ev := range gaps {
		from, err := time.Parse(time.RFC3339, ev.Annotations["mirror.tidings.example/gap-from"])
		to, err2 := time.Parse(time.RFC3339, ev.Annotations["mirror.tidings.example/gap-to"])
		if err != nil || err2 != nil || from.Before(began) || !to.After(from) || to.After(time.Now().Add(time.Second)) {
			t.Errorf("%s: from %s to %s, %v, %v", name, from, to, err, err2)
		}
		for _, text := range []string{from.Format(time.RFC3339), to.Format(time.RFC3339), "all events of cluster a"} {
			if !strings.Contains(ev.Message, text) {
				t.Errorf("%s: %q is not in %s", name, text, ev.Message)
			}
		}
		if ev.Namespace != "kube-system" || ev.Type != "Warning" || ev.ReportingController != "tidings.example/mirror" ||
			ev.InvolvedObject.Kind != "Cluster" || ev.InvolvedObject.Name != "a" || !ev.LastTimestamp.Time.Equal(to) {
			t.Errorf("%s is reported by %s as %s about %v", name, ev.ReportingController, ev.Type, ev.InvolvedObject)
		}
		begins[name] = from.UTC()
	}
	return begins
}

// TestMirrorSilent: a watch that says nothing while the source has something is noticed. A list takes its place, which
// no gap is reported for. While the source does not answer that either, the mirror is behind, and not ready.
func TestMirrorSilent(t *testing.T) {
	t.Parallel()
	target, source := apitest.New(t), apitest.New(t)
	var held, away atomic.Bool
	cluster := open(t, source, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		switch {
		case held.Load() && r.URL.Query().Get("watch") != "": // by something between the mirror and the source
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case away.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			pass.ServeHTTP(w, r)
		}
	})
	held.Store(true)
	metric, _ := run(t, cluster.URL, open(t, target, nil).URL, func(c *mirror.Config) { c.CheckEvery = 10 * time.Millisecond })
	waittest.Until(t, "it watches", func() bool { return metric("eventsvc_mirror_connected") == 1 })
	create(source, "default", "said-by-nobody")
	copied := func() bool { return len(mirrortest.BySource(t, events(target, "labelSelector=cluster=a"))) == 1 }
	waittest.Until(t, "it is copied", copied)
	if n := metric("eventsvc_mirror_lists_total", "reason", "silent"); n < 1 {
		t.Errorf("%v lists for a silent watch", n)
	}
	if n := metric("eventsvc_mirror_gaps_total"); n != 0 {
		t.Errorf("%v gaps", n)
	}
	away.Store(true)
	waittest.Until(t, "it is behind", func() bool {
		return metric("eventsvc_mirror_connected") == 0 && metric("eventsvc_mirror_lag_seconds") > 0
	})
	away.Store(false)
	held.Store(false)
	create(source, "default", "second")
	waittest.Until(t, "it is no longer behind", func() bool {
		return metric("eventsvc_mirror_connected") == 1 && metric("eventsvc_mirror_lag_seconds") == 0
	})
}

// TestMirrorLeavesOthersAlone: an event of somebody else that has the name of a copy stays as it is, whether it says
// nothing of where it comes from or that it is the copy of another event. The mirror counts what it leaves out, and
// copies what comes behind.
func TestMirrorLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	for name, annotations := range map[string]string{"an event of its own": `{}`, "another copy": `{"` + event.SourceUID + `":"other","` + event.SourceVersion + `":"1"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, source := apitest.New(t), apitest.New(t)
			hub, cluster := open(t, target, nil), open(t, source, nil)
			create(source, "default", "same")
			_, stop := run(t, cluster.URL, hub.URL)
			var copied string
			waittest.Until(t, "the copy", func() bool {
				for _, ev := range mirrortest.BySource(t, events(target, "labelSelector=cluster=a")) {
					copied = ev.Name
				}
				return copied != ""
			})
			stop()
			path := "/api/v1/namespaces/default/events/" + copied
			target.Do("DELETE", path, "").Must(200)
			create(target, "default", copied)
			merge(target, path, `{"metadata":{"annotations":`+annotations+`}}`).Must(200)
			before := events(target, "")["default/"+copied]

			merge(source, "/api/v1/namespaces/default/events/same", `{"count":7,"message":"overwritten"}`).Must(200)
			create(source, "default", "behind")
			metric, stop := run(t, cluster.URL, hub.URL)
			waittest.Until(t, "one is left out", func() bool { return metric("eventsvc_mirror_events_total", "result", "refused") == 1 })
			waittest.Until(t, "the event behind", func() bool { return len(mirrortest.BySource(t, events(target, "labelSelector=cluster=a"))) == 1 })
			stop()
			if diff := cmp.Diff(before, events(target, "")["default/"+copied]); diff != "" {
				t.Errorf("(-before +after)\n%s", diff)
			}
		})
	}
}

// TestMirrorBatches copies a thousand events in few requests: through answers that are lost, and to a target that asks
// to wait.
func TestMirrorBatches(t *testing.T) {
	t.Parallel()
	const n = 1100
	source := apitest.New(t)
	for _, prefix := range []string{"a", "b"} { // a request has 1000 lines at most
		var lines []string
		for i := range n / 2 {
			lines = append(lines, fmt.Sprintf(`{"metadata":{"namespace":"shop","name":"%s-%d"},"involvedObject":{"kind":"Pod","namespace":"shop","name":"web"},"reason":"R","type":"Normal"}`, prefix, i))
		}
		source.Bulk("good", "", lines...).Must(200)
	}
	cluster := open(t, source, nil)
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, nth int64, pass http.Handler)
		bulk   int64 // requests
	}{
		"all is well": {func(w http.ResponseWriter, r *http.Request, _ int64, pass http.Handler) { pass.ServeHTTP(w, r) }, 3},
		"each second answer is lost": {func(w http.ResponseWriter, r *http.Request, nth int64, pass http.Handler) {
			rec := httptest.NewRecorder()
			pass.ServeHTTP(rec, r)
			if nth%2 == 1 {
				_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		}, 6},
		"a proxy that takes small bodies only": {func(w http.ResponseWriter, r *http.Request, _ int64, pass http.Handler) {
			if r.ContentLength > 60<<10 {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			pass.ServeHTTP(w, r)
		}, 13},
		"a busy target": {func(w http.ResponseWriter, r *http.Request, nth int64, pass http.Handler) {
			if nth == 1 {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			pass.ServeHTTP(w, r)
		}, 4},
		"a target that does not get the body in time": {func(w http.ResponseWriter, r *http.Request, nth int64, pass http.Handler) {
			if nth == 2 {
				w.WriteHeader(http.StatusRequestTimeout)
				return
			}
			pass.ServeHTTP(w, r)
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := apitest.New(t)
			var bulk, single atomic.Int64
			hub := open(t, target, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				switch {
				case r.URL.Path == apitest.BulkPath:
					c.answer(w, r, bulk.Add(1), pass)
					return
				case r.Method == http.MethodPost && !strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/kube-system/"): // which has the cursor
					single.Add(1)
				}
				pass.ServeHTTP(w, r)
			})
			metric, stop := run(t, cluster.URL, hub.URL)
			waittest.Reaches(t, "everything is copied", n, func() (copied int64) {
				for _, result := range []string{"created", "unchanged"} { // unchanged: an answer was lost
					copied += int64(max(0, metric("eventsvc_mirror_events_total", "result", result)))
				}
				return copied
			})
			waittest.Until(t, "nothing is to be copied", func() bool { return metric("eventsvc_mirror_lag_seconds") == 0 })
			stop()
			copies := mirrortest.BySource(t, events(target, "labelSelector=cluster=a"))
			if len(copies) != n || bulk.Load() != c.bulk || single.Load() > 0 {
				t.Errorf("%d copies by %d bulk requests, want %d, and %d single ones", len(copies), bulk.Load(), c.bulk, single.Load())
			}
		})
	}
}

// TestTargetRestored: a mirror that runs while its target is restored from a backup copies again what the backup lacks.
func TestTargetRestored(t *testing.T) {
	t.Parallel()
	source, target := apitest.New(t), apitest.New(t)
	hub := open(t, target, nil)
	const cursor = "/api/v1/namespaces/kube-system/events/eventsvc-mirror.a"
	copied := func(w *apitest.World, n int) {
		t.Helper()
		waittest.Becomes(t, func() error {
			if got := len(mirrortest.BySource(t, events(w, "labelSelector=cluster=a"))); got != n {
				return fmt.Errorf("%d copies of %d", got, n)
			}
			return nil
		})
	}
	saved := func(w *apitest.World) string {
		a := w.Do("GET", cursor, "")
		if a.Code != http.StatusOK {
			return ""
		}
		return mirrortest.Cursor(t, a.Object())
	}
	reached := func(w *apitest.World, than string) string {
		t.Helper()
		waittest.Until(t, "a later cursor is saved", func() bool { return client.Newer(saved(w), than) })
		return saved(w)
	}
	create(source, "default", "e0")
	_, stop := run(t, open(t, source, nil).URL, hub.URL)
	copied(target, 1)
	create(source, "default", "e1")
	copied(target, 2)
	first := reached(target, "0")
	backup := events(target, "")

	create(source, "default", "e2")
	copied(target, 3)
	reached(target, first)
	restored := apitest.New(t)
	for _, ev := range backup {
		ev.ObjectMeta = metav1.ObjectMeta{Name: ev.Name, Namespace: ev.Namespace, Labels: ev.Labels, Annotations: ev.Annotations}
		body, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		restored.Do("POST", "/api/v1/namespaces/"+ev.Namespace+"/events", string(body)).Must(201)
	}
	hub.lead(restored)
	create(source, "default", "e3")
	copied(restored, 4)

	// One that has nothing of the mirror gets everything that the source has.
	reached(restored, first)
	empty := apitest.New(t)
	hub.lead(empty)
	create(source, "default", "e4")
	copied(empty, 5)
	stop()
}

// TestRewoundAndNotSaved: a cursor of versions that started over is saved in the place of a higher one, also if the
// first try fails.
func TestRewoundAndNotSaved(t *testing.T) {
	t.Parallel()
	source, target := apitest.New(t), apitest.New(t)
	const cursor = "/api/v1/namespaces/kube-system/events/eventsvc-mirror.a"
	var failing atomic.Bool
	var refused atomic.Int64
	hub := open(t, target, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPut && r.URL.Path == cursor && failing.Load() {
			refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		pass.ServeHTTP(w, r)
	})
	for i := range 10 {
		create(source, "default", fmt.Sprintf("e%d", i))
	}
	cluster := open(t, source, nil)
	metric, stop := run(t, cluster.URL, hub.URL)
	saved := func() string {
		a := target.Do("GET", cursor, "")
		if a.Code != http.StatusOK {
			return ""
		}
		return mirrortest.Cursor(t, a.Object())
	}
	waittest.Until(t, "the first cursor is saved", func() bool { return client.Newer(saved(), "9") })
	begun := apitest.New(t)
	create(begun, "default", "e0")
	failing.Store(true)
	cluster.lead(begun)
	source.Server.Drain(t.Context()) // its watches end
	waittest.Reaches(t, "the saves before and after the list fail", 2, refused.Load)
	if n := metric("eventsvc_mirror_lists_total", "reason", "rewound"); n != 1 {
		t.Errorf("%v lists", n)
	}
	failing.Store(false)
	waittest.Until(t, "a cursor of the new versions is saved", func() bool { return client.Newer("9", saved()) })
	stop()
}
