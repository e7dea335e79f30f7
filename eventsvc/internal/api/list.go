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

// maxHeld is how many bytes of a list are kept between the pass that finds out
// what its head says and the pass that writes it. Longer lists are read twice.
const maxHeld = 4 << 20

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
	// each, if set, is told of every page before it is written.
	each func(context.Context, []store.Record) error
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
// begins, and a protobuf one how long it is: these are read to their end first
// and, if they are too long to be held, once more to be written. It returns
// the records to write first; p goes on behind them.
func (p *pages) readAhead(ctx context.Context, l *codec.List) ([]store.Record, metav1.ListMeta, error) {
	if p.left < 0 && !l.NeedsMeasure() {
		return p.page.Records, p.meta(), nil
	}
	start := *p // its version is fixed, so reading again gives the same
	var held []store.Record
	for size := 0; ; {
		for i := range p.page.Records {
			size += len(p.page.Records[i].Value)
			if l.NeedsMeasure() {
				if err := l.Measure(&p.page.Records[i]); err != nil {
					return nil, metav1.ListMeta{}, p.r.errorFor(err, "")
				}
			}
		}
		if size <= maxHeld {
			held = append(held, p.page.Records...)
		}
		if p.done {
			meta := p.meta()
			if size > maxHeld {
				*p = start
				held = p.page.Records
			}
			return held, meta, nil
		}
		if err := p.next(ctx); err != nil {
			return nil, metav1.ListMeta{}, err
		}
	}
}

// writeList answers with a list.
func (r *resource) writeList(ctx context.Context, c echo.Context, f codec.Format, p *pages) error {
	l := r.codec.NewList(f, r.view)
	records, meta, err := p.readAhead(ctx, l)
	if err != nil {
		return err
	}
	c.Response().Header()["Content-Type"] = []string{f.ContentType(false)}
	buf := r.buffers.get()
	defer r.buffers.put(buf)
	w := r.newBody(c, http.StatusOK)
	w.buf = l.AppendHead(*buf, meta)
	for {
		if p.each != nil {
			if err := p.each(ctx, records); err != nil {
				return err
			}
		}
		for i := range records {
			if w.buf, err = l.AppendItem(w.buf, &records[i]); err != nil {
				return r.errorFor(err, "")
			}
			if err := w.flush(); err != nil {
				return err
			}
		}
		if p.done {
			break
		}
		if err := p.next(ctx); err != nil {
			return err
		}
		records = p.page.Records
	}
	w.buf = l.AppendTail(w.buf)
	*buf = w.buf
	return w.close()
}
