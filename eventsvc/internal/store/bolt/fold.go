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
	go func() { c.folded <- db.metrics.fold(func() error { return head.fold(pending) }) }()
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
	head, pending := db.segments.Load().head(), *db.pending.Load()
	switch {
	case err == nil:
		left := slices.Clone(pending[folded:])
		db.pending.Store(&left)
		db.journal.full = false
		return nil
	case head.refused(err, pending):
		return nil
	}
	return db.headFailed(err)
}

// refused reports that there was no room for records in the file of a head, and
// that it has none of them: it may have after its last sync has failed, which
// then is not made up for.
func (s *segment) refused(err error, records []logged) bool {
	if !isFull(err) {
		return false
	}
	last, unread := s.lastRevision()
	return unread == nil && last < records[0].revision
}

// fold brings all records of the journal, and more, into the head, and begins
// the journal anew. The head has failed if it cannot, for another reason than room.
func (db *DB) fold(more []logged) error {
	if err := errors.Join(db.awaitFold(), db.committer.failed()); err != nil {
		return err
	}
	head, pending := db.segments.Load().head(), *db.pending.Load()
	all := slices.Concat(pending, more)
	if len(all) == 0 {
		return nil
	}
	err := db.metrics.fold(func() error { return head.fold(all) })
	if err != nil && head.refused(err, all) {
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

// fold brings records into the file of a head, some of which may be there.
func (s *segment) fold(records []logged) error {
	return s.update(func(tx *bbolt.Tx) error {
		return putRecords(tx, behind(records, lastIn(tx, 0))) // the others would be counted twice
	})
}

// behind returns the records behind a revision.
func behind(records []logged, revision uint64) []logged {
	for len(records) > 0 && records[0].revision <= revision {
		records = records[1:]
	}
	return records
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
