package maintenance

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
)

// every is how often old events and old history are looked for. They are gone at the
// latest a minute after their time.
const every = 10 * time.Second

// Policy says what is kept for how long.
type Policy struct {
	Retention time.Duration     // an event is deleted so long after its last write; 0: never
	Rules     func() *rules.Set // retentions of their own, as they are now; nil: none
	History   time.Duration     // superseded versions and deletions stay readable so long; 0: as Retention

	CompressAfter time.Duration // sealed segments whose events are older are compressed, by when they were observed; 0: none
}

// Config is what maintenance works on.
type Config struct {
	Policy       Policy
	Records      seglog.IndexedLog
	Usage        *usage.Usage
	Clock        *commit.Clock
	Writer       *commit.Writer                            // to be used within Do
	Do           func(context.Context, func() error) error // runs a function between two commits
	Flush        func(context.Context) error               // merges everything that was written so far into the index
	Delete       func(context.Context, []store.Seen) error // deletes events, but not those that have changed since they were seen
	Expires      func() bool                               // reports whether events are to be deleted by this store now
	ReadError    func(error) error                         // reports and translates an error of reading
	SegmentBytes int64
	Log          *slog.Logger
}

// Maintenance keeps one store within its limits.
type Maintenance struct {
	Config
	compaction *compaction
	urgent     chan struct{} // told that the next round should not wait
	failures   prometheus.Counter
	opened     time.Time
	cleared    atomic.Int64 // when the last round that did all its deleting began, in nanoseconds after opened

	projected atomic.Int64 // how old events get before the limit of bytes removes them, as a duration; 0: not known

	mu      sync.Mutex               // held for a round; guards the next four
	expired map[time.Duration]uint64 // by retention: nothing of it is left up to this revision
	rules   *rules.Set               // by which that is so
	oldest  uint64                   // the oldest event is behind this revision
	first   uint64                   // as oldest, for the projection, which deletes nothing
}

// New returns the maintenance of an open store.
func New(c Config) *Maintenance {
	m := &Maintenance{
		Config: c, urgent: make(chan struct{}, 1), expired: map[time.Duration]uint64{}, opened: time.Now(),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "store_maintenance_failures_total", Help: "Rounds of expiry and compaction that failed.",
		}),
	}
	m.compaction = &compaction{Config: &m.Config}
	return m
}

// Hurry has the next round begin within a second of now, or of the end of the present one.
func (m *Maintenance) Hurry() {
	select {
	case m.urgent <- struct{}{}:
	default:
	}
}

// Pause waits for the current round, and keeps off the next until resume is called. No
// sealed segment is replaced or unlinked meanwhile.
func (m *Maintenance) Pause() (resume func()) {
	m.mu.Lock()
	return m.mu.Unlock
}

// Lag returns the time since the last round that did all its deleting began: what was
// due before that is gone.
func (m *Maintenance) Lag() time.Duration {
	return time.Since(m.opened) - time.Duration(m.cleared.Load())
}

// Collectors returns the metrics of maintenance.
func (m *Maintenance) Collectors() []prometheus.Collector {
	gauge := func(name, help string, f func() time.Duration) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return f().Seconds() })
	}
	return []prometheus.Collector{
		m.failures,
		gauge("store_retention_lag_seconds", "Time since old events were last cleared away.", m.Lag),
		gauge("store_projected_age_seconds", "How old events get before --max-bytes removes them, if they go on to arrive as now; 0: no limit, or not known yet.",
			func() time.Duration { return time.Duration(m.projected.Load()) }),
		gauge("store_retention_seconds", "How long events are kept that --retention or --rules-file keeps longest; for ever counts as 100 years.",
			m.Policy.longest),
		gauge("store_expiry_held_seconds", "Step of the clock that expiry does not follow yet.",
			func() time.Duration { return m.Clock.Now().Sub(m.Clock.Old()) }),
	}
}

// Run keeps the store within its limits until ctx ends. Failures are logged and tried
// again.
func (m *Maintenance) Run(ctx context.Context) {
	for m.awaitRound(ctx) {
		if err := m.Round(ctx); err != nil && !errors.Is(err, store.ErrClosed) && ctx.Err() == nil {
			m.failures.Inc()
			m.Log.Error("old events could not be cleared away; trying again", "error", err)
		}
	}
}

