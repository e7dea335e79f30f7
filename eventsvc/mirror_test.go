package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/waittest"
)

// kubeconfigFor writes a kubeconfig for a server and a token and returns its name.
func kubeconfigFor(t *testing.T, server, token string) string {
	t.Helper()
	return file(t, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: %q}}]\n", server, token))
}

// coreEvents lists the events of a server, by namespace/name.
func coreEvents(t *testing.T, base, token, query string) map[string]corev1.Event {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/events?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var list corev1.EventList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	all := map[string]corev1.Event{}
	for _, ev := range list.Items {
		all[ev.Namespace+"/"+ev.Name] = ev
	}
	return all
}

// bySource returns the copies of a cluster by the uid at the source. It is an error if two copies show the same event.
func bySource(t *testing.T, copies map[string]corev1.Event) map[string]corev1.Event {
	t.Helper()
	all := map[string]corev1.Event{}
	for name, ev := range copies {
		uid := ev.Annotations["mirror.tidings.example/uid"]
		if uid == "" { // the cursor
			continue
		}
		if other, ok := all[uid]; ok {
			t.Errorf("%s and %s are copies of the same event", name, other.Name)
		}
		all[uid] = ev
	}
	return all
}

// content returns an event without the fields that a server or the mirror sets.
func content(ev corev1.Event, cluster string) corev1.Event {
	labels, annotations := maps.Clone(ev.Labels), maps.Clone(ev.Annotations)
	for _, key := range []string{"cluster", "tidings.example/cluster"} {
		if labels[key] == cluster {
			delete(labels, key)
		}
	}
	for _, added := range []string{"owner-kind", "owner-name", "node", "namespace-uid"} {
		delete(labels, "tidings.example/"+added)
	}
	delete(annotations, "mirror.tidings.example/uid")
	delete(annotations, "mirror.tidings.example/resource-version")
	ev.ObjectMeta.Reset()
	ev.Labels, ev.Annotations = map[string]string{}, map[string]string{}
	maps.Copy(ev.Labels, labels)
	maps.Copy(ev.Annotations, annotations)
	return ev
}

// runMirror copies in this process until the returned function is called.
func runMirror(t *testing.T, args ...string) (admin string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	p := &process{t: t, addrs: map[string]string{}}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		done <- run(ctx, append([]string{"mirror", "--listen-admin=127.0.0.1:0"}, args...), io.Discard, log, p.listening)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := waittest.Within(t, done); err != nil {
			t.Error(err)
		}
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the mirror said:\n%s", said)
		}
	})
	t.Cleanup(stop)
	waittest.Until(t, "the mirror listens", func() bool { return p.url("--listen-admin") != "" })
	return p.url("--listen-admin"), stop
}

