package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	eventsac "k8s.io/client-go/applyconfigurations/events/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
)

func resource() schema.GroupVersionResource {
	return eventsv1.SchemeGroupVersion.WithResource("events")
}

// TestTypedClient goes through the errors that callers of the typed client
// tell apart, over every wire (9.2).
func TestTypedClient(t *testing.T) {
	t.Parallel()
	s := start(t)
	overWires(t, s, func(t *testing.T, client kubernetes.Interface, ns string) {
		ctx, mine := t.Context(), client.EventsV1().Events(ns)
		ev := must(mine.Create(ctx, stockEvent(ns, "a", nil), metav1.CreateOptions{})).or(t)
		stale := ev.DeepCopy()
		stale.Labels = map[string]string{"a": "b"}
		must(mine.Update(ctx, stale, metav1.UpdateOptions{})).or(t)
		uid := types.UID("other")
		for what, c := range map[string]struct {
			call func() error
			is   func(error) bool
		}{
			"already exists":      {func() error { _, err := mine.Create(ctx, stockEvent(ns, "a", nil), metav1.CreateOptions{}); return err }, apierrors.IsAlreadyExists},
			"not found":           {func() error { _, err := mine.Get(ctx, "none", metav1.GetOptions{}); return err }, apierrors.IsNotFound},
			"not found on delete": {func() error { return mine.Delete(ctx, "none", metav1.DeleteOptions{}) }, apierrors.IsNotFound},
			"conflict":            {func() error { _, err := mine.Update(ctx, stale, metav1.UpdateOptions{}); return err }, apierrors.IsConflict},
			"conflict on delete": {func() error {
				return mine.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			}, apierrors.IsConflict},
			"invalid": {func() error {
				_, err := mine.Create(ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, metav1.CreateOptions{})
				return err
			}, apierrors.IsInvalid},
			"too large version": {func() error { _, err := mine.Get(ctx, "a", metav1.GetOptions{ResourceVersion: "99999999"}); return err }, apierrors.IsTimeout},
			"bad request":       {func() error { _, err := mine.List(ctx, metav1.ListOptions{FieldSelector: "foo=bar"}); return err }, apierrors.IsBadRequest},
		} {
			if err := c.call(); !c.is(err) {
				t.Errorf("%s: got %v", what, err)
			}
		}
		generated := stockEvent(ns, "", nil)
		generated.GenerateName = "made-"
		if got := must(mine.Create(ctx, generated, metav1.CreateOptions{})).or(t); !strings.HasPrefix(got.Name, "made-") {
			t.Errorf("name %q", got.Name)
		}
		w := must(mine.Watch(ctx, metav1.ListOptions{ResourceVersion: ev.ResourceVersion})).or(t)
		defer w.Stop()
		if got := next(t, w); got.Type != watch.Modified || got.Object.(*eventsv1.Event).Labels["a"] != "b" {
			t.Errorf("got %v", got)
		}
	})
}

// next waits for the next event of a client's watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return e
	case <-within(t).Done():
		t.Fatal("waited in vain for an event")
	}
	return watch.Event{}
}