// awaitRound waits until the next round is due, and reports false when ctx has ended.
func (m *Maintenance) awaitRound(ctx context.Context) bool {
	due := time.NewTimer(every)
	defer due.Stop()
	urgent := m.urgent
	for {
		select {
		case <-due.C:
			return true
		case <-urgent:
			// A store at its limit asks with every commit.
			urgent = nil
			due.Reset(every / 10)
		case <-ctx.Done():
			return false
		}
	}
}

// Round deletes events that are past their retention, gives up history that is past its
// own, brings back the disk space of both, and compresses what is old.
func (m *Maintenance) Round(ctx context.Context) error {
	defer m.Pause()()
	began := time.Since(m.opened)
	defer m.Usage.Measure()
	m.Usage.GiveSpare()
	defer m.Usage.KeepSpare()
	if full, _ := m.Usage.Full(0); full != nil { // what waits to be merged needs more room than what is merged
		if err := m.Flush(ctx); err != nil && !isFull(err) {
			return err
		}
	}
	// Segments of any age are compressed before events have to go for lack of room.
	if err := m.compressWhile(ctx, 0, m.Usage.Tight); err != nil { // on a full disk, deletions make room for that
		m.Log.Warn("there is little room, and log files could not be compressed", "error", err)
	}
	for more := true; more; {
		var err error
		if more, err = m.clearSome(ctx); err != nil {
			return err
		}
	}
	m.cleared.Store(int64(began))
	if err := m.project(); err != nil {
		return err
	}
	if err := m.tidyIndex(ctx); err != nil {
		return err
	}
	compressing := time.Now()
	return m.compressWhile(ctx, m.Policy.CompressAfter, func() bool { return time.Since(compressing) < compressFor })
}

// tidyIndex writes the index to a new file if that is worth it and there is room.
func (m *Maintenance) tidyIndex(ctx context.Context) error {
	if !m.Records.Index.NeedsRewrite(m.Usage.Live().Events) {
		return nil
	}
	if err := m.compaction.rewriteIndex(ctx); !errors.Is(err, errNoRoom) {
		return err
	}
	return nil
}

// Compact does a round, and then brings back all disk space that can be had, whether it is
// much or not. It compresses all sealed segments if told to. Progress counts files.
func (m *Maintenance) Compact(ctx context.Context, compress bool, progress store.Progress) error {
	if err := m.Round(ctx); err != nil && !isFull(err) { // the compaction may make the room that the round lacked
		return err
	}
	defer m.Pause()()
	return m.compaction.compactAll(ctx, compress, progress)
}

// clearSome deletes some events that are past their time, and then frees the room of their records, so that the
// deletions themselves never take much room. It reports whether more events are past their time. If there is no room
// even for deletions, trimming and compaction may make some.
func (m *Maintenance) clearSome(ctx context.Context) (more bool, err error) {
	if m.Usage.Tight() { // history goes before events
		if err := m.reclaim(ctx); err != nil && !isFull(err) {
			return false, err
		}
	}
	var full error
	if m.Expires() {
		if more, full = m.expire(ctx); full == nil {
			full = m.expireOldest(ctx)
		}
	}
	if full != nil && !isFull(full) {
		return false, full
	}
	if err := m.reclaim(ctx); err != nil {
		return false, err
	}
	return more, full
}

// reclaim gives up history that is past its time or has no room, and brings back the disk space of what is dead.
func (m *Maintenance) reclaim(ctx context.Context) error {
	cutoff := time.Unix(0, math.MinInt64)
	if history := cmp.Or(m.Policy.History, m.Policy.Retention); history > 0 {
		cutoff = m.Clock.Old().Add(-history)
	}
	full := m.trim(ctx, cutoff, m.Usage.HistoryLimit())
	if full != nil && !isFull(full) {
		return full
	}
	return errors.Join(m.compaction.run(ctx), full) // removing a file needs no room
}

// isFull reports that there was no room for a write, on the disk or within the limit of bytes.
func isFull(err error) bool { return errors.Is(err, store.ErrFull) || disk.IsFull(err) }
