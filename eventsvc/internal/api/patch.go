package api

import (
	"mime"
	"net/http"

	"github.com/labstack/echo/v4"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// patch changes an event by a JSON, merge, strategic merge or apply patch.
// Only apply creates an event that is not there.
func (r *resource) patch(c echo.Context) error {
	req := c.Request()
	f, err := r.codec.Negotiate(req, codec.ScopeObject)
	if err != nil {
		return err
	}
	kind, err := patchType(req)
	if err != nil {
		c.Response().Header().Set("Accept-Patch", patchTypes)
		return err
	}
	p := r.buffers.get()
	defer r.buffers.put(p)
	body, err := r.readBody(req, p)
	if err != nil {
		return err
	}
	q := query(req)
	o, err := patchOptions(req, q, kind)
	if err != nil {
		return err
	}
	ctx, cancel, err := writeContext(req.Context(), q)
	if err != nil {
		return err
	}
	defer cancel()
	if kind != types.ApplyYAMLPatchType {
		if err := r.codec.CheckPatch(body); err != nil {
			return err
		}
	}
	key := store.Key{Namespace: c.Param("namespace"), Name: c.Param("name")}
	mayCreate := r.mayCreate(c)
	var warnings []string // of the attempt that counts
	rec, code, err := r.write(ctx, key, o.dryRun, func(live *eventsv1.Event) (*eventsv1.Event, error) {
		var next *eventsv1.Event
		var err error
		if kind == types.ApplyYAMLPatchType {
			if live == nil {
				if err := mayCreate(); err != nil {
					return nil, err
				}
			}
			next, warnings, err = r.codec.Apply(r.view, live, body, o.manager, o.force, o.validation)
		} else if live == nil {
			return nil, store.ErrNotFound
		} else {
			next, warnings, err = r.codec.Patch(r.view, kind, body, live, o.validation)
		}
		if err != nil {
			return nil, err
		}
		warnings = append(warnings, event.DropDuplicateOwners(next, true)...)
		if err := checkTarget(next, key); err != nil {
			return nil, err
		}
		if live == nil {
			if next.UID != "" {
				return nil, r.otherUID(key.Name, next, nil)
			}
			next.ResourceVersion = ""
			return next, r.prepareNew(ctx, next, key.Namespace)
		}
		next.Namespace = key.Namespace
		if err := r.prepareNext(next, live); err != nil {
			return nil, err
		}
		if kind == types.ApplyYAMLPatchType {
			return next, nil
		}
		return next, r.trackNext(live, next, o.manager)
	})
	warn(c, warnings)
	if err != nil {
		return err
	}
	return r.object(c, code, f, rec)
}

// patchTypes are the media types of patches, as Accept-Patch lists them (RFC
// 5789 section 3.1).
const patchTypes = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml"

// patchType reads the kind of a patch from the Content-Type header.
func patchType(r *http.Request) (types.PatchType, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil {
		switch t := types.PatchType(media); t {
		case types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType:
			return t, nil
		}
	}
	// The answer of kube-apiserver's router, which has no details.
	return "", &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnsupportedMediaType,
		Reason:  metav1.StatusReasonUnsupportedMediaType,
		Message: "415: Unsupported Media Type", Details: &metav1.StatusDetails{},
	}}
}
