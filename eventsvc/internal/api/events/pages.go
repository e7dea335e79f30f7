package events

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// errMoved reports that the newest version, which was to be listed, is no longer held.
// The list has to begin again.
var errMoved = errors.New("the list has to begin again")

// pages is a range of events that is read page by page at one version.
type pages struct {
	store   store.Store
	query   store.Query // of the page to come
	left    int         // items still wanted; -1: all
	limited bool        // to the events of some clusters: nothing may tell of others
	shown   store.Key   // the last event that was shown, or the one behind which the list begins
	token   bool        // the list goes on from a continue token
	page    store.Page  // the newest page that was read; its Revision is the list's
	done    bool
}

// newPages begins a list: which version it shows, and where it begins.
func newPages(s store.Store, o metav1.ListOptions, sel event.Selection) (*pages, error) {
	if sel.Namespace != "" && sel.Name != "" { // a list of one is neither limited nor continued
		o.Limit, o.Continue = 0, ""
	}
	start, err := httpio.ParseStart(sel.Namespace, o, s.Revision())
	if err != nil {
		return nil, err
	}
	p := &pages{store: s, left: -1, limited: sel.Selector != nil && sel.Selector.Clusters != nil, token: start.Continued, shown: start.After, query: store.Query{
		Namespace: sel.Namespace, Name: sel.Name, Selector: sel.Selector, Revision: start.Revision, After: start.After, Behind: start.Remaining,
	}}
	if o.Limit > 0 {
		p.left = int(min(o.Limit, 1<<30))
		p.query.Count = o.FieldSelector == "" && o.LabelSelector == "" && !p.limited
	}
	return p, nil
}

// records reads the next page into memory, about as much as [store.ReplayBytes]. After the
// last one done is set.
func (p *pages) records(ctx context.Context) (records []store.Record, err error) {
	bytes := 0
	err = p.show(ctx, func(v *store.View) bool {
		records = append(records, v.Clone())
		bytes += len(v.Value)
		return bytes < store.ReplayBytes/2
	})
	return records, err
}

// show is records for a page that is only shown to visit, which ends it by returning
// false.
func (p *pages) show(ctx context.Context, visit func(*store.View) bool) error {
	q, n := p.query, 0
	q.Limit = max(p.left, 0)
	page, err := p.store.List(ctx, q, func(v *store.View) bool {
		n++
		p.shown = v.Key
		return visit(v)
	})
	if err != nil {
		return p.expired(err)
	}
	if p.limited && p.left > 0 && n == p.left { // do not tell whether there is more, or where: it may be of other clusters
		page.Last, page.More = p.shown, true
	}
	p.page = page
	p.query.Revision, p.query.After, p.query.Behind = page.Revision, page.Last, page.Remaining
	if p.left >= 0 {
		p.left -= n
	}
	p.done = !page.More || p.left == 0
	return nil
}

// expired explains why a page cannot be read. An expired token comes with one that goes
// on from the same place at the newest version.
func (p *pages) expired(err error) error {
	var expired *store.ExpiredError
	switch {
	case !errors.As(err, &expired):
		return err
	case p.query.Revision == 0:
		return errMoved
	case !p.token:
		return apierrors.NewResourceExpired(httpio.ExpiredList)
	}
	// Clients look for this text.
	st := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - " +
		"objects that were created, modified, or deleted between the time the first chunk was returned and now may " +
		"show up in the list.")
	st.ErrStatus.Continue = httpio.EncodeContinue(p.query.Namespace, -1, p.shown, 0)
	return st
}

// meta is what the head of the list says once its last page was read.
func (p *pages) meta() metav1.ListMeta {
	m := metav1.ListMeta{ResourceVersion: httpio.FormatVersion(p.page.Revision)}
	if p.done && p.page.More {
		remaining := p.page.Remaining // p may begin again before this is written
		m.Continue = httpio.EncodeContinue(p.query.Namespace, int64(p.page.Revision), p.page.Last, remaining)
		if remaining > 0 {
			m.RemainingItemCount = &remaining
		}
	}
	return m
}
