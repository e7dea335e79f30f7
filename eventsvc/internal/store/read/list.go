package read

import (
	"bytes"
	"context"
	"strings"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Bounds of one page. A page is one read transaction, and these must be short.
const (
	pageBytes  = 4 << 20
	pageLooked = 16384 // keys
)

// A lister reads one page.
type lister struct {
	reader *Reader
	query  *store.Query
	visit  func(*store.View) bool
	page   *store.Page
	log    *seglog.Reader
	after  string // the last key that is done, empty at the beginning
	shown  int    // number of events that visit has seen
	bytes  int    // length of their values
	passed int64  // number of events up to after, whether they match or not
	ended  bool   // visit has returned false
	keys   keyStrings
}

// run reads the page. If a file was replaced meanwhile, it is called again with new views,
// and goes on behind the last key that is done.
func (l *lister) run(ctx context.Context, r *seglog.Reader, v index.View) error {
	l.log = r
	if ok, err := l.find(ctx, v); ok || err != nil {
		return err
	}
	from, prefix := l.keyRange()
	keys := &keyBatch{source: v.Iterate(from, prefix), log: r, size: batchKeys}
	if l.query.Limit > 0 {
		keys.size = min(keys.size, l.query.Limit+1)
	}
	var seen, last []byte // the last key of all, and of those that have an event
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
		e, found, err := l.version(this)
		if err != nil {
			return err
		}
		if looked == pageLooked {
			last = seen // the next page need not go over a long run of deletions again
		}
		if found && l.full() || looked == pageLooked {
			l.page.More = true
			return l.count(prefix, keys, last)
		}
		looked++
		seen = this.key
		if !found {
			continue
		}
		if err := l.add(this.key, &e); err != nil {
			return err
		}
		last = seen
		l.passed++
	}
	return nil
}

// keyRange returns the first key that is left, and the prefix of all keys.
func (l *lister) keyRange() (from, prefix string) {
	if l.query.Namespace != "" {
		prefix = l.query.Namespace + "/" + l.query.Name
	}
	after := l.after
	if after == "" && l.query.After != (store.Key{}) {
		after = l.query.After.String()
	}
	if after == "" {
		return prefix, prefix
	}
	return max(prefix, after+"\x00"), prefix
}

func (l *lister) full() bool {
	return l.query.Limit > 0 && l.shown >= l.query.Limit || l.bytes >= pageBytes || l.ended
}

// add lends a version to visit if it matches.
func (l *lister) add(key []byte, e *seglog.Entry) error {
	if !bytes.Equal(e.Key, key) {
		return &store.CorruptError{Revision: e.Revision, Reason: "the index leads to it for " + string(key)}
	}
	if !l.wants(e) {
		return nil
	}
	l.shown++
	l.bytes += len(e.Value)
	l.ended = !l.log.Lend(e, seglog.SplitKey(l.keys.of(e.Key), e.NamespaceLen), l.visit)
	return nil
}

// version returns the version of a key at the revision of the page, if it existed then.
func (l *lister) version(k *keyItem) (seglog.Entry, bool, error) {
	revision, deletion := k.pointer.Revision(), k.pointer.Deletion()
	switch {
	case k.err != nil:
		return seglog.Entry{}, false, k.err
	case deletion && revision <= l.page.Revision:
		return seglog.Entry{}, false, nil
	case k.record != nil && revision <= l.page.Revision:
		e, err := seglog.Parse(revision, k.record)
		return e, e.Kind != seglog.Deleted, err
	}
	return l.log.At(revision, l.page.Revision)
}

// count sets Remaining to the number of events behind the page, whose last key is given.
// It counts them, unless the end of the page before is remembered with its number.
func (l *lister) count(prefix string, keys *keyBatch, last []byte) error {
	if !l.query.Count {
		return nil
	}
	end := pageEnd{prefix, l.page.Revision, l.query.After}
	n, ok := l.reader.remaining.get(end)
	n -= l.passed
	if !ok {
		var err error
		if n, err = l.countKeys(keys); err != nil {
			return err
		}
	}
	end.last = seglog.KeyOf(last)
	l.reader.remaining.put(end, n)
	l.page.Remaining = n
	return nil
}

// countKeys counts the events of the keys that are left. Those that are not in the batch
// yet come from the iterator, which is twice as fast.
func (l *lister) countKeys(keys *keyBatch) (n int64, err error) {
	for i := range keys.left {
		there, err := l.counts(keys.left[i].pointer, keys.left[i].err)
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

// counts returns 1 if the event of a key existed at the revision of the page, and 0 if not.
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

// keyStrings makes strings of keys, many in one allocation.
type keyStrings struct{ b strings.Builder }

func (t *keyStrings) of(b []byte) string {
	if t.b.Cap()-t.b.Len() < len(b) {
		t.b = strings.Builder{}
		t.b.Grow(max(len(b), 4<<10))
	}
	from := t.b.Len()
	t.b.Write(b)
	return t.b.String()[from:]
}
