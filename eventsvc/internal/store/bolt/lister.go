package bolt

import (
	"bytes"
	"context"
	"strings"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Bounds of one page, so that a read transaction is short.
const (
	pageBytes  = 4 << 20
	pageLooked = 16384 // keys looked at
)

// A lister shows one page.
type lister struct {
	db    *DB
	query *store.Query
	visit func(*store.View) bool
	page  *store.Page
	log   *seglog.Reader
	after string // the key that was dealt with last, once one was
	shown int    // events
	bytes int    // of their values
	there int64  // events that the page has passed, whether they match or not
	ended bool   // visit wants no more
	texts texts
}

// run reads the page. When a file was replaced under it, it is run again and
// goes on where it was.
func (l *lister) run(ctx context.Context, r *seglog.Reader, v index.View) error {
	l.log = r
	if ok, err := l.find(ctx, v); ok || err != nil {
		return err
	}
	from, prefix := l.keyRange()
	keys := &keyBatch{source: v.Iterate(from, prefix), log: r, most: batchKeys}
	if l.query.Limit > 0 {
		keys.most = min(keys.most, l.query.Limit+1)
	}
	var passed, last []byte // keys: looked at, and with a version to show
	defer func() {
		if last != nil {
			l.after = string(last)
			l.page.Last = seglog.KeyOf(last)
		}
	}()
	for looked := 0; keys.valid(); keys.next() {
		if looked%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		this := keys.current()
		if this.err != nil {
			return this.err
		}
		e, found, err := l.version(this)
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
		l.there++
	}
	return nil
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

// keyRange returns where the keys that are left begin, and what they begin with.
func (l *lister) keyRange() (from, prefix string) {
	from, prefix = keyRange(l.query)
	if l.after != "" {
		from = l.after + "\x00"
	}
	return from, prefix
}

func (l *lister) full() bool {
	return l.query.Limit > 0 && l.shown >= l.query.Limit || l.bytes >= pageBytes || l.ended
}

// add shows a version if it matches.
func (l *lister) add(key []byte, e *seglog.Entry) error {
	if !bytes.Equal(e.Key, key) {
		return &store.CorruptError{Revision: e.Revision, Reason: "the index leads to it for " + string(key)}
	}
	if !l.wants(e) {
		return nil
	}
	l.shown++
	l.bytes += len(e.Value)
	l.ended = !l.log.Lend(e, seglog.SplitKey(l.texts.text(e.Key), e.NamespaceLen), l.visit)
	return nil
}

// version returns the version of a key that the page shows, if there is one.
func (l *lister) version(k *keyItem) (seglog.Entry, bool, error) {
	revision, deletion := k.pointer.Revision(), k.pointer.Deletion()
	switch {
	case deletion && revision <= l.page.Revision:
		return seglog.Entry{}, false, nil
	case k.record != nil && revision <= l.page.Revision:
		e, err := seglog.Parse(revision, k.record)
		return e, e.Kind != seglog.Deleted, err
	}
	return l.log.At(revision, l.page.Revision)
}

// count fills Remaining with the number of events from here to the end of the
// range, whose last key is given: by counting them, or from the page before, if
// that was counted.
func (l *lister) count(prefix string, keys *keyBatch, last []byte) error {
	if !l.query.Count {
		return nil
	}
	end := pageEnd{prefix, l.page.Revision, l.query.After}
	n, ok := l.db.lists.remaining.get(end)
	n -= l.there
	if !ok {
		var err error
		if n, err = l.countKeys(keys); err != nil {
			return err
		}
	}
	end.last = seglog.KeyOf(last)
	l.db.lists.remaining.put(end, n)
	l.page.Remaining = n
	return nil
}

// countKeys counts the events of the keys that are left: of those that were read
// ahead, and of the others straight from the iterator, which is twice as fast.
func (l *lister) countKeys(keys *keyBatch) (n int64, err error) {
	for i := range keys.prefetched {
		there, err := l.counts(keys.prefetched[i].pointer, keys.prefetched[i].err)
		if err != nil {
			return 0, err
		}
		n += there
	}
	for it := keys.source; it.Valid(); it.Next() {
		there, err := l.counts(it.Pointer(), it.Err())
		if err != nil {
			return 0, err
		}
		n += there
	}
	return n, nil
}

// counts is 1 if a key's version for the page is an event, 0 if not.
func (l *lister) counts(p index.Pointer, damage error) (int64, error) {
	there := !p.Deletion()
	if damage == nil && p.Revision() > l.page.Revision {
		_, there, damage = l.log.At(p.Revision(), l.page.Revision)
	}
	if !there || damage != nil {
		return 0, damage
	}
	return 1, nil
}

// texts makes strings of bytes, many in one piece of memory.
type texts struct{ b strings.Builder }

func (t *texts) text(b []byte) string {
	if t.b.Cap()-t.b.Len() < len(b) {
		t.b = strings.Builder{}
		t.b.Grow(max(len(b), 4<<10))
	}
	from := t.b.Len()
	t.b.Write(b)
	return t.b.String()[from:]
}
