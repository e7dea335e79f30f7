package api

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// maxHeld is how many bytes of a list are kept until it is known what its head
// says. Longer lists are read twice.
const maxHeld = 8 << 20

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
		return err
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
					return buf, meta, err
				}
			}
			if kept {
				if buf, err = l.AppendItem(buf, rec); err != nil {
					return buf, meta, err
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
