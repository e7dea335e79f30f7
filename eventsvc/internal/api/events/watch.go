package events

import (
	"context"
	"errors"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/stream"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// watch streams the changes of a selection. What it returns is as of
// [stream.Streams.Open].
func (r *Resource) watch(c echo.Context, may access.Grant, o metav1.ListOptions, sel event.Selection, f codec.Format) (follow func(), err error) {
	q := store.WatchQuery{Namespace: sel.Namespace, Name: sel.Name, Selector: sel.Selector}
	return r.Streams.Open(c, may, o, q, f, r.Codec.NewFrames(f, r.view), &eventSource{store: r.Store, sel: sel})
}

// eventSource is a [stream.Source] of the events of a selection.
type eventSource struct {
	store store.Store
	sel   event.Selection
	pages *pages
	first []store.Record // of the first page
}

// Begin implements [stream.Source].
func (w *eventSource) Begin(ctx context.Context) (revision uint64, err error) {
	for err = errMoved; errors.Is(err, errMoved); {
		if w.pages, err = newPages(w.store, metav1.ListOptions{}, w.sel); err != nil {
			return 0, err
		}
		w.first, err = w.pages.records(ctx)
	}
	return w.pages.page.Revision, err
}

// Initial implements [stream.Source].
func (w *eventSource) Initial(ctx context.Context, s *stream.Stream) (err error) {
	p, records := w.pages, w.first
	w.pages, w.first = nil, nil // a watch lasts longer than these are of use
	for {
		for i := range records {
			if err := s.Reserve(ctx, len(records[i].Value)); err != nil {
				return err
			}
			if err := s.Append(s.Frames.AppendInitial(s.Buffer(), records[i].View())); err != nil {
				return err
			}
		}
		if p.done {
			return nil
		}
		if records, err = p.records(ctx); err != nil {
			return err
		}
	}
}

// Deliver implements [stream.Source].
func (w *eventSource) Deliver(_ context.Context, s *stream.Stream, d store.Delivery) error {
	return s.Append(s.Frames.AppendDelivery(s.Buffer(), d))
}

// Bookmark implements [stream.Source].
func (w *eventSource) Bookmark(s *stream.Stream, initialEnd bool) error {
	return s.Append(s.Frames.AppendBookmark(s.Buffer(), s.Revision, initialEnd))
}
