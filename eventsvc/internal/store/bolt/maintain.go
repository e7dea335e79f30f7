package bolt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// maintainEvery is how often old events and old history are looked for. They
// are gone at the latest a minute after their time.
const maintainEvery = 10 * time.Second

// maintenance deletes what is past its time, and brings the room of it back, in rounds.
type maintenance struct {
	db      *DB
	urgent  chan struct{} // told that the next round should not wait
	cleared atomic.Int64  // when the last round that did all its deleting began, in nanoseconds after the opening

	mu      sync.Mutex               // held for a round; guards the next three
	trimmed uint64                   // dead bytes are accounted for up to this revision
	expired map[time.Duration]uint64 // by retention: nothing of it is left up to this revision
	oldest  uint64                   // the oldest event is behind this revision
}

func (m *maintenance) init(db *DB) {
	m.db, m.urgent, m.expired = db, make(chan struct{}, 1), map[time.Duration]uint64{}
}

// Run keeps the store within its limits until ctx ends. Failures are logged
// and tried again.
func (db *DB) Run(ctx context.Context) error {
	for {
		if !db.maintenance.awaitRound(ctx) {
			return nil
		}
		err := db.Maintain(ctx)
		if err != nil && !errors.Is(err, store.ErrClosed) && ctx.Err() == nil {
			db.metrics.failed.Inc()
			db.o.Log.Error("old events could not be cleared away; trying again", "error", err)
		}
	}
}

// awaitRound waits until the next round is due, and reports false when there
// is to be none.
func (m *maintenance) awaitRound(ctx context.Context) bool {
	t := time.NewTimer(maintainEvery)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-m.urgent:
		// A store at its limit asks with every commit.
		return m.db.sleep(ctx, maintainEvery/10) == nil
	case <-ctx.Done():
	case <-m.db.stop:
	}
	return false
}

// Maintain does one round of what Run does: it deletes events that are past
// their retention, gives up history that is past its own, and brings back the
// disk space of both.
func (db *DB) Maintain(ctx context.Context) error {
	db.maintenance.mu.Lock()
	defer db.maintenance.mu.Unlock()
	if err := db.failover(ctx); err != nil {
		return err
	}
	began := time.Since(db.log.Opened())
	defer db.measureFiles()
	for more := true; more; {
		var err error
		if more, err = db.maintenance.clearSome(ctx); err != nil {
			return err
		}
	}
	db.maintenance.cleared.Store(int64(began))
	return db.maintenance.compactIndex(ctx)
}

// clearSome deletes some events that are past their time and brings back the
// room of what that makes forgettable, so that where room is short the room
// that deletions take themselves is never much. It reports whether there are
// more. Where there is no room even for deletions, forgetting may make some.
func (m *maintenance) clearSome(ctx context.Context) (more bool, err error) {
	more, full := m.expire(ctx)
	if full == nil {
		full = m.expireOldest(ctx)
	}
	if full != nil && !errors.Is(full, store.ErrFull) {
		return false, full
	}
	cutoff := time.Unix(0, math.MinInt64)
	if history := m.history(); history > 0 {
		cutoff = m.db.clock.old().Add(-history)
	}
	if err := m.trim(ctx, cutoff, m.historyLimit()); err != nil {
		return false, err
	}
	if err := m.compact(ctx); err != nil {
		return false, err
	}
	return more, full
}

// history is how long superseded versions and deletions are kept, 0: for ever.
func (m *maintenance) history() time.Duration {
	if m.db.o.History > 0 {
		return m.db.o.History
	}
	return m.db.o.Retention
}

// flush merges everything that was written so far into the index.
func (db *DB) flush(ctx context.Context) error {
	if err := db.mergeFrozen(); err != nil {
		return err
	}
	if err := db.control(ctx, func() error { db.freeze(); return nil }); err != nil {
		return err
	}
	return db.mergeFrozen()
}

// mergeLoop merges frozen memtables into the index.
func (db *DB) mergeLoop() {
	for {
		select {
		case <-db.merges:
		case <-db.stop:
			return
		}
		for db.mergeFrozen() != nil {
			// The memtable stays where it is: the log has everything, so that
			// nothing is lost meanwhile.
			if db.sleep(context.Background(), time.Second) != nil {
				return
			}
		}
	}
}

// mergeFrozen merges the frozen memtable, if there is one.
func (db *DB) mergeFrozen() error {
	if err := db.index.Merge(db.log.CompactRevision()); err != nil {
		db.o.Log.Error("the key index could not be written", "error", err)
		db.maintenance.hurry()
		return err
	}
	select {
	case db.committer.merged <- struct{}{}:
	default:
	}
	return nil
}

// Compact clears away what is past its time and brings back all disk space that
// can be had, whether it is much or not. Progress counts files.
func (db *DB) Compact(ctx context.Context, progress Progress) error {
	if err := db.Maintain(ctx); err != nil {
		return err
	}
	db.maintenance.mu.Lock()
	defer db.maintenance.mu.Unlock()
	if err := db.maintenance.sealDeadHead(ctx, compactBytes, 0); err != nil {
		return err
	}
	defer db.measureFiles()
	sealed := func() seglog.Segments { ss := db.log.Segments(); return ss[:len(ss)-1] }
	if _, err := db.maintenance.countDead(ctx, sealed()); err != nil {
		return fmt.Errorf("store: compacting: %w", err)
	}
	if err := db.maintenance.compact(ctx); err != nil {
		return err
	}
	clean := true
	ss := sealed()
	for i, s := range ss {
		progress.tell(int64(i), int64(len(ss)+1))
		if db.dead.of(s.Base) > 0 {
			if err := db.maintenance.rewrite(ctx, s, clean); err != nil {
				return fmt.Errorf("store: compacting %s: %w", s.Path, err)
			}
		}
		clean = clean && db.maintenance.clean(s)
	}
	if err := db.maintenance.rewriteIndex(ctx); err != nil {
		return err
	}
	progress.tell(int64(len(ss)+1), int64(len(ss)+1))
	return nil
}

// Progress is told how far a long work has come, now and then and always at its
// end. It may be nil.
type Progress func(done, total int64)

func (p Progress) tell(done, total int64) {
	if p != nil {
		p(done, total)
	}
}
