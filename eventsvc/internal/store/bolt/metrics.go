package bolt

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what an operator wants to know of the store.
type metrics struct {
	batch   prometheus.Histogram
	commit  prometheus.Histogram
	damaged prometheus.Counter
	failed  prometheus.Counter
}

func newMetrics(db *DB, r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "store_commit_writes", Help: "Writes that shared one commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "store_commit_seconds", Help: "Time of one commit, its sync included.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}),
		damaged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "store_damaged_reads_total", Help: "Reads that found damage and were answered with an error.",
		}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "store_maintenance_failures_total", Help: "Rounds of expiry and compaction that failed.",
		}),
	}
	gauge := func(name, help string, f func(Stats) int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(f(db.Stats())) })
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		m.batch, m.commit, m.damaged, m.failed,
		gauge("store_events", "Events that exist.", func(s Stats) int64 { return s.Events }),
		gauge("store_live_bytes", "Bytes of the events that exist.", func(s Stats) int64 { return s.LiveBytes }),
		gauge("store_history_bytes", "Bytes that only older states need.", func(s Stats) int64 { return s.HistoryBytes }),
		gauge("store_dead_bytes", "Bytes that nothing needs until they are compacted.", func(s Stats) int64 { return s.DeadBytes }),
		gauge("store_file_bytes", "Bytes that the files take on the disk.", func(s Stats) int64 { return s.FileBytes }),
		gauge("store_segments", "Files of the log.", func(s Stats) int64 { return int64(s.Segments) }),
		gauge("store_revision", "Revision of the newest write.", func(s Stats) int64 { return int64(s.Revision) }),
		gauge("store_oldest_revision", "The oldest revision whose state can be read.", func(s Stats) int64 { return int64(s.Oldest) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "store_queued_bytes", Help: "Bytes of writes that wait for their commit."},
			func() float64 { return float64(db.committer.queued.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "store_oldest_record_timestamp_seconds", Help: "When the oldest record of the log was written."},
			func() float64 {
				if t := db.OldestTime(); !t.IsZero() {
					return float64(t.UnixNano()) / 1e9
				}
				return 0
			}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "store_expiry_held_seconds", Help: "Step of the clock that expiry does not follow yet."},
			func() float64 { return db.clock.now().Sub(db.clock.old()).Seconds() }),
	} {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}

func (m *metrics) committed(writes int, since time.Time) {
	m.batch.Observe(float64(writes))
	m.commit.Observe(time.Since(since).Seconds())
}
