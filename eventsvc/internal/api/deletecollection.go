package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/store"
)

// deleteCollection deletes everything in a namespace that the options select.
// It answers with a Status that says how many that were; a caller who asks for
// a Table or for metadata gets the list of them as it was before.
func (r *resource) deleteCollection(c echo.Context) error {
	req := c.Request()
	f, err := r.codec.Negotiate(req, codec.ScopeList)
	if err != nil {
		return err
	}
	buf := r.buffers.get()
	defer r.buffers.put(buf)
	body, err := r.readBody(req, buf)
	if err != nil {
		return err
	}
	q := query(req)
	lo, do, err := r.collectionOptions(req, q, body)
	if err != nil {
		return err
	}
	sel, err := r.selection(c, lo)
	if err != nil {
		return err
	}
	limit, err := listTime(q, lo)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(req.Context(), limit)
	defer cancel()
	p, err := r.newPages(lo, sel)
	if err != nil {
		return err
	}
	before := *p
	if err := p.next(ctx); err != nil {
		return err
	}
	before.query.Revision = p.page.Revision
	n, err := r.removePages(ctx, p, do)
	if err != nil {
		return err
	}
	if f.As != codec.None {
		return r.writeList(ctx, c, f, &before)
	}
	return r.status(c, http.StatusOK, f, &metav1.Status{
		Status:   metav1.StatusSuccess,
		ListMeta: p.meta(),
		Message:  fmt.Sprintf("deleted %d %s", n, r.groupResource),
		Details:  &metav1.StatusDetails{Group: r.groupResource.Group, Kind: r.groupResource.Resource},
	})
}

// collectionOptions reads what to delete and how. The query's resourceVersion
// is that of the list, never a precondition of each delete.
func (r *resource) collectionOptions(req *http.Request, q url.Values, body []byte) (metav1.ListOptions, *metav1.DeleteOptions, error) {
	do, err := r.deleteOptions(req, q, body)
	if err != nil {
		return metav1.ListOptions{}, nil, err
	}
	if len(body) == 0 && do.Preconditions != nil {
		do.Preconditions.ResourceVersion = nil
	}
	if do.IgnoreStoreReadErrorWithClusterBreakingPotential != nil {
		return metav1.ListOptions{}, nil, invalidOptions("DeleteOptions", field.ErrorList{field.Invalid(
			field.NewPath("ignoreStoreReadErrorWithClusterBreakingPotential"), true,
			"is not allowed with DELETECOLLECTION, try again after removing the option")})
	}
	if q.Has("watch") { // means nothing here
		q.Del("watch")
	}
	lo, err := listOptions(q, false)
	return lo, do, err
}

// removePages deletes page by page and returns how many events it deleted.
func (r *resource) removePages(ctx context.Context, p *pages, o *metav1.DeleteOptions) (int, error) {
	for total := 0; ; {
		n, err := r.removeAll(ctx, p.page.Records, o)
		if err != nil {
			return 0, err
		}
		if total += n; p.done {
			return total, nil
		}
		if err := turnOf(ctx).resume(ctx); err != nil {
			return 0, err
		}
		if err := p.next(ctx); err != nil {
			return 0, err
		}
	}
}

// removeAll deletes what a page lists and returns how many that were. What is
// gone already is passed over; any other error ends it. Events that can simply
// go, nearly always all, share commits; the others, and those that have changed
// since they were listed, are decided on one by one.
func (r *resource) removeAll(ctx context.Context, records []store.Record, o *metav1.DeleteOptions) (int, error) {
	var plain []store.Record
	var others []store.Key
	for i := range records {
		finalizers, err := r.codec.HasFinalizers(&records[i])
		switch {
		case err != nil:
			return 0, r.errorFor(err, records[i].Name)
		case finalizers || o.Preconditions != nil || len(o.DryRun) > 0:
			others = append(others, records[i].Key)
		default:
			plain = append(plain, records[i])
		}
	}
	turnOf(ctx).pause() // until the next page
	n, changed, err := r.store.DeleteMany(ctx, plain)
	if err != nil {
		return n, err
	}
	for _, key := range append(others, changed...) {
		switch _, _, err := r.remove(ctx, key, o); {
		case err == nil:
			n++
		case !errors.Is(err, store.ErrNotFound):
			return n, r.errorFor(err, key.Name)
		}
	}
	return n, nil
}
