package mirror

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/waittest"
)

// apiServer plays the part of a cluster's API that enrichment reads. It counts requests, and refuses what is in denied.
type apiServer struct {
	*httptest.Server
	mu       sync.Mutex
	objects  map[string]*metadata // by path
	denied   map[string]bool      // paths
	requests map[string]int       // by path and query
	changes  chan string          // frames of watches of pods
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{objects: map[string]*metadata{}, denied: map[string]bool{}, requests: map[string]int{}, changes: make(chan string, 10)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.CloseClientConnections) // of watches, before the server waits for them
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	denied, object := s.denied[r.URL.Path], s.objects[r.URL.Path]
	s.requests[r.URL.Path]++
	s.mu.Unlock()
	switch path := r.URL.Path; {
	case denied:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"kind":"Status","status":"Failure","reason":"Forbidden","message":"%s is forbidden","code":403}`, path)
	case path == "/apis/apps/v1":
		fmt.Fprint(w, `{"resources":[{"name":"deployments/status","kind":"Deployment","namespaced":true},{"name":"deployments","kind":"Deployment","namespaced":true},{"name":"replicasets","kind":"ReplicaSet","namespaced":true}]}`)
	case r.URL.Query().Get("watch") != "":
		changes := s.changes
		if path != "/api/v1/pods" {
			changes = nil
		}
		flush := http.NewResponseController(w)
		for _ = flush.Flush(); ; _ = flush.Flush() {
			select {
			case <-r.Context().Done():
				return
			case frame := <-changes:
				fmt.Fprintln(w, frame)
			}
		}
	case path == "/api/v1/pods" || path == "/api/v1/namespaces":
		if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList;") {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		fmt.Fprint(w, `{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"uid":"1","name":"p","namespace":"shop","ownerReferences":[{"kind":"DaemonSet","name":"log","controller":true}]}}]}`)
	case object != nil:
		_ = json.NewEncoder(w).Encode(object)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","status":"Failure","reason":"NotFound","message":"not found","code":404}`)
	}
}

func (s *apiServer) asked(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[path]
}

func (s *apiServer) all() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, times := range s.requests {
		n += times
	}
	return n
}

func (s *apiServer) deny(path string, denied bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied[path] = denied
}

// said is a log that can be read while it is written.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *said) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.b.String(), text)
}

// TestObjects reads what events are about, and counts the requests.
func TestObjects(t *testing.T) {
	t.Parallel()
	const path = "/apis/apps/v1/namespaces/shop/"
	s, log := newAPIServer(t), &said{}
	s.objects[path+"replicasets/web-1"] = made("shop", "web-1", "rs", map[string]string{"app": "web"}, "Deployment/web")
	s.objects[path+"deployments/web"] = made("shop", "web", "deployment", nil)
	s.objects["/api/v1/namespaces/shop/secrets/x"] = made("shop", "x", "secret", nil)
	e := newTestEnricher(t, everything, s.URL, slog.New(slog.NewTextHandler(log, nil)))
	e.spaces.now = followed
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	running.Go(func() { e.objects.run(t.Context()) })
	namespace := "shop"
	find := func(apiVersion, kind, name, uid string) (f found[facts]) {
		waittest.Until(t, kind+" "+name+" is read", func() bool {
			f = e.objects.find(reference{apiVersion, kind, namespace, name, types.UID(uid)})
			return f.soon == nil && f.result != enrichedLate
		})
		return f
	}
	for range 100 {
		if f := find("apps/v1", "ReplicaSet", "web-1", "rs"); f.result != enrichedAdded || f.value.ownerKind != "Deployment" || f.value.ownerName != "web" || f.value.labels != "app\x00web\x00" {
			t.Fatalf("a ReplicaSet: %+v", f)
		}
		if f := find("apps/v1", "Deployment", "web", "of the one before"); f.result != enrichedUnknown {
			t.Fatalf("an object with another uid: %+v", f)
		}
		if f := find("apps/v1", "Deployment", "gone", "gone"); f.result != enrichedUnknown {
			t.Fatalf("an object that is not there: %+v", f)
		}
		if f := find("apps/v1", "Unknown", "x", "x"); f.result != enrichedUnknown {
			t.Fatalf("an unknown kind: %+v", f)
		}
		if f := find("lies/v9", "Liar", "x", "x"); f.result != enrichedUnknown {
			t.Fatalf("an unknown group: %+v", f)
		}
	}
	if n := s.all(); n != 5 || s.asked("/apis/apps/v1") != 1 || s.asked("/apis/lies/v9") != 1 || s.asked(path+"deployments/web") != 1 {
		t.Errorf("%d requests for 500 events: %v", n, s.requests)
	}

	// Names that are none, and that would lead elsewhere.
	for _, c := range [][3]string{{"apps/v1", "Deployment", ".."}, {"apps/v1", "Deployment", "../secrets/x"}, {"apps/v1", "Deployment", ""},
		{"../v1", "Deployment", "x"}, {"apps/v1/namespaces", "Deployment", "x"}, {"apps/..", "Deployment", "x"}, {"", "Deployment", "x"}} {
		before := s.all()
		if f := find(c[0], c[1], c[2], "x"); f.result != enrichedUnknown || s.all() != before {
			t.Errorf("%v: %+v, %d requests", c, f, s.all()-before)
		}
	}
	for _, namespace = range []string{"..", "../secrets"} {
		before := s.all()
		if f := find("apps/v1", "Deployment", "x", "x"); f.result != enrichedUnknown || s.all() != before {
			t.Errorf("namespace %s: %+v, %d requests", namespace, f, s.all()-before)
		}
	}
	namespace = "shop"

	// What is refused is asked for once a minute for its kind, and said once.
	s.deny(path+"deployments/a", true)
	s.deny(path+"deployments/b", true)
	for _, name := range []string{"a", "b", "a", "b"} {
		if f := find("apps/v1", "Deployment", name, "x"); f.result != enrichedOff {
			t.Errorf("a kind that may not be read: %+v", f)
		}
	}
	if n := s.asked(path+"deployments/a") + s.asked(path+"deployments/b"); n != 1 {
		t.Errorf("%d requests for what may not be read", n)
	}
	if n := log.count("because the source does not let these be read"); n != 1 {
		t.Errorf("the log says %d times that a kind may not be read", n)
	}
	it := about(time.Now(), "Deployment", "shop", "a", "x")
	it.copy.InvolvedObject.APIVersion = "apps/v1"
	e.enrich(t.Context(), []item{it}, newKnown())
	items := []item{it}
	e.enrich(t.Context(), items, newKnown())
	if l := items[0].added.labels; l[event.OwnerKindLabel] != "Deployment" || l[event.OwnerNameLabel] != "a" {
		t.Errorf("a Deployment that may not be read has %v", l)
	}
}

