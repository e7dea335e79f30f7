package bolt

import (
	"context"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/records"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Bounds of one read of [DB.Changes].
const (
	changesRecords = 4096
	changesBytes   = 4 << 20
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
		part, next, err := changesSome(records.Source{Index: db.index, Log: db.log}, after, until)
		// The compact revision may have moved over what was being read.
		if oldest := db.log.CompactRevision(); after < oldest {
			return &store.ExpiredError{Revision: after, Oldest: oldest}
		}
		if err != nil {
			return db.reads.failed(err)
		}
		if err := visit(part, next); err != nil {
			return err
		}
		after = next
	}
	return nil
}

func changesSome(source records.Source, after, until uint64) (part []store.Delivery, next uint64, err error) {
	next = until
	err = source.View(func(v index.View, log *seglog.Reader) error {
		part, next = part[:0], until // View may try again
		var found []uint64
		size := int64(0)
		err := log.Scan(after, until, func(e seglog.Entry) bool {
			if len(found) == changesRecords || size > changesBytes {
				return false
			}
			found = append(found, e.Revision)
			size += e.Size()
			return true
		})
		if len(found) == changesRecords || size > changesBytes {
			next = found[len(found)-1]
		}
		for _, revision := range found {
			if err != nil {
				break
			}
			part, err = appendChange(part, log, v, revision, until)
		}
		return err
	})
	return part, next, err
}

// appendChange appends what a record tells of, if it is the last of its event up
// to a revision.
func appendChange(part []store.Delivery, log *seglog.Reader, v index.View, revision, until uint64) ([]store.Delivery, error) {
	e, err := log.Get(revision)
	if err != nil {
		return part, err
	}
	// To look for newer versions may open the log anew: then what was read is gone.
	if last, err := lastBefore(log, v, string(e.Key), revision, until); err != nil || !last {
		return part, err
	}
	if e, err = log.Get(revision); err != nil {
		return part, err
	}
	d, err := lastState(log, &e)
	return append(part, d), err
}

// lastBefore reports whether a revision is the last of an event up to another.
func lastBefore(log *seglog.Reader, v index.View, key string, of, until uint64) (bool, error) {
	p, ok, err := v.Newest(key)
	if err != nil || !ok {
		return false, err
	}
	revision := p.Revision()
	for revision > until {
		newer, err := log.Get(revision)
		if err != nil {
			return false, err
		}
		revision = newer.Previous
	}
	return revision == of, nil
}

// lastState tells of a record as a watch without a selector would.
func lastState(log *seglog.Reader, e *seglog.Entry) (store.Delivery, error) {
	d := store.Delivery{Type: store.Added, Revision: e.Revision}
	shown := *e
	switch e.Kind {
	case seglog.Modified:
		d.Type = store.Modified
	case seglog.Deleted:
		d.Type = store.Removed
		var err error
		if shown, err = log.Get(e.Previous); err != nil {
			return d, err
		}
	}
	d.Object = &store.Version{Record: shown.Clone()}
	return d, nil
}
