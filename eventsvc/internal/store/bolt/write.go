package bolt

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
