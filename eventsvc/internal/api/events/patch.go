package events

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// patch changes an event by a JSON, merge, strategic merge or apply patch. Only apply
// creates an event that is not there.
func (r *Resource) patch(c echo.Context, may access.Grant) error {
	// 1. The type of the patch, which decides on the rules of the options.
	kind, err := patchType(c)
	if err != nil {
		return err
	}
	// 2. Format, body, options, deadline.
	in, err := begin(r, c, codec.ScopeObject, httpio.ParseWrite(httpio.PatchOptions, kind))
	if err != nil {
		return err
	}
	defer in.end()
	if kind != types.ApplyYAMLPatchType {
		if err := r.Codec.Decoder.CheckPatch(in.body); err != nil {
			return err
		}
	}
	// 3. The next version, and the store.
	mayCreate := r.Guard.MayCreate(c, r.groupResource)
	var warnings []string // of the attempt that counts
	rec, code, err := r.write(in.ctx, r.remover(c, may, false), in.key, in.options.DryRun, func(live *eventsv1.Event) (next *eventsv1.Event, err error) {
		as := may
		if live == nil {
			if kind != types.ApplyYAMLPatchType {
				return nil, store.ErrNotFound
			}
			if as, err = mayCreate(); err != nil {
				return nil, err
			}
		}
		next, warnings, err = r.patched(kind, as, live, in)
		return next, err
	})
	httpio.Warn(c, warnings)
	if err != nil {
		return err
	}
	// 4. The answer.
	return r.answer(c, code, in.format, rec)
}

// patched returns the event that a patch makes of the stored one, fit to be stored,
// and warnings.
func (r *Resource) patched(kind types.PatchType, may access.Grant, live *eventsv1.Event, in *call[httpio.WriteOptions]) (next *eventsv1.Event, warnings []string, err error) {
	o := in.options
	if kind == types.ApplyYAMLPatchType {
		next, warnings, err = r.Codec.Decoder.Apply(r.view, live, in.body, o.Manager, o.Force, o.Validation)
	} else {
		next, warnings, err = r.Codec.Decoder.Patch(r.view, kind, in.body, live, o.Validation)
	}
	if err != nil {
		return nil, warnings, err
	}
	if live == nil && next.UID != "" {
		return nil, warnings, apierrors.NewConflict(r.groupResource, in.key.Name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", next.UID))
	}
	if err := checkTarget(next, in.key); err != nil {
		return nil, warnings, err
	}
	drop := func() { warnings = append(warnings, event.DropDuplicateOwners(next, true)...) }
	if live == nil {
		drop()
	}
	if err := r.prepare(in, may, live, next, kind != types.ApplyYAMLPatchType); err != nil { // apply has tracked the fields
		return nil, warnings, err
	}
	drop() // when fields are tracked: as in kube-apiserver, who repeats an owner does not own its fields
	return next, warnings, nil
}

// patchType reads the type of a patch from the Content-Type header.
func patchType(c echo.Context) (types.PatchType, error) {
	media, _, err := mime.ParseMediaType(c.Request().Header.Get("Content-Type"))
	if err == nil && slices.Contains(httpio.PatchTypes, media) {
		return types.PatchType(media), nil
	}
	c.Response().Header().Set("Accept-Patch", strings.Join(httpio.PatchTypes, ", ")) // RFC 5789 section 3.1
	// The answer of kube-apiserver's router, whose details are empty.
	return "", &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnsupportedMediaType,
		Reason:  metav1.StatusReasonUnsupportedMediaType,
		Message: "415: Unsupported Media Type", Details: &metav1.StatusDetails{},
	}}
}
