package postgres

import (
	"context"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/usage"
)

// Check reads everything that the copy holds.
func (db *DB) Check(ctx context.Context, progress store.Progress) (*store.Report, error) {
	return db.copy.now().Check(ctx, progress)
}

// Snapshot sets the state of the copy aside, as new as the database is now.
func (db *DB) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := db.head.refresh(ctx); err != nil {
		return nil, err
	}
	return db.copy.now().Snapshot(ctx)
}

// Compact frees disk space of the copy, and gives sealed files of its log a form.
func (db *DB) Compact(ctx context.Context, compress bool, progress store.Progress) error {
	return db.copy.now().Compact(ctx, compress, progress)
}

// Maintain does one round of what Run does, and removes from the database what the copy has given up.
func (db *DB) Maintain(ctx context.Context) error {
	if err := db.copy.now().Maintain(ctx); err != nil {
		return err
	}
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return db.keeper.clear(ctx, conn)
}

// Stats returns the figures of the copy.
func (db *DB) Stats() usage.Stats { return db.copy.now().Stats() }

// Changes is [bolt.DB.Changes] of the copy.
func (db *DB) Changes(ctx context.Context, after, until uint64, visit func(part []store.Delivery, revision uint64) error) error {
	return db.copy.now().Changes(ctx, after, until, visit)
}
