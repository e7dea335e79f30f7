package queries

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

const (
	maxCursors  = 4096 // so many are remembered: a mirror has one for each namespace, or one for all
	maxClusters = 1000 // so many have a series, and a row in an answer
)

// Mirrored knows how far clusters are copied. It reads the cursors of their mirrors once, and then follows their
// changes, whichever replica writes them. Cursors are events, of which it uses only the ones that the server believes.
// It is safe for concurrent use.
type Mirrored struct {
	store store.Store
	codec *codec.Codec
	log   *slog.Logger
	now   func() time.Time
	desc  *prometheus.Desc

	mu      sync.Mutex
	cursors map[store.Key]copied
}

// copied is how far events of a cluster are copied.
type copied struct {
	event.Cursor
	moves query.Rhythm // of the cursor
	every time.Duration
	late  bool
}

const (
	// patience is how many times the usual distance between two moves of a cursor has to pass until its mirror is late.
	patience = 3
	// leastLate is the shortest time after which a mirror is late: it moves its cursor each minute, also if nothing
	// happens. The rhythm of one whose cursor has not moved yet is unknown.
	leastLate, unknownLate = 90 * time.Second, 5 * time.Minute
)

// judge says whether a mirror is late, by its own rhythm.
func (c *copied) judge(now time.Time) {
	longest := unknownLate
	if c.every = c.moves.Every(); c.every > 0 {
		longest = max(leastLate, patience*c.every)
	}
	c.late = now.Sub(c.Complete) > longest
}

// moved returns a cursor as it is after it was as before.
func (c copied) moved(to event.Cursor) copied {
	if at := to.Complete.Unix(); at > c.moves.Last {
		c.moves.Add(store.Occurred{Second: at, Count: 1})
	}
	c.Cursor = to
	return c
}

// NewMirrored returns a Mirrored that knows no cluster until it runs.
func NewMirrored(s store.Store, c *codec.Codec, log *slog.Logger, now func() time.Time) *Mirrored {
	return &Mirrored{store: s, codec: c, log: log, now: now, cursors: map[store.Key]copied{}, desc: prometheus.NewDesc(
		"eventsvc_cluster_complete_seconds", "Time since everything that the cluster had was here, as the cursors of its mirror say; of the first 1000 clusters by name.", []string{"cluster"}, nil)}
}

// cursorsOnly selects the events that are cursors.
var cursorsOnly = &event.Selector{Fields: []event.FieldRequirement{
	{Field: event.Reason, Value: event.CursorReason}, {Field: event.ReportingController, Value: event.GapReporter},
}}

// again is how long Run waits after a failure.
const again = time.Second

// Run reads and follows the cursors until ctx ends. It returns nil.
func (m *Mirrored) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		revision, err := m.list(ctx)
		if err == nil {
			err = m.follow(ctx, revision)
		}
		if ctx.Err() != nil {
			break
		}
		m.log.DebugContext(ctx, "the cursors of mirrors are read again", "error", err)
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
	return nil
}

// list reads all cursors.
func (m *Mirrored) list(ctx context.Context) (revision uint64, err error) {
	found := map[store.Key]event.Cursor{}
	for q := (store.Query{Selector: cursorsOnly}); ; {
		page, err := m.store.List(ctx, q, func(v *store.View) bool {
			if at, ok := m.believed(v); ok && len(found) < maxCursors {
				found[v.Key] = at
			}
			return true
		})
		if err != nil {
			return 0, err
		}
		revision, q.Revision, q.After = page.Revision, page.Revision, page.Last
		if !page.More {
			break
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.cursors
	m.cursors = make(map[store.Key]copied, len(found))
	for key, at := range found {
		m.cursors[key] = known[key].moved(at)
	}
	return revision, nil
}

// follow follows the changes after a revision.
func (m *Mirrored) follow(ctx context.Context, revision uint64) error {
	w, err := m.store.Watch(ctx, store.WatchQuery{After: revision, Selector: cursorsOnly})
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		batch, err := w.Next(ctx)
		if err != nil {
			return err
		}
		for i := range batch.Changes {
			m.change(&batch.Changes[i])
		}
	}
}

// change notes a change of a cursor.
func (m *Mirrored) change(d *store.Delivery) {
	at, ok := m.believed(d.Object.View())
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.cursors[d.Object.Key]
	switch {
	case d.Type == store.Removed || !ok:
		delete(m.cursors, d.Object.Key)
	case known || len(m.cursors) < maxCursors:
		m.cursors[d.Object.Key] = before.moved(at)
	}
}

// believed parses a version of a cursor. It reports false if the version has no mark: anybody may have written it.
func (m *Mirrored) believed(v *store.View) (c event.Cursor, ok bool) {
	if !v.Attributes.Believed() {
		return c, false
	}
	ev, err := m.codec.Event(v)
	if err != nil {
		return c, false
	}
	return event.CursorOf(ev)
}

// clusters returns the cursors of clusters by name, as far as they may be seen. If a cluster has several cursors,
// because its namespaces are copied apart, it is complete until the earliest of them, and late if one is.
func (m *Mirrored) clusters(allows func(namespace, cluster string) bool) (all []copied, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, now := map[string]copied{}, m.now()
	for _, key := range slices.SortedFunc(maps.Keys(m.cursors), func(a, b store.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}) {
		c := m.cursors[key]
		if !allows(key.Namespace, c.Cluster) {
			continue
		}
		c.judge(now)
		if before, ok := found[c.Cluster]; ok {
			c.late, c.every = c.late || before.late, max(c.every, before.every)
			if before.Complete.Before(c.Complete) {
				c.Complete, c.Mirror = before.Complete, before.Mirror
			}
			if before.Last.After(c.Last) {
				c.Last = before.Last
			}
		}
		found[c.Cluster] = c
	}
	names := slices.Sorted(maps.Keys(found))
	if more = len(names) > maxClusters; more {
		names = names[:maxClusters]
	}
	for _, name := range names {
		all = append(all, found[name])
	}
	return all, more
}

// Describe implements [prometheus.Collector].
func (m *Mirrored) Describe(ch chan<- *prometheus.Desc) { ch <- m.desc }

// Collect implements [prometheus.Collector].
func (m *Mirrored) Collect(ch chan<- prometheus.Metric) {
	all, _ := m.clusters(func(string, string) bool { return true })
	for _, c := range all {
		ch <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, m.since(c), c.Cluster)
	}
}

// since returns how many seconds ago a cluster was complete.
func (m *Mirrored) since(c copied) float64 { return max(0, m.now().Sub(c.Complete).Seconds()) }
