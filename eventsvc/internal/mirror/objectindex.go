package mirror

import (
	"crypto/sha256"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

const (
	goneKept = 30 * time.Minute // events about the end of an object come after it
	goneMost = 8192
	askedFor = 4096 // keys that were looked for in vain
)

// index keeps what objects add to their events, also for a while after they are gone. The zero value is empty. It is
// safe for concurrent use.
type index[K comparable, V any] struct {
	mu     sync.Mutex
	known  map[K]cached[V]
	gone   []departed[K] // in the order in which they went
	round  uint32
	sought *lru.Cache // by key, of a *sought; nil: nothing yet
}

type cached[V any] struct {
	value V
	round uint32 // when it was seen last
	gone  bool
}

// departed is an object that is gone.
type departed[K comparable] struct {
	key K
	at  time.Time
}

// sought is a key that was not there.
type sought struct {
	since time.Time
	there chan struct{} // is closed when it has come; nil: it has
}

// begin begins a list of all objects.
func (x *index[K, V]) begin() (round uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.round++
	return x.round
}

// see keeps an object. update gets what is kept of it, or the zero value.
func (x *index[K, V]) see(k K, update func(was V) V) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known == nil {
		x.known = map[K]cached[V]{}
	}
	x.known[k] = cached[V]{value: update(x.known[k].value), round: x.round}
	if s := x.soughtBefore(k); s != nil && s.there != nil {
		close(s.there)
		s.there = nil
	}
}

// lose notes that an object is gone.
func (x *index[K, V]) lose(k K) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.goes(k)
}

// end ends a list: objects of its scope that were not seen since it began are gone.
func (x *index[K, V]) end(round uint32, within func(V) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, e := range x.known {
		if e.round < round && within(e.value) {
			x.goes(k)
		}
	}
}

// goes marks an object as gone, and forgets those that went long ago. The caller holds mu.
func (x *index[K, V]) goes(k K) {
	if e, ok := x.known[k]; ok && !e.gone {
		e.gone = true
		x.known[k] = e
		x.gone = append(x.gone, departed[K]{k, time.Now()})
	}
	for len(x.gone) > goneMost || len(x.gone) > 0 && time.Since(x.gone[0].at) > goneKept {
		if first := x.gone[0].key; x.known[first].gone { // and has not come back
			delete(x.known, first)
		}
		x.gone = x.gone[1:]
	}
}

// find returns what is kept of an object. If it is not there, the source is followed, and the object may have been
// created a moment ago, it may come soon: but not if it was sought for enrichWait already.
func (x *index[K, V]) find(k K, s following, created bool) found[V] {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.known[k]; ok {
		return found[V]{value: e.value, result: enrichedAdded}
	}
	switch {
	case s == denied:
		return found[V]{result: enrichedOff}
	case s == unread:
		return found[V]{result: enrichedLate}
	case !created:
		return found[V]{result: enrichedUnknown}
	}
	before := x.soughtBefore(k)
	switch {
	case before == nil || before.there == nil:
		before = &sought{since: time.Now(), there: make(chan struct{})}
		x.sought.Add(k, before)
	case time.Since(before.since) >= enrichWait:
		return found[V]{result: enrichedLate}
	}
	return found[V]{soon: before.there}
}

// soughtBefore returns what is known of a key that was sought, nil if it was not of late. The caller holds mu.
func (x *index[K, V]) soughtBefore(k K) *sought {
	if x.sought == nil {
		x.sought = lru.New(askedFor)
	}
	before, _ := x.sought.Get(k)
	s, _ := before.(*sought)
	return s
}

// podKey stands for the uid of a pod in less memory.
type podKey [16]byte

func keyOf(uid types.UID) podKey {
	sum := sha256.Sum256([]byte(uid))
	return podKey(sum[:16])
}

// podsOf keeps the pods of a namespace; "": all.
type podsOf struct {
	*enricher
	namespace string
}

func (p podsOf) begin() uint32 { return p.pods.begin() }

func (p podsOf) see(m *metadata) {
	p.pods.see(keyOf(m.Metadata.UID), func(unique.Handle[facts]) unique.Handle[facts] {
		return unique.Make(p.factsOf("Pod", m))
	})
}

func (p podsOf) lose(m *metadata) { p.pods.lose(keyOf(m.Metadata.UID)) }

func (p podsOf) end(round uint32) {
	p.pods.end(round, func(f unique.Handle[facts]) bool { return p.namespace == "" || f.Value().namespace == p.namespace })
}

// namespacesOf keeps namespaces, by name.
type namespacesOf struct{ *enricher }

func (n namespacesOf) begin() uint32 { return n.namespaces.begin() }

func (n namespacesOf) see(m *metadata) {
	n.namespaces.see(m.Metadata.Name, func(was namespace) namespace {
		is := n.namespaceFacts(m)
		switch was.uid {
		case "":
		case is.uid:
			is.former = was.former
		default:
			was.former = nil
			is.former = &was
		}
		return is
	})
}

func (n namespacesOf) lose(m *metadata) { n.namespaces.lose(m.Metadata.Name) }

func (n namespacesOf) end(round uint32) {
	n.namespaces.end(round, func(namespace) bool { return true })
}
