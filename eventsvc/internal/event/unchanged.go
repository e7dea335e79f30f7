package event

import (
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Nearly every update leaves alone what it must not change. Seeing that costs
// a small part of what the library takes to say what is wrong, which is asked
// only where something may be. Times have to be the same to the bit.

// unchanged tells whether validateImmutable surely finds nothing.
func unchanged(next, live *eventsv1.Event) bool {
	related := next.Related == live.Related ||
		next.Related != nil && live.Related != nil && *next.Related == *live.Related
	return related && next.Regarding == live.Regarding && next.Reason == live.Reason && next.Note == live.Note &&
		next.DeprecatedSource == live.DeprecatedSource && next.DeprecatedFirstTimestamp == live.DeprecatedFirstTimestamp &&
		next.DeprecatedLastTimestamp == live.DeprecatedLastTimestamp && next.DeprecatedCount == live.DeprecatedCount &&
		next.Type == live.Type && next.Action == live.Action && next.ReportingController == live.ReportingController &&
		next.ReportingInstance == live.ReportingInstance &&
		next.EventTime.Truncate(time.Microsecond).Equal(live.EventTime.Truncate(time.Microsecond))
}

// validateMetaUpdate is the library's check of metadata in an update.
func validateMetaUpdate(next, live *metav1.ObjectMeta, at *field.Path) field.ErrorList {
	if !plainUpdate(next, live) {
		return metavalidation.ValidateObjectMetaUpdate(next, live, at)
	}
	errs := metav1validation.ValidateLabels(next.Labels, at.Child("labels"))
	errs = append(errs, metavalidation.ValidateAnnotations(next.Annotations, at.Child("annotations"))...)
	return append(errs, metav1validation.ValidateManagedFields(next.ManagedFields, at.Child("managedFields"), metav1validation.CoveredByDeclarative)...)
}

// plainUpdate tells whether an update of metadata can break no other rules than
// those of labels, annotations and managed fields.
func plainUpdate(next, live *metav1.ObjectMeta) bool {
	return next.Name == live.Name && next.Namespace == live.Namespace && next.UID == live.UID &&
		next.CreationTimestamp == live.CreationTimestamp && next.Generation == live.Generation && next.Generation >= 0 &&
		next.ResourceVersion != "" && len(next.OwnerReferences) == 0 &&
		next.DeletionTimestamp == nil && live.DeletionTimestamp == nil &&
		next.DeletionGracePeriodSeconds == nil && live.DeletionGracePeriodSeconds == nil
}