// TestReads bounds the requests that a storm of events about different objects makes.
func TestReads(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	e := newTestEnricher(t, everything, s.URL, slog.New(slog.DiscardHandler))
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	running.Go(func() { e.objects.run(t.Context()) })
	late, began := 0, time.Now()
	for i := range 10_000 {
		if f := e.objects.find(reference{"apps/v1", "ReplicaSet", "shop", fmt.Sprint("rs-", i), types.UID(fmt.Sprint(i))}); f.result == enrichedLate {
			late++
		}
	}
	waittest.Until(t, "some are read", func() bool { return s.all() >= 10 })
	asked := s.all() // before the time is taken, as the requests go on
	if most := objectsRate * (1 + 1 + int(time.Since(began).Seconds())); asked > most || late < 10_000-objectsQueued-most {
		t.Errorf("%d requests, at most %d; %d of 10000 did not wait", asked, most, late)
	}
	e.objects.mu.Lock()
	defer e.objects.mu.Unlock()
	if n := e.objects.known.Len(); n > objectsMost {
		t.Errorf("%d objects are kept", n)
	}
}

// TestReflector takes the right to read pods away, and gives it back.
func TestReflector(t *testing.T) {
	t.Parallel()
	s, log := newAPIServer(t), &said{}
	s.deny("/api/v1/pods", true)
	e := newTestEnricher(t, everything, s.URL, slog.New(slog.NewTextHandler(log, nil)))
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	running.Go(func() { e.run(t.Context()) })
	e.begun(t.Context()) // does not wait for what is denied
	is := func(uid, result string) func() bool {
		return func() bool {
			it := about(time.Now().Add(-time.Hour), "Pod", "shop", "p", uid)
			return e.object(&it).result == result
		}
	}
	if !is("1", enrichedOff)() {
		t.Error("pods are not off")
	}
	waittest.Until(t, "it is refused again", func() bool { return s.asked("/api/v1/pods") > 2 })
	s.deny("/api/v1/pods", false)
	waittest.Until(t, "the pod is known", is("1", enrichedAdded))
	s.changes <- `{"type":"ADDED","object":{"metadata":{"resourceVersion":"8","uid":"2","name":"q","namespace":"shop"}}}`
	waittest.Until(t, "the new pod is known", is("2", enrichedAdded))
	s.changes <- `{"type":"DELETED","object":{"metadata":{"resourceVersion":"9","uid":"2","name":"q","namespace":"shop"}}}`
	s.changes <- `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"10"}}}`
	s.changes <- `{"type":"ADDED","object":{"metadata":{"resourceVersion":"11","uid":"3","name":"r","namespace":"shop"}}}`
	waittest.Until(t, "the next pod is known", is("3", enrichedAdded))
	if !is("2", enrichedAdded)() {
		t.Error("a pod that has just gone is not known")
	}
	s.deny("/api/v1/pods", true)
	s.CloseClientConnections()
	waittest.Until(t, "pods are off again", is("none", enrichedOff))
	if !is("1", enrichedAdded)() {
		t.Error("what is known of pods is lost with the right to read them")
	}
	if denied, again := log.count("kind=pods error"), log.count("again\" kind=pods"); denied != 2 || again != 1 {
		t.Errorf("the log says %d times that pods may not be read, and %d times that they can be", denied, again)
	}
}
