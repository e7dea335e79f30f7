package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/porttest"
	"tidings.example/shared/waittest"
)

// simulated is a cluster that serves lists and watches of its events, which it all keeps.
type simulated struct {
	name string

	gone    atomic.Int32 // watches to come that are answered with 410
	watches atomic.Int32 // that are open
	sent    atomic.Int64 // the version up to which a watch has sent

	mu      sync.Mutex
	changes []change // the version of a change is its place, from 1
	events  []observed
	arrived int           // of the events: before this one all have arrived
	more    chan struct{} // is closed when there are more changes
}

// observed is an event as it is now. The long form has millions of them.
type observed struct {
	namespace, reason string
	created           time.Time
	version           int
	count             int32
}

// change is a version of an event.
type change struct {
	at    time.Time
	app   string // the event's label, if it has one
	event int32
	count int32
}

// record makes a new event.
func (s *simulated) record(namespace, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.new(namespace, reason)
}

// new makes a new event. The caller holds mu.
func (s *simulated) new(namespace, reason string) {
	s.events = append(s.events, observed{namespace: namespace, reason: reason, created: time.Now()})
	s.observe(len(s.events)-1, "")
}

// observe gives an event its next version. The caller holds mu.
func (s *simulated) observe(at int, app string) {
	ev := &s.events[at]
	ev.count++
	s.changes = append(s.changes, change{time.Now(), app, int32(at), ev.count})
	ev.version = len(s.changes)
	s.arrived = min(s.arrived, at)
	if s.more != nil {
		close(s.more)
	}
	s.more = make(chan struct{})
}

// repeat observes each of the first n events again.
func (s *simulated) repeat(n int, app string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range n {
		s.observe(at, app)
	}
}

func (s *simulated) uid(at int) string { return fmt.Sprintf("%s/web.%d", s.name, at) }

// show returns an event as a change has left it. The caller holds mu.
func (s *simulated) show(c change, version int) *corev1.Event {
	ev := &s.events[c.event]
	shown := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ev.namespace, Name: fmt.Sprint("web.", c.event), UID: types.UID(s.uid(int(c.event))),
			CreationTimestamp: metav1.NewTime(ev.created), ResourceVersion: strconv.Itoa(version),
		},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ev.namespace, Name: "web-7d9c", UID: "u"}, Reason: ev.reason, Type: "Warning",
		Message: "Back-off restarting failed container", Count: c.count, FirstTimestamp: metav1.NewTime(ev.created), LastTimestamp: metav1.NewTime(c.at),
		Source: corev1.EventSource{Component: "kubelet", Host: "node-1"},
	}
	if c.app != "" {
		shown.Labels = map[string]string{"app": c.app}
	}
	return shown
}

// startOver makes it another cluster, with one event for each reason.
func (s *simulated) startOver(name, namespace string, reasons ...string) {
	s.mu.Lock()
	s.name, s.changes, s.events, s.arrived = name, nil, nil, 0
	s.mu.Unlock()
	for _, reason := range reasons {
		s.record(namespace, reason)
	}
}

// recent is how many of the newest events may change yet.
const recent = 20

// publish makes n changes: most are new events, the others further versions of recent ones.
func (s *simulated) publish(random *rand.Rand, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		if some := min(recent, len(s.events)); some > 0 && random.IntN(4) == 0 {
			s.observe(len(s.events)-1-random.IntN(some), "")
			continue
		}
		s.new("shop", "BackOff")
	}
}

// after returns some frames of changes after a version, how many changes these are, and what is closed when there are
// more.
func (s *simulated) after(version int, only string) (frames []byte, n int, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; n < 100 && version+n < len(s.changes); n++ {
		c := s.changes[version+n]
		if only != "" && s.events[c.event].namespace != only {
			continue
		}
		kind := "MODIFIED"
		if c.count == 1 {
			kind = "ADDED"
		}
		frame, _ := json.Marshal(map[string]any{"type": kind, "object": s.show(c, version+n+1)}) // texts, numbers and times
		frames = append(append(frames, frame...), '\n')
	}
	if version+n < len(s.changes) {
		return frames, n, closed
	}
	return frames, n, s.more
}

