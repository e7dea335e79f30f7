package usage_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/shared/randtest"
)

// TestNamespaces: the counts of every revision that is remembered are those of a naive
// count, and a revision before them is reported as not known.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	const first, last = 100, 30_000
	var n usage.Namespaces
	rnd := randtest.New(t)
	now := map[string]int64{}
	states := map[uint64]map[string]int64{}
	for revision := uint64(first); revision <= last; revision += 1 + rnd.Uint64N(2) {
		namespace, by := fmt.Sprintf("ns%d", rnd.IntN(5)), int64(1)
		if now[namespace] > 0 && rnd.IntN(2) == 0 {
			by = -1
		}
		n.Add(namespace, revision, by)
		now[namespace] += by
		now[""] += by
		states[revision] = maps.Clone(now)
	}
	known := 0
	for revision, want := range states {
		for _, namespace := range []string{"", "ns0", "ns4", "none"} {
			got, ok := n.At(namespace, revision)
			if !ok {
				if revision > last-8192 {
					t.Errorf("the number at %d is not known", revision)
				}
				want = now // about
			} else {
				known++
			}
			if got != want[namespace] {
				t.Errorf("%q has %d events at %d (%t), want %d", namespace, got, revision, ok, want[namespace])
			}
		}
	}
	if _, ok := n.At("", first); ok || known < 4*8192 {
		t.Errorf("%d counts are known, that at the beginning: %t", known, ok)
	}
	if got, ok := n.At("ns1", last+1000); got != now["ns1"] || !ok {
		t.Errorf("%d events in the end, want %d", got, now["ns1"])
	}
	delete(now, "")
	maps.DeleteFunc(now, func(_ string, n int64) bool { return n == 0 })
	if diff := cmp.Diff(now, n.All()); diff != "" {
		t.Error(diff)
	}
}

// TestNamespacesOfAnIndex: what is deleted does not count, wherever the index has it.
func TestNamespacesOfAnIndex(t *testing.T) {
	t.Parallel()
	x, err := index.Open(t.TempDir(), func() []byte { return []byte("id") })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	revision := uint64(1)
	put := func(key string, deletion bool) {
		revision++
		x.Put(key, index.NewPointer(revision, deletion))
	}
	for i := range 10 {
		put(fmt.Sprintf("a/%d", i), false)
		put(fmt.Sprintf("a-b/%d", i), i%2 == 0)
		put(fmt.Sprintf("gone/%d", i), true)
	}
	x.Freeze(index.Live{})
	if err := x.Merge(1); err != nil {
		t.Fatal(err)
	}
	put("a/3", true)
	put("b/0", false)
	var n usage.Namespaces
	if err := x.View(func(v index.View) error { _, err := n.Count(v, revision); return err }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int64{"a": 9, "a-b": 5, "b": 1}, n.All()); diff != "" {
		t.Error(diff)
	}
	if got, ok := n.At("", revision); got != 15 || !ok {
		t.Errorf("%d events in all, %t", got, ok)
	}
	if _, ok := n.At("", revision-1); ok {
		t.Error("the number before the start is known")
	}
}
