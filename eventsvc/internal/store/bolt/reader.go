package bolt

import (
	"context"
	"errors"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// readerSource is what is read. All of it is required.
type readerSource struct {
	seglog.IndexedLog
	Closed func() bool       // reads are refused from now on
	Failed func(error) error // counts what hinders a read, and makes the error of it
	Kept   func() time.Time  // what was observed before it may be gone, unless an event still reports it; zero: nothing is gone
	// Events returns how many events a namespace, or the store if it is empty, has at a
	// revision. It reports false, and returns about how many, if that is not known.
	Events func(namespace string, revision uint64) (int64, bool)
}

// A reader answers reads from the index and the log. The index leads to the newest version of an
// event; if that is newer than the revision asked for, the older versions are followed in the log.
// A list has three ways: over all keys of its range, over the keys of versions that its selector
// matches by the columns, or over these versions, sorted. It takes the one that costs least, estimated from
// the numbers of events and versions. A page costs as much in a large collection as in a small one: the events
// behind it are not counted. What was found is remembered for the next pages of its list; it
// cannot become stale, because a list is of one revision.
//
// What it lends is in mapped files, and has been verified. A read holds these files until its page ends: the functions
// that it calls must not wait for a client. Long ones take turns with other requests. A reader is safe for concurrent
// use.
type reader struct {
	readerSource
	selected *recent[string, selection] // by queryText: what was found for a list, for its next pages
}

// checkEvery is after how many records a read asks whether it is still wanted.
const checkEvery = 64

// selectedLists is the number of lists of which it is remembered what was found.
const selectedLists = 4

// newReader returns a reader.
func newReader(s readerSource) *reader {
	return &reader{readerSource: s, selected: newRecent[string, selection](selectedLists)}
}

// Get calls look with the newest version of an event: see [store.Store].
func (r *reader) Get(key store.Key, look func(*store.View) error) error {
	for {
		at := r.Log.Published()
		var failed error
		found, err := r.getAt(key, at, func(v *store.View) bool {
			failed = look(v)
			return true
		})
		switch {
		case err == nil && found:
			return failed
		case err == nil:
			return store.ErrNotFound
		case errors.Is(err, seglog.ErrGone) && r.Log.CompactRevision() > at:
			// The version was trimmed meanwhile, so there is a newer one.
			continue
		}
		err = r.Failed(err)
		if ce, ok := errors.AsType[*store.CorruptError](err); ok && ce.Key == (store.Key{}) {
			ce.Key = key
		}
		return err
	}
}

func (r *reader) getAt(key store.Key, at uint64, look func(*store.View) bool) (found bool, err error) {
	if r.Closed() {
		return false, store.ErrClosed
	}
	joined := key.String()
	p, ok, err := r.Index.Newest(joined)
	if err != nil {
		return false, err
	}
	if !ok || p.Deletion() && p.Revision() <= at {
		return false, nil
	}
	err = r.Log.View(func(log *seglog.Reader) error {
		var e seglog.Entry
		if e, found, err = log.At(p.Revision(), at); err != nil || !found {
			return err
		}
		if string(e.Key) != joined {
			return &store.CorruptError{Key: key, Revision: e.Revision, Reason: "the index leads to the record of " + string(e.Key)}
		}
		log.Lend(&e, key, look)
		return nil
	})
	return found, err
}

// List calls visit with the events of one page: see [store.Store].
func (r *reader) List(ctx context.Context, what store.Query, visit func(*store.View) bool) (store.Page, error) {
	current := r.Log.Published()
	page := store.Page{Revision: what.Revision}
	if page.Revision == 0 {
		page.Revision = current
	}
	if page.Revision > current {
		return store.Page{}, &store.FutureError{Revision: page.Revision, Current: current}
	}
	if err := r.Held(page.Revision); err != nil {
		if r.Log.Published() != current && what.Revision == 0 {
			return r.List(ctx, what, visit) // the revision was raised meanwhile
		}
		return store.Page{}, err
	}
	l := &lister{reader: r, query: &what, visit: visit, page: &page, total: r.total(&what, page.Revision)}
	err := l.choose(ctx)
	if err == nil {
		err = r.View(func(v index.View, log *seglog.Reader) error { return l.run(ctx, log, v) })
	}
	if err := r.ended(page.Revision, err); err != nil {
		return store.Page{}, err
	}
	return page, nil
}

// total returns how many events there are behind After in the range of a list that is to
// be counted, 0 if that is not known.
func (r *reader) total(q *store.Query, revision uint64) int64 {
	switch {
	case !q.Count, q.After != store.Key{} && q.Revision == 0:
		return 0
	case q.After != store.Key{}:
		return q.Behind
	}
	n, ok := r.Events(q.Namespace, revision)
	if !ok {
		return 0
	}
	return n
}

// Held returns an error if the state of a revision cannot be read any more.
func (r *reader) Held(revision uint64) error {
	if r.Closed() {
		return store.ErrClosed
	}
	if oldest := r.Log.CompactRevision(); revision < oldest {
		return &store.ExpiredError{Revision: revision, Oldest: oldest}
	}
	return nil
}

// ended returns the error of a read of a state, which may have been given up while it was
// being read.
func (r *reader) ended(revision uint64, err error) error {
	if expired := r.Held(revision); expired != nil {
		return expired
	}
	if err != nil {
		return r.Failed(err)
	}
	return nil
}
