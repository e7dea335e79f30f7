package bolt

import (
	"errors"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/watch"
)

// Bounds of one Replay.
const (
	replayChanges = 512
	replayRecords = replayChanges * 16 // with those that the watch does not cover
)

// Replay implements [watch.Log]. A [*store.ExpiredError] ends the watch with 410.
func (r *reader) Replay(dst []*watch.Change, what *store.WatchQuery, after uint64) (changes []*watch.Change, upTo uint64, err error) {
	if err := r.Held(after); err != nil {
		return dst, after, err
	}
	published := r.Log.Published()
	err = r.Log.View(func(log *seglog.Reader) error {
		changes, upTo = dst, published
		records, bytes := 0, 0
		var failed error
		err := log.Scan(after, published, func(e seglog.Entry) bool {
			upTo = e.Revision
			records++
			if covers(what, &e) {
				var c *watch.Change
				if c, failed = change(log, e); failed != nil {
					return false
				}
				changes = append(changes, c)
				bytes += c.Size()
			}
			return records < replayRecords && len(changes)-len(dst) < replayChanges && bytes < store.ReplayBytes
		}, nil)
		return errors.Join(err, failed)
	})
	if err := r.ended(after, err); err != nil {
		return dst, after, err
	}
	return changes, upTo, nil
}

// covers reports whether a watch is about the event of a record, before its selector.
func covers(q *store.WatchQuery, e *seglog.Entry) bool {
	return (q.Namespace == "" || q.Namespace == string(e.Key[:e.NamespaceLen])) &&
		(q.Name == "" || q.Name == string(e.Key[e.NamespaceLen+1:]))
}

// change copies a log record, and the version before it, out of the log.
func change(log *seglog.Reader, e seglog.Entry) (*watch.Change, error) {
	c := &watch.Change{Revision: e.Revision, Key: e.StoreKey()}
	if e.Kind != seglog.Deleted {
		c.Current = &store.Version{Record: e.Clone()}
	}
	if e.Kind != seglog.Created {
		before, err := log.Get(e.Previous)
		if err != nil {
			return nil, err
		}
		c.Previous = &store.Version{Record: before.Clone()}
	}
	return c, nil
}
