package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/eventsvc/internal/store/wal"
	"tidings.example/shared/safefile"
)

// Copy says how the copy of another store has events deleted that are past their time. A copy is changed by its
// [Follower] alone.
type Copy struct {
	// Expires reports whether it is this copy, of all copies of the store, that has events deleted.
	Expires func() bool
	// Delete deletes versions in the other store, but not those that have changed. It returns when the copy has the
	// deletions.
	Delete func(context.Context, []store.Seen) error
	// Discard removes the files that are there first: the other store has everything that is in them.
	Discard bool
}

// discard removes the files of a store. Its directory is locked.
func discard(dir string) error {
	for _, pattern := range []string{"*.db", wal.FileName, usage.SpareName} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return safefile.Sync(dir)
}

// Follower changes a store as the one says that it is a copy of. It is safe for concurrent use, as the store is.
type Follower struct{ db *DB }

// Follow returns what changes this store, which must have been opened as a copy.
func (db *DB) Follow() *Follower { return &Follower{db} }

// Apply stores changes of the store that this one is a copy of: see [commit.Committer.Apply].
func (f *Follower) Apply(ctx context.Context, changes []commit.Replicated) error {
	return f.db.committer.Apply(ctx, changes)
}

// SkipTo leaves out revisions that the other store has left out. The one given is then the newest revision and the
// compact revision, which must not be less than the newest one before.
func (f *Follower) SkipTo(ctx context.Context, revision uint64) error {
	if current := f.db.Revision(); revision < current {
		return fmt.Errorf("store: revision %d is behind the newest, %d", revision, current)
	}
	_, err := f.db.committer.Skip(ctx, func(uint64) uint64 { return revision })
	return err
}

// GiveUp gives up all states before a revision that the other store does not have in full any more.
func (f *Follower) GiveUp(ctx context.Context, revision uint64) error {
	return f.db.committer.Queue.Do(ctx, func() error { return f.db.committer.Writer.MoveCompactRevision(revision) })
}

// Newest returns the newest record of the log, to be compared with the other store; the zero value if there is none.
func (f *Follower) Newest() (r commit.Replicated, err error) {
	err = f.db.log.View(func(log *seglog.Reader) error {
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

// delete returns how events are deleted that are past their time.
func (o *Options) delete(db *DB) func(context.Context, []store.Seen) error {
	if o.Copy != nil {
		return o.Copy.Delete
	}
	return func(ctx context.Context, seen []store.Seen) error {
		_, _, err := db.DeleteMany(ctx, seen, nil)
		return err
	}
}

// expires reports whether this store deletes events that are past their time.
func (o *Options) expires() bool { return o.Copy == nil || o.Copy.Expires() }