// closed is a channel that is closed.
var closed = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// page returns events of a namespace, or of all if it is empty: as many as limit says, from where the page before
// ended.
func (s *simulated) page(namespace string, q url.Values) *corev1.EventList {
	s.mu.Lock()
	defer s.mu.Unlock()
	version, from, _ := strings.Cut(cmp.Or(q.Get("continue"), strconv.Itoa(len(s.changes))+"/0"), "/") // the version is that of the first page
	at, _ := strconv.Atoi(from)
	limit, _ := strconv.Atoi(q.Get("limit"))
	list := &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for ; at < len(s.events); at++ {
		if limit > 0 && len(list.Items) == limit {
			list.Continue = fmt.Sprintf("%s/%d", version, at)
			break
		}
		if ev := s.events[at]; namespace == "" || ev.namespace == namespace {
			list.Items = append(list.Items, *s.show(s.changes[ev.version-1], ev.version))
		}
	}
	return list
}

// ServeHTTP implements [http.Handler].
func (s *simulated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	namespace, one := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/events"), "/api/v1/namespaces/")
	if !one {
		namespace = ""
	}
	switch {
	case !one && r.URL.Path != "/api/v1/events":
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Query().Get("watch") == "":
		_ = json.NewEncoder(w).Encode(s.page(namespace, r.URL.Query())) // the mirror may be gone
	case s.gone.Add(-1) >= 0:
		_, _ = io.WriteString(w, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","message":"too old","code":410}}`)
	default:
		s.watches.Add(1)
		defer s.watches.Add(-1)
		version, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
		for {
			frames, n, more := s.after(version, namespace)
			if _, err := w.Write(frames); err != nil {
				return
			}
			version += n
			_ = http.NewResponseController(w).Flush() // likewise
			s.sent.Store(int64(version))
			select {
			case <-more:
			case <-r.Context().Done():
				return
			}
			if s.gone.Load() > 0 {
				return // as kube-apiserver ends a watch that falls behind what it keeps
			}
		}
	}
}

// arrivals are the copies that a watch of the hub has shown.
type arrivals struct {
	t        *testing.T
	mu       sync.Mutex
	versions map[string]int // of each copy, by uid: the newest
	newest   map[string]int // number of the newest event of each cluster
	n        atomic.Int64
}

// change notes a change of the hub. A copy that comes twice, and a version behind a newer one, are errors.
func (a *arrivals) change(c client.Change) error {
	var shown struct {
		Metadata struct{ Labels, Annotations map[string]string }
	}
	if !c.Seen() || json.Unmarshal(c.Object, &shown) != nil || shown.Metadata.Annotations[event.SourceUID] == "" {
		return nil
	}
	copied := shown.Metadata
	uid, cluster := copied.Annotations[event.SourceUID], copied.Labels[event.ClusterLabel]
	version, _ := strconv.Atoi(copied.Annotations[event.SourceVersion])
	_, digits, _ := strings.Cut(uid, ".")
	number, _ := strconv.Atoi(digits)
	a.mu.Lock()
	defer a.mu.Unlock()
	before, known := a.versions[uid]
	switch {
	case known == (c.Type == "ADDED"):
		a.t.Errorf("%s comes as %s, known before: %t", uid, c.Type, known)
	case version <= before:
		a.t.Errorf("%s: version %d behind %d", uid, version, before)
	case !known && number < a.newest[cluster]:
		a.t.Errorf("%s comes behind number %d", uid, a.newest[cluster])
	case !known:
		a.newest[cluster] = number
	}
	a.versions[uid] = version
	a.n.Add(1)
	return nil
}

// missing says what a cluster has that has not arrived, "" if all of it has.
func (a *arrivals) missing(s *simulated) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	for at := s.arrived; at < len(s.events); at++ {
		uid, want := s.uid(at), s.events[at].version
		if got := a.versions[uid]; got != want {
			return fmt.Sprintf("%s has version %d of %d", uid, got, want)
		}
		if at == s.arrived && at < len(s.events)-recent {
			s.arrived++
		}
	}
	return ""
}

