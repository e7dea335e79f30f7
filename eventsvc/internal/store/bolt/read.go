package bolt

import (
	"context"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Get implements [store.Store].
func (db *DB) Get(_ context.Context, key store.Key, look func(*store.View) error) error {
	return db.read.Get(key, look)
}

// List implements [store.Store].
func (db *DB) List(ctx context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	return db.read.List(ctx, q, visit)
}

// Changes calls visit with the last change of each event that was written between two
// revisions: see [read.Reader.Changes].
func (db *DB) Changes(ctx context.Context, after, until uint64, visit func(part []store.Delivery, revision uint64) error) error {
	return db.read.Changes(ctx, after, until, visit)
}

// Counts calls visit with the counts of the minutes from one time to before another, of
// one namespace or of all. A minute comes in several counts if its records are in several
// segments, or partly in the write-ahead log. Counts are kept as long as their segment.
// Events that have expired or were deleted stay counted.
func (db *DB) Counts(ctx context.Context, from, to time.Time, namespace string, visit func(seglog.MinuteCount)) error {
	if err := db.log.Counts(ctx, from, to, namespace, visit); err != nil {
		return db.reads.failed(err)
	}
	return nil
}
