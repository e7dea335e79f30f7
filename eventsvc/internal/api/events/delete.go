package events

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

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// delete removes one event. One that has finalizers is only marked; the write that
// takes the last of them away removes it.
func (r *Resource) delete(c echo.Context, may access.Grant) error {
	// 1. Format, body, options, deadline.
	in, err := begin(r, c, codec.ScopeObject, httpio.ParseDelete(r.Codec.Decoder))
	if err != nil {
		return err
	}
	defer in.end()
	// 2. The store.
	result, uid, err := r.remove(in.ctx, r.remover(c, may, false), in.key, in.options, func(value []byte) error { return answerable(in.ctx, value) })
	if err != nil {
		return r.named(err, in.key.Name)
	}
	// 3. The answer: a Status, or the event that waits for its finalizers.
	if result.Op != store.Delete {
		code := http.StatusOK
		if orphan := in.options.OrphanDependents; orphan != nil && !*orphan {
			code = http.StatusAccepted // as kube-apiserver does for cascading deletes that must wait
		}
		return r.answer(c, code, in.format, &result.Record)
	}
	return r.IO.Status(c, http.StatusOK, in.format, &metav1.Status{
		Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: in.key.Name, Group: r.groupResource.Group, Kind: r.groupResource.Resource, UID: uid,
		},
	})
}

// remove deletes or marks one event. It calls shown with the value of one that stays, whose
// error refuses the removal.
func (r *Resource) remove(ctx context.Context, w writer, key store.Key, o *metav1.DeleteOptions, shown func(value []byte) error) (store.Result, types.UID, error) {
	var uid types.UID
	result, err := target(r.Store, len(o.DryRun) > 0).Update(ctx, key, store.Any, func(current *store.Record) (store.Decision, error) {
		if current == nil || !w.may.Sees(current.Attributes) {
			return store.Decision{}, store.ErrNotFound
		}
		live, err := r.Codec.Event(current.View())
		switch {
		case ignoresReadErrors(o) && err == nil:
			return store.Decision{}, apierrors.NewConflict(r.groupResource, key.Name, errReadable(key))
		case ignoresReadErrors(o):
			return store.Decision{Op: store.Delete}, nil
		case err != nil:
			return store.Decision{}, err
		}
		uid = live.UID
		if err := precondition(o.Preconditions, live); err != nil {
			return store.Decision{}, err
		}
		switch {
		case len(live.Finalizers) == 0:
			return store.Decision{Op: store.Delete, By: w.deleter}, nil
		case live.DeletionTimestamp != nil:
			return store.Decision{Op: store.Keep}, shown(current.Value)
		}
		now, grace := metav1.NewTime(r.Now()).Rfc3339Copy(), int64(0)
		live.DeletionTimestamp, live.DeletionGracePeriodSeconds = &now, &grace
		draft, err := r.draft(ctx, w, live, live, current)
		if err != nil {
			return store.Decision{}, err
		}
		return store.Decision{Op: store.Put, Draft: draft}, shown(draft.Value)
	})
	return result, uid, err
}

// errReadable refuses a delete that is for objects which cannot be read, in the words of kube-apiserver and its etcd.
func errReadable(key store.Key) error {
	return fmt.Errorf("StorageError: invalid object, Code: 4, Key: /registry/events/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: "+
		"unsafe deletion is not allowed because the object is decodable from storage", key.Namespace, key.Name)
}

// ignoresReadErrors reports whether a delete is for an object that cannot be read (kep.k8s.io/3926).
func ignoresReadErrors(o *metav1.DeleteOptions) bool {
	ignore := o.IgnoreStoreReadErrorWithClusterBreakingPotential
	return ignore != nil && *ignore
}

// precondition compares what a delete expects with what is stored. kube-apiserver
// names the kind here, not the resource.
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
