package event

import (
	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/store"
)

// Attributes are what selectors may ask of an event.
func Attributes(ev *eventsv1.Event) store.Attributes {
	source := ev.DeprecatedSource.Component
	if source == "" {
		source = ev.ReportingController
	}
	var f [store.NumFields]string
	f[store.RegardingKind] = ev.Regarding.Kind
	f[store.RegardingNamespace] = ev.Regarding.Namespace
	f[store.RegardingName] = ev.Regarding.Name
	f[store.RegardingUID] = string(ev.Regarding.UID)
	f[store.RegardingAPIVersion] = ev.Regarding.APIVersion
	f[store.RegardingResourceVersion] = ev.Regarding.ResourceVersion
	f[store.RegardingFieldPath] = ev.Regarding.FieldPath
	f[store.Reason] = ev.Reason
	f[store.Type] = ev.Type
	f[store.ReportingController] = ev.ReportingController
	f[store.Source] = source
	return store.NewAttributes(f, ev.Labels)
}

// Selection is what a fieldSelector and a labelSelector ask for. Namespace and
// Name are set when the selector requires exactly one, which narrows the read.
type Selection struct {
	Namespace string
	Name      string
	Selector  *store.Selector // nil: everything
}

// ParseSelector parses the two selectors of a list, watch or deletecollection
// request. Which field labels there are depends on the view.
func ParseSelector(v View, fieldSelector, labelSelector string) (Selection, error) {
	return Selection{}, nil
}
