package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
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
	return db.index.Rewrite(ctx, func(last uint64) (index.Revisions, error) { return db.heldRevisions(ctx, last) })
}

// heldRevisions returns which revisions up to the last the log has.
func (db *DB) heldRevisions(ctx context.Context, last uint64) (index.Revisions, error) {
	pending := *db.pending.Load() // before the segments, see [logReader.open]
	ss := *db.segments.Load()
	set := index.Revisions{}
	for _, s := range ss {
		err := s.view(func(tx *bbolt.Tx) error {
			c := tx.Bucket([]byte(bucketLog)).Cursor()
			for k, _ := c.First(); k != nil; k, _ = c.Next() {
				revision, err := seglog.RevisionOf(k)
				if err != nil {
					return err
				}
				if revision > last {
					break
				}
				set.Add(revision)
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	for _, l := range pending {
		if l.Revision <= last {
			set.Add(l.Revision)
		}
	}
	return set, nil
}
