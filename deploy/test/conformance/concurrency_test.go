package conformance_test

import (
	"context"
	"fmt"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// TestConcurrentPatches patches one event from many sides. Nobody pins a
// version, so nobody is refused and nothing is lost (1.5).
func TestConcurrentPatches(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	s.create(t, ns, "a")
	mine := must(kubernetes.NewForConfig(s.config())).or(t).EventsV1().Events(ns)
	const n = 64
	versions := make([]string, n)
	if err := parallel(t.Context(), n, func(ctx context.Context, i int) error {
		ev, err := mine.Patch(ctx, "a", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"l%d":"x"}}}`, i), metav1.PatchOptions{})
		if err == nil {
			versions[i] = ev.ResourceVersion
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, v := range versions {
		seen[v] = true
	}
	if ev := must(mine.Get(t.Context(), "a", metav1.GetOptions{})).or(t); len(ev.Labels) != n || len(seen) != n {
		t.Errorf("%d labels and %d versions after %d patches", len(ev.Labels), len(seen), n)
	}
}

// TestListThenWatch lists in the midst of a flood of writes and watches from
// the list's version: together that is every event once, and each write's
// version is the one that its watchers see (11.5).
func TestListThenWatch(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	mine := must(kubernetes.NewForConfig(s.config())).or(t).EventsV1().Events(ns)
	const n = 600
	versions := make([]string, n)
	half, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- parallel(t.Context(), n, func(ctx context.Context, i int) error {
			ev, err := mine.Create(ctx, stockEvent(ns, fmt.Sprintf("e%03d", i), nil), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			versions[i] = ev.ResourceVersion
			// Who wrote an event can read it.
			if _, err := mine.Get(ctx, ev.Name, metav1.GetOptions{}); err != nil {
				return err
			}
			if i == n/2 {
				close(half)
			}
			return nil
		})
	}()
	select {
	case <-half:
	case err := <-done:
		t.Fatal(err)
	}
	got := map[string]string{}
	list := must(mine.List(t.Context(), metav1.ListOptions{})).or(t)
	for _, ev := range list.Items {
		got[ev.Name] = ev.ResourceVersion
	}
	w := must(mine.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})).or(t)
	defer w.Stop()
	before := parseVersion(t, list.ResourceVersion)
	for len(got) < n {
		e := next(t, w)
		ev, ok := e.Object.(*eventsv1.Event)
		if !ok || e.Type != watch.Added || got[ev.Name] != "" || parseVersion(t, ev.ResourceVersion) <= before {
			t.Fatalf("after version %d and %d events: %v", before, len(got), e)
		}
		got[ev.Name], before = ev.ResourceVersion, parseVersion(t, ev.ResourceVersion)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, v := range versions {
		if name := fmt.Sprintf("e%03d", i); got[name] != v {
			t.Errorf("%s was written as version %s and seen as %s", name, v, got[name])
		}
	}
}
