package codec

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"tidings.example/eventsvc/internal/event"
)

// schemaDocument holds the schemas of events and of the bodies around them, by
// name. It is generated from the k8s.io/api types.
//
//go:generate go -C ../../../deploy/tools run ./openapi ../../eventsvc/internal/codec/schemas.json
//go:embed schemas.json
var schemaDocument []byte

// Names of schemas, and the extension that says what kind one is of.
const (
	eventsSchemas = "io.k8s.api.events.v1."
	coreSchemas   = "io.k8s.api.core.v1."
	metaSchemas   = "io.k8s.apimachinery.pkg.apis.meta.v1."
	kindExtension = "x-kubernetes-group-version-kind"
)

// kindExtensions are the kinds of schemas. The bodies that every group has are
// listed with each group that is served.
func kindExtensions(g event.Group) map[string][]any {
	group := g.GroupVersion(event.EventsV1).Group
	of := func(group, kind string) any {
		return map[string]any{"group": group, "version": "v1", "kind": kind}
	}
	both := func(kind string) []any { return []any{of("", kind), of(group, kind)} }
	return map[string][]any{
		eventsSchemas + event.Kind:          {of(group, event.Kind)},
		eventsSchemas + event.Kind + "List": {of(group, event.Kind+"List")},
		coreSchemas + event.Kind:            {of("", event.Kind)},
		coreSchemas + event.Kind + "List":   {of("", event.Kind+"List")},
		metaSchemas + "Status":              {of("", "Status")},
		metaSchemas + "DeleteOptions":       both("DeleteOptions"),
		metaSchemas + "WatchEvent":          both("WatchEvent"),
	}
}

// Schemas returns the schemas of both views by name, with references as
// version 3 of OpenAPI writes them. The caller may change the result.
func (c *Codec) Schemas() map[string]any {
	var schemas map[string]any
	// The document is embedded, and New has decoded it without an error.
	_ = json.Unmarshal(schemaDocument, &schemas)
	for name, kinds := range kindExtensions(c.Group) {
		schemas[name].(map[string]any)[kindExtension] = kinds
	}
	return schemas
}

// models returns the schemas by which fields of a view are merged. The event of the
// other view has no kind in them: kube-apiserver has field managers for each API
// group, which know no kind of another group, and the library drops managed fields
// of versions that it does not know.
func models(g event.Group, v event.View) (map[string]*spec.Schema, error) {
	var models map[string]*spec.Schema
	if err := json.Unmarshal(schemaDocument, &models); err != nil {
		return nil, fmt.Errorf("read the embedded schemas: %w", err)
	}
	for name, kinds := range kindExtensions(g) {
		model, ok := models[name]
		if !ok {
			return nil, fmt.Errorf("the embedded schemas lack %s", name)
		}
		model.AddExtension(kindExtension, slices.Clone(kinds))
	}
	if v == event.CoreV1 {
		delete(models[eventsSchemas+event.Kind].Extensions, kindExtension)
	} else {
		delete(models[coreSchemas+event.Kind].Extensions, kindExtension)
	}
	return models, nil
}
