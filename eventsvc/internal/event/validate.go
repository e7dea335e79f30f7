package event

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Lengths are in bytes, as in kube-apiserver.
const (
	maxShort = 128  // reportingInstance, action, reason
	maxNote  = 1024 // note
	maxName  = 768  // name through core/v1: with the longest namespace it still fits the keys of the store
)

// Invalid returns the answer to an invalid event: 422, with every broken rule as a
// cause. As in kube-apiserver, its details name no group in either view.
func Invalid(name string, errs field.ErrorList) *apierrors.StatusError {
	return apierrors.NewInvalid(schema.GroupKind{Kind: Kind}, name, errs)
}

// ValidateCreate checks a new event by the rules of the view that it came through.
// The errors are in the order of kube-apiserver, because clients show them in that
// order, each once. Through core/v1, metadata is only checked if nothing else is wrong.
func ValidateCreate(v View, ev *eventsv1.Event) field.ErrorList {
	errs := validateBasics(v, ev)
	if v == EventsV1 {
		errs = append(errs, validateStrict(ev)...)
	}
	if len(errs) == 0 && v == CoreV1 { // else validateStrict has checked the metadata
		errs = validateMetadata(&ev.ObjectMeta, validatePathName)
	}
	return errs.Filter()
}

// validatePathName checks that a name can be a segment of a URL path, as core/v1
// requires. Unlike kube-apiserver it also limits the length and refuses NUL bytes,
// because the name is part of a key of the store.
func validatePathName(name string, prefix bool) []string {
	msgs := path.ValidatePathSegmentName(name, prefix)
	if strings.Contains(name, "\x00") {
		msgs = append(msgs, "may not contain a NUL byte")
	}
	if len(name) > maxName {
		msgs = append(msgs, validation.MaxLenError(maxName))
	}
	return msgs
}

// ValidateStored checks an event that another store has had, before an import. It
// must have the metadata that only a server sets. The rules for its content do not
// apply: they were those of the request that wrote it, and may have changed since.
func ValidateStored(ev *eventsv1.Event) field.ErrorList {
	metadata := field.NewPath("metadata")
	errs := validateMetadata(&ev.ObjectMeta, validatePathName)
	if ev.UID == "" {
		errs = append(errs, field.Required(metadata.Child("uid"), "events that are new go through the API"))
	}
	if ev.CreationTimestamp.IsZero() {
		errs = append(errs, field.Required(metadata.Child("creationTimestamp"), "events that are new go through the API"))
	}
	return append(errs, CheckTimes(ev)...)
}

// CheckTimes refuses years that RFC 3339 cannot write. Protobuf can have them, and JSON at the ends of the range if its
// zone is not UTC. kube-apiserver stores them, and from then on no client can read a list that has one.
func CheckTimes(ev *eventsv1.Event) (errs field.ErrorList) {
	check := func(t time.Time, path ...string) {
		if !Writable(t) {
			errs = append(errs, field.Invalid(field.NewPath(path[0], path[1:]...), "", fmt.Sprintf("has the year %d in UTC: years are from 0 to 9999", t.UTC().Year())))
		}
	}
	check(ev.EventTime.Time, "eventTime")
	check(ev.DeprecatedFirstTimestamp.Time, "firstTimestamp")
	check(ev.DeprecatedLastTimestamp.Time, "lastTimestamp")
	if ev.Series != nil {
		check(ev.Series.LastObservedTime.Time, "series", "lastObservedTime")
	}
	check(ev.CreationTimestamp.Time, "metadata", "creationTimestamp")
	if ev.DeletionTimestamp != nil {
		check(ev.DeletionTimestamp.Time, "metadata", "deletionTimestamp")
	}
	for _, e := range ev.ManagedFields {
		if e.Time != nil {
			check(e.Time.Time, "metadata", "managedFields", "time")
		}
	}
	return errs
}

// The times that RFC 3339 can write in UTC.
var (
	firstTime = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
)

// Writable reports whether RFC 3339 can write a time in UTC.
func Writable(t time.Time) bool { return !t.Before(firstTime) && !t.After(lastTime) }

// Nearest returns a time or, if it is not [Writable], the nearest one that is. A store that was written by other means
// than requests may have such times, and one of them must not make a whole list unreadable.
func Nearest(t time.Time) time.Time {
	switch {
	case t.Before(firstTime):
		return firstTime
	case t.After(lastTime):
		return lastTime
	}
	return t
}

// ValidateUpdate checks the next version of a stored event. Through events/v1 only series and metadata may change. A
// rule that is checked twice is one cause: kube-apiserver filters its errors with the same function of the library.
func ValidateUpdate(v View, next, live *eventsv1.Event) field.ErrorList {
	errs := validateMetadata(&next.ObjectMeta, path.ValidatePathSegmentName)
	errs = append(errs, metavalidation.ValidateObjectMetaUpdate(&next.ObjectMeta, &live.ObjectMeta, field.NewPath("metadata"))...)
	errs = append(errs, validateBasics(v, next)...)
	if v == EventsV1 {
		errs = append(errs, validateFinalizers(next.Finalizers)...)
		if series := validateSeries(next.Series); len(series) > 0 && !equality.Semantic.DeepEqual(next.Series, live.Series) {
			errs = append(errs, series...)
		}
		errs = append(errs, validateImmutable(next, live)...)
	}
	return errs.Filter()
}

