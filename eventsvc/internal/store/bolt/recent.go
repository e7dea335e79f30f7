package bolt

import (
	"sync"

	"tidings.example/eventsvc/internal/store"
)

// recent remembers the values that were put last. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	max    int
	mu     sync.Mutex
	values map[K]V
	order  []K // the oldest first
}

func newRecent[K comparable, V any](n int) recent[K, V] {
	return recent[K, V]{max: n, values: make(map[K]V)}
}

func (r *recent[K, V]) get(k K) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok = r.values[k]
	return v, ok
}

// put adds a value, unless there is one, in the place of the oldest.
func (r *recent[K, V]) put(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.values[k]; ok {
		return
	}
	if len(r.order) == r.max {
		delete(r.values, r.order[0])
		r.order = r.order[1:]
	}
	r.order, r.values[k] = append(r.order, k), v
}

// pageEnd is the end of a page of a list.
type pageEnd struct {
	prefix   string // of the keys in the range
	revision uint64
	last     store.Key
}
