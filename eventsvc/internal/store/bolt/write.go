package bolt

import (
	"context"
	"errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Update implements [store.Store]. The decision is made in the caller's
// goroutine, against the newest published version; the committer accepts it
// only if that is still the newest.
func (db *DB) Update(ctx context.Context, key store.Key, expect store.Expect, decide store.Decide) (store.Result, error) {
	if err := commit.CheckKey(key); err != nil {
		return store.Result{}, err
	}
	for ; ; expect = store.Any {
		w, kept, err := commit.Prepare(ctx, db, key, expect, decide, db.committer.Clock.Now)
		if w == nil {
			return kept, err
		}
		if err := db.committer.Queue.Submit(w); err == nil {
			return w.Result(), nil
		} else if !errors.Is(err, commit.ErrConflict) {
			return store.Result{}, err
		}
	}
}

// UpdateMany implements [store.Store].
func (db *DB) UpdateMany(
	ctx context.Context, keys []store.Key, expect func(i int) store.Expect, decide func(i int, current *store.Record) (store.Decision, error),
) []store.Outcome {
	b := commit.Batch{Store: db, Queue: db.committer.Queue, Now: db.committer.Clock.Now, Keys: keys, Decide: decide}
	b.Prepare(ctx, expect)
	return b.Commit(ctx)
}

// Unknown reports for each key that there is no event, and that no version of one is held that was deleted. If it
// cannot tell it reports false.
func (db *DB) Unknown(keys []store.Key) []bool {
	unknown := make([]bool, len(keys))
	_ = db.index.View(func(v index.View) error { // whoever reads the event itself is told what is wrong
		for i, key := range keys {
			_, known, err := v.Newest(key.String())
			unknown[i] = !known && err == nil
		}
		return nil
	})
	return unknown
}

// DeleteMany implements [store.Store].
func (db *DB) DeleteMany(ctx context.Context, seen []store.Seen, by []byte) (n int, changed []store.Key, err error) {
	if db.life.Closed() {
		return 0, nil, store.ErrClosed
	}
	d := commit.Deletions{Queue: db.committer.Queue, By: by, Prepare: db.readWatched, Stop: db.life.Ctx.Done()}
	err = d.Do(ctx, seen)
	return d.Count, d.Changed, err
}

// readWatched reads the content of the versions that are to be deleted in namespaces that are
// watched, once for all watchers.
func (db *DB) readWatched(writes []commit.Write) error {
	err := db.log.View(func(log *seglog.Reader) error {
		for i := range writes {
			w := &writes[i]
			if !db.hub.Watched(w.Key.Namespace) {
				continue
			}
			switch e, err := log.Get(w.Seen.Revision); {
			case err == nil && e.StoreKey() == w.Key:
				w.Previous = &store.Version{Record: e.Clone()}
			case err != nil && !errors.Is(err, seglog.ErrGone): // it has changed, and its deletion will be refused
				return err
			}
		}
		return nil
	})
	if err != nil {
		return db.reads.failed(err)
	}
	return nil
}
