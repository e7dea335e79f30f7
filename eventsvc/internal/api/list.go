package api

import (
	"context"
	"errors"
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

// maxHeld is how many bytes of a list are kept until it is known what its head
// says. Longer lists are read twice.
const maxHeld = 8 << 20

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
		return r.watch(c, o, sel, f)
	}
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

// pages is a range of events that is read page by page at one version.
type pages struct {
	r     *resource
	query store.Query // of the page to come
	left  int         // items still wanted; -1: all
	token bool        // the list goes on from a continue token
	page  store.Page  // the newest page; its Revision is that of the list
	done  bool
}

// pages starts a list: which version it shows, and where it begins
// (events-api.md 3.3).
func (r *resource) pages(ctx context.Context, o metav1.ListOptions, sel event.Selection) (*pages, error) {
	rv, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	p := &pages{r: r, left: -1, query: store.Query{Namespace: sel.Namespace, Name: sel.Name, Selector: sel.Selector}}
	single := sel.Namespace != "" && sel.Name != "" // such a list is neither limited nor continued
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	if o.Limit > 0 && !single {
		p.left = int(min(o.Limit, 1<<30))
		p.query.Count = o.FieldSelector == "" && o.LabelSelector == ""
		exact = exact || o.ResourceVersionMatch == "" && o.Continue == ""
	}
	if o.Continue != "" && !single {
		if rv != 0 {
			return nil, apierrors.NewBadRequest(textContinueVersion)
		}
		p.token = true
		p.query.Revision, p.query.After, err = decodeContinue(sel.Namespace, o.Continue)
		if err != nil {
			return nil, err
		}
	} else if exact {
		p.query.Revision = rv
	}
	if current := r.store.Revision(); rv > current {
		return nil, tooLarge(rv, current, 0)
	}
	return p, p.next(ctx)
}

// next reads the next page. Once there is none, done is set.
func (p *pages) next(ctx context.Context) error {
	if p.left >= 0 {
		p.query.Limit = p.left
	}
	page, err := p.r.store.List(ctx, p.query)
	if err != nil {
		return p.errorFor(err)
	}
	p.page = page
	p.query.Revision, p.query.After = page.Revision, page.Last
	if p.left >= 0 {
		p.left -= len(page.Records)
	}
	p.done = !page.More || p.left == 0
	return nil
}

// errorFor explains why a page cannot be read. An expired token comes with one
// that goes on from the same place at the newest version.
func (p *pages) errorFor(err error) error {
	var expired *store.ExpiredError
	if !errors.As(err, &expired) {
		return p.r.errorFor(err, "")
	}
	if !p.token {
		return apierrors.NewResourceExpired(textExpiredList)
	}
	st := apierrors.NewResourceExpired(textExpiredContinue)
	st.ErrStatus.Continue = encodeContinue(p.query.Namespace, -1, p.query.After)
	return st
}

// meta is what the head of the list says once its last page was read.
func (p *pages) meta() metav1.ListMeta {
	m := metav1.ListMeta{ResourceVersion: formatVersion(p.page.Revision)}
	if p.done && p.page.More {
		m.Continue = encodeContinue(p.query.Namespace, int64(p.page.Revision), p.page.Last)
		if p.query.Count {
			m.RemainingItemCount = &p.page.Remaining
		}
	}
	return m
}

// readAhead reads what the head of a list depends on. Most lists are written
// as they are read. But one with a limit says in its head where the next page
// begins, and a protobuf one how long it is: these are read to their end first,
// and their items are kept in buf unless they are too many. It returns them;
// the pages behind them are still to be read from p.
func (p *pages) readAhead(ctx context.Context, l *codec.List, buf []byte) (items []byte, meta metav1.ListMeta, err error) {
	if !l.NeedsMeasure() && (p.left < 0 || p.done) {
		return buf, p.meta(), nil
	}
	start := *p // its version is fixed, so reading again gives the same
	for kept := true; ; {
		for i := range p.page.Records {
			rec := &p.page.Records[i]
			if l.NeedsMeasure() {
				if err := l.Measure(rec); err != nil {
					return buf, meta, p.r.errorFor(err, "")
				}
			}
			if kept {
				if buf, err = l.AppendItem(buf, rec); err != nil {
					return buf, meta, p.r.errorFor(err, "")
				}
				kept = len(buf) <= maxHeld
			}
		}
		switch {
		case !p.done:
			if err := p.next(ctx); err != nil {
				return buf, meta, err
			}
		case kept:
			meta, p.page.Records = p.meta(), nil
			return buf, meta, nil
		default:
			meta, *p = p.meta(), start
			l.Rewind()
			return buf[:0], meta, nil
		}
	}
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
				return r.errorFor(err, "")
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
