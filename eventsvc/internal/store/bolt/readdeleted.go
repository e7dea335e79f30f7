package bolt

import (
	"context"
	"errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// mostDeleted is how many versions of a key [reader.Deleted] looks at, which takes a millisecond or two.
const mostDeleted = 256

// Deleted implements [store.Timeline].
func (r *reader) Deleted(ctx context.Context, key store.Key, visit func(*store.View) bool) error {
	if _, err := r.state(0); err != nil {
		return err
	}
	if _, known, err := r.Index.Newest(key.String()); err == nil && !known { // nearly always; the view below tells of an error
		return nil
	}
	err := r.View(func(v index.View, log *seglog.Reader) error {
		p, _, err := v.Newest(key.String())
		if err != nil {
			return err
		}
		deleted := false // by the version behind this one
		revision := p.Revision()
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
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return r.Failed(err)
	}
	return nil
}
