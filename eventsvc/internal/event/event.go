// Package event holds the rules of the resource: defaults, validation, what an
// update may change, the two views and the fields that selectors know. It
// knows nothing of HTTP, bytes or disks.
//
// The hub type is k8s.io/api/events/v1 Event: every function here works on it,
// and core/v1 is converted at the border. Errors name fields as the original
// does, by their core/v1 names in either view.
package event

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tidings.example/eventsvc/internal/store"
)

// View is one of the two faces of the stored event.
type View uint8

// The views: events.{group_domain}/v1 with strict rules, and core /api/v1.
const (
	EventsV1 View = iota
	CoreV1
)

// Rules are what a deployment may set about validation. The zero value is the
// original's.
type Rules struct {
	// Types are the accepted values of type on events/v1; nil: Normal, Warning.
	Types []string
}

var (
	_ = corev1.Event{}
	_ = eventsv1.Event{}
	_ field.ErrorList
	_ store.Attributes
)
