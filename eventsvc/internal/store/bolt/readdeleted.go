package bolt

import (
	"bytes"
	"context"
	"errors"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// mostDeleted is how many versions of a key [reader.Deleted] looks at, which takes a millisecond or two.
const mostDeleted = 256

// Deleted implements [store.Timeline].
func (r *reader) Deleted(ctx context.Context, key store.Key, visit func(*store.View) bool) error {
	if _, err := r.state(0); err != nil {
		return err
	}
	p, known, err := r.Index.Newest(key.String())
	if err == nil && known { // hardly ever
		err = r.Log.View(func(log *seglog.Reader) error { return deletedVersions(ctx, log, key, p.Revision(), visit) })
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return r.Failed(err)
	}
	return nil
}

// deletedVersions calls visit with the versions that deletions ended, from the newest revision of an event down.
func deletedVersions(ctx context.Context, log *seglog.Reader, key store.Key, revision uint64, visit func(*store.View) bool) error {
	deleted := false // by the version behind this one
	for range mostDeleted {
		if revision == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		e, err := log.Get(revision)
		if skipped(log, revision, err) || errors.As(err, new(*store.CorruptError)) {
			return nil
		}
		if err != nil {
			return err
		}
		if deleted && !log.Lend(&e, key, visit) {
			return nil
		}
		deleted, revision = e.Kind == seglog.Deleted, e.Previous
	}
	return nil
}

// Deletions implements [store.Timeline]. It goes over all records of the range.
func (r *reader) Deletions(ctx context.Context, q store.DeletionQuery, visit func(v *store.View, by []byte) bool) error {
	published, err := r.state(0)
	if err != nil {
		return err
	}
	q.Until = min(q.Until, published)
	err = r.Log.View(func(log *seglog.Reader) (err error) {
		q.After, err = writtenBefore(log, q.From, q.After, q.Until)
		turns := r.turns(ctx, log)
		for more := true; more && err == nil; {
			if err = turns.next(); err == nil {
				more, err = someDeletions(log, &q, visit)
			}
		}
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.ended(published, err)
}

// writtenBefore returns the last revision, after a given one, whose record was written before a time. If there is none,
// it returns the given revision. Records are in the order of their times.
func writtenBefore(log *seglog.Reader, at time.Time, after, last uint64) (revision uint64, err error) {
	revision = after
	for end := last; revision < end && err == nil; {
		middle, before := revision+(end-revision)/2, false
		err = log.Scan(middle, end, func(e seglog.Entry) bool {
			if before = e.Time.Before(at); before {
				revision = e.Revision
			}
			return false
		}, seglog.SkipDamaged)
		if !before {
			end = middle
		}
	}
	return revision, err
}

// someDeletions looks at the next records, moves After over them, and reports whether there may be more deletions
// behind.
func someDeletions(log *seglog.Reader, q *store.DeletionQuery, visit func(v *store.View, by []byte) bool) (more bool, err error) {
	var found []uint64
	records := 0
	err = log.Scan(q.After, q.Until, func(e seglog.Entry) bool {
		if !e.Time.Before(q.To) {
			return false
		}
		if e.Kind == seglog.Deleted && len(e.Value) > 0 {
			found = append(found, e.Revision)
		}
		q.After = e.Revision
		records++
		more = records == seglog.Chunk
		return !more
	}, nil)
	if err != nil {
		return more, err
	}
	for _, revision := range found {
		if on, err := deletion(log, revision, visit); !on || err != nil {
			return on, err
		}
	}
	return more, nil
}

// deletion lends the version before a deletion to visit.
func deletion(log *seglog.Reader, revision uint64, visit func(v *store.View, by []byte) bool) (more bool, err error) {
	e, err := log.Get(revision)
	if err != nil {
		return false, err
	}
	by := bytes.Clone(e.Value) // the next record takes its room
	return lendDeleted(log, &e, func(v *store.View) bool { return visit(v, by) })
}
