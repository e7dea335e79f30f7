package maintenance

import (
	"context"
	"errors"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// trim gives up old states: it moves the compact revision, from which on states can be
// read, over everything that was written before the cutoff, and further if the history
// still takes more than maxHistory bytes. What only older states needed is then dead and
// counts towards the compaction of its segment.
func (m *Maintenance) trim(ctx context.Context, cutoff time.Time, maxHistory int64) error {
	// Only what the index has is trimmed: the memtables' deletions would stay in it.
	if due, err := m.mergeDue(cutoff, maxHistory); err != nil {
		return err
	} else if due {
		if err := m.Flush(ctx); err != nil {
			return err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := m.nextStep(cutoff, maxHistory)
		if err != nil || s.versions == 0 {
			return err
		}
		if s.next > m.Records.Log.CompactRevision() {
			if err := m.Do(ctx, func() error { return m.Writer.MoveCompactRevision(s.next) }); err != nil {
				return err
			}
		}
		if err := m.Usage.Trim(s.next, s.dead, s.gone); err != nil {
			return err
		}
	}
}

// mergeDue reports whether something that is not in the index yet is to be
// trimmed. As long as there is not, small merges would be wasted.
func (m *Maintenance) mergeDue(cutoff time.Time, maxHistory int64) (due bool, err error) {
	log, merged := m.Records.Log, m.Records.Index.Merged()
	if max(merged, 1) < log.CompactRevision() { // of an index that is made again, or of a copy; a new store has 0 and 1
		return true, nil
	}
	excess := m.Usage.Stats().HistoryBytes > maxHistory
	err = log.View(func(r *seglog.Reader) error {
		return r.Scan(merged, log.Published(), func(e seglog.Entry) bool {
			due = excess || e.Time.Before(cutoff)
			return false
		}, nil)
	})
	if err != nil {
		return false, m.ReadError(err)
	}
	return due, nil
}

// A step is how far history is trimmed in one transaction.
type step struct {
	next     uint64 // the new compact revision
	versions int64  // that were looked at
	bytes    int64  // of history that end
	dead     map[uint64]int64
	gone     []index.KeyPointer // keys of which only deletions are left
}

// nextStep returns the next step of [Maintenance.trim], without versions if there is
// nothing to trim.
func (m *Maintenance) nextStep(cutoff time.Time, maxHistory int64) (s step, err error) {
	trimmed, compactRevision := m.Usage.Trimmed(), m.Records.Log.CompactRevision()
	excess := m.Usage.Stats().HistoryBytes - maxHistory
	merged := m.Records.Index.Merged()
	err = m.Records.Log.View(func(r *seglog.Reader) error {
		s = step{next: trimmed, dead: map[uint64]int64{}}
		var failed error
		err := r.Scan(trimmed, merged, func(e seglog.Entry) bool {
			if s.versions == seglog.Chunk || e.Revision > compactRevision && !e.Time.Before(cutoff) && s.bytes >= excess {
				return false
			}
			failed = s.add(r, &e, compactRevision)
			return failed == nil
		}, seglog.SkipDamaged)
		return errors.Join(err, failed)
	})
	if err != nil {
		return step{}, m.ReadError(err)
	}
	return s, nil
}

// add adds to the step what a record ends: the version before it, and the record itself
// if it is a deletion.
func (s *step) add(r *seglog.Reader, e *seglog.Entry, compactRevision uint64) error {
	if e.Kind != seglog.Created {
		before, err := r.Get(e.Previous)
		damaged := errors.As(err, new(*store.CorruptError)) // kept as evidence
		counted := errors.Is(err, seglog.ErrGone) && e.Revision <= compactRevision
		switch {
		case before.Key != nil: // it takes room, damaged or not
			s.dead[r.SegmentBase(e.Previous)] += before.Size()
			s.bytes += before.Size()
		case !damaged && !counted: // compacted away, because the account is being made again
			return err
		}
	}
	if e.Kind == seglog.Deleted {
		s.dead[r.SegmentBase(e.Revision)] += e.Size()
		s.bytes += e.Size()
		s.gone = append(s.gone, index.KeyPointer{Key: string(e.Key), Pointer: index.NewPointer(e.Revision, true)})
	}
	s.next = e.Revision
	s.versions++
	return nil
}
