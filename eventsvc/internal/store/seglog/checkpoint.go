package seglog

import (
	"errors"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/wal"
)

// Checkpoint writes records to the head in one commit, and their columns as soon as there are enough for a table. It
// skips those that the head has.
func (l *Log) Checkpoint(head *Segment, records []wal.Record) error {
	return head.update(func(tx *bbolt.Tx) error {
		last, err := putRecords(tx, records)
		if err == nil && last-min(last, noted(tx, metaThrough)) >= memoryRows {
			err = putColumns(head, tx, last)
		}
		return err
	})
}

// putRecords puts the records that a segment does not have into its file, and returns its last revision.
func putRecords(tx *bbolt.Tx, records []wal.Record) (last uint64, err error) {
	log := tx.Bucket([]byte(bucketLog))
	last = lastKey(log, 0)
	if records = wal.After(records, last); len(records) == 0 {
		return last, nil
	}
	log.FillPercent = boltfile.FillPercent
	var next []successor
	for _, r := range records {
		if err := log.Put(recordKey(r.Revision), r.Data); err != nil {
			return last, err
		}
		if e, damage := splitEntry(r.Revision, r.Data); damage == nil {
			if s, ok := successorOf(&e); ok {
				next = append(next, s)
			}
		}
	}
	b := tx.Bucket([]byte(bucketNext))
	b.FillPercent = boltfile.FillPercent // what expires is superseded in its order
	return records[len(records)-1].Revision, putSuccessors(b, next, 1)
}

// putColumns writes the columns of what the records of a head report that no table has yet, up to a revision.
func putColumns(s *Segment, tx *bbolt.Tx, last uint64) error {
	w := columnWriter{most: memoryRows, after: max(noted(tx, metaColumns), s.Base-1)}
	var failed error
	_, err := recordsIn(s, tx).Each(noted(tx, metaThrough)+1, func(revision uint64, record []byte) (bool, error) {
		failed = w.observe(tx, revision, record)
		return failed == nil, nil
	}, passLost)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return w.Finish(tx, last)
}

// Seal writes into a head that it ends with a revision, and the rest of its columns. [OpenSegment] opens it as a sealed
// segment.
func (s *Segment) Seal(last uint64) error {
	return s.update(func(tx *bbolt.Tx) error {
		if err := putColumns(s, tx, last); err != nil {
			return err
		}
		return errors.Join(setMeta(tx, metaBytes, uint64(s.Bytes())), setMeta(tx, metaEnd, last))
	})
}
