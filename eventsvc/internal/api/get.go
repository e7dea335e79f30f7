package api

import (
	"cmp"
	"net/http"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/store"
)

// get answers with one event. There is no cache, so a resourceVersion can only
// ask for more than there is.
func (r *resource) get(c echo.Context) error {
	req := c.Request()
	f, err := r.codec.Negotiate(req, codec.ScopeObject)
	if err != nil {
		return err
	}
	if q := query(req); len(q) > 0 {
		if _, err := requestTime(q, maxRequestTime); err != nil {
			return err
		}
		if q.Has("export") && q.Get("export") != "false" && q.Get("export") != "0" {
			return apierrors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
		}
		rv, err := parseVersion(q.Get("resourceVersion"))
		if err != nil {
			return err
		}
		if current := r.store.Revision(); rv > current {
			return tooLarge(rv, current, 0)
		}
	}
	key := store.Key{Namespace: c.Param("namespace"), Name: c.Param("name")}
	p := r.buffers.get()
	defer r.buffers.put(p)
	var failed error
	err = r.store.Show(req.Context(), key, f.Uses(), func(rec *store.Record) {
		*p, failed = r.codec.AppendObject((*p)[:0], f, r.view, rec)
	})
	if err = cmp.Or(err, failed); err != nil {
		return r.errorFor(err, key.Name)
	}
	return r.send(c, http.StatusOK, f.ContentType(false), *p)
}
