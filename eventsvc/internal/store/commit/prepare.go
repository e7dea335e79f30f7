package commit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Prepare has a decision made about the newest version of an event, as [store.Store.Update] does, and returns the write
// that the decision asks for. There is none if it keeps the event as it is, or is an error: then that is the result of
// the update. The function now returns the time of the write.
func Prepare(
	ctx context.Context, s store.Store, key store.Key, expect store.Expect, decide store.Decide, now func() time.Time,
) (*Write, store.Result, error) {
	w := &Write{Ctx: ctx, Key: key}
	var current *store.Record
	if expect == store.Any {
		switch record, err := store.Read(ctx, s, key); {
		case err == nil:
			w.Seen, w.Previous = record.View().Seen(), &store.Version{Record: record}
			current = &record
		case !errors.Is(err, store.ErrNotFound):
			return nil, store.Result{}, err
		}
	}
	d, err := decide(current)
	if expect != store.Any && (err != nil || d.Op != store.Put) { // the expectation may be wrong
		return Prepare(ctx, s, key, store.Any, decide, now)
	}
	if err != nil {
		return nil, store.Result{}, err
	}
	d.Draft.Attributes = d.Draft.Attributes.Written(now())
	if current == nil {
		return w.new(d)
	}
	switch d.Op {
	case store.Put:
		w.Kind, w.Draft = seglog.Modified, d.Draft
		w.Draft.Attributes = w.Draft.Attributes.Since(current.Attributes)
	case store.Delete:
		w.Kind, w.Draft.Value = seglog.Deleted, d.By
	default:
		return nil, store.Result{Record: *current}, nil
	}
	return w, store.Result{}, nil
}

// new returns what a decision about an event that does not exist asks for.
func (w *Write) new(d store.Decision) (*Write, store.Result, error) {
	switch d.Op {
	case store.Put:
		w.Kind, w.Draft = seglog.Created, d.Draft
		return w, store.Result{}, nil
	case store.Delete:
		return nil, store.Result{}, store.ErrNotFound
	}
	return nil, store.Result{}, nil
}

// CheckKey reports a key that cannot be stored.
func CheckKey(key store.Key) error {
	if key.Namespace == "" || key.Name == "" || len(key.Namespace)+len(key.Name) >= seglog.MaxKey || !utf8.ValidString(key.String()) ||
		strings.ContainsAny(key.Namespace, "/\x00") || strings.ContainsAny(key.Name, "/\x00") {
		return fmt.Errorf("store: %q is no key: namespace and name must be set, together shorter than %d bytes, of UTF-8 without slash and NUL",
			key.String(), seglog.MaxKey)
	}
	return nil
}