// validateBasics checks the rules of both views. Few rules apply to an event without
// eventTime, which is an event of the old style.
func validateBasics(v View, ev *eventsv1.Event) field.ErrorList {
	var errs field.ErrorList
	if ev.EventTime.IsZero() {
		errs = validateOldStyle(ev)
	} else {
		errs = validateNewStyle(v, ev)
	}
	if !plainName(ev.Namespace) {
		for _, msg := range validation.IsDNS1123Subdomain(ev.Namespace) {
			errs = append(errs, field.Invalid(field.NewPath("namespace"), ev.Namespace, msg))
		}
	}
	return errs
}

func namespaceMismatch(ev *eventsv1.Event) *field.Error {
	return field.Invalid(field.NewPath("involvedObject", "namespace"), ev.Regarding.Namespace, "does not match event.namespace")
}

func validateOldStyle(ev *eventsv1.Event) field.ErrorList {
	about := ev.Regarding.Namespace
	clusterScoped := about == "" && (ev.Namespace == "" || ev.Namespace == metav1.NamespaceDefault)
	if clusterScoped || about != "" && about == ev.Namespace {
		return nil
	}
	return field.ErrorList{namespaceMismatch(ev)}
}

func validateNewStyle(v View, ev *eventsv1.Event) field.ErrorList {
	var errs field.ErrorList
	if ev.Regarding.Namespace == "" && ev.Namespace != metav1.NamespaceDefault && ev.Namespace != metav1.NamespaceSystem {
		errs = append(errs, namespaceMismatch(ev))
	}
	controller := "reportingController"
	if v == CoreV1 {
		controller = "reportingComponent"
	}
	if ev.ReportingController == "" {
		errs = append(errs, field.Required(field.NewPath(controller), ""))
	}
	if !plainKey(ev.ReportingController) {
		for _, msg := range validation.IsQualifiedName(ev.ReportingController) {
			errs = append(errs, field.Invalid(field.NewPath(controller), ev.ReportingController, msg))
		}
	}
	for _, f := range []struct{ name, value string }{
		{"reportingInstance", ev.ReportingInstance}, {"action", ev.Action}, {"reason", ev.Reason},
	} {
		if f.value == "" {
			errs = append(errs, field.Required(field.NewPath(f.name), ""))
		}
		errs = append(errs, validateLength(f.name, f.value, maxShort)...)
	}
	return append(errs, validateLength("message", ev.Note, maxNote)...)
}

func validateLength(name, value string, limit int) field.ErrorList {
	if len(value) <= limit {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(name), "", fmt.Sprintf("can have at most %d characters", limit))}
}

// validateStrict checks the rules that events/v1 adds for new events.
func validateStrict(ev *eventsv1.Event) field.ErrorList {
	errs := validateMetadata(&ev.ObjectMeta, metavalidation.NameIsDNSSubdomain)
	errs = append(errs, validateFinalizers(ev.Finalizers)...)
	errs = append(errs, validateSeries(ev.Series)...)
	if ev.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if ev.Type != corev1.EventTypeNormal && ev.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", "has invalid value: "+ev.Type))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", !ev.DeprecatedFirstTimestamp.IsZero()},
		{"lastTimestamp", !ev.DeprecatedLastTimestamp.IsZero()},
		{"count", ev.DeprecatedCount != 0},
		{"source", ev.DeprecatedSource != corev1.EventSource{}},
	} {
		if f.set {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", "needs to be unset"))
		}
	}
	return errs
}

// validateFinalizers requires a domain in the names of finalizers, except in those of
// Kubernetes itself.
func validateFinalizers(names []string) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		switch name {
		case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
			continue
		}
		if !strings.Contains(name, "/") {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "finalizers").Index(i), name,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

func validateSeries(s *eventsv1.EventSeries) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if s.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if s.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

// kube-apiserver prints the value that broke a rule as its internal type: with the Go
// names of the fields, and with empty ones. These types print the same.
type (
	internalReference struct {
		Kind, Namespace, Name       string
		UID                         types.UID
		APIVersion, ResourceVersion string
		FieldPath                   string
	}
	internalSource struct{ Component, Host string }
)

// validateImmutable returns an error for each changed field that events/v1 does not
// allow to change.
func validateImmutable(next, live *eventsv1.Event) field.ErrorList {
	var errs field.ErrorList
	fixed := func(name string, next, live any) {
		if next != live { // else the slower comparison of the library finds nothing
			errs = append(errs, metavalidation.ValidateImmutableField(next, live, field.NewPath(name))...)
		}
	}
	fixed("involvedObject", internalReference(next.Regarding), internalReference(live.Regarding))
	fixed("reason", next.Reason, live.Reason)
	fixed("message", next.Note, live.Note)
	fixed("source", internalSource(next.DeprecatedSource), internalSource(live.DeprecatedSource))
	fixed("firstTimestamp", next.DeprecatedFirstTimestamp, live.DeprecatedFirstTimestamp)
	fixed("lastTimestamp", next.DeprecatedLastTimestamp, live.DeprecatedLastTimestamp)
	fixed("count", next.DeprecatedCount, live.DeprecatedCount)
	fixed("type", next.Type, live.Type)
	// Old clients send nanoseconds, which the stored form does not keep.
	if !next.EventTime.Truncate(time.Microsecond).Equal(live.EventTime.Truncate(time.Microsecond)) {
		fixed("eventTime", next.EventTime, live.EventTime)
	}
	fixed("action", next.Action, live.Action)
	fixed("related", (*internalReference)(next.Related), (*internalReference)(live.Related))
	fixed("reportingController", next.ReportingController, live.ReportingController)
	fixed("reportingInstance", next.ReportingInstance, live.ReportingInstance)
	return errs
}
