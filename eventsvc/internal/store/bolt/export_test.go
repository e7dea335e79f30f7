package bolt

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
)

// FailAfterCommit brings a record to the disk as a commit does of which then
// the sync fails: it is in the file, and its writer is told otherwise.
func (db *DB) FailAfterCommit(key store.Key, value []byte) (failed error) {
	err := db.control(context.Background(), func() error {
		c := &db.committer
		c.revision++
		e := entry{revision: c.revision, kind: modified, key: []byte(key.String()), namespace: len(key.Namespace), value: value, time: db.clock.now()}
		err := db.segments.Load().head().db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(bucketLog)).Put(revisionKey(e.revision), appendRecord(nil, &e))
		})
		failed = db.commitFailed(errors.New("input/output error"), c.revision-1)
		return err
	})
	return errors.Join(failed, err)
}

// CountIn counts records as if they were created by commits, and saves the
// counts of all that were counted so far.
func (db *DB) CountIn(records []store.Record, save bool) error {
	return db.control(context.Background(), func() error {
		t := db.committer.tally
		for i := range records {
			t.add(&change{kind: created, key: records[i].Key, current: &store.Version{Record: records[i]}})
		}
		if !save {
			return nil
		}
		return db.segments.Load().head().db.Update(func(tx *bbolt.Tx) error {
			return t.save(tx.Bucket([]byte(bucketMinutes)))
		})
	})
}

// EncodeRecord is a draft as the log holds it.
func EncodeRecord(key store.Key, revision uint64, d store.Draft) []byte {
	e := entry{revision: revision, kind: created, key: []byte(key.String()), namespace: len(key.Namespace), time: time.Unix(1, 0)}
	e.take(&d)
	return appendRecord(nil, &e)
}

// ReadRecord is what a reader is shown of a record of the log.
func ReadRecord(revision uint64, b []byte, uses store.Part) (store.Record, error) {
	e, err := parserFor(uses)(revision, b)
	if err != nil {
		return store.Record{}, err
	}
	return e.shown(e.storeKey()), nil
}
