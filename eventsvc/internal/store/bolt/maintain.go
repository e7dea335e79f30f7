package bolt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// maintainEvery is how often old events and old history are looked for. They
// are gone at the latest a minute after their time.
const maintainEvery = 10 * time.Second

// Run keeps the store within its limits until ctx ends. Failures are logged
// and tried again.
func (db *DB) Run(ctx context.Context) error {
	for {
		if !db.awaitRound(ctx) {
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
func (db *DB) awaitRound(ctx context.Context) bool {
	t := time.NewTimer(maintainEvery)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-db.urgent:
		// A store at its limit asks with every commit.
		return db.sleep(ctx, maintainEvery/10) == nil
	case <-ctx.Done():
	case <-db.stop:
	}
	return false
}

// Maintain does one round of what Run does: it deletes events that are past
// their retention, gives up history that is past its own, and brings back the
// disk space of both.
func (db *DB) Maintain(ctx context.Context) error {
	db.maintaining.Lock()
	defer db.maintaining.Unlock()
	if err := db.salvage(ctx); err != nil {
		return err
	}
	began := time.Since(db.log.Opened())
	defer db.measureFiles()
	for more := true; more; {
		var err error
		if more, err = db.clearSome(ctx); err != nil {
			return err
		}
	}
	db.cleared.Store(int64(began))
	return db.compactIndex(ctx)
}

// clearSome deletes some events that are past their time and brings back the
// room of what that makes forgettable, so that where room is short the room
// that deletions take themselves is never much. It reports whether there are
// more. Where there is no room even for deletions, forgetting may make some.
func (db *DB) clearSome(ctx context.Context) (more bool, err error) {
	more, full := db.expire(ctx)
	if full == nil {
		full = db.expireOldest(ctx)
	}
	if full != nil && !errors.Is(full, store.ErrFull) {
		return false, full
	}
	cutoff := time.Unix(0, math.MinInt64)
	if history := db.history(); history > 0 {
		cutoff = db.clock.old().Add(-history)
	}
	if err := db.trim(ctx, cutoff, db.historyLimit()); err != nil {
		return false, err
	}
	if err := db.compact(ctx); err != nil {
		return false, err
	}
	return more, full
}

// history is how long superseded versions and deletions are kept, 0: for ever.
func (db *DB) history() time.Duration {
	if db.o.History > 0 {
		return db.o.History
	}
	return db.o.Retention
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
		db.hurry()
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
	db.maintaining.Lock()
	defer db.maintaining.Unlock()
	if err := db.sealDeadHead(ctx, compactBytes, 0); err != nil {
		return err
	}
	defer db.measureFiles()
	sealed := func() seglog.Segments { ss := db.log.Segments(); return ss[:len(ss)-1] }
	if _, err := db.countDead(ctx, sealed()); err != nil {
		return fmt.Errorf("store: compacting: %w", err)
	}
	if err := db.compact(ctx); err != nil {
		return err
	}
	clean := true
	ss := sealed()
	for i, s := range ss {
		progress.tell(int64(i), int64(len(ss)+1))
		if db.dead.of(s.Base) > 0 {
			if err := db.rewrite(ctx, s, clean); err != nil {
				return fmt.Errorf("store: compacting %s: %w", s.Path, err)
			}
		}
		clean = clean && db.clean(s)
	}
	if err := db.rewriteIndex(ctx); err != nil {
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
