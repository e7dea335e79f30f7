package bolt

import (
	"context"
	"errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Get implements [store.Store].
func (db *DB) Get(_ context.Context, key store.Key, look func(*store.View) error) error {
	for {
		at := db.Revision()
		var failed error
		found, err := db.getAt(key, at, func(v *store.View) bool {
			failed = look(v)
			return true
		})
		switch {
		case err == nil && found:
			return failed
		case err == nil:
			return store.ErrNotFound
		case errors.Is(err, seglog.ErrGone) && db.log.CompactRevision() > at:
			// Trimmed away while it was looked for: there is a newer version.
			continue
		}
		return db.reads.failedOf(key, err)
	}
}

func (db *DB) getAt(key store.Key, at uint64, look func(*store.View) bool) (found bool, err error) {
	if db.life.closed() {
		return false, store.ErrClosed
	}
	joined := key.String()
	p, ok, err := db.index.Newest(joined)
	if err != nil {
		return false, err
	}
	if !ok || p.Deletion() && p.Revision() <= at {
		return false, nil
	}
	err = db.log.View(func(r *seglog.Reader) error {
		var e seglog.Entry
		if e, found, err = r.At(p.Revision(), at); err != nil || !found {
			return err
		}
		if string(e.Key) != joined {
			return &store.CorruptError{Key: key, Revision: e.Revision, Reason: "the index leads to the record of " + string(e.Key)}
		}
		r.Lend(&e, key, look)
		return nil
	})
	return found, err
}

// List implements [store.Store].
func (db *DB) List(ctx context.Context, q store.Query, visit func(*store.View) bool) (store.Page, error) {
	current := db.Revision()
	page := store.Page{Revision: q.Revision}
	if page.Revision == 0 {
		page.Revision = current
	}
	if page.Revision > current {
		return store.Page{}, &store.FutureError{Revision: page.Revision, Current: current}
	}
	if err := db.held(page.Revision); err != nil {
		if db.Revision() != current && q.Revision == 0 {
			return db.List(ctx, q, visit) // bumped meanwhile
		}
		return store.Page{}, err
	}
	l := &lister{db: db, query: &q, visit: visit, page: &page}
	err := db.index.View(func(v index.View) error {
		return db.log.View(func(r *seglog.Reader) error { return l.run(ctx, r, v) })
	})
	if expired := db.held(page.Revision); expired != nil {
		return store.Page{}, expired
	}
	if err != nil {
		return store.Page{}, db.reads.failed(err)
	}
	return page, nil
}

// held reports a revision whose state cannot be read any more.
func (db *DB) held(revision uint64) error {
	if db.life.closed() {
		return store.ErrClosed
	}
	if oldest := db.log.CompactRevision(); revision < oldest {
		return &store.ExpiredError{Revision: revision, Oldest: oldest}
	}
	return nil
}
