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
	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

const (
	maxCursors  = 4096 // that are remembered: a mirror has one for each namespace, or one for all
	maxClusters = 1000 // that have a series, and a row in an answer
)

// Mirrored knows how far clusters are copied: what the cursors of their mirrors say, which are events. It reads them once, and
// then follows their changes, whichever replica writes them. It is safe for concurrent use.
type Mirrored struct {
	store store.Store
	codec *codec.Codec
	log   *slog.Logger
	now   func() time.Time
	desc  *prometheus.Desc

	mu      sync.Mutex
	cursors map[store.Key]position
}

// position is what a cursor says.
type position struct {
	cluster  string
	complete time.Time // everything that the cluster had then is here
	last     time.Time // when the newest event that is here was last written there; zero: unknown
	mirror   string    // version of the program
}

// NewMirrored returns a Mirrored that knows no cluster until it runs.
func NewMirrored(s store.Store, c *codec.Codec, log *slog.Logger, now func() time.Time) *Mirrored {
	return &Mirrored{store: s, codec: c, log: log, now: now, cursors: map[store.Key]position{}, desc: prometheus.NewDesc(
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
	found := map[store.Key]position{}
	for q := (store.Query{Selector: cursorsOnly}); ; {
		page, err := m.store.List(ctx, q, func(v *store.View) bool {
			if at, ok := m.position(v); ok && len(found) < maxCursors {
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
	m.cursors = found
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
	at, ok := m.position(d.Object.View())
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.cursors[d.Object.Key]
	switch {
	case d.Type == store.Removed || !ok:
		delete(m.cursors, d.Object.Key)
	case known || len(m.cursors) < maxCursors:
		m.cursors[d.Object.Key] = at
	}
}

// position parses a version of a cursor. It reports false if that is incomplete, or is the
// copy of another store's cursor.
func (m *Mirrored) position(v *store.View) (p position, ok bool) {
	ev, err := m.codec.Event(v)
	if err != nil {
		return p, false
	}
	return positionOf(ev)
}

func positionOf(ev *eventsv1.Event) (p position, ok bool) {
	p.cluster, p.mirror = ev.Labels[event.ClusterLabel], ev.Annotations[event.CursorMirror]
	p.last, _ = time.Parse(time.RFC3339, ev.Annotations[event.CursorLast])
	var err error
	p.complete, err = time.Parse(time.RFC3339, ev.Annotations[event.CursorComplete])
	_, copied := ev.Annotations[event.SourceUID] // of a cluster that is itself mirrored to
	return p, err == nil && !copied && p.cluster != "" && ev.Annotations[event.CursorVersion] != ""
}

// clusters returns the positions of clusters by name, as far as they may be seen. If a cluster has several cursors, because its
// namespaces are copied apart, it is complete until the earliest of them.
func (m *Mirrored) clusters(allows func(namespace, cluster string) bool) (all []position, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]position{}
	for _, key := range slices.SortedFunc(maps.Keys(m.cursors), func(a, b store.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}) {
		p := m.cursors[key]
		if !allows(key.Namespace, p.cluster) {
			continue
		}
		if before, ok := found[p.cluster]; ok {
			if before.complete.Before(p.complete) {
				p.complete, p.mirror = before.complete, before.mirror
			}
			if before.last.After(p.last) {
				p.last = before.last
			}
		}
		found[p.cluster] = p
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
	for _, p := range all {
		ch <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, m.since(p), p.cluster)
	}
}

// since returns how many seconds ago a cluster was complete.
func (m *Mirrored) since(p position) float64 { return max(0, m.now().Sub(p.complete).Seconds()) }
