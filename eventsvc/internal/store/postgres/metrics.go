package postgres

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of the engine. Those of the copy are its own.
type metrics struct {
	all                   []prometheus.Collector
	writes, seconds, head prometheus.Histogram
	ambiguous, refused    prometheus.Counter
	lost                  prometheus.Counter
	lastWrites, lastHead  atomic.Int64 // of the last commit, and nanoseconds of the last question for the head
}

func newMetrics(db *DB) *metrics {
	m := &metrics{
		writes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "store_database_commit_writes", Help: "Writes that shared one transaction.", Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "store_database_commit_seconds", Help: "Time of one transaction of writes, as this replica sees it.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}),
		head: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "store_database_head_seconds", Help: "Time in which the database said what its newest revision is, which linearizable reads wait for.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 17),
		}),
		ambiguous: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "store_database_ambiguous_commits_total", Help: "Commits whose answer was lost, and that were looked up.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "store_database_refused_commits_total", Help: "Commits that were not written: the database was away, refused them, or lacked what this replica has seen.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "store_database_lost_commits_total", Help: "Times that the database lacked writes that this replica had acknowledged or shown.",
		}),
	}
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	m.all = []prometheus.Collector{
		db.copy, m.writes, m.seconds, m.head, m.ambiguous, m.refused, db.copy.remade, m.lost,
		gauge("store_database_up", "1 while the database can be followed.", func() float64 { return one(db.tail.failed() == nil) }),
		gauge("store_database_epoch", "Epoch of the database: one more for each time that it has lost commits.", func() float64 { return float64(db.tail.epoch.Load()) }),
		gauge("store_copy_ready", "1 when the copy has caught up with the database.", func() float64 { return one(db.tail.caughtUp.Load()) }),
		gauge("store_copy_lag_revisions", "Revisions that the copy lacked when it was last compared.", func() float64 { return float64(db.tail.behind.Load()) }),
		gauge("store_copy_lag_seconds", "Time since the copy had every revision.", func() float64 { return db.tail.age().Seconds() }),
		gauge("store_database_synchronous_standby", "1 if commits wait for a synchronous standby, so that a failover loses nothing.", func() float64 { return one(db.tail.standby.Load()) }),
		gauge("store_database_standbys_missing", "Synchronous standbys that commits wait for, and that are not connected.", func() float64 { return float64(db.tail.standbys.Load().missing()) }),
		gauge("store_database_standby_wait_seconds", "How long a commit of any replica has been waiting for a synchronous standby.", func() float64 { return db.tail.standbys.Load().waits.Seconds() }),
		gauge("store_keeper", "1 on the replica that clears away what is past its time.", func() float64 { return one(db.keeper.holds()) }),
	}
	return m
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (m *metrics) committed(writes int, took time.Duration) {
	m.writes.Observe(float64(writes))
	m.seconds.Observe(took.Seconds())
	m.lastWrites.Store(int64(writes))
}

func (m *metrics) asked(took time.Duration) {
	m.head.Observe(took.Seconds())
	m.lastHead.Store(int64(took))
}

// State describes this replica in one line.
func (db *DB) State() string {
	standby := "a synchronous standby"
	if !db.tail.standby.Load() {
		standby = "no synchronous standby"
	} else if db.tail.standbys.Load().stopped() != nil {
		standby = "a synchronous standby that does not answer"
	}
	return fmt.Sprintf("%d revisions and %.3f s behind, the head was read in %.1f ms, the last commit had %d writes, epoch %d, %s",
		db.tail.behind.Load(), db.tail.age().Seconds(), time.Duration(db.metrics.lastHead.Load()).Seconds()*1000, db.metrics.lastWrites.Load(),
		db.tail.epoch.Load(), standby)
}

func (m *metrics) register(r prometheus.Registerer) error {
	var errs []error
	for _, c := range m.all {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}
