package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
)

// list answers with the events of a namespace or of all, or watches them.
func (r *resource) list(c echo.Context) error { return r.listOrWatch(c, false) }

// watchOnly serves the old paths that watch without being told to.
func (r *resource) watchOnly(c echo.Context) error { return r.listOrWatch(c, true) }

func (r *resource) listOrWatch(c echo.Context, forceWatch bool) error {
	req := c.Request()
	q := query(req)
	o, optionsErr := listOptions(q, forceWatch)
	if err := r.authorize(c, r.groupResource, listVerb(o)); err != nil {
		return err
	}
	scope := codec.ScopeList
	if o.Watch {
		scope = codec.ScopeWatch
	}
	f, err := r.codec.Negotiate(req, scope)
	if err != nil {
		return err
	}
	if optionsErr != nil {
		return optionsErr
	}
	sel, err := r.selection(c, o)
	if err != nil {
		return err
	}
	if o.Watch {
		defer r.upgradable(c, f)()
		return r.watch(c, o, sel, f)
	}
	u, err := r.enter(c, reads)
	if err != nil {
		return err
	}
	defer u.leave()
	limit, err := listTime(q, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(req.Context(), limit)
	defer cancel()
	p, err := r.pages(ctx, o, sel)
	if err != nil {
		return err
	}
	return r.writeList(ctx, c, f, p)
}

// listVerb is what a request for a list does.
func listVerb(o metav1.ListOptions) policy.Verb {
	if o.Watch {
		return policy.Watch
	}
	return policy.List
}

// selection reads the selectors and narrows them to the path.
func (r *resource) selection(c echo.Context, o metav1.ListOptions) (event.Selection, error) {
	sel, err := event.ParseSelector(r.view, o.FieldSelector, o.LabelSelector)
	if err != nil {
		return sel, err
	}
	if sel.Selector != nil {
		if err := event.CheckTerms(len(sel.Selector.Fields), sel.Selector.Labels, r.MaxSelectorTerms); err != nil {
			return sel, err
		}
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
func excluding(sel event.Selection) *store.Selector {
	var s store.Selector
	if sel.Selector != nil {
		s = *sel.Selector
	}
	s.Fields = append(slices.Clip(s.Fields), store.FieldRequirement{Field: store.FieldNamespace, Value: sel.Namespace})
	return &s
}

// writeList answers with a list.
func (r *resource) writeList(ctx context.Context, c echo.Context, f codec.Format, p *pages) error {
	l := r.codec.NewList(f, r.view)
	ahead, buf := r.buffers.get(), r.buffers.get()
	defer func() { r.buffers.put(ahead); r.buffers.put(buf) }()
	items, meta, err := p.readAhead(ctx, l, *ahead)
	*ahead = items
	if err != nil {
		return err
	}
	c.Response().Header()["Content-Type"] = []string{f.ContentType(false)}
	w := r.newBody(c, http.StatusOK)
	w.large = len(items) >= gzipFrom
	w.buf = l.AppendHead(*buf, meta)
	if w.large {
		if err := w.write(false); err != nil {
			return err
		}
		for piece := range slices.Chunk(items, gzipFrom) {
			if err := w.send(piece); err != nil {
				return err
			}
		}
	} else {
		w.buf = append(w.buf, items...)
	}
	err = r.writeItems(ctx, w, l, p)
	*buf = w.buf
	if err != nil {
		return err
	}
	w.buf = l.AppendTail(w.buf)
	*buf = w.buf
	return w.close()
}

// writeItems writes the events of the pages that are left.
func (r *resource) writeItems(ctx context.Context, w *body, l *codec.List, p *pages) error {
	for {
		for i := range p.page.Records {
			var err error
			if w.buf, err = l.AppendItem(w.buf, &p.page.Records[i]); err != nil {
				return err
			}
			if err := w.flush(); err != nil {
				return err
			}
		}
		if p.done {
			return nil
		}
		if err := p.next(ctx); err != nil {
			return err
		}
	}
}
