package bolt

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
)

// Bounds of one page, so that a read transaction is short.
const (
	pageBytes  = 4 << 20
	pageLooked = 16384 // keys looked at
	slabBytes  = 256 << 10
)

// A lister fills one page, or shows it.
type lister struct {
	db     *DB
	tables *tables
	query  *store.Query
	page   *store.Page
	log    *logReader
	read   func(revision uint64) (entry, error) // of log
	after  string                               // the key that was dealt with last, once one was
	events int                                  // on the page
	bytes  int                                  // of their values
	shown  int64                                // events that the page has passed, whether they match or not
	ended  bool                                 // Visit wants no more
	slab   []byte
	texts  texts
	record store.Record // for Visit
}

// run reads the page. When a file was replaced under it, it is run again and
// goes on where it was.
func (l *lister) run(ctx context.Context, r *logReader, tx *bbolt.Tx) error {
	l.log, l.read = r, r.get
	if l.query.Unverified {
		l.read = r.peek
	}
	if ok, err := l.find(ctx, tx); ok || err != nil {
		return err
	}
	from, prefix := l.keyRange()
	keys := &keyBatch{source: newKeyIterator(l.tables, tx, from, prefix), log: r, most: batchKeys}
	if l.query.Limit > 0 {
		keys.most = min(keys.most, l.query.Limit+1)
	}
	var passed, last []byte // keys: looked at, and with a version to show
	defer func() {
		if last != nil {
			l.after = string(last)
			l.page.Last = keyOf(last)
		}
	}()
	for looked := 0; keys.valid(); keys.next() {
		if looked%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		this := keys.ahead[0]
		if this.err != nil {
			return this.err
		}
		e, found, err := l.version(this.pointer)
		if err != nil {
			return err
		}
		if looked == pageLooked {
			last = passed // a long run of deletions must not be gone over again
		}
		if found && l.full() || looked == pageLooked {
			l.page.More = true
			return l.count(prefix, keys, last)
		}
		looked++
		passed = this.key
		if !found {
			continue
		}
		if err := l.add(this.key, &e); err != nil {
			return err
		}
		last = passed
		l.shown++
	}
	return nil
}

// keyRange returns where the keys that are left begin, and what they begin with.
func (l *lister) keyRange() (from, prefix string) {
	from, prefix = keyRange(l.query)
	if l.after != "" {
		from = l.after + "\x00"
	}
	return from, prefix
}

func (l *lister) full() bool {
	limit, maxBytes := l.query.Limit, l.query.MaxBytes
	if maxBytes == 0 {
		maxBytes = pageBytes
	}
	return limit > 0 && l.events >= limit || l.bytes >= maxBytes || l.ended
}

// add puts a version on the page if it matches.
func (l *lister) add(key []byte, e *entry) error {
	if !bytes.Equal(e.key, key) {
		return &store.CorruptError{Revision: e.revision, Reason: "the index leads to it for " + string(key)}
	}
	if !l.wants(e) {
		return nil
	}
	l.events++
	l.bytes += len(e.value)
	if l.query.Visit != nil {
		l.record = store.Record{Key: l.key(e), Revision: e.revision, Time: e.time, Attributes: e.attributes, Value: e.value}
		l.ended = !l.query.Visit(&l.record)
		return nil
	}
	l.page.Records = append(l.page.Records, l.copied(e))
	return nil
}

// copied takes a version out of the transaction, together with others.
func (l *lister) copied(e *entry) store.Record {
	size := len(e.attributes) + len(e.value)
	if len(l.slab) < size {
		l.slab = make([]byte, max(slabBytes, size))
	}
	record := e.recordInto(l.slab[:size:size], l.key(e))
	l.slab = l.slab[size:]
	return record
}

func (l *lister) key(e *entry) store.Key { return splitKey(l.texts.text(e.key), e.namespace) }

func (l *lister) version(p pointer) (entry, bool, error) {
	if p.deletion() && p.revision() <= l.page.Revision {
		return entry{}, false, nil
	}
	return l.log.at(p.revision(), l.page.Revision, l.read)
}

// count fills Remaining with the number of events from here to the end of the
// range, whose last key is given: by counting them, or from the page before, if
// that was counted.
func (l *lister) count(prefix string, keys *keyBatch, last []byte) error {
	if !l.query.Count {
		return nil
	}
	end := pageEnd{prefix, l.page.Revision, l.query.After}
	n, ok := l.db.remaining.get(end)
	n -= l.shown
	if !ok {
		var err error
		if n, err = l.countKeys(keys); err != nil {
			return err
		}
	}
	end.last = keyOf(last)
	l.db.remaining.put(end, n)
	l.page.Remaining = n
	return nil
}

func (l *lister) countKeys(keys *keyBatch) (n int64, err error) {
	keys.log = nil
	for ; keys.valid(); keys.next() {
		this := keys.ahead[0]
		if this.err != nil {
			return 0, this.err
		}
		p := this.pointer
		there := !p.deletion()
		if p.revision() > l.page.Revision {
			if _, there, err = l.log.at(p.revision(), l.page.Revision, l.log.get); err != nil {
				return 0, err
			}
		}
		if there {
			n++
		}
	}
	return n, nil
}
