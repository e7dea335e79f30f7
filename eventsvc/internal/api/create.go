package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// nameAttempts is how often a name is made from generateName before giving up.
const nameAttempts = 8

// The texts for a body that is about another object than the URL.
const (
	textOtherNamespace = "the namespace of the provided object does not match the namespace sent on the request"
	textOtherName      = "the name of the object (%s) does not match the name on the URL (%s)"
	textNoName         = "the name of the object (%s based on URL) was undeterminable: name must be provided"
)

// create stores a new event. Errors surface in the original's order: answer
// format, body, options, decoding, namespace, then the rules of events.
func (r *resource) create(c echo.Context) error {
	if err := r.takeCreate(c); err != nil { // before the body costs anything
		return err
	}
	in, err := r.receive(c, createOptions)
	if err != nil {
		return err
	}
	ev := in.event
	namespace := c.Param("namespace")
	if ev.Namespace != "" && ev.Namespace != namespace {
		return apierrors.NewBadRequest(textOtherNamespace)
	}
	ctx, cancel, err := writeContext(c.Request().Context(), in.query)
	if err != nil {
		return err
	}
	defer cancel()
	if err := r.trackNew(ev, in.options.manager); err != nil {
		return err
	}
	if err := r.prepareNew(ctx, ev, namespace); err != nil {
		return err
	}
	rec, err := r.insert(ctx, ev, in.options)
	if err != nil {
		return err
	}
	return r.object(c, http.StatusCreated, in.format, &rec)
}

// received is an event that a client has sent, and how it wants it treated.
type received struct {
	event   *eventsv1.Event
	format  codec.Format // of the answer
	query   url.Values
	options writeOptions
}

// receive reads a request that carries an event. Errors surface in the
// original's order: answer format, body, options, decoding.
func (r *resource) receive(c echo.Context, options func(*http.Request, url.Values) (writeOptions, error)) (in received, err error) {
	req := c.Request()
	if in.format, err = r.codec.Negotiate(req, codec.ScopeObject); err != nil {
		return in, err
	}
	p := r.buffers.get()
	defer r.buffers.put(p) // what is decoded is copied out
	body, err := r.readBody(req, p)
	if err != nil {
		return in, err
	}
	in.query = query(req)
	if in.options, err = options(req, in.query); err != nil {
		return in, err
	}
	ev, warnings, err := r.codec.DecodeEvent(r.view, req.Header.Get("Content-Type"), body, in.options.validation)
	if err != nil {
		warn(c, warnings)
		return in, err
	}
	warn(c, append(warnings, event.DropDuplicateOwners(ev, false)...))
	in.event = ev
	return in, nil
}

// writeContext bounds the time of a write.
func writeContext(ctx context.Context, q url.Values) (context.Context, context.CancelFunc, error) {
	limit, err := requestTime(q, maxWriteTime)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, cancel, nil
}

// trackNew records who set the fields of a new event, but not of one that
// prepareNew refuses for its size: what is large is costly to track.
func (r *resource) trackNew(ev *eventsv1.Event, manager string) error {
	if event.CheckSize(r.view, ev, nil, r.Rules) != nil {
		return nil
	}
	return r.codec.Fields.Update(r.view, nil, ev, manager)
}

// trackNext records who changed what, if the next version may be that large.
func (r *resource) trackNext(live, next *eventsv1.Event, manager string) error {
	if err := event.CheckSize(r.view, next, live, r.Rules); err != nil {
		return err
	}
	return r.codec.Fields.Update(r.view, live, next, manager)
}

// prepareNew makes an event that a client sent fit to be stored: by POST, or
// by PUT or apply where there was none.
func (r *resource) prepareNew(ctx context.Context, ev *eventsv1.Event, namespace string) error {
	if err := r.admitNamespace(ctx, namespace); err != nil {
		return err
	}
	if err := event.PrepareForCreate(ev, namespace, r.Now()); err != nil {
		return err
	}
	if err := event.CheckSize(r.view, ev, nil, r.Rules); err != nil {
		return err
	}
	if ev.Name == "" && ev.GenerateName != "" {
		ev.Name = event.GenerateName(ev.GenerateName)
		defer func() { ev.Name = "" }() // insert makes the one that is kept
	}
	if errs := event.ValidateCreate(r.view, ev, r.Rules); len(errs) > 0 {
		return event.Invalid(r.view, ev.Name, errs)
	}
	return nil
}

// insert stores a prepared event, under a made-up name if it has none.
func (r *resource) insert(ctx context.Context, ev *eventsv1.Event, o writeOptions) (store.Record, error) {
	generated := ev.Name == ""
	for attempt := 1; ; attempt++ {
		if generated {
			ev.Name = event.GenerateName(ev.GenerateName)
		}
		key := store.Key{Namespace: ev.Namespace, Name: ev.Name}
		draft, err := r.codec.Draft(ev)
		if err != nil {
			return store.Record{}, err
		}
		rec, err := r.put(ctx, key, draft, o.dryRun)
		switch {
		case !errors.Is(err, store.ErrExists):
			return rec, err
		case !generated:
			return rec, r.exists(ctx, key)
		case attempt == nameAttempts:
			return rec, apierrors.NewGenerateNameConflict(r.groupResource, ev.Name, 1)
		}
	}
}

// put stores a new event, or in a dry run only looks whether it could.
func (r *resource) put(ctx context.Context, key store.Key, draft store.Draft, dryRun bool) (store.Record, error) {
	if !dryRun {
		return r.store.Create(ctx, key, draft)
	}
	switch _, err := r.store.Get(ctx, key); {
	case err == nil:
		return store.Record{}, store.ErrExists
	case !errors.Is(err, store.ErrNotFound):
		return store.Record{}, err
	}
	return store.Record{Key: key, Attributes: draft.Attributes, Value: draft.Value}, nil
}

// exists is the 409 for a name that is taken; it says so when the event there
// only waits for its finalizers.
func (r *resource) exists(ctx context.Context, key store.Key) error {
	taken := apierrors.NewAlreadyExists(r.groupResource, key.Name)
	rec, err := r.store.Get(ctx, key)
	if err != nil {
		return taken // deleted since, or not readable: the name was taken all the same
	}
	if live, err := r.codec.Event(&rec); err == nil && live.DeletionTimestamp != nil {
		taken.ErrStatus.Message = "object is being deleted: " + taken.ErrStatus.Message
	}
	return taken
}
