package bolt

import (
	"context"
	"errors"

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
