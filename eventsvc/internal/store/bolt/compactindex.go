package bolt

import (
	"context"

	"tidings.example/eventsvc/internal/store/index"
)

// compactIndex writes the index to a new file if that is worth it.
func (db *DB) compactIndex(ctx context.Context) error {
	if !db.index.NeedsRewrite(db.live.events.Load()) {
		return nil
	}
	return db.rewriteIndex(ctx)
}

// rewriteIndex writes the index to a new file.
func (db *DB) rewriteIndex(ctx context.Context) error {
	return db.index.Rewrite(ctx, func(last uint64) (index.Revisions, error) {
		set := index.Revisions{}
		return set, db.log.Revisions(ctx, last, set.Add)
	})
}
