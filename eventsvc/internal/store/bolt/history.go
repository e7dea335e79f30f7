package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// trim gives up old states: it moves the horizon, behind which states can be
// read, over everything that was written before the cutoff, or as far as it
// takes to bring the history under so many bytes. What only older states needed
// is then dead and counts towards the compaction of its segment.
func (db *DB) trim(ctx context.Context, cutoff time.Time, maxHistory int64) error {
	// Only what the index has is trimmed: the memtables' deletions would stay in it.
	if due, err := db.mergeDue(cutoff, maxHistory); err != nil {
		return err
	} else if due {
		if err := db.flush(ctx); err != nil {
			return err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		next, dead, gone, err := db.trimmable(cutoff, maxHistory)
		if err != nil || next == db.trimmed {
			return err
		}
		if next > db.log.CompactRevision() {
			if err := db.moveHorizon(ctx, next); err != nil {
				return err
			}
		}
		if err := db.forget(next, dead, gone); err != nil {
			return err
		}
	}
}

// mergeDue reports whether something that is not in the index yet is to be
// trimmed. As long as there is not, small merges would be wasted.
func (db *DB) mergeDue(cutoff time.Time, maxHistory int64) (due bool, err error) {
	if db.index.Merged() < db.log.CompactRevision() { // an index that is made again; the account of what is dead waits for it
		return true, nil
	}
	excess := db.Stats().HistoryBytes > maxHistory
	err = db.log.View(func(log *seglog.Reader) error {
		return log.Scan(db.index.Merged(), db.Revision(), func(e seglog.Entry) bool {
			due = excess || e.Time.Before(cutoff)
			return false
		})
	})
	if err != nil {
		return false, db.readError(err)
	}
	return due, nil
}

// trimmable looks how far the horizon can move in one step, which bytes of
// which segments that makes dead, and which keys only deletions are left of.
func (db *DB) trimmable(cutoff time.Time, maxHistory int64) (next uint64, dead map[uint64]int64, gone []index.Entry, err error) {
	next = db.trimmed
	horizon := db.log.CompactRevision()
	dead = make(map[uint64]int64)
	excess := db.Stats().HistoryBytes - maxHistory
	merged := db.index.Merged()
	err = db.log.View(func(log *seglog.Reader) error {
		n := 0
		var failed error
		err := log.ScanAll(next, merged, func(e seglog.Entry) bool {
			if n == checkChunk || e.Revision > horizon && !e.Time.Before(cutoff) && excess <= 0 {
				return false
			}
			n++
			size := int64(0)
			if e.Kind != seglog.Created {
				var before seglog.Entry
				before, failed = log.Read(e.Previous, seglog.SplitRecord)
				switch {
				case failed == nil:
					size = before.Size()
					dead[log.SegmentBase(e.Previous)] += size
				case errors.Is(failed, seglog.ErrGone) && e.Revision <= horizon, isCorrupt(failed):
					failed = nil // compacted away: this account is being made anew; or damaged, and kept as evidence
				default:
					return false
				}
			}
			if e.Kind == seglog.Deleted {
				size += e.Size()
				dead[log.SegmentBase(e.Revision)] += e.Size()
				gone = append(gone, index.Entry{Key: string(e.Key), Pointer: index.NewPointer(e.Revision, true)})
			}
			excess -= size
			next = e.Revision
			return true
		}, seglog.SkipDamaged)
		if failed != nil {
			return failed
		}
		return err
	})
	if err != nil {
		return 0, nil, nil, db.readError(err)
	}
	return next, dead, gone, nil
}

// moveHorizon makes a new horizon durable and then valid for readers.
func (db *DB) moveHorizon(ctx context.Context, horizon uint64) error {
	return db.control(ctx, func() error {
		if err := db.committer.failed(); err != nil {
			return err
		}
		if horizon <= db.log.CompactRevision() {
			return nil // a bump came in between: the horizon never moves back
		}
		head := db.log.Head()
		err := head.SaveCompactRevision(horizon)
		if err != nil && !disk.IsFull(err) {
			return db.headFailed(err)
		} else if err != nil {
			return fmt.Errorf("store: moving the horizon: %w", err)
		}
		db.log.SetCompactRevision(horizon)
		return nil
	})
}

// forget takes deleted keys out of the index, and keeps the account of dead
// bytes, in the same transaction.
func (db *DB) forget(trimmed uint64, dead map[uint64]int64, gone []index.Entry) error {
	db.dead.add(dead)
	versions := min(int64(trimmed-db.trimmed), checkChunk) // trimmable looks at no more, however far revisions are apart
	db.trimmed = trimmed
	return db.index.Forget(gone, versions, index.Account{Trimmed: trimmed, Dead: db.dead.all()})
}
