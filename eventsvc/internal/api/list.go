package api

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
)

// lister lists or watches what a request selects. It answers with a list, or
// begins a watch and returns what goes on with it, see [stream.open].
type lister func(c echo.Context, o metav1.ListOptions, f codec.Format) (follow func() error, err error)

// listing serves lists and watches of a resource: what both do before they read
// anything. Errors surface in the original's order: authorization, answer format,
// options.
func (s *Server) listing(of schema.GroupResource, forceWatch bool, next lister) echo.HandlerFunc {
	return func(c echo.Context) error { return following(s.listOrWatch(c, of, forceWatch, next)) }
}

func (s *Server) listOrWatch(c echo.Context, of schema.GroupResource, forceWatch bool, next lister) (follow func() error, err error) {
	o, optionsErr := listOptions(query(c.Request()), forceWatch)
	verb, scope := policy.List, codec.ScopeList
	if o.Watch {
		verb, scope = policy.Watch, codec.ScopeWatch
	}
	if err := s.authorize(c, of, verb); err != nil {
		return nil, err
	}
	f, err := s.codec.Negotiate(c.Request(), scope)
	if err != nil {
		return nil, err
	}
	if optionsErr != nil {
		return nil, optionsErr
	}
	err = s.seated(verb, func(c echo.Context) (err error) {
		follow, err = next(c, o, f)
		return err
	})(c)
	return follow, err
}

// list answers with the events of a namespace or of all, or watches them.
func (r *resource) list(c echo.Context, o metav1.ListOptions, f codec.Format) (follow func() error, err error) {
	sel, err := r.selection(c, o)
	if err != nil {
		return nil, err
	}
	if o.Watch {
		return r.watch(c, o, sel, f)
	}
	limit, err := listTime(query(c.Request()), o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), limit)
	defer cancel()
	p, err := r.newPages(o, sel)
	if err != nil {
		return nil, err
	}
	return nil, r.writeList(ctx, c, f, p)
}

// selection reads the selectors and narrows them to the path.
func (r *resource) selection(c echo.Context, o metav1.ListOptions) (event.Selection, error) {
	if err := event.CheckTerms(o.FieldSelector, o.LabelSelector, r.MaxSelectorTerms); err != nil {
		return event.Selection{}, err
	}
	sel, err := event.ParseSelector(r.view, o.FieldSelector, o.LabelSelector)
	if err != nil {
		return sel, err
	}
	if namespace := c.Param("namespace"); namespace != "" {
		if sel.Namespace != "" && sel.Namespace != namespace {
			sel.Selector = excluding(sel) // asks for another namespace: matches nothing
		}
		sel.Namespace = namespace
	}
	if name := c.Param("name"); name != "" {
		if o.FieldSelector != "" && sel.Name != name {
			return sel, apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
		sel.Name = name
	}
	return sel, nil
}

// excluding is the selector of a selection with its namespace as a requirement.
func excluding(sel event.Selection) *event.Selector {
	var s event.Selector
	if sel.Selector != nil {
		s = *sel.Selector
	}
	s.Fields = append(slices.Clip(s.Fields), event.FieldRequirement{Field: event.FieldNamespace, Value: sel.Namespace})
	return &s
}

// writeList answers with a list of which nothing was read yet.
func (r *resource) writeList(ctx context.Context, c echo.Context, f codec.Format, p *pages) error {
	ahead, small := r.buffers.ahead(), r.buffers.get()
	defer func() { ahead.give(0); r.buffers.put(small) }()
	p.query.Uses = f.Uses()
	l, start := r.codec.NewList(f, r.view), *p
	meta, err := ahead.read(ctx, p, l)
	for errors.Is(err, errMoved) {
		l, *p = r.codec.NewList(f, r.view), start
		meta, err = ahead.read(ctx, p, l)
	}
	if err != nil {
		return err
	}
	c.Response().Header()["Content-Type"] = []string{f.ContentType(false)}
	w := r.newBody(c, http.StatusOK)
	*small = l.AppendHead(*small, meta)
	if err := ahead.write(w, *small); err != nil {
		return err
	}
	defer func() { *ahead.last() = w.buf }()
	if err := r.writeItems(ctx, w, l, p); err != nil {
		return err
	}
	w.buf = l.AppendTail(w.buf)
	return w.close()
}

// writeItems writes the events of the pages that are left.
func (r *resource) writeItems(ctx context.Context, w *body, l *codec.List, p *pages) error {
	var failed error
	visit := func(rec *store.Record) bool {
		w.buf, failed = l.AppendItem(w.buf, rec)
		return failed == nil && len(w.buf) < pieceBytes
	}
	for !p.done {
		if err := errors.Join(p.show(ctx, visit), failed); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	return nil
}
