package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"tidings.example/deploy/test/internal/testenv"
)

// writer records one event after the other and remembers which ones the server
// has acknowledged. It repeats a failed request under the same name; 409 then
// shows that the event was stored without an answer.
type writer struct {
	w          *world
	collection string

	mu           sync.Mutex
	acknowledged []string
}

// run writes until ctx ends.
func (wr *writer) run(ctx context.Context) error {
	token := ""
	for n := 0; ctx.Err() == nil; {
		name := fmt.Sprintf("n%06d", n)
		body := newEvent(name, "Counted")
		var answer metav1.PartialObjectMetadata
		code, err := call(ctx, http.DefaultClient, request{"POST", wr.collection, token, "application/json", encode(body)}, &answer)
		switch {
		case err == nil && (code == http.StatusCreated || code == http.StatusConflict):
			wr.mu.Lock()
			wr.acknowledged = append(wr.acknowledged, name)
			wr.mu.Unlock()
			n++
		case err == nil && code == http.StatusUnauthorized: // tokensvc has a new key, or this is the first request
			if token, _, err = requestToken(ctx, wr.w.tokens, clientID, clientSecret); err != nil {
				pause(ctx)
			}
		case err == nil && code < 500 && code != http.StatusTooManyRequests:
			return fmt.Errorf("create %s: status %d", name, code)
		default: // down or starting
			pause(ctx)
		}
	}
	return nil
}

// pause keeps a client from spinning while a service is down.
func pause(ctx context.Context) {
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (wr *writer) names() []string {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	return append([]string(nil), wr.acknowledged...)
}

// more waits until n further events are acknowledged.
func (wr *writer) more(t *testing.T, n int) {
	t.Helper()
	from := len(wr.names())
	testenv.Eventually(t, "writing goes on", deadline, func() error {
		if got := len(wr.names()); got < from+n {
			return fmt.Errorf("%d of %d events since", got-from, n)
		}
		return nil
	})
}

// startWriter writes in the background; stop returns all acknowledged names.
func startWriter(t *testing.T, w *world, namespace string) (wr *writer, stop func() []string) {
	t.Helper()
	wr = &writer{w: w, collection: eventsIn(w.events, namespace)}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- wr.run(ctx) }()
	var once sync.Once
	stop = func() []string {
		once.Do(func() {
			cancel()
			if err := <-failed; err != nil {
				t.Error(err)
			}
		})
		return wr.names()
	}
	t.Cleanup(func() { stop() })
	return wr, stop
}

// testWatchOverRestarts stops and kills each service while events are written
// and watched, and checks that the watch shows every acknowledged event once
// and in the order of writing.
func testWatchOverRestarts(t *testing.T, w *world) {
	client := kubernetes.NewForConfigOrDie(w.restConfig(t)).EventsV1().Events("restarts")
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 1024)
	go follow(t.Context(), client, list.ResourceVersion, seen)

	wr, stop := startWriter(t, w, "restarts")
	for _, interrupt := range []struct {
		how     func(*testing.T, string)
		service string
	}{{w.restart, "tokensvc"}, {w.restart, "eventsvc"}, {w.kill, "eventsvc"}, {w.kill, "tokensvc"}} {
		wr.more(t, 20)
		interrupt.how(t, interrupt.service)
		wr.more(t, 20)
	}
	want := stop()

	end := time.NewTimer(deadline)
	defer end.Stop()
	for i, name := range want {
		select {
		case got := <-seen:
			if got != "ADDED "+name {
				t.Fatalf("change %d of %d is %q, want ADDED %s", i, len(want), got, name)
			}
		case <-end.C:
			t.Fatalf("the watch stopped at %d of %d events", i, len(want))
		}
	}
}

// follow reports every change after a revision until ctx ends. The stock retry
// watcher resumes by itself when a connection is lost, but gives up on 401,
// which it gets for a token of a key from before a restart of tokensvc. Then
// follow starts it again at the last revision, with a new token.
func follow(ctx context.Context, client eventsclient.EventInterface, revision string, seen chan<- string) {
	for ctx.Err() == nil {
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, revision, &cache.ListWatch{WatchFuncWithContext: client.Watch})
		if err != nil {
			seen <- err.Error()
			return
		}
		for change := range watcher.ResultChan() {
			event, ok := change.Object.(*eventsv1.Event)
			if !ok {
				if !apierrors.IsUnauthorized(apierrors.FromObject(change.Object)) {
					seen <- fmt.Sprint(change)
				}
				break
			}
			revision = event.ResourceVersion
			seen <- string(change.Type) + " " + event.Name
		}
		watcher.Stop()
	}
}

// testInformerOverRestart runs client-go's stock informer over a restart of
// eventsvc: every event is added exactly once and none goes away.
func testInformerOverRestart(t *testing.T, w *world) {
	client := kubernetes.NewForConfigOrDie(w.restConfig(t))
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("informer"))
	informer := factory.Events().V1().Events().Informer()
	seen := &counter{added: map[string]int{}}
	if _, err := informer.AddEventHandler(seen.handler()); err != nil {
		t.Fatal(err)
	}
	wr, stop := startWriter(t, w, "informer")
	wr.more(t, 20)
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	testenv.Eventually(t, "the informer is in step", deadline, func() error {
		if !informer.HasSynced() {
			return fmt.Errorf("not synced")
		}
		return nil
	})
	wr.more(t, 20)
	w.restart(t, "eventsvc")
	wr.more(t, 20)
	want := stop()
	testenv.Eventually(t, "the informer has every event", deadline, func() error { return seen.complete(want) })
	for name, n := range seen.added {
		if n != 1 {
			t.Errorf("%s was added %d times", name, n)
		}
	}
	if len(seen.other) > 0 {
		t.Errorf("unexpected notifications: %v", seen.other)
	}
}

// counter counts the calls of an informer.
type counter struct {
	mu    sync.Mutex
	added map[string]int
	other []string
}

func (c *counter) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.added[obj.(*eventsv1.Event).Name]++
		},
		UpdateFunc: func(old, new any) {
			before, after := old.(*eventsv1.Event), new.(*eventsv1.Event)
			if before.ResourceVersion == after.ResourceVersion {
				return // what a relist repeats is not a change
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.other = append(c.other, "update of "+after.Name)
		},
		DeleteFunc: func(obj any) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.other = append(c.other, fmt.Sprintf("delete of %v", obj))
		},
	}
}

func (c *counter) complete(want []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range want {
		if c.added[name] == 0 {
			return fmt.Errorf("%s of %d events is missing", name, len(want))
		}
	}
	return nil
}

// testDataStays reads an event that was recorded before the services were replaced.
func testDataStays(t *testing.T, w *world) {
	var before, after eventsv1.Event
	one := eventsIn(w.events, "kept")
	if code, err := call(t.Context(), http.DefaultClient, request{"POST", one, w.token(t), "application/json", encode(newEvent("kept", "Kept"))}, &before); err != nil || code != http.StatusCreated {
		t.Fatalf("create: %d, %v", code, err)
	}
	w.recreate(t)
	token := w.token(t)
	testenv.Eventually(t, "the token of the new key is known", deadline, func() error {
		code, err := call(t.Context(), http.DefaultClient, request{"GET", one + "/kept", token, "", nil}, &after)
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("status %d, %w", code, err)
		}
		return nil
	})
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the event changed (-before +after):\n%s", diff)
	}
}
