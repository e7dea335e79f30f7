package event

import (
	"maps"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

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

// selectable returns the field labels of a view: 12 of events/v1, 13 of core/v1.
func selectable(v View) map[string]store.Field {
	regarding, controller := "regarding.", "reportingController"
	byLabel := map[string]store.Field{}
	if v == CoreV1 {
		regarding, controller = "involvedObject.", "reportingComponent"
		byLabel["source"] = store.Source
	}
	maps.Copy(byLabel, map[string]store.Field{
		"metadata.name":               store.FieldName,
		"metadata.namespace":          store.FieldNamespace,
		"reason":                      store.Reason,
		"type":                        store.Type,
		controller:                    store.ReportingController,
		regarding + "kind":            store.RegardingKind,
		regarding + "namespace":       store.RegardingNamespace,
		regarding + "name":            store.RegardingName,
		regarding + "uid":             store.RegardingUID,
		regarding + "apiVersion":      store.RegardingAPIVersion,
		regarding + "resourceVersion": store.RegardingResourceVersion,
		regarding + "fieldPath":       store.RegardingFieldPath,
	})
	return byLabel
}

// ParseSelector parses the two selectors of a list, watch or deletecollection
// request. Which field labels there are depends on the view. Errors are the
// 400s of the original.
func ParseSelector(v View, fieldSelector, labelSelector string) (Selection, error) {
	if fieldSelector == "" && labelSelector == "" {
		return Selection{}, nil
	}
	byLabel, err := labels.Parse(labelSelector)
	if err != nil {
		return Selection{}, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(fieldSelector)
	if err != nil {
		return Selection{}, apierrors.NewBadRequest(err.Error())
	}
	var sel Selection
	var want store.Selector
	known := selectable(v)
	for _, req := range byField.Requirements() {
		f, ok := known[req.Field]
		if !ok {
			return Selection{}, apierrors.NewBadRequest("field label not supported: " + req.Field)
		}
		if !sel.narrow(f, req) {
			want.Fields = append(want.Fields, store.FieldRequirement{
				Field: f, Value: req.Value, Not: req.Operator == selection.NotEquals,
			})
		}
	}
	want.Labels, _ = byLabel.Requirements()
	if len(want.Fields)+len(want.Labels) > 0 {
		sel.Selector = &want
	}
	return sel, nil
}

// narrow takes up the first requirement of one namespace or one name. A second
// one, and the empty value that nothing has, are left to the selector.
func (s *Selection) narrow(f store.Field, req fields.Requirement) bool {
	var one *string
	switch f {
	case store.FieldNamespace:
		one = &s.Namespace
	case store.FieldName:
		one = &s.Name
	default:
		return false
	}
	if *one != "" || req.Value == "" || req.Operator == selection.NotEquals {
		return false
	}
	*one = req.Value
	return true
}
