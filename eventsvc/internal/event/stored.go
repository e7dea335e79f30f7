package event

import (
	eventsv1 "k8s.io/api/events/v1"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateStored checks an event that another store has had, before an import. It
// must have the metadata that only a server sets. The rules for its content do not
// apply: they were those of the request that wrote it, and may have changed since.
func ValidateStored(ev *eventsv1.Event) field.ErrorList {
	metadata := field.NewPath("metadata")
	errs := metavalidation.ValidateObjectMeta(&ev.ObjectMeta, true, validatePathName, metadata)
	if ev.UID == "" {
		errs = append(errs, field.Required(metadata.Child("uid"), "events that are new go through the API"))
	}
	if ev.CreationTimestamp.IsZero() {
		errs = append(errs, field.Required(metadata.Child("creationTimestamp"), "events that are new go through the API"))
	}
	return errs
}
