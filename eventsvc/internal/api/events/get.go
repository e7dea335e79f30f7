package events

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/store"
)

// get answers with one event.
func (r *Resource) get(c echo.Context, may access.Grant) error {
	// 1. Format, options, deadline.
	in, err := begin(r, c, codec.ScopeObject, r.getOptions)
	if err != nil {
		return err
	}
	defer in.end()
	// 2. The answer, made from the event while the store lends it.
	return r.IO.Append(c, http.StatusOK, in.format, func(b []byte) (answer []byte, err error) {
		err = r.Store.Get(in.ctx, in.key, func(v *store.View) (err error) {
			if !may.Sees(v.Attributes) {
				return store.ErrNotFound
			}
			answer, err = r.Codec.AppendObject(b, in.format, r.view, v)
			return err
		})
		return answer, r.named(err, in.key.Name)
	})
}

// getOptions checks the options of a get. There is no cache, so a resourceVersion can
// only ask for more than there is.
func (r *Resource) getOptions(_ *http.Request, q url.Values, _ []byte) (none struct{}, err error) {
	if q.Has("export") && q.Get("export") != "false" && q.Get("export") != "0" {
		return none, apierrors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	rv, err := httpio.ParseVersion(q.Get("resourceVersion"))
	if current := r.Store.Revision(); err == nil && rv > current {
		err = &store.FutureError{Revision: rv, Current: current}
	}
	return none, err
}
