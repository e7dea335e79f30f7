package events

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// nameAttempts is how often a name is made from generateName before giving up.
const nameAttempts = 8

// create stores a new event.
func (r *Resource) create(c echo.Context, may access.Grant) error {
	// 1. The create rates, before the body costs anything.
	if err := r.Guard.CountCreate(c, c.Param("namespace")); err != nil {
		return err
	}
	// 2. Format, body, options, deadline.
	in, err := begin(r, c, codec.ScopeObject, httpio.ParseWrite(httpio.CreateOptions, ""))
	if err != nil {
		return err
	}
	defer in.end()
	// 3. The event in the body.
	ev, err := r.decode(c, in)
	if err != nil {
		return err
	}
	if ev.Namespace != "" && ev.Namespace != in.key.Namespace {
		return errOtherNamespace()
	}
	// 4. Managed fields, defaults, rules.
	if err := r.prepareNew(in, may, ev, true); err != nil {
		return err
	}
	// 5. The store.
	rec, err := r.insert(in.ctx, r.writer(c, may, true), ev, in.options.DryRun)
	if err != nil {
		return err
	}
	// 6. The answer.
	return r.answer(c, http.StatusCreated, in.format, &rec)
}

// decode reads the event in a body. The event has no memory in common with the body.
func (r *Resource) decode(c echo.Context, in *call[httpio.WriteOptions]) (*eventsv1.Event, error) {
	ev, warnings, err := r.Codec.Decoder.DecodeEvent(r.view, c.Request().Header.Get("Content-Type"), in.body, in.options.Validation)
	if err == nil {
		warnings = append(warnings, event.DropDuplicateOwners(ev, false)...)
	}
	httpio.Warn(c, warnings)
	return ev, err
}

// errOtherNamespace is the 400 for a body with another namespace than the path.
func errOtherNamespace() error {
	return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
}

// prepareNew makes an event that a client sent fit to be stored: by POST, or by PUT
// or apply where there was none. It records who set which fields if track is set.
func (r *Resource) prepareNew(in *call[httpio.WriteOptions], may access.Grant, ev *eventsv1.Event, track bool) error {
	tooLarge := event.CheckSize(ev, nil)
	if track && tooLarge == nil { // it costs much for labels and annotations without a limit
		if err := r.Codec.Decoder.Fields.Update(r.view, nil, ev, in.options.Manager); err != nil {
			return err
		}
	}
	if err := r.Admit(in.ctx, may, in.key.Namespace); err != nil {
		return err
	}
	if err := event.PrepareForCreate(ev, in.key.Namespace, r.Now()); err != nil {
		return err
	}
	if tooLarge != nil {
		return tooLarge
	}
	if ev.Name == "" && ev.GenerateName != "" {
		ev.Name = event.GenerateName(ev.GenerateName)
		defer func() { ev.Name = "" }() // only to be validated: insert makes the name that is stored
	}
	if errs := event.ValidateCreate(r.view, ev); len(errs) > 0 {
		return event.Invalid(ev.Name, errs)
	}
	return may.MayStore(ev.Name, ev.Labels[event.ClusterLabel])
}

// insert stores a prepared event, under a made-up name if it has none.
func (r *Resource) insert(ctx context.Context, w writer, ev *eventsv1.Event, dryRun bool) (store.Record, error) {
	generated := ev.Name == ""
	for attempt := 1; ; attempt++ {
		if generated {
			ev.Name = event.GenerateName(ev.GenerateName)
		}
		key := store.Key{Namespace: ev.Namespace, Name: ev.Name}
		draft, err := r.draft(ctx, w, ev, nil, nil)
		if err != nil {
			return store.Record{}, err
		}
		rec, err := store.Create(ctx, target(r.Store, dryRun), key, draft)
		switch {
		case err == nil && !dryRun:
			r.Arrivals.note(w, &rec)
			return rec, nil
		case !errors.Is(err, store.ErrExists):
			return rec, err
		case !generated:
			return rec, r.errTaken(ctx, w.may, key)
		case attempt == nameAttempts:
			return rec, apierrors.NewGenerateNameConflict(r.groupResource, ev.Name, 1)
		}
	}
}

// errTaken is the 409 for a name that is taken. The error tells nothing else about an event that the caller may not
// see.
func (r *Resource) errTaken(ctx context.Context, may access.Grant, key store.Key) error {
	var live *eventsv1.Event
	// If it was deleted since, or cannot be read, the name was taken all the same.
	_ = r.Store.Get(ctx, key, func(v *store.View) (err error) {
		if may.Sees(v.Attributes) {
			live, err = r.Codec.Event(v)
		}
		return err
	})
	return r.taken(key.Name, live)
}

// taken is the 409 for a name that an event has, which may be nil. If that is deleted, and only waits for its
// finalizers, the message says that.
func (r *Resource) taken(name string, live *eventsv1.Event) error {
	taken := apierrors.NewAlreadyExists(r.groupResource, name)
	if live != nil && live.DeletionTimestamp != nil {
		taken.ErrStatus.Message = "object is being deleted: " + taken.ErrStatus.Message
	}
	return taken
}