// TestTypedApply is server-side apply as controllers use it (5.5), over a
// restart.
func TestTypedApply(t *testing.T) {
	t.Parallel()
	s := start(t)
	overWires(t, s, func(t *testing.T, client kubernetes.Interface, ns string) {
		ctx, mine := t.Context(), client.EventsV1().Events(ns)
		whole := eventsac.Event("a", ns).
			WithEventTime(metav1.NowMicro()).WithReportingController("example.com/ctl").WithReportingInstance("ctl-1").
			WithAction("Act").WithReason("Because").WithType("Normal").WithNote("hello").
			WithRegarding(coreac.ObjectReference().WithKind("Pod").WithName("p1").WithNamespace(ns)).
			WithLabels(map[string]string{"owner": "me"})
		first := must(mine.Apply(ctx, whole, metav1.ApplyOptions{FieldManager: "me"})).or(t)
		if got := must(mine.Apply(ctx, whole, metav1.ApplyOptions{FieldManager: "me"})).or(t); got.ResourceVersion != first.ResourceVersion {
			t.Errorf("applied again: version %s, was %s", got.ResourceVersion, first.ResourceVersion)
		}
		owner := eventsac.Event("a", ns).WithLabels(map[string]string{"owner": "you"})
		if _, err := mine.Apply(ctx, owner, metav1.ApplyOptions{FieldManager: "you"}); !apierrors.IsConflict(err) {
			t.Errorf("got %v, want a conflict", err)
		}
		if got := must(mine.Apply(ctx, owner, metav1.ApplyOptions{FieldManager: "you", Force: true})).or(t); got.Labels["owner"] != "you" {
			t.Errorf("labels %v", got.Labels)
		}
		if extracted := must(eventsac.ExtractEvent(must(mine.Get(ctx, "a", metav1.GetOptions{})).or(t), "you")).or(t); extracted.Labels["owner"] != "you" || extracted.Note != nil {
			t.Errorf("extracted %v", extracted)
		}
	})
	// What each manager owns is part of what is stored.
	client := must(kubernetes.NewForConfig(s.config())).or(t)
	all := must(client.EventsV1().Events("").List(t.Context(), metav1.ListOptions{})).or(t)
	s.restart(t)
	again := must(client.EventsV1().Events("").List(within(t), metav1.ListOptions{})).or(t)
	if len(all.Items) != 4 || len(again.Items) != len(all.Items) {
		t.Fatalf("%d events, %d after the restart", len(all.Items), len(again.Items))
	}
	for i := range all.Items {
		if got, want := fmt.Sprint(again.Items[i].ManagedFields), fmt.Sprint(all.Items[i].ManagedFields); got != want {
			t.Errorf("managed fields after the restart:\n got %s\nwant %s", got, want)
		}
	}
	ns := all.Items[0].Namespace
	_, err := client.EventsV1().Events(ns).Apply(t.Context(), eventsac.Event("a", ns).WithLabels(map[string]string{"owner": "third"}), metav1.ApplyOptions{FieldManager: "third"})
	if !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// TestDynamicClient is about the client that knows no types (11.4).
func TestDynamicClient(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	client := must(dynamic.NewForConfig(s.config())).or(t)
	ctx, mine := t.Context(), client.Resource(resource()).Namespace(ns)
	content := must(runtime.DefaultUnstructuredConverter.ToUnstructured(stockEvent(ns, "a", map[string]string{"a": "b"}))).or(t)
	ev := &unstructured.Unstructured{Object: content}
	ev.SetGroupVersionKind(eventsv1.SchemeGroupVersion.WithKind("Event"))
	created := must(mine.Create(ctx, ev, metav1.CreateOptions{})).or(t)
	s.restart(t)

	w := must(mine.Watch(ctx, metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})).or(t)
	defer w.Stop()
	created.SetLabels(map[string]string{"a": "c"})
	must(mine.Update(ctx, created, metav1.UpdateOptions{})).or(t)
	must(mine.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"d":"e"}}}`), metav1.PatchOptions{})).or(t)
	applied := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "labels": map[string]any{"f": "g"}}}}
	applied.SetGroupVersionKind(ev.GroupVersionKind())
	must(mine.Apply(ctx, "a", applied, metav1.ApplyOptions{FieldManager: "me"})).or(t)
	list := must(mine.List(ctx, metav1.ListOptions{LabelSelector: "a=c,d=e,f=g"})).or(t)
	if len(list.Items) != 1 || list.GetKind() != "EventList" || list.Items[0].GetKind() != "Event" || list.Items[0].GetAPIVersion() != "events.k8s.io/v1" {
		t.Errorf("list %v", list)
	}
	if got := must(mine.Get(ctx, "a", metav1.GetOptions{})).or(t); got.GetUID() != created.GetUID() {
		t.Errorf("got %v", got)
	}
	if err := mine.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Modified, watch.Modified, watch.Modified, watch.Deleted} {
		if got := next(t, w); got.Type != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if _, err := mine.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	if err := mine.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

// TestMetadataClient is about the client that wants metadata only (6.2).
func TestMetadataClient(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	client := must(metadata.NewForConfig(s.config())).or(t)
	ctx, mine := t.Context(), client.Resource(resource()).Namespace(ns)
	created := s.create(t, ns, "a", `{"metadata":{"labels":{"a":"b"}}}`)
	s.create(t, ns, "b")

	got := must(mine.Get(ctx, "a", metav1.GetOptions{})).or(t)
	if string(got.UID) != created.text("metadata.uid") || got.Labels["a"] != "b" {
		t.Errorf("got %v", got)
	}
	list := must(mine.List(ctx, metav1.ListOptions{Limit: 1})).or(t)
	if len(list.Items) != 1 || list.Continue == "" || list.RemainingItemCount == nil || *list.RemainingItemCount != 1 {
		t.Errorf("list %v", list)
	}
	s.restart(t)
	w := must(mine.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})).or(t)
	defer w.Stop()
	must(mine.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"c"}}}`), metav1.PatchOptions{})).or(t)
	if e := next(t, w); e.Type != watch.Modified || e.Object.(*metav1.PartialObjectMetadata).Labels["a"] != "c" {
		t.Errorf("got %v", e)
	}
	if err := mine.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if left := s.get(t, in(eventsV1, ns)).object().names(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestRetryWatcher sees every change once, over a restart (11.3).
func TestRetryWatcher(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	client := must(kubernetes.NewForConfig(s.config())).or(t)
	first := s.create(t, ns, "e0")
	lw := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return client.EventsV1().Events(ns).Watch(ctx, o)
	}}
	w := must(watchtools.NewRetryWatcherWithContext(t.Context(), first.text("metadata.resourceVersion"), lw)).or(t)
	defer w.Stop()
	s.create(t, ns, "e1")
	added(t, w, "e1")
	s.restart(t)
	s.create(t, ns, "e2")
	s.restart(t)
	s.create(t, ns, "e3")
	added(t, w, "e2", "e3")
}

