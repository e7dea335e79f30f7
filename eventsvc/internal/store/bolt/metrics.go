package bolt

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/usage"
)

// metrics are what an operator wants to know of the store.
type metrics struct {
	batch       prometheus.Histogram
	commit      prometheus.Histogram
	checkpoints prometheus.Histogram
	damaged     prometheus.Counter
	replays     prometheus.Counter

	failedCommits prometheus.Counter
}

func newMetrics(db *DB, r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "store_commit_writes", Help: "Writes that shared one commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "store_commit_seconds", Help: "Time of one commit, its sync included.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}),
		checkpoints: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "store_fold_seconds", Help: "Time that the records of the journal took to get into the log.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		damaged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "store_damaged_reads_total", Help: "Reads that found damage and were answered with an error.",
		}),
		replays: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "store_watch_replays_total", Help: "Reads of the log for watchers that begin in the past or were left behind.",
		}),
	}
	m.failedCommits = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "store_failed_files_total", Help: "Log files that could not be written, for another reason than room, and were replaced.",
	})
	gauge := func(name, help string, f func(usage.Stats) int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(f(db.Stats())) })
	}
	plain := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	file := func(name, help string, f func(bbolt.Stats) int) prometheus.Collector {
		return plain(name, help, func() float64 { return float64(f(db.fileStats())) })
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		m.batch, m.commit, m.checkpoints, m.damaged, m.replays, m.failedCommits,
		gauge("store_events", "Events that exist.", func(s usage.Stats) int64 { return s.Events }),
		gauge("store_live_bytes", "Bytes of the events that exist.", func(s usage.Stats) int64 { return s.LiveBytes }),
		gauge("store_history_bytes", "Bytes that only older states need.", func(s usage.Stats) int64 { return s.HistoryBytes }),
		gauge("store_dead_bytes", "Bytes that nothing needs until they are compacted.", func(s usage.Stats) int64 { return s.DeadBytes }),
		gauge("store_file_bytes", "Bytes that the files take on the disk.", func(s usage.Stats) int64 { return s.FileBytes }),
		gauge("store_segments", "Files of the log.", func(s usage.Stats) int64 { return int64(s.Segments) }),
		gauge("store_revision", "Revision of the newest write.", func(s usage.Stats) int64 { return int64(s.Revision) }),
		gauge("store_oldest_revision", "The oldest revision whose state can be read.", func(s usage.Stats) int64 { return int64(s.Oldest) }),
		file("store_free_pages", "Pages of the files that can be used again.", func(s bbolt.Stats) int { return s.FreePageN }),
		file("store_pending_pages", "Pages that open reads keep from being used again.", func(s bbolt.Stats) int { return s.PendingPageN }),
		file("store_open_reads", "Read transactions that are open.", func(s bbolt.Stats) int { return s.OpenTxN }),
		plain("store_oldest_read_seconds", "Age of the oldest open read transaction.", func() float64 { return db.log.OldestRead().Seconds() }),
		plain("store_watch_lag_revisions", "Revisions that the slowest watcher is behind.", func() float64 { return float64(db.hub.Lag()) }),
		plain("store_failed", "1 while nothing can be written, because the disk fails.", func() float64 { return boolean(db.committer.failed() != nil) }),
		plain("store_full", "1 if there is no room for new events.", func() float64 { return boolean(db.usage.Full() != nil) }),
		plain("store_disk_free_bytes", "Bytes that the disk has left.", func() float64 { free, _ := disk.Free(db.o.Dir); return float64(free) }),
		plain("store_max_bytes", "Bytes that the files may take.", func() float64 { return float64(db.o.MaxBytes) }),
		plain("store_queued_writes", "Writes that wait for their commit.", func() float64 { return float64(len(db.committer.queue)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "store_queued_bytes", Help: "Bytes of writes that wait for their commit."},
			func() float64 { return float64(db.committer.queued.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "store_oldest_record_timestamp_seconds", Help: "When the oldest record of the log was written."},
			func() float64 {
				if t := db.OldestTime(); !t.IsZero() {
					return float64(t.UnixNano()) / 1e9
				}
				return 0
			}),
	} {
		errs = append(errs, r.Register(c))
	}
	for _, c := range db.maintenance.Collectors() {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (m *metrics) committed(writes int, since time.Time) {
	m.batch.Observe(float64(writes))
	m.commit.Observe(time.Since(since).Seconds())
}

// checkpoint measures the time of a checkpoint.
func (m *metrics) checkpoint(f func() error) error {
	start := time.Now()
	defer func() { m.checkpoints.Observe(time.Since(start).Seconds()) }()
	return f()
}
