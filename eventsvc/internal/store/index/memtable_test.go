package index

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/randtest"
)

// TestMemtable: keys may come in order, backwards, at random or in runs. Each
// is found with its newest pointer, and all are iterated in order.
func TestMemtable(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	key := func(i int) string { return fmt.Sprintf("a/%04d", i) }
	orders := map[string]func(i int) int{
		"in order":  func(i int) int { return i },
		"backwards": func(i int) int { return 2000 - i },
		"at random": func(int) int { return r.IntN(1000) },
		"in runs": func(i int) int {
			if i%50 == 0 {
				return r.IntN(1000)
			}
			return i % 1000
		},
	}
	for name, order := range orders {
		m, want := newMemtable(), map[string]Pointer{}
		for i := range 2000 {
			k, p := key(order(i)), NewPointer(uint64(i), i%3 == 0)
			m.put(k, p)
			want[k] = p
			if got, ok := m.get(k); !ok || got != p {
				t.Fatalf("%s: %s is at %d, %t, want %d", name, k, got, ok, p)
			}
		}
		if m.size != len(want) {
			t.Errorf("%s: %d keys, want %d", name, m.size, len(want))
		}
		var keys []string
		for n := m.head.next[0].Load(); n != nil; n = n.next[0].Load() {
			keys = append(keys, string(n.key))
			if p := Pointer(n.value.Load()); p != want[string(n.key)] {
				t.Errorf("%s: %s is at %d, want %d", name, n.key, p, want[string(n.key)])
			}
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), keys); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if _, ok := m.get("a/none"); ok {
			t.Errorf("%s: a key that was never put is found", name)
		}
	}
}

// TestMemtableReaders: a reader finds all earlier entries while the memtable
// grows.
func TestMemtableReaders(t *testing.T) {
	t.Parallel()
	m := newMemtable()
	var last atomic.Int64
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for i := int64(0); i < 4000; i = last.Load() {
				for j := i; j > 0; j /= 2 {
					if p, ok := m.get(fmt.Sprint(j)); !ok || p.Revision() != uint64(j) {
						t.Errorf("key %d is at %d, %t", j, p.Revision(), ok)
						return
					}
				}
			}
		})
	}
	for i := range uint64(4000) {
		m.put(fmt.Sprint(i+1), NewPointer(i+1, false))
		last.Store(int64(i + 1))
	}
	readers.Wait()
}
