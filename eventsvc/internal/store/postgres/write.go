package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/commit"
	"tidings.example/eventsvc/internal/store/entry"
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
	if err := checkKey(key); err != nil {
		return store.Result{}, err
	}
	for fresh := false; ; expect = store.Any {
		if _, err := db.whole(); err != nil {
			return store.Result{}, err // it would be long before reads here see the write
		}
		w, kept, err := commit.Prepare(ctx, db, key, expect, decide, db.o.Copy.Observe.Attributes)
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

// deletionBatch is how many events are deleted in one transaction, together with other writes that wait.
const deletionBatch = 1024

// DeleteMany implements [store.Store].
func (db *DB) DeleteMany(ctx context.Context, seen []store.Seen) (n int, changed []store.Key, err error) {
	upTo := uint64(0)
	for len(seen) > 0 {
		part := seen[:min(len(seen), deletionBatch)]
		writes := make([]commit.Write, len(part))
		for i, s := range part {
			writes[i] = commit.Write{Ctx: ctx, Kind: entry.Deleted, Key: s.Key, Seen: s}
		}
		last := &writes[len(writes)-1]
		last.With = writes[:len(writes)-1]
		if err = db.queue.Enqueue(last); errors.Is(err, store.ErrBusy) {
			select {
			case <-time.After(5 * time.Millisecond): // until there is room in the queue
				continue
			case <-ctx.Done():
				return n, changed, ctx.Err()
			case <-db.life.ctx.Done():
				return n, changed, store.ErrClosed
			}
		}
		if err = db.queue.Await(last); err != nil && !errors.Is(err, commit.ErrConflict) {
			break
		}
		err = nil
		for i := range writes {
			switch w := &writes[i]; {
			case w.Err == nil:
				n, upTo = n+1, max(upTo, w.Revision())
			case errors.Is(w.Err, commit.ErrConflict):
				changed = append(changed, w.Key)
			default:
				err = w.Err
			}
		}
		if err != nil {
			break
		}
		seen = seen[len(part):]
	}
	_, late := db.copy.await(ctx, upTo)
	return n, changed, errors.Join(err, late)
}

// checkKey reports a key that cannot be stored.
func checkKey(key store.Key) error {
	if key.Namespace == "" || key.Name == "" || len(key.Namespace)+len(key.Name) >= entry.MaxKey || !utf8.ValidString(key.String()) ||
		strings.ContainsAny(key.Namespace, "/\x00") || strings.ContainsAny(key.Name, "/\x00") {
		return fmt.Errorf("store: %q is no key: namespace and name must be set, together shorter than %d bytes, of UTF-8 without slash and NUL",
			key.String(), entry.MaxKey)
	}
	return nil
}
