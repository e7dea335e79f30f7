// Package eventmetrics counts what events report, as a metric for those who alert.
//
// # Contract
//
// A [Counter] follows the changes of a store and adds the new occurrences of each to a series of
// eventsvc_observed_events_total, by type, reason, kind, namespace and cluster. An event whose count grows from 7 to 12
// adds five. Deletions and expiries take nothing away. A Counter counts what is written since [New], whenever it was
// observed: an import of old events is counted now. Like any counter it begins at zero after a restart.
//
// The number of series is bounded. Occurrences of further combinations are counted in one series whose labels are all
// "other".
//
// # Errors
//
// The store never waits for a counter. If one falls so far behind that the store has forgotten changes, it counts that
// in eventsvc_observed_events_interruptions_total and continues with the newest.
//
// # Concurrency
//
// One goroutine calls [Counter.Run].
//
// # What it does not know
//
// Engines, and what an event is besides its attributes.
package eventmetrics

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// other is the value of all labels of the series for combinations beyond the bound.
const other = "other"

// Counter counts the occurrences that are written to a store.
type Counter struct {
	store         store.Store
	after         uint64 // revision behind which it counts
	limit         int
	log           *slog.Logger
	total         *prometheus.CounterVec
	interruptions prometheus.Counter
	series        map[event.Dimensions]prometheus.Counter // without reporters; used by Run alone
	others        prometheus.Counter
}

// New returns a counter of what is written from now on, with at most limit series and the one for others.
func New(s store.Store, limit int, log *slog.Logger, reg prometheus.Registerer) *Counter {
	c := &Counter{
		store: s, after: s.Revision(), limit: limit, log: log,
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_observed_events_total",
			Help: "What events report, with --observed-metrics: occurrences that were written, a growing series by its increments; combinations beyond the limit as other.",
		}, []string{"type", "reason", "kind", "namespace", "cluster"}),
		interruptions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "eventsvc_observed_events_interruptions_total",
			Help: "Times that changes were missed by eventsvc_observed_events_total, because they came faster than they were counted.",
		}),
		series: map[event.Dimensions]prometheus.Counter{},
	}
	reg.MustRegister(c.total, c.interruptions)
	return c
}

// Run counts until ctx ends or the store closes, and then returns nil.
func (c *Counter) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := c.follow(ctx)
		expired := new(store.ExpiredError)
		switch {
		case ctx.Err() != nil, errors.Is(err, store.ErrClosed):
			return nil
		case !errors.As(err, &expired):
			return err
		}
		c.interruptions.Inc()
		c.after = c.store.Revision()
		c.log.WarnContext(ctx, "observed events are missing in the metric", "error", err)
	}
	return nil
}

func (c *Counter) follow(ctx context.Context) error {
	watcher, err := c.store.Watch(ctx, store.WatchQuery{After: c.after})
	if err != nil {
		return err
	}
	defer watcher.Close()
	for {
		batch, err := watcher.Next(ctx)
		if err != nil {
			return err
		}
		for _, change := range batch.Changes {
			if change.Type != store.Removed {
				c.count(change.Object)
			}
		}
		c.after = batch.Revision
	}
}

func (c *Counter) count(v *store.Version) {
	o, ok := v.Attributes.Occurrence()
	if !ok || o.New == 0 {
		return
	}
	d := event.DimensionsOf(v.Key.Namespace, v.Attributes)
	d.Reporter = ""
	c.of(d).Add(float64(o.New))
}

func (c *Counter) of(d event.Dimensions) prometheus.Counter {
	if series, ok := c.series[d]; ok {
		return series
	}
	if len(c.series) < c.limit {
		series := c.total.WithLabelValues(valid(d.Type), valid(d.Reason), valid(d.Kind), valid(d.Namespace), valid(d.Cluster))
		c.series[d] = series
		return series
	}
	if c.others == nil {
		c.others = c.total.WithLabelValues(other, other, other, other, other)
	}
	return c.others
}

// valid returns a text as the value of a label, which has to be UTF-8.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
