package api

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// errMoved: the newest version, which was to be listed, is no longer held.
var errMoved = errors.New("the list has to begin anew")

// pages is a range of events that is read page by page at one version.
type pages struct {
	r     *resource
	query store.Query // of the page to come
	left  int         // items still wanted; -1: all
	token bool        // the list goes on from a continue token
	page  store.Page  // the newest page that was read; its Revision is that of the list
	done  bool
}

// pages starts a list and reads its first page.
func (r *resource) pages(ctx context.Context, o metav1.ListOptions, sel event.Selection) (*pages, error) {
	p, err := r.newPages(o, sel)
	if err != nil {
		return nil, err
	}
	return p, p.next(ctx)
}

// newPages starts a list: which version it shows, and where it begins.
func (r *resource) newPages(o metav1.ListOptions, sel event.Selection) (*pages, error) {
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
	return p, nil
}

// next reads the next page into memory. Once there is none, done is set.
func (p *pages) next(ctx context.Context) error {
	page, err := p.r.store.List(ctx, p.limited())
	if err != nil {
		return p.errorFor(err)
	}
	p.took(page, len(page.Records))
	return nil
}

// show is next for a page that is only shown to visit, which ends it by
// returning false.
func (p *pages) show(ctx context.Context, visit func(*store.Record) bool) error {
	n := 0
	q := p.limited()
	q.Visit = func(rec *store.Record) bool {
		n++
		return visit(rec)
	}
	page, err := p.r.store.List(ctx, q)
	if err != nil {
		return p.errorFor(err)
	}
	p.took(page, n)
	return nil
}

func (p *pages) limited() store.Query {
	q := p.query
	if p.left >= 0 {
		q.Limit = p.left
	}
	return q
}

// took goes on behind a page with n events.
func (p *pages) took(page store.Page, n int) {
	p.page = page
	p.query.Revision, p.query.After = page.Revision, page.Last
	if p.left >= 0 {
		p.left -= n
	}
	p.done = !page.More || p.left == 0
}

// errorFor explains why a page cannot be read. An expired token comes with one
// that goes on from the same place at the newest version.
func (p *pages) errorFor(err error) error {
	var expired *store.ExpiredError
	switch {
	case !errors.As(err, &expired):
		return err
	case p.query.Revision == 0:
		return errMoved
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
			remaining := p.page.Remaining // p may be begun anew before this is written
			m.RemainingItemCount = &remaining
		}
	}
	return m
}
