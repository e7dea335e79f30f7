// Package event holds the rules of the resource: defaults, validation, what an update may change, the two API views,
// and fields and labels for selectors. It knows nothing of HTTP, encodings or disks, and imports no other package of
// this repository.
//
// The files: prepare.go sets what only a server sets, validate.go and fastvalidate.go check fields, limit.go sizes,
// decode.go and members.go read JSON; attributes.go has what the index knows of an event: fields.go names the fields,
// dimensions.go what is counted by (who reported an event, its node), occurrence.go when and how often,
// mirrorreport.go, gap.go and cursor.go what mirrors tell; selector.go and filter.go match, fold.go and searchtext.go
// say what a word is found in; kubectltable.go has the columns of kubectl, apigroup.go the group, objectchange.go the
// reasons of changes of objects.
//
// Every function works on the Event of k8s.io/api/events/v1; callers convert core/v1 by [ToCore] and [FromCore]. Errors
// name fields as kube-apiserver does: by their core/v1 names, in either view.
package event

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// View is one of the two API versions that serve an event.
type View uint8

// The views: events.{group_domain}/v1 with strict rules, and core /api/v1.
const (
	EventsV1 View = iota
	CoreV1
)

// Kind is the kind of the resource in both views.
const Kind = "Event"

// ToCore returns the core/v1 form of an event. Nothing is derived and nothing
// is lost. The result shares maps, slices and pointers with its argument.
func ToCore(ev *eventsv1.Event) *corev1.Event {
	out := &corev1.Event{
		TypeMeta:            ev.TypeMeta,
		ObjectMeta:          ev.ObjectMeta,
		InvolvedObject:      ev.Regarding,
		Reason:              ev.Reason,
		Message:             ev.Note,
		Source:              ev.DeprecatedSource,
		FirstTimestamp:      ev.DeprecatedFirstTimestamp,
		LastTimestamp:       ev.DeprecatedLastTimestamp,
		Count:               ev.DeprecatedCount,
		Type:                ev.Type,
		EventTime:           ev.EventTime,
		Action:              ev.Action,
		Related:             ev.Related,
		ReportingController: ev.ReportingController,
		ReportingInstance:   ev.ReportingInstance,
	}
	if ev.Series != nil {
		out.Series = &corev1.EventSeries{Count: ev.Series.Count, LastObservedTime: ev.Series.LastObservedTime}
	}
	return out
}

// FromCore is the inverse of [ToCore].
func FromCore(ev *corev1.Event) *eventsv1.Event {
	out := &eventsv1.Event{
		TypeMeta:                 ev.TypeMeta,
		ObjectMeta:               ev.ObjectMeta,
		EventTime:                ev.EventTime,
		ReportingController:      ev.ReportingController,
		ReportingInstance:        ev.ReportingInstance,
		Action:                   ev.Action,
		Reason:                   ev.Reason,
		Regarding:                ev.InvolvedObject,
		Related:                  ev.Related,
		Note:                     ev.Message,
		Type:                     ev.Type,
		DeprecatedSource:         ev.Source,
		DeprecatedFirstTimestamp: ev.FirstTimestamp,
		DeprecatedLastTimestamp:  ev.LastTimestamp,
		DeprecatedCount:          ev.Count,
	}
	if ev.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: ev.Series.Count, LastObservedTime: ev.Series.LastObservedTime}
	}
	return out
}

// Regarding is the object that an event is about.
type Regarding struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}
