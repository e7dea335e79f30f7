package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// model is a store that is too simple to be wrong: a list of all changes, from
// which every answer is worked out again. Engines are compared with it.
type model struct {
	now func() time.Time

	mu      sync.Mutex
	changes []modelChange
	last    uint64
	oldest  uint64
	wake    chan struct{}
}

type modelChange struct {
	revision uint64
	key      store.Key
	time     time.Time
	before   *store.Record // nil: it did not exist
	after    *store.Record // nil: it was deleted
	by       []byte        // who deleted it
}

// firstRevision is the revision of the empty store.
const firstRevision = 1

var _ store.Store = (*model)(nil)

// newModel returns an empty store.
func newModel(now func() time.Time) *model {
	return &model{now: now, last: firstRevision, oldest: firstRevision, wake: make(chan struct{})}
}

// Trim forgets the states before a revision, as an engine's history does.
func (m *model) Trim(oldest uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.oldest = oldest
}

// Bump goes on behind a revision, and forgets all states before it.
func (m *model) Bump(revision uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.oldest = revision, revision
}

// Revision implements [store.Store].
func (m *model) Revision() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *model) state(revision uint64) map[store.Key]*store.Record {
	state := map[store.Key]*store.Record{}
	for _, c := range m.changes {
		if c.revision > revision {
			break
		}
		if c.after == nil {
			delete(state, c.key)
		} else {
			state[c.key] = c.after
		}
	}
	return state
}

func (m *model) newest(key store.Key) *store.Record {
	for _, c := range slices.Backward(m.changes) {
		if c.key == key {
			return c.after
		}
	}
	return nil
}

// write stores a version, or with a nil draft a deletion.
func (m *model) write(key store.Key, draft *store.Draft, by []byte) store.Record {
	m.last++
	c := modelChange{revision: m.last, key: key, time: m.now(), before: m.newest(key), by: by}
	result := store.Record{Key: key, Revision: c.revision}
	if draft != nil {
		result.Time, result.Attributes, result.Value = c.time, draft.Attributes.Written(c.time), draft.Value
		if c.before != nil {
			result.Attributes = result.Attributes.Since(c.before.Attributes)
		}
		c.after = &result
	} else {
		result = *c.before
		result.Revision = c.revision
	}
	m.changes = append(m.changes, c)
	close(m.wake)
	m.wake = make(chan struct{})
	return result
}

// Get implements [store.Store].
func (m *model) Get(_ context.Context, key store.Key, look func(*store.View) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.newest(key); r != nil {
		return look(r.View())
	}
	return store.ErrNotFound
}

// Update implements [store.Store].
func (m *model) Update(_ context.Context, key store.Key, _ store.Expect, decide store.Decide) (store.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	current := m.newest(key)
	d, err := decide(current)
	switch {
	case err != nil:
		return store.Result{}, err
	case d.Op == store.Keep && current == nil:
		return store.Result{}, nil
	case d.Op == store.Keep:
		return store.Result{Record: *current}, nil
	case d.Op == store.Delete && current == nil:
		return store.Result{}, store.ErrNotFound
	case d.Op == store.Delete:
		return store.Result{Op: d.Op, Record: m.write(key, nil, d.By)}, nil
	}
	return store.Result{Op: d.Op, Record: m.write(key, &d.Draft, nil), Created: current == nil}, nil
}

// UpdateMany implements [store.Store].
func (m *model) UpdateMany(
	ctx context.Context, keys []store.Key, expect func(i int) store.Expect, decide func(i int, current *store.Record) (store.Decision, error),
) []store.Outcome {
	all := make([]store.Outcome, len(keys))
	for i, key := range keys {
		if strings.Contains(key.Name, "/") {
			all[i].Err = fmt.Errorf("%s is no key", key)
			continue
		}
		all[i].Result, all[i].Err = m.Update(ctx, key, expect(i), func(current *store.Record) (store.Decision, error) { return decide(i, current) })
	}
	return all
}

// DeleteMany implements [store.Store].
func (m *model) DeleteMany(_ context.Context, seen []store.Seen, by []byte) (n int, changed []store.Key, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range seen {
		if now := m.newest(r.Key); now == nil || now.Revision != r.Revision {
			changed = append(changed, r.Key)
			continue
		}
		m.write(r.Key, nil, by)
		n++
	}
	return n, changed, nil
}

