package events

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// maxClusters bounds the clusters that have a series of their own; further ones share one, "other".
const maxClusters = 100

// Arrivals says when an event of each cluster was last written here, as a metric for those who alert on silence.
type Arrivals struct {
	now  func() time.Time
	last *prometheus.GaugeVec

	mu       sync.Mutex
	clusters map[string]prometheus.Gauge
}

// NewArrivals returns the arrivals of no cluster.
func NewArrivals(now func() time.Time) *Arrivals {
	return &Arrivals{now: now, clusters: map[string]prometheus.Gauge{}, last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "eventsvc_cluster_last_event_timestamp_seconds",
		Help: "When an event with the label " + event.ClusterLabel + " was last written here by a client that may create events of it in every namespace, since the start; clusters beyond the first 100 as other.",
	}, []string{"cluster"})}
}

// Collector returns the metric.
func (a *Arrivals) Collector() prometheus.Collector { return a.last }

// note notes that a version was stored. It counts only if its writer may create events of the cluster in every
// namespace, as a mirror may: other clients could use up the series, or make a silent cluster seem alive.
func (a *Arrivals) note(w writer, stored *store.Record) {
	cluster := stored.Attributes.Get(event.ClusterLabel)
	if cluster == "" || !w.everywhere.Match(cluster) {
		return
	}
	cluster = strings.ToValidUTF8(cluster, "\uFFFD")
	a.mu.Lock()
	defer a.mu.Unlock()
	gauge, known := a.clusters[cluster]
	switch {
	case known:
	case len(a.clusters) == maxClusters:
		gauge = a.last.WithLabelValues("other")
	default:
		gauge = a.last.WithLabelValues(cluster)
		a.clusters[cluster] = gauge
	}
	gauge.Set(float64(a.now().Unix()))
}