// metric reads the value of a metric as it is printed.
func metric(t *testing.T, admin, name string) string {
	t.Helper()
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// TestMirror copies two clusters with events of the same names into one server. The source is restarted, loses its history,
// starts its versions over, and deletes events.
func TestMirror(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	const quiet = "--log-level=warn"
	target, other := start(t, t.TempDir(), i, quiet), start(t, t.TempDir(), i, quiet)
	addr, dir := freeAddress(t), t.TempDir()
	source := start(t, dir, i, quiet, "--listen-http="+addr)
	var gone, busy atomic.Int64 // how many watches, and writes, are refused
	refuse := func(base string, left *atomic.Int64, which func(*http.Request) bool, answer func(http.ResponseWriter)) string {
		to, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.FlushInterval = -1
		proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if which(r) && left.Add(-1) >= 0 {
				answer(w)
				return
			}
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	cluster := refuse("http://"+addr, &gone, func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/events") && r.URL.Query().Get("watch") != ""
	}, func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","message":"too old","code":410}}`)
	})
	history := refuse(target.url("--listen-http"), &busy, func(r *http.Request) bool { return r.Method == http.MethodPost }, func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	args := []string{"--kubeconfig=" + kubeconfigFor(t, cluster, source.token), "--cluster=a", "--server=" + history,
		"--token-file=" + file(t, source.token)}

	create := func(p *process, namespace, name string) {
		t.Helper()
		old := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"app":"web"}},"involvedObject":{"kind":"Pod","name":"web","namespace":%q},`+
			`"reason":"Old","message":"m","type":"Odd","count":1,"firstTimestamp":"2026-01-02T03:04:05Z","lastTimestamp":"2026-01-02T03:04:05Z",`+
			`"source":{"component":"kubelet","host":"n"}}`, name, namespace)
		if code, object := p.do("POST", "/api/v1/namespaces/"+namespace+"/events", old); code != 201 {
			t.Fatal(code, object)
		}
	}
	everything := map[string]corev1.Event{} // of source a, by uid, as last seen
	look := func() {
		for _, ev := range coreEvents(t, "http://"+addr, source.token, "") {
			everything[string(ev.UID)] = ev
		}
	}
	arrived := func(what string) {
		t.Helper()
		look()
		var diff string
		waittest.Until(t, what, func() bool {
			copies := bySource(t, coreEvents(t, target.url("--listen-http"), target.token, "labelSelector=cluster=a"))
			want, got := map[string]corev1.Event{}, map[string]corev1.Event{}
			for uid, ev := range everything {
				want[uid] = content(ev, "a")
			}
			for uid, ev := range copies {
				got[uid] = content(ev, "a")
			}
			diff = cmp.Diff(want, got)
			return diff == ""
		})
	}
	began := time.Now().Truncate(time.Second)
	gaps := func() map[string]corev1.Event {
		return coreEvents(t, target.url("--listen-http"), target.token, "fieldSelector=reason=MirrorGap&labelSelector=tidings.example/cluster=a")
	}
	const cursor = "/api/v1/namespaces/kube-system/events/eventsvc-mirror.a"
	busy.Store(2)
	create(source, "default", "same")
	create(source, "shop", "Not_A_DNS_Name")
	source.do("POST", eventsPath, newEvent("new-style"))
	create(other, "default", "same")
	create(other, "shop", "left-out")
	admin, stop := runMirror(t, args...)
	if code := statusFor(t, admin+"/metrics", "evil.example"); code != http.StatusForbidden {
		t.Errorf("the admin listener answers for another host: %d", code)
	}
	otherArgs := []string{"--kubeconfig=" + kubeconfigFor(t, other.url("--listen-http"), source.token), "--cluster=b", "--cluster-label=",
		"--namespace=default", "--server=" + target.url("--listen-http"), "--token-file=" + file(t, source.token)}
	_, stopOther := runMirror(t, otherArgs...)
	arrived("the first list")
	waittest.Until(t, "the same name from another cluster", func() bool {
		return len(bySource(t, coreEvents(t, target.url("--listen-http"), target.token, "labelSelector=tidings.example/cluster=b"))) == 1
	})
	stopOther()

	// A mirror of one namespace says that its gap is about that one.
	target.do("PATCH", cursor[:strings.LastIndex(cursor, ".")]+".b.default", `{"metadata":{"annotations":{"mirror.tidings.example/cursor":null}}}`)
	_, stopOther = runMirror(t, otherArgs...)
	waittest.Until(t, "the gap of the namespace is recorded", func() bool {
		for _, ev := range coreEvents(t, target.url("--listen-http"), target.token, "fieldSelector=reason=MirrorGap&labelSelector=tidings.example/cluster=b") {
			return ev.Annotations["mirror.tidings.example/gap-namespace"] == "default" && strings.Contains(ev.Message, "the events of namespace default of cluster b")
		}
		return false
	})
	stopOther()

	// Updates arrive, labels that are added to a copy stay, and the target keeps what the source deletes.
	copies := bySource(t, coreEvents(t, target.url("--listen-http"), target.token, "labelSelector=cluster=a"))
	for _, ev := range copies {
		if strings.HasPrefix(ev.Name, "new-style.") {
			target.do("PATCH", "/api/v1/namespaces/default/events/"+ev.Name, `{"metadata":{"labels":{"incident":"42"}}}`)
		}
	}
	source.do("PATCH", eventsPath+"/new-style", `{"series":{"count":7,"lastObservedTime":"2026-01-02T03:05:05.000006Z"}}`)
	source.do("PATCH", "/api/v1/namespaces/default/events/same", `{"count":2,"message":"again"}`)
	waittest.Until(t, "the update", func() bool {
		for _, ev := range coreEvents(t, target.url("--listen-http"), target.token, "labelSelector=incident=42") {
			return ev.Series != nil && ev.Series.Count == 7
		}
		return false
	})
	for _, ev := range coreEvents(t, target.url("--listen-http"), target.token, "labelSelector=incident=42") {
		target.do("PATCH", "/api/v1/namespaces/default/events/"+ev.Name, `{"metadata":{"labels":{"incident":null}}}`)
	}
	arrived("updates")
	source.do("DELETE", "/api/v1/namespaces/default/events/same", "")
	create(source, "default", "same") // another event of the same name
	arrived("an event of the name of one that is gone")
	waittest.Until(t, "lag is over", func() bool { return metric(t, admin, `eventsvc_mirror_lag_seconds{namespace="*"}`) == "0" })

	// A mirror that was stopped misses nothing: a watch from the cursor also shows what was deleted since.
	stop()
	create(source, "default", "while-stopped")
	look()
	source.do("DELETE", "/api/v1/namespaces/default/events/while-stopped", "")
	admin, stop = runMirror(t, args...)
	arrived("what came and went while it was stopped")
	if n := metric(t, admin, `eventsvc_mirror_lists_total{namespace="*",reason="first"}`); n != "0" {
		t.Errorf("%s lists after a restart", n)
	}
	stop()
	if n := len(gaps()); n != 0 {
		t.Errorf("%d gaps although the mirror could continue from its cursor", n)
	}

	// After a 410 the source is listed again, and the gap is recorded.
	code, before := target.do("GET", cursor, "")
	if code != 200 {
		t.Fatal(code, before)
	}
	gone.Store(1)
	create(source, "default", "after-gap")
	source.do("PATCH", "/api/v1/namespaces/default/events/same", `{"metadata":{"labels":{"app":"api"}}}`)
	admin, stop = runMirror(t, args...)
	arrived("after a gap")
	if n := metric(t, admin, `eventsvc_mirror_lists_total{namespace="*",reason="gone"}`); n != "1" {
		t.Errorf("%q lists after 410", n)
	}
	waittest.Until(t, "the gap is recorded", func() bool { return len(gaps()) == 1 })
	first := checkGaps(t, gaps(), began)
	if code, answer := target.do("GET", "/query/v1/facets", ""); code != 200 || len(answer["gaps"].([]any)) != 2 {
		t.Errorf("queries are answered with %d and %v", code, answer)
	}
	waittest.Until(t, "the cursor is saved", func() bool {
		_, after := target.do("GET", cursor, "")
		return cursorOf(t, after) != cursorOf(t, before)
	})
	stop()

	// A mirror that was killed before it could save the cursor finds the same gap again, and records it only once.
	if code, object := target.do("PATCH", cursor, annotations(t, before)); code != 200 {
		t.Fatal(code, object)
	}
	gone.Store(1)
	_, stop = runMirror(t, args...)
	waittest.Until(t, "the gap is found again", func() bool {
		_, now := target.do("GET", cursor, "")
		return gone.Load() <= 0 && cursorOf(t, now) != cursorOf(t, before)
	})
	stop()
	if again := checkGaps(t, gaps(), began); !maps.Equal(again, first) {
		t.Errorf("gaps begin at %v, at first at %v", again, first)
	}

	// A cursor without its version is of no use, but it tells that something may be missing.
	target.do("PATCH", cursor, `{"metadata":{"annotations":{"mirror.tidings.example/cursor":null}}}`)
	admin, stop = runMirror(t, args...)
	waittest.Until(t, "the second gap is recorded", func() bool { return len(gaps()) == 2 })
	waittest.Until(t, "the cursor is there again", func() bool {
		_, now := target.do("GET", cursor, "")
		return cursorOf(t, now) != ""
	})

	// A cluster whose versions start over is listed again. The copies of its former events stay.
	if err := source.stop(); err != nil {
		t.Fatal(err)
	}
	source = start(t, t.TempDir(), i, quiet, "--listen-http="+addr)
	create(source, "default", "same")
	arrived("a new cluster under the old name")
	if n := metric(t, admin, `eventsvc_mirror_lists_total{namespace="*",reason="rewound"}`); n != "1" {
		t.Errorf("%q lists after the versions started over", n)
	}
	waittest.Until(t, "the third gap is recorded", func() bool { return len(gaps()) == 3 })
	checkGaps(t, gaps(), began)
	if n := metric(t, admin, `eventsvc_mirror_gaps_total{namespace="*"}`); n != "2" { // of this process
		t.Errorf("%q gaps are counted", n)
	}
	stop()
}

// cursorOf returns the version that an event of the mirror holds as its cursor.
func cursorOf(t *testing.T, object map[string]any) string {
	t.Helper()
	version, _ := annotationsOf(t, object)["mirror.tidings.example/cursor"].(string)
	return version
}

func annotationsOf(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		t.Fatalf("no event: %v", object)
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// annotations returns a patch that sets the annotations of an event.
func annotations(t *testing.T, object map[string]any) string {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotationsOf(t, object)}})
	if err != nil {
		t.Fatal(err)
	}
	return string(patch)
}

// checkGaps checks what the mirror recorded about gaps, none of which began before a time. It returns their begins by name.
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

// child is the program in a process of its own, to be killed and started again.
type child struct {
	t    *testing.T
	args []string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

func (c *child) start() {
	c.cmd = exec.Command(os.Args[0], "-test.run=^TestChild$")
	c.cmd.Env = append(os.Environ(), childArgs+"="+strings.Join(c.args, "\n"))
	c.cmd.Stdout, c.cmd.Stderr = &c.log, &c.log
	if err := c.cmd.Start(); err != nil {
		c.t.Error(err)
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended; the log says why
	_ = c.cmd.Wait()
}

// TestMirrorUnderKills kills source, mirror and target repeatedly while a writer creates, updates and deletes. In the end the
// target has the last state of every event that ever existed, once, and nothing else.
func TestMirrorUnderKills(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	from, to := freeAddress(t), freeAddress(t)
	token := i.token(t, nil)
	serve := func(addr string) *child {
		return &child{t: t, args: []string{"serve", "--listen-http=" + addr, "--listen-admin=", "--issuer=" + i.URL, "--data-dir=" + t.TempDir()}}
	}
	parts := []*child{serve(from), serve(to), {t: t, args: []string{"mirror", "--kubeconfig=" + kubeconfigFor(t, "http://"+from, token),
		"--cluster=a", "--server=http://" + to, "--token-file=" + file(t, token), "--listen-admin="}}}
	for n, p := range parts {
		if n == 2 { // a mirror that finds no server waits for longer each time
			waittest.Until(t, "both servers are ready", func() bool { return ready(from) && ready(to) })
		}
		p.start()
		t.Cleanup(func() {
			p.kill()
			if t.Failed() {
				t.Logf("%s:\n%s", p.args[0], p.log.String())
			}
		})
	}

	waittest.Until(t, "the mirror has begun", func() bool { // what goes before that, nobody could have seen
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+to+"/api/v1/namespaces/kube-system/events/eventsvc-mirror.a", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})

	// The writer sends each request until it is answered, so some requests arrive twice.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	send := func(method, path, body string) (code int) {
		waittest.Until(t, method+" is answered", func() bool {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+from+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			req.Header.Set("Content-Type", map[string]string{"PATCH": "application/merge-patch+json"}[method])
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
			code = resp.StatusCode
			return code < 500
		})
		return code
	}
	written, deleted := 0, 0
	var progress atomic.Int64 // written, as others may read it
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			name := fmt.Sprintf("e%05d", written)
			if code := send("POST", eventsPath, newEvent(name)); code != 201 && code != 409 {
				t.Errorf("create: %d", code)
			}
			written++
			progress.Store(int64(written))
			if recent := written - rand.IntN(min(written, 20)) - 1; recent%7 != 0 {
				send("PATCH", eventsPath+fmt.Sprintf("/e%05d", recent), fmt.Sprintf(`{"series":{"count":%d,"lastObservedTime":"2026-01-02T03:05:05.000006Z"}}`, written+2))
			}
			if written%7 == 1 && written > 40 { // one that is never patched: its last version is known
				send("DELETE", fmt.Sprintf("%s/e%05d", eventsPath, written-36), "")
				deleted++
			}
		}
	})
	for round := range 12 {
		p := parts[round%len(parts)]
		before := progress.Load()
		waittest.Reaches(t, "something is written", before+20, progress.Load)
		if err := wait(ctx, rand.N(300*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		p.kill()
		if round%4 == 0 { // sometimes away for a while
			_ = wait(ctx, rand.N(300*time.Millisecond))
		}
		p.start()
	}
	stop()
	waittest.Join(t, &writer)

	var live, copies map[string]corev1.Event
	names := map[string]int{}
	defer func() {
		for n := range written {
			if name := fmt.Sprintf("e%05d", n); names[name] != 1 {
				t.Logf("%s has %d copies", name, names[name])
			}
		}
	}()
	send("GET", eventsPath, "") // until the source is up
	live = coreEvents(t, "http://"+from, token, "")
	waittest.Until(t, "the target answers", func() bool { return ready(to) })
	arrived := -1
	for whole := written + len(live); arrived < whole; { // however slow the disk is, as long as more arrives
		before := arrived
		waittest.Until(t, "more has arrived", func() bool {
			copies = bySource(t, coreEvents(t, "http://"+to, token, "labelSelector=cluster=a"))
			arrived = len(copies)
			clear(names)
			for _, ev := range copies {
				names[ev.Name[:strings.LastIndex(ev.Name, ".")]]++
			}
			for _, ev := range live {
				if copies[string(ev.UID)].Annotations["mirror.tidings.example/resource-version"] == ev.ResourceVersion {
					arrived++
				}
			}
			return arrived > before
		})
	}
	for _, ev := range live {
		if d := cmp.Diff(content(ev, "a"), content(copies[string(ev.UID)], "a")); d != "" {
			t.Errorf("%s (-source +copy)\n%s", ev.Name, d)
		}
	}
	if len(names) != written || len(live) != written-deleted || deleted == 0 {
		t.Errorf("%d names of %d written, %d live after %d deletions", len(names), written, len(live), deleted)
	}
	if gaps := coreEvents(t, "http://"+to, token, "fieldSelector=reason=MirrorGap"); len(gaps) > 0 {
		t.Errorf("gaps although every watch could be continued: %v", gaps)
	}
	t.Logf("%d written, %d deleted at the source, %d copies", written, deleted, len(copies))
}

// ready asks the readiness probe of a server.
func ready(addr string) bool {
	resp, err := http.Get("http://" + addr + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func TestMirrorSettings(t *testing.T) {
	t.Parallel()
	kubeconfig := "--kubeconfig=" + kubeconfigFor(t, "http://127.0.0.1:1", "x")
	long := "example.com/" + strings.Repeat("k", 55) // with the name of its domain it is longer than 63 characters
	for want, args := range map[string][]string{
		"--cluster is not set":                         {kubeconfig},
		`--cluster "Prod_1"`:                           {kubeconfig, "--cluster=Prod_1"},
		"--cluster-label":                              {kubeconfig, "--cluster=a", "--cluster-label=a/b/c"},
		"--kubeconfig is not set, and this is no pod":  {"--cluster=a"},
		"--context has no effect without --kubeconfig": {"--cluster=a", "--context=x"},
		"--kubeconfig and --server are the same":       {kubeconfig, "--cluster=a", "--server=http://127.0.0.1:1"},
		"--parallel":                                   {kubeconfig, "--cluster=a", "--parallel=0"},
		"--cursor-namespace":                           {kubeconfig, "--cluster=a", "--cursor-namespace="},
		`--enrich "all" is unknown`:                    {kubeconfig, "--cluster=a", "--enrich=all"},
		`--copy-labels "a/b/c"`:                        {kubeconfig, "--cluster=a", "--copy-labels=a/b/c"},
		"--namespace-labels: \"" + long:                {kubeconfig, "--cluster=a", "--namespace-labels=" + long},
		"leave out some, they can be 6":                {kubeconfig, "--cluster=a", "--copy-labels=a,b,c,d", "--namespace-labels=e,f,g"},
		"--copy-labels has no effect":                  {kubeconfig, "--cluster=a", "--enrich=owner", "--copy-labels=a"},
		"--namespace-labels has no effect":             {kubeconfig, "--cluster=a", "--enrich=", "--namespace-labels=a"},
	} {
		_, said, code := use(t, append([]string{"mirror"}, args...)...)
		if code != 2 || !strings.Contains(said, want) {
			t.Errorf("%v: exit code %d: %s", args, code, said)
		}
	}
}