// TestFleet copies a hundred clusters into one hub, which is killed and away for a while. Nothing is lost or doubled,
// and the order of each cluster is kept. With TIDINGS_FLEET=RATE,AWAY (such as 5500,10m) the clusters publish so many
// changes a second, the hub is away for so long, a third of the clusters no longer have the changes since then, and the
// log says how fast it catches up and how much memory it takes.
func TestFleet(t *testing.T) {
	t.Parallel()
	const clusters = 100
	i := newIssuer(t)
	addr := porttest.Addr(t)
	token := i.token(t, nil)
	hub := &child{t: t, args: []string{"serve", "--listen-http=" + addr, "--listen-admin=", "--issuer=" + i.URL, "--data-dir=" + t.TempDir(), "--log-level=warn"}}
	hub.start()
	t.Cleanup(func() {
		hub.kill()
		if t.Failed() {
			t.Log(hub.log.String())
		}
	})
	to, err := client.New(client.Config{Server: "http://" + addr, Tokens: client.StaticToken(token)})
	if err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the hub answers", func() bool { _, err := to.Version(t.Context(), "/api/v1/events"); return err == nil })

	seen := &arrivals{t: t, versions: map[string]int{}, newest: map[string]int{}}
	ctx, stop := context.WithCancel(t.Context())
	begin, err := to.Version(ctx, "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	var following sync.WaitGroup
	following.Go(func() { // metadata is enough, and one goroutine reads all of it
		_ = to.Metadata().Follow(ctx, "/api/v1/events", begin, nil, client.Follower{Connected: func() {}, Interrupted: func(error) {}, Change: seen.change}) // until it is stopped
	})
	t.Cleanup(func() { stop(); waittest.Join(t, &following) })

	tokenFile := file(t, token)
	all, random := make([]*simulated, clusters), rand.New(rand.NewPCG(1, 41))
	for n := range all {
		all[n] = &simulated{name: fmt.Sprint("c", n)}
		all[n].publish(random, 10) // what the first list has
		source := httptest.NewServer(all[n])
		_, stopped := runMirror(t, "--kubeconfig="+kubeconfigFor(t, source.URL, "t"), "--cluster="+all[n].name, "--server=http://"+addr, "--token-file="+tokenFile,
			"--enrich=", "--log-level=error")
		t.Cleanup(func() { stopped(); source.CloseClientConnections(); source.Close() })
	}
	arrived := func(step string) {
		t.Helper()
		left := slices.Clone(all)
		for last := seen.n.Load(); len(left) > 0; last = seen.n.Load() { // as long as there is progress
			waittest.Until(t, step, func() bool {
				left = slices.DeleteFunc(left, func(s *simulated) bool { return seen.missing(s) == "" })
				return len(left) == 0 || seen.n.Load() > last
			})
		}
	}
	arrived("the first lists")
	if form := os.Getenv("TIDINGS_FLEET"); form != "" {
		longFleet(t, form, all, hub, to, seen, arrived)
	} else {
		publish := func() {
			for _, s := range all {
				s.publish(random, 20)
			}
		}
		publish()
		before := seen.n.Load()
		waittest.Until(t, "some has arrived", func() bool { return seen.n.Load() > before+100 })
		hub.kill()
		publish()
		hub.start()
		publish()
	}
	arrived("everything")
	want := 0
	for _, s := range all {
		want += len(s.events)
	}
	if len(seen.versions) != want {
		t.Errorf("%d copies of %d events", len(seen.versions), want)
	}
	t.Logf("%d events of %d clusters in %d versions", want, clusters, seen.n.Load())
}

// longFleet publishes at a rate for a minute, while the hub is away, and for another minute.
func longFleet(t *testing.T, form string, all []*simulated, hub *child, to *client.Client, seen *arrivals, arrived func(string)) {
	t.Helper()
	rateText, awayText, _ := strings.Cut(form, ",")
	rate, err := strconv.Atoi(rateText)
	if err != nil {
		t.Fatal(err)
	}
	away, err := time.ParseDuration(awayText)
	if err != nil {
		t.Fatal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the clusters keep millions of events, which are not what is measured
	const tick = 20 * time.Millisecond
	random := rand.New(rand.NewPCG(2, 41))
	publish := func(d time.Duration) {
		ticks := time.NewTicker(tick)
		defer ticks.Stop()
		for began, n := time.Now(), 0; time.Since(began) < d; <-ticks.C {
			for due := int(float64(rate) * time.Since(began).Seconds()); n < due; n += 2 { // also if the machine was too busy for some ticks
				all[random.IntN(len(all))].publish(random, 2)
			}
		}
	}
	began := time.Now()
	var running sync.Mutex // is held while the hub is killed or started
	say := func(step string) {
		running.Lock()
		defer running.Unlock()
		t.Logf("%s after %s: %d changes published, %d arrived, the latest cluster is %s behind, the hub has %d MiB of memory, %d of it anonymous", step,
			time.Since(began).Round(time.Second), published(all), seen.n.Load(), latest(t, to), hub.memory("VmRSS")>>20, hub.memory("RssAnon")>>20)
	}
	watched, stop := context.WithCancel(t.Context())
	var saying sync.WaitGroup
	saying.Go(func() {
		for client.Sleep(watched, 15*time.Second) == nil {
			say("so far")
		}
	})
	t.Cleanup(func() { stop(); waittest.Join(t, &saying) })
	publish(min(away, time.Minute))
	arrived("what came before")
	say("the first minute has arrived")
	running.Lock()
	hub.kill()
	running.Unlock()
	publish(away)
	for n := 0; n < len(all); n += 3 {
		all[n].gone.Store(1) // these no longer have what the mirror has not read, and are listed
	}
	before, own := seen.n.Load(), cpu(t, os.Getpid())
	running.Lock()
	hub.start()
	running.Unlock()
	back := time.Now()
	publish(min(away, time.Minute))
	arrived("what came meanwhile")
	say("everything has arrived")
	for _, s := range all {
		if s.gone.Load() > 0 {
			t.Errorf("%s was not asked for what it no longer has", s.name)
		}
	}
	n := float64(seen.n.Load() - before)
	t.Logf("away for %s, it has caught up with %.0f changes %s after its start, the first minute of which more came: %.0f/s, of CPU %.1f us a change in the hub, %.1f in clusters, mirrors and this test",
		away, n, time.Since(back).Round(time.Second), n/time.Since(back).Seconds(), cpu(t, hub.cmd.Process.Pid).Seconds()*1e6/n, (cpu(t, os.Getpid())-own).Seconds()*1e6/n)
}

// cpu is what a process has used of the processors, where the system tells.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Log(err)
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:])) // the name may have spaces
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// published is how many changes the clusters have made.
func published(all []*simulated) (n int) {
	for _, s := range all {
		s.mu.Lock()
		n += len(s.changes)
		s.mu.Unlock()
	}
	return n
}

// latest is how far the cluster that is behind most is behind, as the hub says.
func latest(t *testing.T, hub *client.Client) string {
	t.Helper()
	var answer struct{ Items []struct{ Lag int } }
	if err := hub.Do(t.Context(), client.Request{Path: "/query/v1/clusters"}, &answer); err != nil {
		return "unknown time"
	}
	most := 0
	for _, row := range answer.Items {
		most = max(most, row.Lag)
	}
	return (time.Duration(most) * time.Second).String()
}

// memory is a figure of /proc/PID/status in bytes, where the system tells; 0 if the process is gone.
func (c *child) memory(name string) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	_, text, _ := strings.Cut(string(status), name+":")
	kib := int64(0)
	_, _ = fmt.Sscan(text, &kib)
	return kib << 10
}