func added(t *testing.T, w watch.Interface, names ...string) {
	t.Helper()
	for _, name := range names {
		e := next(t, w)
		for e.Type == watch.Bookmark {
			e = next(t, w)
		}
		if o, err := meta.Accessor(e.Object); err != nil || e.Type != watch.Added || o.GetName() != name {
			t.Fatalf("got %v, want %s", e, name)
		}
	}
}

// TestPager pages over 5,000 events, all of one moment, while others write and
// over a restart (3.3).
func TestPager(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	const n = 5000
	client := must(kubernetes.NewForConfig(s.config())).or(t)
	mine := client.EventsV1().Events(ns)
	want := make(map[string]string, n) // name to version
	var mu sync.Mutex
	if err := parallel(t.Context(), n, func(ctx context.Context, i int) error {
		ev, err := mine.Create(ctx, stockEvent(ns, fmt.Sprintf("e%05d", i), nil), metav1.CreateOptions{})
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			want[ev.Name] = ev.ResourceVersion
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}

	versions, pages := map[string]bool{}, 0
	turn := make(chan struct{})
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list, err := mine.List(ctx, o)
		if err == nil {
			versions[list.ResourceVersion] = true
			if pages++; pages == 3 {
				s.restart(t) // the pages to come show the same moment
			}
			turn <- struct{}{} // let the writer write before the next page
			<-turn
		}
		return list, err
	})
	p.PageBufferSize = 0
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() { written <- interfere(ctx, client, ns, turn) }()
	got := map[string]string{}
	err := p.EachListItem(t.Context(), metav1.ListOptions{}, func(o runtime.Object) error {
		ev := o.(*eventsv1.Event)
		if _, twice := got[ev.Name]; twice {
			return fmt.Errorf("%s came twice", ev.Name)
		}
		got[ev.Name] = ev.ResourceVersion
		return nil
	})
	cancel()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) != 1 || pages != n/500 {
		t.Errorf("%d pages of versions %v", pages, slices.Collect(maps.Keys(versions)))
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d events, want %d, each as it was when the list began", len(got), len(want))
	}
	for wire, config := range wires(s) {
		t.Run("in one piece, "+wire, func(t *testing.T) {
			longLists(t, must(kubernetes.NewForConfig(config)).or(t), ns)
		})
	}
}

