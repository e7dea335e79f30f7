package bolt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/store"
)

// Create implements [store.Store].
func (db *DB) Create(ctx context.Context, key store.Key, draft store.Draft) (store.Record, error) {
	joined, err := db.writable(key)
	if err != nil {
		return store.Record{}, err
	}
	w := &write{ctx: ctx, kind: created, key: key, joined: joined, exists: store.ErrExists, draft: draft}
	if err := db.submit(w); err != nil {
		return store.Record{}, err
	}
	return w.version.Record, nil
}

// Update implements [store.Store]. The decision is made in the caller's
// goroutine, against the newest published version; the committer accepts it
// only if that is still the newest.
func (db *DB) Update(ctx context.Context, key store.Key, decide store.Decide) (store.Result, error) {
	joined, err := db.writable(key)
	if err != nil {
		return store.Result{}, err
	}
	for {
		w := &write{ctx: ctx, key: key, joined: joined, exists: errConflict}
		var current *store.Record
		switch record, err := db.Get(ctx, key); {
		case err == nil:
			w.previous = &store.Version{Record: record}
			current = &record
		case !errors.Is(err, store.ErrNotFound):
			return store.Result{}, err
		}
		decision, err := decide(current)
		if err != nil {
			return store.Result{}, err
		}
		switch {
		case decision.Op == store.Keep && current == nil:
			return store.Result{Op: store.Keep}, nil
		case decision.Op == store.Keep:
			return store.Result{Op: store.Keep, Record: *current}, nil
		case decision.Op == store.Delete && current == nil:
			return store.Result{}, store.ErrNotFound
		case decision.Op == store.Delete:
			w.kind = deleted
		case current == nil:
			w.kind, w.draft = created, decision.Draft
		default:
			w.kind, w.draft = modified, decision.Draft
		}
		if err := db.submit(w); err == nil {
			return store.Result{Record: w.version.Record, Op: decision.Op, Created: w.kind == created}, nil
		} else if !errors.Is(err, errConflict) {
			return store.Result{}, err
		}
	}
}

// DeleteMany implements [store.Store]. It goes in pieces that leave room for
// other writes in every commit, and waits while the queue is full.
func (db *DB) DeleteMany(ctx context.Context, seen []store.Record) (n int, changed []store.Key, err error) {
	if db.closed() {
		return 0, nil, store.ErrClosed
	}
	for len(seen) > 0 {
		done, left, err := db.deletePiece(ctx, seen[:min(len(seen), expiryBatch)])
		n += done - len(left)
		changed = append(changed, left...)
		if err != nil {
			return n, changed, err
		}
		seen = seen[done:]
	}
	return n, changed, nil
}

// deletePiece deletes the first of the versions given, as many as the queue
// takes. It returns how many it has dealt with, and which of those have changed
// since they were seen and were left alone.
func (db *DB) deletePiece(ctx context.Context, seen []store.Record) (n int, changed []store.Key, err error) {
	writes := make([]*write, 0, len(seen))
	for i := range seen {
		w := &write{
			ctx: ctx, kind: deleted, key: seen[i].Key, joined: seen[i].Key.String(),
			previous: &store.Version{Record: seen[i]}, exists: errConflict,
		}
		if err := db.enqueue(w); err != nil {
			break
		}
		writes = append(writes, w)
	}
	for i, w := range writes {
		switch err := db.await(w); {
		case errors.Is(err, errConflict):
			changed = append(changed, w.key)
		case err != nil:
			return i, changed, err
		}
	}
	if len(writes) == 0 {
		return 0, nil, db.sleep(ctx, 5*time.Millisecond)
	}
	return len(writes), changed, nil
}

// writable checks a key and returns it as the files hold it.
func (db *DB) writable(key store.Key) (string, error) {
	if key.Namespace == "" || key.Name == "" || len(key.Namespace)+len(key.Name) >= maxKey ||
		strings.ContainsAny(key.Namespace, "/\x00") || strings.ContainsAny(key.Name, "/\x00") {
		return "", fmt.Errorf("store: %q is no key: namespace and name must be set, together shorter than %d bytes, without slash and NUL", key.String(), maxKey)
	}
	if db.closed() {
		return "", store.ErrClosed
	}
	return key.String(), nil
}
