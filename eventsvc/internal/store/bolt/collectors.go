package bolt

import (
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/seglog"
)

// register registers the metrics of a store and of its parts.
func register(r prometheus.Registerer, db *DB) error {
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	file := func(name, help string, f func(bbolt.Stats) int) prometheus.Collector {
		return gauge(name, help, func() float64 { return float64(f(fileStats(db))) })
	}
	own := []prometheus.Collector{
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "store_compressed_reads_total", Help: "Records that were read from compressed files."},
			func() float64 { return float64(db.log.Reads()) }),
		db.reads.damaged, db.reads.replays,
		file("store_free_pages", "Pages of the files that can be used again.", func(s bbolt.Stats) int { return s.FreePageN }),
		file("store_pending_pages", "Pages that open reads keep from being used again.", func(s bbolt.Stats) int { return s.PendingPageN }),
		file("store_open_reads", "Read transactions that are open.", func(s bbolt.Stats) int { return s.OpenTxN }),
		gauge("store_unlinked_bytes", "Bytes of files that were replaced or removed, and that a read still holds.", func() float64 {
			return float64(db.log.UnlinkedBytes() + db.index.UnlinkedBytes())
		}),
		gauge("store_watch_lag_revisions", "Revisions that the slowest watcher is behind.", func() float64 { return float64(db.hub.Lag()) }),
		gauge("store_oldest_record_timestamp_seconds", "When the oldest record of the log was written.", func() float64 {
			oldest := 0.0
			_ = db.log.View(func(r *seglog.Reader) error {
				return r.Scan(0, db.Revision(), func(e seglog.Entry) bool {
					oldest = float64(e.Time.UnixNano()) / 1e9
					return false
				}, nil)
			})
			return oldest
		}),
	}
	var errs []error
	for _, c := range slices.Concat(own, db.usage.Collectors(), db.committer.Collectors(), db.committer.Writer.Collectors(), db.maintenance.Collectors()) {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

// fileStats sums up what bbolt says of the files.
func fileStats(db *DB) (sum bbolt.Stats) {
	add := func(s bbolt.Stats) {
		sum.FreePageN += s.FreePageN
		sum.PendingPageN += s.PendingPageN
		sum.OpenTxN += s.OpenTxN
	}
	add(db.index.Stats())
	for _, s := range db.log.Segments() {
		add(s.Stats())
	}
	return sum
}
