package postgres

import (
	"context"
	"errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
)

// A conflict refuses a write whose event was written after the version that its caller saw. The copy shows by whom when
// it has come to a revision.
type conflict struct{ revision uint64 }

func (*conflict) Error() string { return commit.ErrConflict.Error() }

func (*conflict) Unwrap() error { return commit.ErrConflict }

// Update implements [store.Store]. The decision is made on the copy, and the database accepts it only if the version
// that it was made on is still the newest. A decision to write nothing, for instance because the event exists, is made
// again on a copy that is as new as the database.
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

// UpdateMany implements [store.Store]. Decisions that write nothing are made again on a copy that is as new as the
// database.
func (db *DB) UpdateMany(
	ctx context.Context, keys []store.Key, expect func(i int) store.Expect, decide func(i int, current *store.Record) (store.Decision, error),
) []store.Outcome {
	b := commit.Batch{Store: db, Queue: db.queue, Now: db.o.now, Keys: keys, Decide: decide}
	_, err := db.whole() // it would be long before reads here see the writes
	var all []store.Outcome
	var newest uint64
	if err == nil {
		b.Prepare(ctx, expect)
		b.Reconsider(ctx, db.head.refresh)
		all = b.Commit(ctx)
		for i := range all {
			newest = max(newest, all[i].Record.Revision)
		}
		_, err = db.copy.await(ctx, newest)
	}
	if err != nil {
		all = make([]store.Outcome, len(keys))
		for i := range all {
			all[i].Err = err
		}
	}
	return all
}

// DeleteMany implements [store.Store].
func (db *DB) DeleteMany(ctx context.Context, seen []store.Seen, by []byte) (n int, changed []store.Key, err error) {
	d := commit.Deletions{Queue: db.queue, By: by, Stop: db.life.Ctx.Done()}
	err = d.Do(ctx, seen)
	_, late := db.copy.await(ctx, d.Revision)
	return d.Count, d.Changed, errors.Join(err, late)
}
