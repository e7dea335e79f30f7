package bolt

import (
	"bytes"
	"context"
	"errors"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
)

// Bounds of one page, so that a read transaction is short.
const (
	pageBytes  = 4 << 20
	pageLooked = 16384 // keys looked at
	slabBytes  = 256 << 10
)

// Get implements [store.Store].
func (db *DB) Get(_ context.Context, key store.Key) (store.Record, error) {
	for {
		at := db.Revision()
		record, found, err := db.getAt(key, at)
		switch {
		case err == nil && found:
			return record, nil
		case err == nil:
			return store.Record{}, store.ErrNotFound
		case errors.Is(err, errGone) && db.horizon.Load() > at:
			// Trimmed away while it was looked for: there is a newer version.
			continue
		}
		return store.Record{}, db.readErrorOf(key, err)
	}
}

func (db *DB) getAt(key store.Key, at uint64) (record store.Record, found bool, err error) {
	if db.closed() {
		return record, false, store.ErrClosed
	}
	joined := key.String()
	p, ok := db.tables.Load().get(joined)
	if !ok {
		err := db.index.view(func(tx *bbolt.Tx) error {
			p, ok, err = getPointer(tx.Bucket([]byte(bucketKeys)), []byte(joined))
			return err
		})
		if err != nil {
			return record, false, err
		}
	}
	if !ok || p.deletion() && p.revision() <= at {
		return record, false, nil
	}
	err = db.readLog(func(r *logReader) error {
		var e entry
		if e, found, err = r.at(p.revision(), at); err != nil || !found {
			return err
		}
		if string(e.key) != joined {
			return &store.CorruptError{Key: key, Revision: e.revision, Reason: "the index leads to the record of " + string(e.key)}
		}
		record = e.record()
		return nil
	})
	return record, found, err
}

// List implements [store.Store].
func (db *DB) List(ctx context.Context, q store.Query) (store.Page, error) {
	current := db.Revision()
	page := store.Page{Revision: q.Revision}
	if page.Revision == 0 {
		page.Revision = current
	}
	if page.Revision > current {
		return store.Page{}, &store.FutureError{Revision: page.Revision, Current: current}
	}
	if err := db.held(page.Revision); err != nil {
		return store.Page{}, err
	}
	l := &lister{db: db, tables: db.tables.Load(), query: &q, page: &page}
	err := db.index.view(func(tx *bbolt.Tx) error {
		return db.readLog(func(r *logReader) error {
			page.Records, page.More, l.bytes, l.shown, l.slab = nil, false, 0, 0, nil
			return l.run(ctx, r, tx)
		})
	})
	if expired := db.held(page.Revision); expired != nil {
		if q.Revision == 0 {
			return db.List(ctx, q)
		}
		return store.Page{}, expired
	}
	if err != nil {
		return store.Page{}, db.readError(err)
	}
	return page, nil
}

// held reports a revision whose state cannot be read any more.
func (db *DB) held(revision uint64) error {
	if db.closed() {
		return store.ErrClosed
	}
	if oldest := db.horizon.Load(); revision < oldest {
		return &store.ExpiredError{Revision: revision, Oldest: oldest}
	}
	return nil
}

// A lister fills one page.
type lister struct {
	db     *DB
	tables *tables
	query  *store.Query
	page   *store.Page
	log    *logReader
	bytes  int   // of the values on the page
	shown  int64 // events that the page has passed, whether they match or not
	slab   []byte
}

func (l *lister) run(ctx context.Context, r *logReader, tx *bbolt.Tx) error {
	l.log = r
	q, page := l.query, l.page
	if ok, err := l.find(ctx, tx); ok || err != nil {
		return err
	}
	from, prefix := keyRange(q)
	keys := newKeyIterator(l.tables, tx, from, prefix)
	var passed, last []byte // keys: looked at, and with a version to show
	for looked := 0; keys.valid(); keys.next() {
		if looked%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if keys.err != nil {
			return keys.err
		}
		e, found, err := l.version(keys.pointer)
		if err != nil {
			return err
		}
		if looked == pageLooked {
			last = passed // a long run of deletions must not be gone over again
		}
		if found && l.full() || looked == pageLooked {
			page.Last, page.More = keyOf(last), true
			return l.count(keys)
		}
		looked++
		passed = keys.key
		if !found {
			continue
		}
		if err := l.add(keys.key, &e); err != nil {
			return err
		}
		last = passed
		l.shown++
	}
	if last != nil {
		page.Last = keyOf(last)
	}
	return nil
}

func (l *lister) full() bool {
	limit, maxBytes := l.query.Limit, l.query.MaxBytes
	if maxBytes == 0 {
		maxBytes = pageBytes
	}
	return limit > 0 && len(l.page.Records) >= limit || l.bytes >= maxBytes
}

// add copies a version to the page if it matches.
func (l *lister) add(key []byte, e *entry) error {
	if !bytes.Equal(e.key, key) {
		return &store.CorruptError{Revision: e.revision, Reason: "the index leads to it for " + string(key)}
	}
	if !l.wants(e) {
		return nil
	}
	size := len(e.attributes) + len(e.value)
	if len(l.slab) < size {
		l.slab = make([]byte, max(slabBytes, size))
	}
	record := e.recordInto(l.slab[:size:size])
	l.slab = l.slab[size:]
	l.bytes += len(e.value)
	l.page.Records = append(l.page.Records, record)
	return nil
}

func (l *lister) version(p pointer) (entry, bool, error) {
	if p.deletion() && p.revision() <= l.page.Revision {
		return entry{}, false, nil
	}
	return l.log.at(p.revision(), l.page.Revision)
}

// count fills Remaining with the number of events from here to the end of the
// range: by counting them, or from the page before, if that was counted.
func (l *lister) count(keys *keyIterator) error {
	if !l.query.Count {
		return nil
	}
	end := pageEnd{string(keys.prefix), l.page.Revision, l.query.After}
	n, ok := l.db.remaining.get(end)
	n -= l.shown
	if !ok {
		var err error
		if n, err = l.countKeys(keys); err != nil {
			return err
		}
	}
	end.last = l.page.Last
	l.db.remaining.put(end, n)
	l.page.Remaining = n
	return nil
}

func (l *lister) countKeys(keys *keyIterator) (n int64, err error) {
	for ; keys.valid(); keys.next() {
		if keys.err != nil {
			return 0, keys.err
		}
		p := keys.pointer
		there := !p.deletion()
		if p.revision() > l.page.Revision {
			if _, there, err = l.log.at(p.revision(), l.page.Revision); err != nil {
				return 0, err
			}
		}
		if there {
			n++
		}
	}
	return n, nil
}

// readErrorOf names the event in a damage report that does not.
func (db *DB) readErrorOf(key store.Key, err error) error {
	err = db.readError(err)
	if ce := new(store.CorruptError); errors.As(err, &ce) && ce.Key == (store.Key{}) {
		ce.Key = key
	}
	return err
}

// readError makes everything that hinders reading a *store.CorruptError, and
// counts it.
func (db *DB) readError(err error) error {
	if errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if db.closed() {
		return store.ErrClosed
	}
	ce := new(store.CorruptError)
	if !errors.As(err, &ce) {
		ce = &store.CorruptError{Reason: err.Error()}
	}
	db.o.Log.Error("a stored event cannot be read", "error", ce)
	if db.metrics != nil { // not while opening
		db.metrics.damaged.Inc()
	}
	return ce
}
