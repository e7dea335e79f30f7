package bolt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

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
		switch record, err := store.Read(ctx, db, key); {
		case err == nil:
			w.seen, w.previous = record.View().Seen(), &store.Version{Record: record}
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
			w.kind = seglog.Deleted
		case current == nil:
			w.kind, w.draft = seglog.Created, decision.Draft
		default:
			w.kind, w.draft = seglog.Modified, decision.Draft
		}
		if err := db.submit(w); err == nil {
			return store.Result{Record: w.record(), Op: decision.Op, Created: w.kind == seglog.Created}, nil
		} else if !errors.Is(err, errConflict) {
			return store.Result{}, err
		}
	}
}

// deletionBatch is how many events are deleted in one go: enough to share a commit, few
// enough for other writes not to notice.
const deletionBatch = 1024

// DeleteMany implements [store.Store]. It goes in pieces, so that other writes
// take part in every second commit, and waits while the queue is full. While one
// piece is committed the next is in the queue already.
func (db *DB) DeleteMany(ctx context.Context, seen []store.Seen) (n int, changed []store.Key, err error) {
	if db.closed() {
		return 0, nil, store.ErrClosed
	}
	var before *write
	for piece := deletionBatch; err == nil && (len(seen) > 0 || before != nil); {
		var next *write
		if len(seen) > 0 {
			if next, err = db.deletions(ctx, seen[:min(len(seen), piece)]); err != nil {
				break
			}
			if db.enqueue(next) == nil {
				seen, piece = seen[len(next.others)+1:], deletionBatch
			} else {
				next, piece = nil, max(1, piece/2)
			}
		}
		switch {
		case before != nil:
			var done int
			var left []store.Key
			done, left, err = db.awaitDeletions(before)
			n, changed = n+done, append(changed, left...)
		case next == nil:
			err = db.sleep(ctx, 5*time.Millisecond)
		}
		before = next
	}
	if before != nil {
		done, left, _ := db.awaitDeletions(before)
		n, changed = n+done, append(changed, left...)
	}
	return n, changed, err
}

// deletions makes a write that deletes some versions. Their content is read
// where somebody watches, once for all who do.
func (db *DB) deletions(ctx context.Context, seen []store.Seen) (*write, error) {
	writes := make([]write, len(seen))
	for i := range seen {
		writes[i] = write{ctx: ctx, kind: seglog.Deleted, key: seen[i].Key, joined: seen[i].Key.String(), seen: seen[i], exists: errConflict}
	}
	err := db.log.View(func(log *seglog.Reader) error {
		for i := range writes {
			w := &writes[i]
			if !db.hub.Watched(w.key.Namespace) {
				continue
			}
			switch e, err := log.Get(w.seen.Revision); {
			case err == nil && string(e.Key) == w.joined:
				w.previous = &store.Version{Record: e.Clone()}
			case err != nil && !errors.Is(err, seglog.ErrGone): // what is gone has changed, and will be refused
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, db.readError(err)
	}
	last := &writes[len(writes)-1]
	last.others = writes[:len(writes)-1]
	return last, nil
}

// awaitDeletions returns how many of the deletions were made, and which were
// not because the events have changed.
func (db *DB) awaitDeletions(last *write) (n int, changed []store.Key, err error) {
	if err := db.await(last); err != nil && !errors.Is(err, errConflict) {
		return 0, nil, err
	}
	count := func(w *write) {
		switch {
		case w.err == nil:
			n++
		case errors.Is(w.err, errConflict):
			changed = append(changed, w.key)
		default:
			err = w.err
		}
	}
	for i := range last.others {
		count(&last.others[i])
	}
	count(last)
	return n, changed, err
}

// writable checks a key and returns it as the files hold it.
func (db *DB) writable(key store.Key) (string, error) {
	if key.Namespace == "" || key.Name == "" || len(key.Namespace)+len(key.Name) >= seglog.MaxKey ||
		strings.ContainsAny(key.Namespace, "/\x00") || strings.ContainsAny(key.Name, "/\x00") {
		return "", fmt.Errorf("store: %q is no key: namespace and name must be set, together shorter than %d bytes, without slash and NUL", key.String(), seglog.MaxKey)
	}
	if db.closed() {
		return "", store.ErrClosed
	}
	return key.String(), nil
}

func (db *DB) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-db.stop:
		return store.ErrClosed
	}
}
