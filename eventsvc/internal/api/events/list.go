package events

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
)

// list answers with the events of a namespace or of all, or watches them.
func (r *Resource) list(c echo.Context, may access.Grant, o metav1.ListOptions, f codec.Format) (follow func(), err error) {
	// 1. What is selected.
	sel, err := r.selection(c, may, o)
	if err != nil {
		return nil, err
	}
	if o.Watch {
		return r.watch(c, may, o, sel, f)
	}
	// 2. The deadline.
	ctx, cancel, err := httpio.Deadline(c.Request().Context(), httpio.QueryOf(c.Request()), httpio.ListLimit(o))
	if err != nil {
		return nil, err
	}
	defer cancel()
	// 3. Room for a page, which is held until the client has read it.
	if err := flow.FromContext(ctx).Take(ctx, listRoom); err != nil {
		return nil, httpio.Unread(err)
	}
	// 4. Which version to show, and where to begin.
	p, err := newPages(r.Store, o, sel)
	if err != nil {
		return nil, err
	}
	// 5. The answer, page by page.
	return nil, r.writeList(ctx, c, f, p)
}

// selection reads the selectors and narrows them to the path, and to the clusters that the request may see.
func (r *Resource) selection(c echo.Context, may access.Grant, o metav1.ListOptions) (event.Selection, error) {
	if err := event.CheckTerms(o.FieldSelector, o.LabelSelector, r.MaxTerms); err != nil {
		return event.Selection{}, err
	}
	sel, err := event.ParseSelector(r.view, o.FieldSelector, o.LabelSelector)
	if err != nil {
		return sel, err
	}
	if namespace := c.Param("namespace"); namespace != "" {
		if sel.Namespace != "" && sel.Namespace != namespace {
			// It asks for another namespace: nothing matches.
			sel.Selector = &event.Selector{Fields: []event.FieldRequirement{{Field: event.FieldNamespace, Value: sel.Namespace}}}
		}
		sel.Namespace = namespace
	}
	if name := c.Param("name"); name != "" {
		if o.FieldSelector != "" && sel.Name != name {
			return sel, apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
		sel.Name = name
	}
	sel.Selector = may.Narrow(sel.Selector)
	return sel, nil
}

// writeList reads a list from its first page on and answers with it. The caller has taken
// [listRoom].
func (r *Resource) writeList(ctx context.Context, c echo.Context, f codec.Format, p *pages) error {
	// 1. What the head says, and the first items.
	first := r.buffers.ahead(flow.FromContext(ctx).Room())
	defer func() { first.release(0) }()
	l, start := r.Codec.NewList(f, r.view), *p
	meta, err := first.read(ctx, p, l)
	for errors.Is(err, errMoved) {
		l, *p = r.Codec.NewList(f, r.view), start
		meta, err = first.read(ctx, p, l)
	}
	if err != nil {
		return err
	}
	// 2. The head, and these items.
	w := r.IO.Writer(c, http.StatusOK, f.ContentType(false))
	head := r.IO.Buffers.Get()
	defer r.IO.Buffers.Put(head)
	*head = l.AppendHead(*head, meta)
	if err := first.write(ctx, w, *head); err != nil {
		return err
	}
	// 3. The other items.
	buf := first.last()
	var failed error
	visit := func(v *store.View) bool {
		*buf, failed = l.AppendItem(*buf, v)
		return failed == nil && len(*buf) < pageBytes
	}
	for !p.done {
		if err := errors.Join(p.show(ctx, visit), failed); err != nil {
			return err
		}
		if err := first.fits(); err != nil {
			return err
		}
		if len(*buf) >= httpio.Piece {
			if err := w.Write(ctx, *buf); err != nil {
				return err
			}
			*buf = (*buf)[:0]
		}
	}
	// 4. The tail.
	*buf = l.AppendTail(*buf)
	return w.Send(*buf)
}
