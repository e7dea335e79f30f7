package event

import "maps"

// Field is a selectable field of an event. Both views share the numbering.
type Field uint8

// The selectable fields, events.k8s.io/v1 names; core/v1 calls regarding
// involvedObject. Source is deprecatedSource.component, falling back to
// reportingController when empty. No selector names Node, which is [NodeOf].
const (
	RegardingKind Field = iota
	RegardingNamespace
	RegardingName
	RegardingUID
	RegardingAPIVersion
	RegardingResourceVersion
	RegardingFieldPath
	Reason
	Type
	ReportingController
	Source
	Node
	NumFields
)

// The fields of the key. They are not part of the attributes.
const (
	FieldNamespace Field = NumFields + 1 + iota
	FieldName
)

// selectable returns the fields that a view's field selectors may name: 12 in
// events/v1, 13 in core/v1.
func selectable(v View) map[string]Field {
	regarding, controller := "regarding.", "reportingController"
	byLabel := map[string]Field{}
	if v == CoreV1 {
		regarding, controller = "involvedObject.", "reportingComponent"
		byLabel["source"] = Source
	}
	maps.Copy(byLabel, map[string]Field{
		"metadata.name":               FieldName,
		"metadata.namespace":          FieldNamespace,
		"reason":                      Reason,
		"type":                        Type,
		controller:                    ReportingController,
		regarding + "kind":            RegardingKind,
		regarding + "namespace":       RegardingNamespace,
		regarding + "name":            RegardingName,
		regarding + "uid":             RegardingUID,
		regarding + "apiVersion":      RegardingAPIVersion,
		regarding + "resourceVersion": RegardingResourceVersion,
		regarding + "fieldPath":       RegardingFieldPath,
	})
	return byLabel
}