// longLists lists all events at once, again and again, while someone changes
// the first event and then the last, in turns. A list of one moment never
// shows a change of the last without the one of the first before it.
func longLists(t *testing.T, client kubernetes.Interface, ns string) {
	mine := client.EventsV1().Events(ns)
	fat := stockEvent(ns, "", nil) // the list is much longer than what the server reads at once
	fat.GenerateName, fat.Note = "middle-", strings.Repeat("x", 1024)
	if err := parallel(t.Context(), 4000, func(ctx context.Context, _ int) error {
		_, err := mine.Create(ctx, fat.DeepCopy(), metav1.CreateOptions{}) // encoding writes to it
		return err
	}); err != nil {
		t.Fatal(err)
	}
	ends := []string{"a-first", "z-last"}
	for _, name := range ends {
		must(mine.Create(t.Context(), stockEvent(ns, name, nil), metav1.CreateOptions{})).or(t)
	}
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() { written <- takeTurns(ctx, client, ns, ends) }()
	turn := func(ev eventsv1.Event) int {
		n, _ := strconv.Atoi(ev.Labels["turn"]) // none yet is 0
		return n
	}
	for range 10 {
		list := must(mine.List(t.Context(), metav1.ListOptions{})).or(t)
		first, last := list.Items[0], list.Items[len(list.Items)-1]
		if first.Name != ends[0] || last.Name != ends[1] || turn(first) < turn(last) {
			t.Errorf("a list from %s at turn %d to %s at turn %d", first.Name, turn(first), last.Name, turn(last))
		}
	}
	cancel()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if err := mine.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "reason=" + fat.Reason}); err != nil {
		t.Fatal(err)
	}
}

// takeTurns writes the number of the turn to one event after the other.
func takeTurns(ctx context.Context, client kubernetes.Interface, ns string, names []string) error {
	for i := 1; ; i++ {
		for _, name := range names {
			body := fmt.Appendf(nil, `{"metadata":{"labels":{"turn":"%d"}}}`, i)
			_, err := client.EventsV1().Events(ns).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
}

// interfere changes, deletes and creates events each time it is its turn.
func interfere(ctx context.Context, client kubernetes.Interface, ns string, turn chan struct{}) error {
	mine := client.EventsV1().Events(ns)
	var errs []error
	for i := 0; ; i++ {
		select {
		case <-turn:
		case <-ctx.Done():
			return errors.Join(errs...)
		}
		// Before, in and behind the page that comes next.
		for _, at := range []int{10 * i, 500*(i+1) + 3, 4999 - i} {
			_, err := mine.Patch(ctx, fmt.Sprintf("e%05d", at), types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"yes"}}}`), metav1.PatchOptions{})
			errs = append(errs, ignoreNotFound(err))
			_, err = mine.Create(ctx, stockEvent(ns, fmt.Sprintf("e%05d-new%d", at, i), nil), metav1.CreateOptions{})
			errs = append(errs, err, ignoreNotFound(mine.Delete(ctx, fmt.Sprintf("e%05d", at+1), metav1.DeleteOptions{})))
		}
		turn <- struct{}{}
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// parallel does n things, many at a time.
func parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, n)
	places := make(chan struct{}, 64)
	for i := range n {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			errs[i] = do(ctx, i)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
