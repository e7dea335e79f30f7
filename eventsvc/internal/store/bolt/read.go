package bolt

import (
	"context"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// Get implements [store.Store].
func (db *DB) Get(_ context.Context, key store.Key, look func(*store.View) error) error {
	return db.read.Get(key, look)
}

// Fresh returns at once: every write that was acknowledged can be read.
func (db *DB) Fresh(context.Context) (age time.Duration, err error) { return 0, nil }

// List implements [store.Store].
func (db *DB) List(ctx context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	return db.read.List(ctx, q, visit)
}

// Timeline returns the timeline of the store.
func (db *DB) Timeline() store.Timeline { return db.read }

// Changes calls visit with the last change of each event that was written between two
// revisions.
func (db *DB) Changes(ctx context.Context, after, until uint64, visit func(part []store.Delivery, revision uint64) error) error {
	return db.read.Changes(ctx, after, until, visit)
}
