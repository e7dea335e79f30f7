package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// eventsvc runs a command of the program and returns what it prints.
func eventsvc(t *testing.T, args ...string) []byte {
	t.Helper()
	bin := must(run.eventsvc()).or(t)
	out, err := exec.CommandContext(t.Context(), bin, args...).Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		t.Fatalf("%v: %v\n%s%s", args, err, out, failed.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	return out
}

// replaceStore stops the server, puts another store in the place of its own and
// starts it again.
func (s *server) replaceStore(t *testing.T, put func(dir string)) {
	t.Helper()
	if *engine != "bolt" {
		t.Skip("the events are in a database, and not in the data directory")
	}
	s.stop(t)
	s.plain.CloseIdleConnections()
	dir := filepath.Join(s.dir, "store")
	if err := os.Rename(dir, filepath.Join(t.TempDir(), "before")); err != nil {
		t.Fatal(err)
	}
	put(dir)
	s.launch(t)
}

// backUp takes a backup of the running server; restore puts it back, and returns
// the revision that the command says the store continues after.
func (s *server) backUp(t *testing.T) (restore func() uint64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "events.tar")
	eventsvc(t, "backup", file, "--data-dir", s.dir, "--listen-admin", s.adminAddr)
	return func() uint64 {
		t.Helper()
		var result struct{ Revision, CompactRevision uint64 }
		s.replaceStore(t, func(string) {
			if err := json.Unmarshal(eventsvc(t, "restore", file, "--json", "--data-dir", s.dir), &result); err != nil {
				t.Fatal(err)
			}
		})
		if result.CompactRevision <= result.Revision {
			t.Errorf("restored %+v", result)
		}
		return result.CompactRevision
	}
}

// TestRestored: a revision that a client has seen after the backup never stands
// for another state in the restored store. It is refused as kube-apiserver
// refuses a revision that is compacted, or that was never given out.
func TestRestored(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	path := in(eventsV1, ns)
	for _, name := range []string{"a", "b", "c"} {
		s.create(t, ns, name)
	}
	page := s.get(t, path+"?limit=1").object()
	restore := s.backUp(t)
	label := func(value string) object {
		return s.patch(t, path+"/a", typeMerge, fmt.Sprintf(`{"metadata":{"labels":{"x":%q}}}`, value)).expect(http.StatusOK).object()
	}
	label("lost")
	lost := label("lost-too")
	s.create(t, ns, "lost")

	revision := restore()
	list := s.get(t, path).object()
	if got := list.version(t); got != revision || got <= lost.version(t) {
		t.Errorf("the store is at revision %d, reported %d, was at %d", got, revision, lost.version(t))
	}
	if names := list.names(); !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("restored %v", names)
	}

	for _, version := range []string{page.text("metadata.resourceVersion"), lost.text("metadata.resourceVersion"), fmt.Sprint(revision - 1)} {
		refusal{
			call: call{method: "GET", path: path + "?resourceVersionMatch=Exact&resourceVersion=" + version},
			code: http.StatusGone, reason: metav1.StatusReasonExpired, message: "The resourceVersion for the provided list is too old.",
		}.check(t, s)
		w := s.watch(t, path+"?watch=true&resourceVersion="+version)
		if o := w.want(t, "ERROR")[0].object; marshal(t, o["code"]) != "410" || o.text("reason") != "Expired" {
			t.Errorf("watch after %s: %v", version, o)
		}
		w.end(t)
	}
	expired := s.get(t, path+"?limit=1&continue="+page.text("metadata.continue")).expect(http.StatusGone)
	if fresh := expired.status().Continue; fresh == "" {
		t.Errorf("no way to go on behind an expired token: %s", expired.body)
	} else if names := s.get(t, path+"?continue="+fresh).object().names(); !slices.Equal(names, []string{"b", "c"}) {
		t.Errorf("behind an expired token: %v", names)
	}

	never := fmt.Sprint(revision + 1)
	refusal{
		call: call{method: "GET", path: path + "?resourceVersion=" + never}, code: http.StatusGatewayTimeout, reason: metav1.StatusReasonTimeout,
		message: fmt.Sprintf("Timeout: Too large resource version: %s, current: %d", never, revision),
		details: `{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}`,
	}.check(t, s)
	w := s.watch(t, path+"?watch=true&resourceVersion="+never)
	if o := w.want(t, "ERROR")[0].object; marshal(t, o["code"]) != "504" || o.text("reason") != "Timeout" ||
		o.text("details.causes.0.reason") != "ResourceVersionTooLarge" || o.at("details.retryAfterSeconds") == nil {
		t.Errorf("watch after %s: %v", never, o)
	}
	w.end(t)

	stale := merge(newEvent(ns, "a"), fmt.Sprintf(`{"metadata":{"resourceVersion":%q}}`, lost.text("metadata.resourceVersion")))
	s.put(t, path+"/a", stale).expect(http.StatusConflict)
	if got := label("new").version(t); got <= revision {
		t.Errorf("the first write has version %d, behind %d", got, revision)
	}
}

