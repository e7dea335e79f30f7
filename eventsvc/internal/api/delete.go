package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// delete removes one event. One that has finalizers is only marked; the write
// that takes the last of them away removes it.
func (r *resource) delete(c echo.Context) error {
	req := c.Request()
	f, err := r.codec.Negotiate(req, codec.ScopeObject)
	if err != nil {
		return err
	}
	p := r.buffers.get()
	defer r.buffers.put(p)
	body, err := r.readBody(req, p)
	if err != nil {
		return err
	}
	q := query(req)
	o, err := r.deleteOptions(req, q, body)
	if err != nil {
		return err
	}
	ctx, cancel, err := writeContext(req.Context(), q)
	if err != nil {
		return err
	}
	defer cancel()
	key := store.Key{Namespace: c.Param("namespace"), Name: c.Param("name")}
	result, uid, err := r.remove(ctx, key, o)
	if err != nil {
		return r.errorFor(err, key.Name)
	}
	if result.Op != store.Delete {
		code := http.StatusOK
		if o.OrphanDependents != nil && !*o.OrphanDependents {
			code = http.StatusAccepted // as kube-apiserver does for cascading deletes that must wait
		}
		return r.object(c, code, f, &result.Record)
	}
	return r.status(c, http.StatusOK, f, &metav1.Status{
		Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: key.Name, Group: r.groupResource.Group, Kind: r.groupResource.Resource, UID: uid,
		},
	})
}

// remove deletes or marks one event.
func (r *resource) remove(ctx context.Context, key store.Key, o *metav1.DeleteOptions) (store.Result, types.UID, error) {
	var uid types.UID
	result, err := r.commit(ctx, key, len(o.DryRun) > 0, func(current *store.Record) (store.Decision, error) {
		if current == nil {
			return store.Decision{}, store.ErrNotFound
		}
		live, err := r.codec.Event(current)
		if err != nil {
			return store.Decision{}, err
		}
		uid = live.UID
		if err := precondition(o.Preconditions, live); err != nil {
			return store.Decision{}, err
		}
		switch {
		case len(live.Finalizers) == 0:
			return store.Decision{Op: store.Delete}, nil
		case live.DeletionTimestamp != nil:
			return store.Decision{Op: store.Keep}, nil
		}
		now, grace := metav1.NewTime(r.Now()).Rfc3339Copy(), int64(0)
		live.DeletionTimestamp, live.DeletionGracePeriodSeconds = &now, &grace
		draft, err := r.codec.Draft(live)
		return store.Decision{Op: store.Put, Draft: draft}, err
	})
	return result, uid, err
}

// precondition compares what a delete expects with what is stored. The
// original names the kind here, not the resource.
func precondition(want *metav1.Preconditions, live *eventsv1.Event) error {
	var reason string
	switch {
	case want == nil:
		return nil
	case want.UID != nil && *want.UID != live.UID:
		reason = fmt.Sprintf("the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *want.UID, live.UID)
	case want.ResourceVersion != nil && *want.ResourceVersion != live.ResourceVersion:
		reason = fmt.Sprintf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). "+
			"The object might have been modified", *want.ResourceVersion, live.ResourceVersion)
	default:
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: event.Kind}, live.Name, errors.New(reason))
}
