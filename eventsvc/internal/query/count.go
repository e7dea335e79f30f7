package query

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
)

// Order is the order of groups.
type Order string

// The orders.
const (
	ByCount Order = "count"  // most frequent first
	Newest  Order = "newest" // by their last observation
	Oldest  Order = "oldest" // by their first observation
)

// The bounds of what a count keeps in memory. Together with the cells of a histogram and with what is selected from
// them, they are less than the largest room of one client (flow).
const (
	tableBytes = 20 << 20 // groups
	keyBytes   = 256      // of a group, besides its texts
)

// rest is the group of what has no group of its own because there are too many.
const rest = 0

// memory is what a question takes beside the room that every question has. It takes the room before it is used.
type memory struct {
	room  *flow.Room // nil: there is no limit
	bytes int
	keys  int   // bytes of the groups of all tables
	err   error // there was no room: what was counted since is wrong
}

// grow takes n bytes more, in steps of 512 KiB.
func (m *memory) grow(n int) {
	const step = 512 << 10
	if m.bytes += n; m.err == nil && m.bytes > m.room.Bytes() {
		m.err = m.room.Grow((m.bytes + step - 1) / step * step)
	}
}

// table numbers the groups of an answer.
type table struct {
	*memory
	by   []Dimension
	most int
	keys []Key // by number; the key of rest is empty
	ids  map[[2]uint64]int
	full bool // something is counted under rest
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func newTable(m *memory, by []Dimension, most int) *table {
	return &table{memory: m, by: by, most: most, keys: make([]Key, 1), ids: map[[2]uint64]int{}}
}

// group returns the number of the group that observations belong to.
func (t *table) group(d event.Dimensions, object Regarding) int {
	key := keyOf(d, object, t.by)
	hash := [2]uint64{maphash.Comparable(seeds[0], key), maphash.Comparable(seeds[1], key)}
	if id, ok := t.ids[hash]; ok {
		return id
	}
	if len(t.keys) > t.most || t.memory.keys > tableBytes || t.err != nil {
		t.full = true
		return rest
	}
	id, size := len(t.keys), key.bytes()+keyBytes
	t.memory.keys += size
	t.grow(size)
	t.keys = append(t.keys, key)
	t.ids[hash] = id
	return id
}

// count counts observations by some dimensions, of which the object may be one. Observations within a step may be
// counted as one. It calls start once, and passes each observation to the function that start returns.
func (s *Snapshot) count(ctx context.Context, by []Dimension, step time.Duration, start func(*table) func(store.Occurred)) (t *table, err error) {
	t = newTable(&memory{room: flow.FromContext(ctx).Room()}, by, s.querier.Groups)
	c := t.counting(step, nil).Count
	c.Range = store.Range{From: s.begin(), To: s.To, Revision: s.Head.Revision, Sees: s.sees}
	c.Filter = s.query.Terms.Filter()
	s.OverEvents = !c.Light()
	err = cmp.Or(s.querier.Timeline.Count(ctx, c, start(t)), t.err)
	s.noteFull(t)
	return t, err
}

// counting returns the count of the groups of the table.
func (t *table) counting(step time.Duration, visit func(store.Occurred)) store.Counting {
	return store.Counting{Visit: visit, Count: store.Count{
		By: t.names(), Objects: slices.Contains(t.by, Object), Step: int64(step / time.Second),
		Group: func(d event.Dimensions, o event.Regarding) int { return t.group(d, cut(o)) },
	}}
}

// noteFull notes that an answer is not whole if a table has not all groups.
func (s *Snapshot) noteFull(t *table) {
	if t.full {
		s.Partly("there are more than %d groups: the others are not counted apart", len(t.keys)-1)
	}
}

// names returns the dimensions that tell the groups apart. An object without a UID needs two more.
func (t *table) names() []string {
	names := []string{}
	for _, d := range t.by {
		names = append(names, string(d))
	}
	if slices.Contains(t.by, Object) {
		names = append(names, string(Namespace), string(Cluster))
	}
	return names
}

// best returns the first n of so many things in an order, or all. It keeps no more than n, and takes turns.
func best(ctx context.Context, of, n int, compare func(a, b int) int) (found []int, err error) {
	const piece = 1000 // about a millisecond
	turns := flow.NewTurns(ctx)
	for i := range of {
		if i%piece == 0 && !turns.Next() {
			return nil, turns.Err()
		}
		if len(found) == n && (n == 0 || compare(i, found[n-1]) >= 0) {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, i, compare)
		if len(found) == n {
			found = found[:n-1]
		}
		found = slices.Insert(found, at, i)
	}
	return found, nil
}
