package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
)

// deleteCollection deletes everything in a namespace that the options select. It
// answers with a Status that has their number, or with the list of them as it was before
// if the client asks for a Table or for metadata.
func (r *Resource) deleteCollection(c echo.Context, may access.Grant) error {
	// 1. Format, body, options, deadline.
	in, err := begin(r, c, codec.ScopeList, r.collectionOptions)
	if err != nil {
		return err
	}
	defer in.end()
	o := in.options.list
	ctx, cancel := context.WithTimeout(in.ctx, httpio.ListLimit(o))
	defer cancel()
	if in.format.As != codec.None { // what is deleted is listed, and cannot be refused later
		if err := flow.FromContext(ctx).Take(ctx, listRoom); err != nil {
			return httpio.Unread(err)
		}
	}
	// 2. What is selected, at which version.
	sel, err := r.selection(c, may, o)
	if err != nil {
		return err
	}
	p, err := newPages(r.Store, o, sel)
	if err != nil {
		return err
	}
	before := *p
	// 3. The store, page by page.
	gone := &removal{r: r, w: r.remover(c, may, false), pages: p, options: in.options.delete}
	page, err := gone.read(ctx)
	if err != nil {
		return err
	}
	before.query.Revision = gone.first
	n, err := gone.all(ctx, page)
	if err != nil {
		return err
	}
	// 4. The answer.
	if in.format.As != codec.None {
		return r.writeList(ctx, c, in.format, &before)
	}
	return r.IO.Status(c, http.StatusOK, in.format, &metav1.Status{
		Status:   metav1.StatusSuccess,
		ListMeta: p.meta(),
		Message:  fmt.Sprintf("deleted %d %s", n, r.groupResource),
		Details:  &metav1.StatusDetails{Group: r.groupResource.Group, Kind: r.groupResource.Resource},
	})
}

// collectionOptions are what to delete and how.
type collectionOptions struct {
	list   metav1.ListOptions
	delete *metav1.DeleteOptions
}

// collectionOptions reads the options of a deletecollection. The query's
// resourceVersion belongs to the list and is never a precondition of each delete.
func (r *Resource) collectionOptions(req *http.Request, q url.Values, body []byte) (o collectionOptions, err error) {
	each := maps.Clone(q)
	each.Del("resourceVersion")
	if o.delete, err = httpio.ParseDelete(r.Codec.Decoder)(req, each, body); err != nil {
		return o, err
	}
	if ignoresReadErrors(o.delete) {
		return o, httpio.Invalid("DeleteOptions", field.ErrorList{field.Invalid(
			field.NewPath("ignoreStoreReadErrorWithClusterBreakingPotential"), true,
			"is not allowed with DELETECOLLECTION, try again after removing the option")})
	}
	q.Del("watch") // means nothing here
	o.list, err = httpio.ParseList(q, false)
	return o, err
}

// removal deletes a collection page by page.
type removal struct {
	r       *Resource
	w       writer
	pages   *pages
	options *metav1.DeleteOptions
	first   uint64 // revision of the first page: what was written later stays
}

// removable are the events of a page: plain ones, which share commits, and others, which
// are decided on one by one. Nearly all are plain.
type removable struct {
	plain  []store.Seen
	others []store.Key
}

// read reads the next page of the list. If the revision of the list is no longer held,
// which the deletions themselves may cause, it goes on at the newest one.
func (r *removal) read(ctx context.Context) (*removable, error) {
	oneByOne := r.options.Preconditions != nil || len(r.options.DryRun) > 0
	for {
		var page removable
		var failed error
		err := r.pages.show(ctx, func(v *store.View) bool {
			finalizers, err := r.r.Codec.HasFinalizers(v)
			switch {
			case r.first != 0 && v.Revision > r.first:
			case err != nil:
				failed = r.r.named(err, v.Name)
			case finalizers || oneByOne:
				page.others = append(page.others, v.Key)
			default:
				page.plain = append(page.plain, v.Seen())
			}
			return failed == nil
		})
		switch {
		case errors.Is(err, errMoved), r.first != 0 && apierrors.IsResourceExpired(err):
			r.pages.query.Revision = 0
			continue
		case r.first == 0:
			r.first = r.pages.page.Revision
		}
		return &page, cmp.Or(failed, err)
	}
}

// all deletes page by page, beginning with one that was read, and returns how many events
// it deleted. While one page is deleted the next is read, because one after the other takes
// about 1.7 times as long.
func (r *removal) all(ctx context.Context, page *removable) (int, error) {
	for total := 0; ; {
		var n int
		read, last := page, r.pages.done
		removed := access.Beside(ctx, func(ctx context.Context) (err error) {
			n, err = r.remove(ctx, read)
			return err
		})
		var next error
		if !last {
			page, next = r.read(ctx)
		}
		if err := cmp.Or(removed(), next); err != nil {
			return 0, err
		}
		if total += n; last {
			return total, nil
		}
	}
}

// remove deletes the events of a page and returns how many those were. It passes over
// events that are gone already; any other error ends it. Plain events that have changed
// since they were listed are decided on one by one.
func (r *removal) remove(ctx context.Context, page *removable) (int, error) {
	n, changed, err := r.r.Store.DeleteMany(ctx, page.plain, r.w.deleter)
	if err != nil {
		return n, err
	}
	for _, key := range append(page.others, changed...) {
		switch _, _, err := r.r.remove(ctx, r.w, key, r.options, func([]byte) error { return nil }); {
		case err == nil:
			n++
		case !errors.Is(err, store.ErrNotFound):
			return n, r.r.named(err, key.Name)
		}
	}
	return n, nil
}
