package bolt

import (
	"context"
	"errors"
	"fmt"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Copy says how the copy of another store has events deleted that are past their time. A copy is changed by [DB.Apply] and
// [DB.SkipTo] alone.
type Copy struct {
	// Expires reports whether it is this copy, of all copies of the store, that has events deleted.
	Expires func() bool
	// Delete deletes versions in the other store, but not those that have changed. It returns when the copy has the
	// deletions.
	Delete func(context.Context, []store.Seen) error
}

// Apply stores changes of the store that this one is a copy of: see [commit.Committer.Apply].
func (db *DB) Apply(ctx context.Context, changes []commit.Replicated) error {
	return db.committer.Apply(ctx, changes)
}

// SkipTo leaves out revisions that the other store has left out. The one given is then the newest revision and the compact
// revision, which must not be less than the newest one before.
func (db *DB) SkipTo(ctx context.Context, revision uint64) error {
	if current := db.Revision(); revision < current {
		return fmt.Errorf("store: revision %d is behind the newest, %d", revision, current)
	}
	_, err := db.committer.Skip(ctx, func(uint64) uint64 { return revision })
	return err
}

// GiveUp gives up all states before a revision that the other store does not have in full any more.
func (db *DB) GiveUp(ctx context.Context, revision uint64) error {
	return db.committer.Queue.Do(ctx, func() error { return db.committer.Writer.MoveCompactRevision(revision) })
}

// Newest returns the newest record of the log, to be compared with the other store; the zero value if there is none.
func (db *DB) Newest() (r commit.Replicated, err error) {
	err = db.log.View(func(log *seglog.Reader) error {
		e, err := log.Newest()
		if err == nil {
			v := e.Clone()
			r = commit.Replicated{Revision: e.Revision, Kind: e.Kind, Key: v.Key, Time: e.Time, Draft: store.Draft{Attributes: v.Attributes, Value: v.Value}}
		}
		return err
	})
	if errors.Is(err, seglog.ErrGone) {
		err = nil
	}
	return r, err
}

// expires reports whether this store deletes events that are past their time.
func (o *Options) expires() bool { return o.Copy == nil || o.Copy.Expires() }

// expire deletes events that are past their time.
func (db *DB) expire(ctx context.Context, seen []store.Seen) error {
	if db.o.Copy != nil {
		return db.o.Copy.Delete(ctx, seen)
	}
	_, _, err := db.DeleteMany(ctx, seen)
	return err
}
