package postgres

import (
	"context"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// timeline is the timeline of the present copy.
type timeline struct{ copy *replica }

// Timeline returns the timeline of the store.
func (db *DB) Timeline() store.Timeline { return timeline{db.copy} }

// Count implements [store.Timeline].
func (t timeline) Count(ctx context.Context, c store.Count, visit func(store.Occurred)) error {
	return t.copy.now().Timeline().Count(ctx, c, visit)
}

// Survey implements [store.Timeline].
func (t timeline) Survey(ctx context.Context, s store.Survey) (store.TimePage, error) {
	return t.copy.now().Timeline().Survey(ctx, s)
}

// Observed implements [store.Timeline].
func (t timeline) Observed(ctx context.Context, q store.TimeQuery, visit func(*store.View, store.Moment) bool) (store.TimePage, error) {
	return t.copy.now().Timeline().Observed(ctx, q, visit)
}

// Versions implements [store.Timeline].
func (t timeline) Versions(ctx context.Context, s *event.Selector, visit func(v *store.View, gone bool) bool) error {
	return t.copy.now().Timeline().Versions(ctx, s, visit)
}

// Deleted implements [store.Timeline].
func (t timeline) Deleted(ctx context.Context, key store.Key, visit func(*store.View) bool) error {
	return t.copy.now().Timeline().Deleted(ctx, key, visit)
}

// Deletions implements [store.Timeline].
func (t timeline) Deletions(ctx context.Context, q store.DeletionQuery, visit func(v *store.View, by []byte) bool) error {
	return t.copy.now().Timeline().Deletions(ctx, q, visit)
}

// Gaps implements [store.Timeline].
func (t timeline) Gaps(ctx context.Context, revision uint64, most int) ([]store.Gap, bool, error) {
	return t.copy.now().Timeline().Gaps(ctx, revision, most)
}

// Begin implements [store.Timeline].
func (t timeline) Begin(ctx context.Context) (observed, written time.Time, err error) {
	return t.copy.now().Timeline().Begin(ctx)
}
