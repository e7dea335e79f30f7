package bolt

import (
	"context"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Bounds of one read of Changes, which is in memory until it is written somewhere.
const (
	changesChunk = 4096
	changesBytes = 256 << 10
)

// Changes calls visit with one delivery for each event that was written between two
// revisions: its last change up to the second one. They come in order of revision, in
// parts; with each part visit gets the revision up to which it is complete. A revision
// that is no longer held is an [*store.ExpiredError].
func (r *reader) Changes(ctx context.Context, after, until uint64, visit func(part []store.Delivery, revision uint64) error) error {
	for after < until {
		if err := ctx.Err(); err != nil {
			return err
		}
		part, next, err := r.changesSome(after, until)
		if err := r.ended(after, err); err != nil {
			return err
		}
		if err := visit(part, next); err != nil {
			return err
		}
		after = next
	}
	return nil
}

func (r *reader) changesSome(after, until uint64) (part []store.Delivery, next uint64, err error) {
	next = until
	err = r.View(func(v index.View, log *seglog.Reader) error {
		var found []uint64
		size := int64(0)
		err := log.Scan(after, until, func(e seglog.Entry) bool {
			if len(found) == changesChunk || size > changesBytes {
				return false
			}
			found = append(found, e.Revision)
			size += e.Size()
			return true
		}, nil)
		if len(found) == changesChunk || size > changesBytes {
			next = found[len(found)-1]
		}
		for _, revision := range found {
			if err != nil {
				break
			}
			part, err = appendChange(part, log, v, revision, until)
		}
		return err
	})
	return part, next, err
}

// appendChange appends the change of a record, if it is the last of its event up to a
// revision.
func appendChange(part []store.Delivery, log *seglog.Reader, v index.View, revision, until uint64) ([]store.Delivery, error) {
	e, err := log.Get(revision)
	if err != nil {
		return part, err
	}
	if last, err := lastBefore(log, v, string(e.Key), revision, until); err != nil || !last {
		return part, err
	}
	if e, err = log.Get(revision); err != nil { // again: it was valid until others were looked up
		return part, err
	}
	d, err := lastState(log, &e)
	return append(part, d), err
}

// newestVersions finds the newest version of an event: an [index.View], or an [index.Index] that begins one for each.
type newestVersions interface {
	Newest(key string) (p index.Pointer, ok bool, err error)
}

// lastBefore reports whether a revision is the last of an event up to another.
func lastBefore(log *seglog.Reader, x newestVersions, key string, of, until uint64) (bool, error) {
	p, ok, err := x.Newest(key)
	if err != nil || !ok {
		return false, err
	}
	if p.Revision() <= until {
		return p.Revision() == of, nil
	}
	next, _, err := log.Next(of, p.Revision())
	return next > until, err
}

// lastState returns the delivery of a record to a watch without a selector.
func lastState(log *seglog.Reader, e *seglog.Entry) (store.Delivery, error) {
	d := store.Delivery{Type: store.Added, Revision: e.Revision}
	shown := *e
	switch e.Kind {
	case seglog.Modified:
		d.Type = store.Modified
	case seglog.Deleted:
		d.Type = store.Removed
		var err error
		if shown, err = log.Get(e.Previous); err != nil {
			return d, err
		}
	}
	d.Object = &store.Version{Record: shown.Clone()}
	return d, nil
}
