package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
)

// Bounds of one page, so that a read transaction is short.
const (
	pageBytes  = 4 << 20
	pageLooked = 16384 // keys looked at
	slabBytes  = 256 << 10
)

// newest finds the newest version of an event, in the memtables or else in the
// index. Whoever reads both loads the tables before beginning the index
// transaction: what leaves a table is in the index before.
func (t *tables) newest(keys *bbolt.Bucket, key []byte) (p pointer, ok bool, err error) {
	if p, ok := t.get(string(key)); ok {
		return p, true, nil
	}
	return getPointer(keys, key)
}

// get finds the newest version of an event among those that are not in the
// index yet.
func (t *tables) get(joined string) (pointer, bool) {
	if p, ok := t.active.get(joined); ok {
		return p, true
	}
	return t.frozen.get(joined)
}

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
			page.Records, page.More, l.bytes, l.slab = nil, false, 0, nil
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
	bytes  int
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
	defer func() {
		if last != nil {
			page.Last = keyOf(last)
		}
	}()
	for looked := 1; keys.valid(); keys.next() {
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
		if found && l.full() || looked > pageLooked {
			page.More = true
			if looked > pageLooked {
				last = passed // a long run of deletions must not be gone over again
			}
			if q.Count {
				return l.count(keys)
			}
			return nil
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
// range.
func (l *lister) count(keys *keyIterator) error {
	for ; keys.valid(); keys.next() {
		p := keys.pointer
		if keys.err != nil {
			return keys.err
		}
		if p.revision() <= l.page.Revision {
			if !p.deletion() {
				l.page.Remaining++
			}
			continue
		}
		_, found, err := l.log.at(p.revision(), l.page.Revision)
		if err != nil {
			return err
		}
		if found {
			l.page.Remaining++
		}
	}
	return nil
}

// A keyIterator goes over the keys of the memtables and of the index as if
// they were one, in order. Where several know a key the newest wins.
type keyIterator struct {
	prefix  []byte
	cursor  *bbolt.Cursor
	nodes   [2]*memnode
	indexed []byte // the key under the cursor
	stored  []byte // its pointer

	key     []byte
	pointer pointer
	err     error // the entry of this key is damaged
}

// newKeyIterator begins at the first key that is not less than from, and ends
// behind those with the prefix.
func newKeyIterator(t *tables, tx *bbolt.Tx, from, prefix string) *keyIterator {
	it := &keyIterator{prefix: []byte(prefix), cursor: tx.Bucket([]byte(bucketKeys)).Cursor()}
	it.nodes[0] = t.active.seek(from, nil)
	if t.frozen != nil {
		it.nodes[1] = t.frozen.seek(from, nil)
	}
	it.indexed, it.stored = it.cursor.Seek([]byte(from))
	it.settle()
	return it
}

// keyRange returns where the keys of a query begin and what they begin with.
func keyRange(q *store.Query) (from, prefix string) {
	if q.Namespace != "" {
		prefix = q.Namespace + "/"
		if q.Name != "" {
			prefix += q.Name
		}
	}
	if q.After != (store.Key{}) {
		return max(prefix, q.After.String()+"\x00"), prefix
	}
	return prefix, prefix
}

func (it *keyIterator) valid() bool { return it.key != nil && bytes.HasPrefix(it.key, it.prefix) }

// settle makes the smallest key of all sources the current one.
func (it *keyIterator) settle() {
	it.key, it.pointer, it.err = it.indexed, 0, nil
	for _, n := range it.nodes {
		if n != nil && (it.key == nil || n.key < string(it.key)) {
			it.key = []byte(n.key)
		}
	}
	for _, n := range it.nodes {
		if n != nil && n.key == string(it.key) {
			it.pointer = max(it.pointer, pointer(n.value.Load()))
		}
	}
	// What is in a memtable is newer than the index.
	if it.pointer == 0 && it.key != nil {
		if it.pointer, it.err = parsePointer(it.indexed, it.stored); it.err != nil {
			it.err = &store.CorruptError{Reason: fmt.Sprintf("its entry in the index, %q: %v", it.key, it.err)}
		}
	}
}

func (it *keyIterator) next() {
	for i, n := range it.nodes {
		if n != nil && n.key == string(it.key) {
			it.nodes[i] = n.next[0].Load()
		}
	}
	if bytes.Equal(it.indexed, it.key) {
		it.indexed, it.stored = it.cursor.Next()
	}
	it.settle()
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
