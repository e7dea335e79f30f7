package bolt

import (
	"context"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Get implements [store.Store].
func (db *DB) Get(_ context.Context, key store.Key, look func(*store.View) error) error {
	return db.query.Get(key, look)
}

// List implements [store.Store].
func (db *DB) List(ctx context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	return db.query.List(ctx, q, visit)
}

// Changes calls visit with what became, between two revisions, of each event
// that was written in between: see [query.Querier.Changes].
func (db *DB) Changes(ctx context.Context, after, until uint64, visit func(part []store.Delivery, revision uint64) error) error {
	return db.query.Changes(ctx, after, until, visit)
}

// Counts calls visit with the counts of the minutes from one time to before
// another, of one namespace or of all. A minute during which a new log file was
// begun comes in several counts, and so does one of which the write-ahead log has
// some. Counts are kept as long as the log file that they are in; what expires or is
// deleted stays counted.
func (db *DB) Counts(ctx context.Context, from, to time.Time, namespace string, visit func(seglog.MinuteCount)) error {
	if err := db.log.Counts(ctx, from, to, namespace, visit); err != nil {
		return db.reads.failed(err)
	}
	return nil
}
