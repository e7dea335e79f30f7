package bolt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/entry"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Update implements [store.Store]. The decision is made in the caller's
// goroutine, against the newest published version; the committer accepts it
// only if that is still the newest.
func (db *DB) Update(ctx context.Context, key store.Key, expect store.Expect, decide store.Decide) (store.Result, error) {
	if err := checkKey(key); err != nil {
		return store.Result{}, err
	}
	for ; ; expect = store.Any {
		w, kept, err := commit.Prepare(ctx, db, key, expect, decide, db.o.Observe.Attributes)
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

// deletionBatch is how many events are deleted in one go: enough to share a commit, few
// enough for other writes not to notice.
const deletionBatch = 1024

// DeleteMany implements [store.Store]. It deletes deletionBatch events in one commit, and
// waits while the queue is full. While one part is committed, the next one is queued.
func (db *DB) DeleteMany(ctx context.Context, seen []store.Seen) (n int, changed []store.Key, err error) {
	if db.life.closed() {
		return 0, nil, store.ErrClosed
	}
	d := &deleter{queue: db.committer.Queue}
	var before []commit.Write
	for part := deletionBatch; err == nil && (len(seen) > 0 || before != nil); {
		var next []commit.Write
		if len(seen) > 0 {
			if next, err = db.deletions(ctx, seen[:min(len(seen), part)]); err != nil {
				break
			}
			if d.queue.Enqueue(&next[len(next)-1]) == nil {
				seen, part = seen[len(next):], deletionBatch
			} else {
				next, part = nil, max(1, part/2)
			}
		}
		if before != nil {
			err = d.await(before)
		} else if next == nil {
			select { // until there is room in the queue
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				err = ctx.Err()
			case <-db.life.ctx.Done():
				err = store.ErrClosed
			}
		}
		before = next
	}
	if before != nil {
		_ = d.await(before) // err is set
	}
	return d.n, d.changed, err
}

// deletions makes writes that delete some versions; the last one has the others with it. It
// reads the content of those whose namespace is watched, once for all watchers.
func (db *DB) deletions(ctx context.Context, seen []store.Seen) ([]commit.Write, error) {
	writes := make([]commit.Write, len(seen))
	for i := range seen {
		writes[i] = commit.Write{Ctx: ctx, Kind: entry.Deleted, Key: seen[i].Key, Seen: seen[i]}
	}
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
		return nil, db.reads.failed(err)
	}
	last := len(writes) - 1
	writes[last].With = writes[:last]
	return writes, nil
}

// A deleter counts what has become of deletions.
type deleter struct {
	queue   *commit.Queue
	n       int         // that were made
	changed []store.Key // that were not made, because the events have changed
}

// await waits for deletions that were queued together.
func (d *deleter) await(writes []commit.Write) (err error) {
	if err := d.queue.Await(&writes[len(writes)-1]); err != nil && !errors.Is(err, commit.ErrConflict) {
		return err
	}
	for i := range writes {
		switch w := &writes[i]; {
		case w.Err == nil:
			d.n++
		case errors.Is(w.Err, commit.ErrConflict):
			d.changed = append(d.changed, w.Key)
		default:
			err = w.Err
		}
	}
	return err
}

// checkKey reports a key that cannot be stored.
func checkKey(key store.Key) error {
	if key.Namespace == "" || key.Name == "" || len(key.Namespace)+len(key.Name) >= entry.MaxKey ||
		strings.ContainsAny(key.Namespace, "/\x00") || strings.ContainsAny(key.Name, "/\x00") {
		return fmt.Errorf("store: %q is no key: namespace and name must be set, together shorter than %d bytes, without slash and NUL", key.String(), entry.MaxKey)
	}
	return nil
}
