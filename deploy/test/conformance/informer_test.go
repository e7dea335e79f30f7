package conformance_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// listsFirst is a client that keeps a reflector from opening a watch list.
type listsFirst struct{}

func (listsFirst) IsWatchListSemanticsUnSupported() bool { return true }

// requests remembers what a client asked for.
type requests struct {
	mu   sync.Mutex
	urls []string
}

// spy lets a client's requests be remembered.
func spy(config *rest.Config) *requests {
	r := &requests{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			r.mu.Lock()
			r.urls = append(r.urls, req.URL.String())
			r.mu.Unlock()
			return next.RoundTrip(req)
		})
	})
	return r
}

func (r *requests) count(part string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, u := range r.urls {
		if strings.Contains(u, part) {
			n++
		}
	}
	return n
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestInformer follows the events in every way that informers have: in JSON
// and in protobuf, by a watch list and by a list and a watch, over a restart
// (11.3).
func TestInformer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, contentType string
		watchList         bool
	}{
		{"protobuf, watch list", runtime.ContentTypeProtobuf, true},
		{"protobuf, list and watch", runtime.ContentTypeProtobuf, false},
		{"JSON, watch list", runtime.ContentTypeJSON, true},
		{"JSON, list and watch", runtime.ContentTypeJSON, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, ns := start(t), "followed"
			config := s.config()
			config.ContentType, config.AcceptContentTypes = c.contentType, c.contentType
			asked := spy(config)
			client := must(kubernetes.NewForConfig(config)).or(t)
			lw := cache.NewListWatchFromClient(client.EventsV1().RESTClient(), "events", ns, fields.Everything())
			var source cache.ListerWatcher = lw
			if !c.watchList {
				source = cache.ToListWatcherWithWatchListSemantics(lw, listsFirst{})
			}
			follow(t, s, ns, cache.NewSharedInformer(source, &eventsv1.Event{}, 0))
			if got := asked.count("sendInitialEvents=true") > 0; got != c.watchList {
				t.Errorf("watch list was asked for: %v", got)
			}
			if got := asked.count("limit=500"); got != 0 == c.watchList {
				t.Errorf("lists: %d", got)
			}
		})
	}
	t.Run("factories", func(t *testing.T) {
		t.Parallel()
		s, ns := start(t), "followed"
		client := must(kubernetes.NewForConfig(s.config())).or(t)
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ns))
		follow(t, s, ns, factory.Events().V1().Events().Informer())
		core := informers.NewSharedInformerFactory(client, 0).Core().V1().Events()
		go core.Informer().Run(t.Context().Done())
		if !cache.WaitForCacheSync(within(t).Done(), core.Informer().HasSynced) {
			t.Fatal("the core informer does not sync")
		}
	})
	t.Run("dynamic", func(t *testing.T) {
		t.Parallel()
		s, ns := start(t), "followed"
		client := must(dynamic.NewForConfig(s.config())).or(t)
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, ns, nil)
		follow(t, s, ns, factory.ForResource(resource()).Informer())
	})
}

// follow runs an informer over writes and a restart and compares what it was
// told with what happened.
func follow(t *testing.T, s *server, ns string, informer cache.SharedInformer) {
	t.Helper()
	for _, name := range []string{"a", "b", "c"} {
		s.create(t, ns, name)
	}
	told := &journal{}
	if _, err := informer.AddEventHandler(told); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(within(t).Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	label := func(name, value string) {
		s.patch(t, in(eventsV1, ns, name), typeMerge, fmt.Sprintf(`{"metadata":{"labels":{"x":%q}}}`, value)).expect(http.StatusOK)
	}
	label("a", "1")
	s.delete(t, in(eventsV1, ns, "b"), "").expect(http.StatusOK)
	s.create(t, ns, "d")
	told.await(t, 6)
	s.restart(t)
	label("a", "2")
	s.create(t, ns, "e")
	s.delete(t, in(eventsV1, ns, "c"), "").expect(http.StatusOK)
	told.await(t, 9)
	told.want(t, "add a", "add b", "add c", "update a", "delete b", "add d", "update a", "add e", "delete c")

	var have []string
	for _, o := range informer.GetStore().List() {
		m := o.(metav1.Object)
		have = append(have, m.GetName()+"@"+m.GetResourceVersion())
	}
	slices.Sort(have)
	var want []string
	list := s.get(t, in(eventsV1, ns)).object()
	for i, name := range list.names() {
		want = append(want, name+"@"+list.text(fmt.Sprintf("items.%d.metadata.resourceVersion", i)))
	}
	if !slices.Equal(have, want) {
		t.Errorf("the informer has %v, the server %v", have, want)
	}
	if got := parseVersion(t, informer.LastSyncResourceVersion()); got < list.version(t) {
		t.Errorf("synced to %d, the server is at %d", got, list.version(t))
	}
}

// journal writes down what an informer tells.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) write(verb string, obj any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, verb+" "+obj.(metav1.Object).GetName())
}

func (j *journal) OnAdd(obj any, _ bool) { j.write("add", obj) }
func (j *journal) OnUpdate(before, obj any) {
	// A new list tells of what has not changed, too.
	if before.(metav1.Object).GetResourceVersion() != obj.(metav1.Object).GetResourceVersion() {
		j.write("update", obj)
	}
}
func (j *journal) OnDelete(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	j.write("delete", obj)
}

func (j *journal) await(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d changes", n), func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		if len(j.entries) < n {
			return fmt.Errorf("only %v", j.entries)
		}
		return nil
	})
}

// want checks the entries; the first three, the initial state, come in any order.
func (j *journal) want(t *testing.T, entries ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.Sort(j.entries[:3])
	if !slices.Equal(j.entries, entries) {
		t.Errorf("told:\n got %v\nwant %v", j.entries, entries)
	}
}
