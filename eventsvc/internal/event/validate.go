package event

import (
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules are what a deployment may set about validation. The zero value is the
// original's.
type Rules struct {
	// Types are the accepted values of type on events/v1; nil: Normal, Warning.
	Types []string
}

// ValidateCreate checks a new event by the rules of the view that it came
// through.
func ValidateCreate(v View, ev *eventsv1.Event, r Rules) field.ErrorList { return nil }

// ValidateUpdate checks what a write would make of a stored event.
func ValidateUpdate(v View, next, live *eventsv1.Event, r Rules) field.ErrorList { return nil }

// Invalid is the answer to an event that broke rules: 422, with every broken
// rule as a cause. Kind Event has no group here, in either view.
func Invalid(_ View, name string, errs field.ErrorList) *apierrors.StatusError {
	return apierrors.NewInvalid(schema.GroupKind{Kind: Kind}, name, errs)
}
