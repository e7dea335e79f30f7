package mirror

// recent is a map that keeps at least the half of most entries that were used last, and never more than most. It is not
// safe for concurrent use.
type recent[K comparable, V any] struct {
	most     int
	now, old map[K]V // two generations: when now is full, it becomes old
}

func (r *recent[K, V]) get(k K) (v V, ok bool) {
	if v, ok = r.now[k]; !ok {
		if v, ok = r.old[k]; ok {
			r.put(k, v)
		}
	}
	return v, ok
}

func (r *recent[K, V]) put(k K, v V) {
	if _, there := r.now[k]; !there && (r.now == nil || len(r.now) >= r.most/2) {
		r.old, r.now = r.now, make(map[K]V)
	}
	r.now[k] = v
}
