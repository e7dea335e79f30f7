package bolt

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
)

// Changes calls visit with what became, between two revisions, of each event
// that was written in between: one delivery an event, of its last change up to
// the second revision, in the order of these. With each part visit is told how
// far it goes. A revision that is no longer held is an [*store.ExpiredError].
func (db *DB) Changes(ctx context.Context, after, until uint64, visit func(part []store.Delivery, revision uint64) error) error {
	for after < until {
		if err := ctx.Err(); err != nil {
			return err
		}
		part, next, err := db.changesSome(after, until)
		// The horizon may have moved over what was being read.
		if oldest := db.horizon.Load(); after < oldest {
			return &store.ExpiredError{Revision: after, Oldest: oldest}
		}
		if err != nil {
			return db.readError(err)
		}
		if err := visit(part, next); err != nil {
			return err
		}
		after = next
	}
	return nil
}

func (db *DB) changesSome(after, until uint64) (part []store.Delivery, next uint64, err error) {
	t := db.tables.Load()
	next = until
	err = db.index.view(func(tx *bbolt.Tx) error {
		keys := tx.Bucket([]byte(bucketKeys))
		return db.readLog(func(log *logReader) error {
			part, next = part[:0], until // readLog may try again
			n, size := 0, int64(0)
			var failed error
			err := log.scan(after, until, func(e entry) bool {
				if n == checkChunk || size > compactCommit {
					return false
				}
				n++
				next = e.revision
				var last bool
				if last, failed = lastBefore(log, t, keys, &e, until); failed != nil || !last {
					return failed == nil
				}
				var d store.Delivery
				if d, failed = lastState(log, &e); failed != nil {
					return false
				}
				part = append(part, d)
				size += e.size()
				return true
			})
			if n < checkChunk && size <= compactCommit {
				next = until
			}
			return errors.Join(failed, err)
		})
	})
	return part, next, err
}

// lastBefore reports whether a record is the last of its event up to a revision.
func lastBefore(log *logReader, t *tables, keys *bbolt.Bucket, e *entry, until uint64) (bool, error) {
	p, ok, err := t.newest(keys, string(e.key))
	if err != nil || !ok {
		return false, err
	}
	revision := p.revision()
	for revision > until {
		newer, err := log.get(revision)
		if err != nil {
			return false, err
		}
		revision = newer.previous
	}
	return revision == e.revision, nil
}

// lastState tells of a record as a watch without a selector would.
func lastState(log *logReader, e *entry) (store.Delivery, error) {
	d := store.Delivery{Type: store.Added, Revision: e.revision}
	shown := *e
	switch e.kind {
	case modified:
		d.Type = store.Modified
	case deleted:
		d.Type = store.Removed
		var err error
		if shown, err = log.get(e.previous); err != nil {
			return d, err
		}
	}
	d.Object = &store.Version{Record: shown.record()}
	return d, nil
}
