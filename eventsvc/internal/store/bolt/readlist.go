package bolt

import (
	"bytes"
	"context"
	"strings"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Bounds of one page. A page is one read transaction of the index, and these must be short.
const (
	pageBytes  = 4 << 20
	pageLooked = 1 << 14 // keys whose records are looked at
	pagePassed = 1 << 18 // keys that are passed over
	// Events that are counted behind a page whose list has not been counted. One that has
	// changed since counts as many, because its older versions are read.
	countedKeys = 1 << 14
	changedKeys = 16
)

// A lister reads one page.
type lister struct {
	reader *reader
	query  *store.Query
	visit  func(*store.View) bool
	page   *store.Page
	log    *seglog.Reader
	shown  int   // number of events that visit has seen
	bytes  int   // length of their values
	total  int64 // number of events in the range, behind query.After; 0: not known
	passed int64 // of these, those that are done
	ended  bool  // visit has returned false
	keys   keyStrings
	selection
}

// run reads the page.
func (l *lister) run(ctx context.Context, r *seglog.Reader, v index.View) (err error) {
	if l.log = r; l.few != nil {
		err = l.sort(ctx, v)
		l.few = nil
	}
	switch {
	case err != nil:
	case l.matches != nil:
		err = l.fill()
	default:
		err = l.walk(ctx, v)
	}
	if err == nil && l.page.More && l.found != nil {
		l.reader.selected.put(queryText(l.query, l.page.Revision), l.selection)
	}
	return err
}

// walk reads the page in order of the keys. Where the newest version is the one of the page's
// revision, it is passed over unless it was found; if nobody has looked for versions, none is.
func (l *lister) walk(ctx context.Context, v index.View) error {
	from, prefix := l.keyRange()
	keys := &keyBatch{source: v.Iterate(from, prefix), log: l.log, size: batchKeys, revision: l.page.Revision, wanted: l.found, room: pagePassed}
	if l.query.Limit > 0 {
		keys.size = min(keys.size, l.query.Limit+1)
	}
	if l.query.Name != "" {
		keys.suffix = []byte("/" + l.query.Name)
	}
	var seen, last []byte // the last key of all, and of those that have an event
	defer func() {
		if last != nil {
			l.page.Last = seglog.KeyOf(last)
		}
	}()
	for looked := 0; keys.valid(); keys.next() {
		if looked%checkEvery == 0 && ctx.Err() != nil {
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
			l.page.Remaining, err = l.remaining(keys)
			return err
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
	if !keys.ended() {
		last, l.page.More = keys.last, true
	}
	return nil
}

// keyRange returns the first key that is left, and the prefix of all keys.
func (l *lister) keyRange() (from, prefix string) {
	if l.query.Namespace != "" {
		prefix = l.query.Namespace + "/" + l.query.Name
	}
	if l.query.After == (store.Key{}) {
		return prefix, prefix
	}
	return max(prefix, l.query.After.String()+"\x00"), prefix
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
	case revision <= l.page.Revision:
		e, err := l.log.Read(&k.at)
		return e, e.Kind != seglog.Deleted, err
	}
	return l.log.At(revision, l.page.Revision)
}

// remaining returns the number of events behind the page, 0 if it is not known. It counts
// few events, and never goes over all that a list may have.
func (l *lister) remaining(keys *keyBatch) (n int64, err error) {
	if !l.query.Count {
		return 0, nil
	}
	if l.total > 0 {
		return max(0, l.total-l.passed), nil
	}
	room := countedKeys
	count := func(p index.Pointer, damage error) error {
		there := !p.Deletion()
		if damage == nil && p.Revision() > l.page.Revision {
			_, there, damage = l.log.At(p.Revision(), l.page.Revision)
			room -= changedKeys
		}
		if room--; there {
			n++
		}
		return damage
	}
	for i := 0; i < len(keys.left) && room > 0 && err == nil; i++ {
		err = count(keys.left[i].pointer, keys.left[i].err)
	}
	for it := keys.source; it.Valid() && room > 0 && err == nil; it.Next() {
		err = count(it.Pointer(), it.Err())
	}
	if err != nil || !keys.ended() {
		return 0, err
	}
	return n, nil
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
