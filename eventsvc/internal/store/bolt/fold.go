package bolt

import (
	"errors"
	"slices"

	"go.etcd.io/bbolt"
)

// turn has the journal go on in its other half, and what is in this one folded
// into the head meanwhile. It waits as long as the other half is not free.
func (db *DB) turn() error {
	if err := db.awaitFold(); err != nil {
		return err
	}
	if db.journal.full {
		return db.fold(nil)
	}
	db.journal.turn()
	c := &db.committer
	head, pending := db.segments.Load().head(), *db.pending.Load()
	c.folding = len(pending)
	go func() { c.folded <- db.metrics.fold(func() error { return head.fold(pending, nil) }) }()
	return nil
}

// awaitFold waits for a fold that was begun.
func (db *DB) awaitFold() error {
	if db.committer.folding == 0 {
		return nil
	}
	return db.foldEnded(<-db.committer.folded)
}

// foldEnded lets go of what was folded. Where there was no room for it, it stays
// in the journal, to be folded when its room is needed.
func (db *DB) foldEnded(err error) error {
	c := &db.committer
	folded := c.folding
	c.folding = 0
	switch {
	case err == nil:
		left := slices.Clone((*db.pending.Load())[folded:])
		db.pending.Store(&left)
		db.journal.full = false
		return nil
	case isFull(err):
		return nil
	}
	return db.headFailed(err)
}

// fold brings all records of the journal, and more, into the head, and begins
// the journal anew. The head has failed if it cannot, for another reason than room.
func (db *DB) fold(more []logged) error {
	if err := db.awaitFold(); err != nil {
		return err
	}
	head, pending := db.segments.Load().head(), *db.pending.Load()
	if len(pending)+len(more) == 0 {
		return nil
	}
	err := db.metrics.fold(func() error { return head.fold(pending, more) })
	if isFull(err) {
		return err
	} else if err != nil {
		return db.headFailed(err)
	}
	head.records.Add(recordsBytes(more))
	db.pending.Store(new([]logged))
	if db.journal != nil {
		db.journal.restart()
	}
	return nil
}

// fold brings records into the file of a head, some of which may be there: a
// commit can have brought them that was said to have failed.
func (s *segment) fold(pending, more []logged) error {
	return guard(func() error {
		return s.db.Update(func(tx *bbolt.Tx) error {
			for last := lastIn(tx, 0); len(pending) > 0 && pending[0].revision <= last; {
				pending = pending[1:] // they would be counted twice
			}
			return errors.Join(putRecords(tx, pending), putRecords(tx, more))
		})
	})
}

// putRecords puts records into the file of a segment, and counts their minutes.
func putRecords(tx *bbolt.Tx, records []logged) error {
	log := tx.Bucket([]byte(bucketLog))
	log.FillPercent = segmentFill
	for _, l := range records {
		if err := log.Put(revisionKey(l.revision), l.record); err != nil {
			return err
		}
	}
	counts := tally{}
	counts.addBehind(records, 0)
	return counts.save(tx.Bucket([]byte(bucketMinutes)))
}

func recordsBytes(records []logged) (n int64) {
	for _, l := range records {
		n += int64(len(l.record))
	}
	return n
}
