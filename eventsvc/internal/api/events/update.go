package events

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// update replaces an event, or creates it where there is none.
func (r *Resource) update(c echo.Context, may access.Grant) error {
	// 1. Format, body, options, deadline.
	in, err := begin(r, c, codec.ScopeObject, httpio.ParseWrite(httpio.UpdateOptions, ""))
	if err != nil {
		return err
	}
	defer in.end()
	// 2. The event in the body.
	sent, err := r.decode(c, in)
	if err != nil {
		return err
	}
	if err := checkTarget(sent, in.key); err != nil {
		return err
	}
	// 3. The next version, and the store.
	mayCreate := r.Guard.MayCreate(c, r.groupResource)
	rec, code, err := r.write(in.ctx, r.remover(c, may, true), in.key, in.options.DryRun, func(live *eventsv1.Event) (*eventsv1.Event, error) {
		as := may
		switch {
		case sent.UID != "" && (live == nil || live.UID != sent.UID):
			return nil, otherUID(r.groupResource, in.key.Name, sent, live)
		case live == nil:
			var err error
			if as, err = mayCreate(); err != nil {
				return nil, err
			}
		}
		next := sent.DeepCopy() // another attempt needs it as it was sent
		return next, r.prepare(in, as, live, next, true)
	})
	if err != nil {
		return err
	}
	// 4. The answer.
	return r.answer(c, code, in.format, rec)
}

// checkTarget returns an error unless an object is the one that the URL names. The
// namespace may be left out.
func checkTarget(ev *eventsv1.Event, key store.Key) error {
	switch {
	case ev.Namespace != "" && ev.Namespace != key.Namespace:
		return errOtherNamespace()
	case ev.Name == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", key.Name))
	case ev.Name != key.Name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", ev.Name, key.Name))
	}
	return nil
}

// otherUID is the 409 for a write that expects another object under the name.
func otherUID(of schema.GroupResource, name string, sent, live *eventsv1.Event) error {
	var uid string
	if live != nil {
		uid = string(live.UID)
	}
	return apierrors.NewConflict(of, name,
		fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", sent.UID, uid)) //nolint:staticcheck // clients know this text
}

// prepare makes what a client sent fit to follow the stored event, or to be stored where
// there is none, for which it may create one. It records who set which fields if track is set.
func (r *Resource) prepare(in *call[httpio.WriteOptions], may access.Grant, live, next *eventsv1.Event, track bool) error {
	next.Namespace = in.key.Namespace
	if live == nil {
		next.ResourceVersion = "" // there is nothing that it could be a version of
		return r.prepareNew(in, may, next, track)
	}
	if err := prepareNext(r.groupResource, next, live); err != nil {
		return err
	}
	if err := event.CheckSize(next, live); err != nil || !track {
		return err
	}
	return r.Codec.Decoder.Fields.Update(r.view, live, next, in.options.Manager)
}

// prepareNext makes what a client sent fit to follow the stored event. A
// resourceVersion pins the version that it is based on; without one, or with "0", the
// write wins whatever is stored.
func prepareNext(resource schema.GroupResource, next, live *eventsv1.Event) error {
	if text := next.ResourceVersion; text != "" && text != "0" && text != live.ResourceVersion {
		if _, err := strconv.ParseUint(text, 10, 64); err != nil {
			return apierrors.NewBadRequest("invalid resource version: " +
				field.Invalid(field.NewPath("metadata", "resourceVersion"), text, err.Error()).Error())
		}
		return apierrors.NewConflict(resource, live.Name,
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	next.ResourceVersion = live.ResourceVersion
	event.PrepareForUpdate(next, live)
	return nil
}

// change makes the next version of an event out of the stored one, nil if there is
// none. It must not change what it is given.
type change func(live *eventsv1.Event) (*eventsv1.Event, error)

// write is the path that PUT and every PATCH share: it stores the next version of an
// event, and returns what to answer with.
func (r *Resource) write(ctx context.Context, w writer, key store.Key, dryRun bool, make change) (*store.Record, int, error) {
	var last *store.Record // shown instead of the result
	result, err := target(r.Store, dryRun).Update(ctx, key, store.Any, func(current *store.Record) (d store.Decision, err error) {
		if d, last, err = r.decide(ctx, w, key, current, make); err != nil {
			return d, err
		}
		if d.Op == store.Keep {
			return d, answerable(ctx, current.Value)
		}
		return d, answerable(ctx, d.Draft.Value)
	})
	if err == nil && !dryRun && result.Op == store.Put {
		r.Arrivals.note(w, &result.Record)
	}
	switch {
	case err != nil:
		return nil, 0, r.named(err, key.Name)
	case last != nil:
		return last, http.StatusOK, nil
	case result.Created:
		return &result.Record, http.StatusCreated, nil
	default:
		return &result.Record, http.StatusOK, nil
	}
}

// live decodes the stored event, if there is one. It is hidden if it is of a cluster that the writer must not know.
func (r *Resource) live(w writer, current *store.Record) (live *eventsv1.Event, hidden bool, err error) {
	switch {
	case current == nil:
		return nil, false, nil
	case !w.may.Sees(current.Attributes):
		return nil, true, nil
	}
	live, err = r.Codec.Event(current.View())
	return live, false, err
}

// decide makes the next version, checks it against the current one, and stores it unless
// that changes nothing. If it deletes the event, it returns the version to show.
func (r *Resource) decide(
	ctx context.Context, w writer, key store.Key, current *store.Record, make change,
) (d store.Decision, last *store.Record, err error) {
	// 1. The stored event. One of another cluster is not there for the writer, and yet no other can be stored in its place.
	live, hidden, err := r.live(w, current)
	if err != nil {
		return d, nil, err
	}
	// 2. The next version, checked against it.
	next, err := make(live)
	if err != nil {
		return d, nil, err
	}
	if live != nil {
		if errs := event.ValidateUpdate(r.view, next, live); len(errs) > 0 {
			return d, nil, event.Invalid(key.Name, errs)
		}
	}
	// 3. What to store.
	draft, err := r.draft(ctx, w, next, live, current)
	switch {
	case err == nil && hidden:
		return d, nil, store.ErrNotFound
	case err != nil || live == nil:
	case fields.Same(next, live) && draft.Attributes.Believed() == current.Attributes.Believed():
		return store.Decision{Op: store.Keep}, nil, nil
	case live.DeletionTimestamp != nil && len(next.Finalizers) == 0:
		// The last finalizer is gone, so the event goes too. The answer is what was sent,
		// at the version that was there.
		last = &store.Record{Key: key, Revision: current.Revision, Attributes: draft.Attributes, Value: draft.Value}
		return store.Decision{Op: store.Delete, By: w.deleter}, last, nil
	}
	return store.Decision{Op: store.Put, Draft: draft}, nil, err
}
