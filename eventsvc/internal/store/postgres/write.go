package postgres

import (
	"context"
	"errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
)

// A conflict refuses a write whose event was written after the version that its caller saw. The copy shows by whom when it has
// come to a revision.
type conflict struct{ revision uint64 }

func (*conflict) Error() string { return commit.ErrConflict.Error() }

func (*conflict) Unwrap() error { return commit.ErrConflict }

// Update implements [store.Store]. The decision is made on the copy, and the database accepts it only if the version that it
// was made on is still the newest. A decision to write nothing, for instance because the event exists, is made again on a
// copy that is as new as the database.
func (db *DB) Update(ctx context.Context, key store.Key, expect store.Expect, decide store.Decide) (store.Result, error) {
	if err := commit.CheckKey(key); err != nil {
		return store.Result{}, err
	}
	for fresh := false; ; expect = store.Any {
		if _, err := db.whole(); err != nil {
			return store.Result{}, err // it would be long before reads here see the write
		}
		w, kept, err := commit.Prepare(ctx, db, key, expect, decide, db.o.now)
		if w == nil {
			if fresh || errors.Is(err, store.ErrUnavailable) {
				return kept, err
			}
			if err := db.head.refresh(ctx); err != nil {
				return store.Result{}, err
			}
			fresh = true
			continue
		}
		// The answer waits until the copy has the write, so that reads here see it.
		if err = db.queue.Submit(w); err == nil {
			_, err = db.copy.await(ctx, w.Revision())
		}
		if err == nil {
			return w.Result(), nil
		}
		if c := new(conflict); !errors.As(err, &c) {
			return store.Result{}, err
		} else if _, err := db.copy.await(ctx, c.revision); err != nil {
			return store.Result{}, err
		}
		fresh = false
	}
}

// DeleteMany implements [store.Store].
func (db *DB) DeleteMany(ctx context.Context, seen []store.Seen) (n int, changed []store.Key, err error) {
	d := commit.Deletions{Queue: db.queue, Stop: db.life.Ctx.Done()}
	err = d.Do(ctx, seen)
	_, late := db.copy.await(ctx, d.Revision)
	return d.Count, d.Changed, errors.Join(err, late)
}