// TestClientsOfRestored: informers that have seen more than the backup end with the state of the restored store. So do
// informers of a store that was replaced by a copy of its files, whose revisions do go back.
func TestClientsOfRestored(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"restored", "copied"} {
		for _, watchList := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, watch list %v", how, watchList), func(t *testing.T) {
				t.Parallel()
				s, ns := start(t), "followed"
				s.create(t, ns, "a")
				s.create(t, ns, "b")
				var putBack func()
				if how == "restored" {
					restore := s.backUp(t)
					putBack = func() { restore() }
				} else {
					s.stop(t)
					older := filepath.Join(t.TempDir(), "store")
					if err := os.CopyFS(older, os.DirFS(filepath.Join(s.dir, "store"))); err != nil {
						t.Fatal(err)
					}
					s.launch(t)
					putBack = func() {
						s.replaceStore(t, func(dir string) {
							if err := os.Rename(older, dir); err != nil {
								t.Fatal(err)
							}
						})
					}
				}
				client := must(kubernetes.NewForConfig(s.config())).or(t)
				lw := cache.NewListWatchFromClient(client.EventsV1().RESTClient(), "events", ns, fields.Everything())
				var source cache.ListerWatcher = lw
				if !watchList {
					source = cache.ToListWatcherWithWatchListSemantics(lw, listsFirst{})
				}
				informer := cache.NewSharedInformer(source, &eventsv1.Event{}, 0)
				go informer.RunWithContext(t.Context())
				if !cache.WaitForCacheSync(within(t).Done(), informer.HasSynced) {
					t.Fatal("the informer does not sync")
				}
				s.patch(t, in(eventsV1, ns, "a"), typeMerge, `{"metadata":{"labels":{"x":"lost"}}}`).expect(http.StatusOK)
				s.delete(t, in(eventsV1, ns, "b"), "").expect(http.StatusOK)
				for i := range 5 {
					s.create(t, ns, fmt.Sprint("lost-", i))
				}
				eventually(t, "the informer sees what will be lost", func() error { return sameAs(t, s, ns, informer) })
				putBack()
				s.create(t, ns, "c")
				eventually(t, "the informer has what is there", func() error { return sameAs(t, s, ns, informer) })
				s.create(t, ns, "d")
				eventually(t, "the informer goes on", func() error { return sameAs(t, s, ns, informer) })
				if names := s.get(t, in(eventsV1, ns)).object().names(); !slices.Equal(names, []string{"a", "b", "c", "d"}) {
					t.Errorf("put back: %v", names)
				}
			})
		}
	}
}

// sameAs compares an informer with the server.
func sameAs(t *testing.T, s *server, ns string, informer cache.SharedInformer) error {
	t.Helper()
	var have, want []string
	for _, o := range informer.GetStore().List() {
		m := o.(metav1.Object)
		have = append(have, m.GetName()+"@"+m.GetResourceVersion())
	}
	slices.Sort(have)
	list := s.get(t, in(eventsV1, ns)).object()
	for i, name := range list.names() {
		want = append(want, name+"@"+list.text(fmt.Sprintf("items.%d.metadata.resourceVersion", i)))
	}
	if !slices.Equal(have, want) {
		return fmt.Errorf("the informer has %v, the server %v", have, want)
	}
	return nil
}

// TestRetryWatcherOfRestored: a client that cannot list again gets an error,
// and does not wait forever.
func TestRetryWatcherOfRestored(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	client := must(kubernetes.NewForConfig(s.config())).or(t)
	first := s.create(t, ns, "e0")
	lw := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return client.EventsV1().Events(ns).Watch(ctx, o)
	}}
	w := must(watchtools.NewRetryWatcherWithContext(t.Context(), first.text("metadata.resourceVersion"), lw)).or(t)
	defer w.Stop()
	restore := s.backUp(t)
	s.create(t, ns, "e1")
	added(t, w, "e1")
	restore()
	s.create(t, ns, "e2")
	e := next(t, w)
	for e.Type == watch.Bookmark {
		e = next(t, w)
	}
	if err := apierrors.FromObject(e.Object); e.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Fatalf("got %v, want an error that says that the version is expired", e)
	}
	select {
	case <-w.Done():
	case <-within(t).Done():
		t.Error("the watcher goes on")
	}
}
