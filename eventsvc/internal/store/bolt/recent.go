package bolt

import "sync"

// recent remembers the values that were put last. What is remembered here is of the state
// of one revision, which does not change, so no value becomes stale.
type recent[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
	order  []K // a ring of the keys
	next   int // position of the oldest key in it
}

func newRecent[K comparable, V any](n int) *recent[K, V] {
	return &recent[K, V]{values: make(map[K]V, n), order: make([]K, n)}
}

func (r *recent[K, V]) get(key K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok := r.values[key]
	return value, ok
}

func (r *recent[K, V]) put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.values[key]; ok {
		return
	}
	delete(r.values, r.order[r.next])
	r.order[r.next], r.values[key] = key, value
	r.next = (r.next + 1) % len(r.order)
}
