package watch

import "tidings.example/eventsvc/internal/store"

// A Change is one published write. All watchers share it, so it must not be
// modified once it was published.
type Change struct {
	Revision uint64
	Key      store.Key
	Current  *store.Version // the version after the write; nil for a deletion
	Previous *store.Version // the version before it; nil for a creation
}

// inLog reports that the change is a deletion whose content was not read when
// it was committed, because nobody watched. Only the log has that content.
func (c *Change) inLog() bool { return c.Current == nil && c.Previous == nil }

// delivery returns what a watch is told of the change. It reports false if the
// watch is told nothing. A change of an object that begins to match a selector is
// Added, one that stops to match is Removed, as in Kubernetes' watch cache.
func (c *Change) delivery(q *store.WatchQuery) (store.Delivery, bool) {
	before := c.Previous != nil && q.Matches(c.Key, c.Previous.Attributes)
	after := c.Current != nil && q.Matches(c.Key, c.Current.Attributes)
	d := store.Delivery{Revision: c.Revision, Object: c.Current}
	switch {
	case before && after:
		d.Type = store.Modified
	case after:
		d.Type = store.Added
	case before:
		d.Type, d.Object = store.Removed, c.Previous
	}
	return d, before || after
}

// Size estimates the bytes that a change keeps in memory: its versions, and as
// much again for the encoded forms that watchers are sent.
func (c *Change) Size() int {
	n := 256
	for _, v := range []*store.Version{c.Current, c.Previous} {
		if v != nil {
			n += 2*len(v.Value) + len(v.Attributes)
		}
	}
	return n
}