// List implements [store.Store].
func (m *model) List(_ context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	page := store.Page{Revision: q.Revision}
	if page.Revision == 0 {
		page.Revision = m.last
	}
	if page.Revision > m.last {
		return store.Page{}, &store.FutureError{Revision: page.Revision, Current: m.last}
	}
	if page.Revision < m.oldest {
		return store.Page{}, &store.ExpiredError{Revision: page.Revision, Oldest: m.oldest}
	}
	state := m.state(page.Revision)
	keys := slices.SortedFunc(maps.Keys(state), func(a, b store.Key) int { return strings.Compare(a.String(), b.String()) })
	n, ended := 0, false
	for _, k := range keys {
		if q.Namespace != "" && k.Namespace != q.Namespace || q.After != (store.Key{}) && k.String() <= q.After.String() {
			continue
		}
		if q.Limit > 0 && n == q.Limit || ended {
			page.More = true
			if q.Count && q.Selector == nil && q.Name == "" {
				page.Remaining++
			}
			continue
		}
		page.Last = k
		if (q.Name == "" || q.Name == k.Name) && q.Selector.Matches(k.Namespace, k.Name, state[k].Attributes) {
			n++
			ended = !visit(state[k].View())
		}
	}
	return page, nil
}

// Watch implements [store.Store].
func (m *model) Watch(_ context.Context, q store.WatchQuery) (store.Watcher, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if q.After == 0 {
		q.After = m.last
	} else if q.After > m.last {
		return nil, &store.FutureError{Revision: q.After, Current: m.last}
	} else if q.After < m.oldest {
		return nil, &store.ExpiredError{Revision: q.After, Oldest: m.oldest}
	}
	return &modelWatcher{m: m, q: q, told: q.After}, nil
}

type modelWatcher struct {
	m    *model
	q    store.WatchQuery
	told uint64
}

func (w *modelWatcher) Close() {}

// Behind implements [store.Watcher].
func (w *modelWatcher) Behind() bool { return false }

// Next implements [store.Watcher].
func (w *modelWatcher) Next(ctx context.Context) (store.Batch, error) {
	for {
		b, wake, err := w.pending()
		if err != nil || b.Revision > w.told {
			w.told = b.Revision
			return b, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return store.Batch{}, ctx.Err()
		}
	}
}

func (w *modelWatcher) pending() (store.Batch, <-chan struct{}, error) {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if w.told < w.m.oldest {
		return store.Batch{}, nil, &store.ExpiredError{Revision: w.told, Oldest: w.m.oldest}
	}
	return store.Batch{Revision: w.m.last, Changes: w.m.deliveries(w.q, w.told, w.m.last)}, w.m.wake, nil
}

// Deliveries returns what a watch sees of the changes behind one revision up
// to another.
func (m *model) Deliveries(q store.WatchQuery, after, last uint64) []store.Delivery {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deliveries(q, after, last)
}

func (m *model) deliveries(q store.WatchQuery, after, last uint64) (ds []store.Delivery) {
	matches := func(r *store.Record) bool {
		return r != nil && (q.Namespace == "" || q.Namespace == r.Namespace) &&
			(q.Name == "" || q.Name == r.Name) && q.Selector.Matches(r.Namespace, r.Name, r.Attributes)
	}
	for _, c := range m.changes {
		if c.revision <= after || c.revision > last {
			continue
		}
		was, is := matches(c.before), matches(c.after)
		d := store.Delivery{Revision: c.revision}
		switch {
		case was && is:
			d.Type, d.Object = store.Modified, &store.Version{Record: *c.after}
		case is:
			d.Type, d.Object = store.Added, &store.Version{Record: *c.after}
		case was:
			d.Type, d.Object = store.Removed, &store.Version{Record: *c.before}
		default:
			continue
		}
		ds = append(ds, d)
	}
	return ds
}

// modelEngine is the model as an engine, which cannot be stopped.
type modelEngine struct{ model *model }

func (e modelEngine) Start(testing.TB) store.Store { return e.model }

func (modelEngine) Stop(testing.TB) {}

// The model passes the same cases, so that they and it agree with each other.
func TestModel(t *testing.T) {
	t.Parallel()
	testCases(t, func(_ testing.TB, now func() time.Time) engine { return modelEngine{newModel(now)} })
}
