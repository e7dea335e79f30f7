package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
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
	"tidings.example/shared/waittest"
)

// simulated is a cluster that serves lists and watches of its events, which it all keeps.
type simulated struct {
	name string

	gone    atomic.Int32 // watches to come that are answered with 410
	watches atomic.Int32 // that are open

	mu      sync.Mutex
	changes []frame        // the version of a change is its place, from 1
	events  []corev1.Event // as they are now
	more    chan struct{}  // is closed when there are more changes
}

// frame is a frame of a watch.
type frame struct {
	namespace string
	text      []byte
}

// record makes a new event.
func (s *simulated) record(namespace, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change("ADDED", s.new(namespace, reason))
}

// new returns a new event. The caller holds mu.
func (s *simulated) new(namespace, reason string) *corev1.Event {
	name, now := fmt.Sprintf("web.%d", len(s.events)), metav1.Now()
	s.events = append(s.events, corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(s.name + "/" + name), CreationTimestamp: now},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "web-7d9c", UID: "u"}, Reason: reason, Type: "Warning",
		Message: "Back-off restarting failed container", Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: "node-1"},
	})
	return &s.events[len(s.events)-1]
}

// change gives an event its next version. The caller holds mu.
func (s *simulated) change(kind string, ev *corev1.Event) {
	ev.ResourceVersion = strconv.Itoa(len(s.changes) + 1)
	text, _ := json.Marshal(map[string]any{"type": kind, "object": ev}) // texts, numbers and times
	s.changes = append(s.changes, frame{ev.Namespace, append(text, '\n')})
	if s.more != nil {
		close(s.more)
	}
	s.more = make(chan struct{})
}

// startOver makes it another cluster, with one event for each reason.
func (s *simulated) startOver(name, namespace string, reasons ...string) {
	s.mu.Lock()
	s.name, s.changes, s.events = name, nil, nil
	s.mu.Unlock()
	for _, reason := range reasons {
		s.record(namespace, reason)
	}
}

// publish makes n changes: most are new events, the others further versions of recent ones.
func (s *simulated) publish(random *rand.Rand, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		if recent := min(20, len(s.events)); recent > 0 && random.IntN(4) == 0 {
			ev := &s.events[len(s.events)-1-random.IntN(recent)]
			ev.Count++
			ev.LastTimestamp = metav1.Now()
			s.change("MODIFIED", ev)
			continue
		}
		s.change("ADDED", s.new("shop", "BackOff"))
	}
}

// after returns the changes after a version, and what is closed when there are more.
func (s *simulated) after(version int) ([]frame, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[min(version, len(s.changes)):], s.more
}

// ServeHTTP implements [http.Handler].
func (s *simulated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	namespace, one := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/events"), "/api/v1/namespaces/")
	switch {
	case !one && r.URL.Path != "/api/v1/events":
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Query().Get("watch") == "":
		s.mu.Lock()
		list := corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(len(s.changes))}, Items: slices.Clone(s.events)}
		s.mu.Unlock()
		list.Items = slices.DeleteFunc(list.Items, func(ev corev1.Event) bool { return one && ev.Namespace != namespace })
		if r.URL.Query().Get("limit") == "1" { // only the version is wanted
			list.Items = nil
		}
		_ = json.NewEncoder(w).Encode(list) // the mirror may be gone
	case s.gone.Add(-1) >= 0:
		_, _ = io.WriteString(w, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","message":"too old","code":410}}`)
	default:
		s.watches.Add(1)
		defer s.watches.Add(-1)
		version, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
		for {
			changes, more := s.after(version)
			for _, f := range changes {
				if one && f.namespace != namespace {
					continue
				}
				if _, err := w.Write(f.text); err != nil {
					return
				}
			}
			version += len(changes)
			_ = http.NewResponseController(w).Flush() // likewise
			select {
			case <-more:
			case <-r.Context().Done():
				return
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
	var ev corev1.Event
	if !c.Seen() || json.Unmarshal(c.Object, &ev) != nil || ev.Annotations[event.SourceUID] == "" {
		return nil
	}
	uid, cluster := ev.Annotations[event.SourceUID], ev.Labels[event.ClusterLabel]
	version, _ := strconv.Atoi(ev.Annotations[event.SourceVersion])
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
	for i := range s.events {
		uid, want := string(s.events[i].UID), s.events[i].ResourceVersion
		if got := a.versions[uid]; strconv.Itoa(got) != want {
			return fmt.Sprintf("%s has version %d of %s", uid, got, want)
		}
	}
	return ""
}

// TestFleet copies a hundred clusters into one hub, which is killed and away for a while. Nothing is lost or doubled, and the
// order of each cluster is kept. With TIDINGS_FLEET=RATE,AWAY (such as 5500,10m) the clusters publish so many changes a second,
// the hub is away for so long, and the log says how fast it catches up.
func TestFleet(t *testing.T) {
	t.Parallel()
	const clusters = 100
	i := newIssuer(t)
	addr := freeAddress(t)
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
	following.Go(func() {
		_ = to.Follow(ctx, "/api/v1/events", begin, nil, client.Follower{Connected: func() {}, Interrupted: func(error) {}, Change: seen.change}) // until it is stopped
	})
	t.Cleanup(func() { stop(); following.Wait() })

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
		longFleet(t, form, all, hub, arrived)
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
func longFleet(t *testing.T, form string, all []*simulated, hub *child, arrived func(string)) {
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
	const tick = 20 * time.Millisecond
	random := rand.New(rand.NewPCG(2, 41))
	publish := func(d time.Duration) {
		ticks, due := time.NewTicker(tick), 0.0
		defer ticks.Stop()
		for began := time.Now(); time.Since(began) < d; <-ticks.C {
			for due += float64(rate) * tick.Seconds(); due >= 1; {
				n := min(int(due), 2)
				all[random.IntN(len(all))].publish(random, n)
				due -= float64(n)
			}
		}
	}
	publish(min(away, time.Minute))
	began := time.Now()
	arrived("what came before")
	t.Logf("behind by %s after a minute at %d/s", time.Since(began).Round(time.Millisecond), rate)
	hub.kill()
	publish(away)
	hub.start()
	began = time.Now()
	publish(min(away, time.Minute))
	arrived("what came meanwhile")
	t.Logf("away for %s, it has caught up %s after its start, the first minute of which more came", away, time.Since(began).Round(time.Millisecond))
}
