package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/openapi/openapitest"
	kustomize "sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"
)

// schemas are definitions of an OpenAPI document, by name.
type schemas map[string]map[string]any

// kubernetesSchemas are the OpenAPI documents of Kubernetes that come with Go modules, newest first: those of the core
// and apps groups with client-go, all of an older release with kustomize.
var kubernetesSchemas = sync.OnceValues(func() ([]schemas, error) {
	var all []schemas
	paths, err := openapitest.NewEmbeddedFileClient().Paths()
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		raw, err := paths[path].Schema("application/json")
		if err != nil {
			return nil, err
		}
		var document struct{ Components struct{ Schemas schemas } }
		if err := json.Unmarshal(raw, &document); err != nil {
			return nil, err
		}
		all = append(all, document.Components.Schemas)
	}
	raw, err := json.Marshal(kustomize.Schema())
	if err != nil {
		return nil, err
	}
	var document struct{ Definitions schemas }
	err = json.Unmarshal(raw, &document)
	return append(all, document.Definitions), err
})

// conforms checks an object against the OpenAPI schema of its kind. Unknown fields are faults.
func conforms(t *testing.T, document string) []string {
	t.Helper()
	documents, err := kubernetesSchemas()
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
		return []string{err.Error()}
	}
	group, version, ok := strings.Cut(fmt.Sprint(object["apiVersion"]), "/")
	if !ok {
		group, version = "", group
	}
	for _, definitions := range documents {
		for _, definition := range definitions {
			kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
			for _, kind := range kinds {
				k, _ := kind.(map[string]any)
				if k["group"] == group && k["version"] == version && k["kind"] == object["kind"] {
					return definitions.faults(definition, object, fmt.Sprint(object["kind"]))
				}
			}
		}
	}
	return []string{fmt.Sprintf("there is no schema for %v %v", object["apiVersion"], object["kind"])}
}

// faults returns the places where a value does not conform to its schema.
func (s schemas) faults(schema map[string]any, value any, at string) (faults []string) {
	if all, ok := schema["allOf"].([]any); ok && len(all) == 1 { // how version 3 gives a reference a default
		schema, _ = all[0].(map[string]any)
	}
	if ref, ok := schema["$ref"].(string); ok {
		name := ref[strings.LastIndex(ref, "/")+1:]
		if schema = s[name]; schema == nil {
			return []string{at + ": no schema " + name}
		}
		return s.faults(schema, value, at)
	}
	if schema["format"] == "int-or-string" || schema["oneOf"] != nil || schema["x-kubernetes-preserve-unknown-fields"] == true {
		return nil
	}
	wrong := func() []string { return []string{fmt.Sprintf("%s: %v is no %v", at, value, schema["type"])} }
	switch v := value.(type) {
	case map[string]any:
		return s.objectFaults(schema, v, at)
	case []any:
		items, ok := schema["items"].(map[string]any)
		if !ok {
			return wrong()
		}
		for i, item := range v {
			faults = append(faults, s.faults(items, item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case string:
		if schema["type"] != "string" {
			return wrong()
		}
		if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, value) {
			return []string{fmt.Sprintf("%s: %q is none of %v", at, v, enum)}
		}
	case bool:
		if schema["type"] != "boolean" {
			return wrong()
		}
	case float64:
		if schema["type"] != "integer" && schema["type"] != "number" {
			return wrong()
		}
	}
	return faults
}

func (s schemas) objectFaults(schema, object map[string]any, at string) (faults []string) {
	properties, _ := schema["properties"].(map[string]any)
	rest, open := schema["additionalProperties"].(map[string]any)
	if schema["type"] != "object" && properties == nil && !open {
		return []string{fmt.Sprintf("%s: a map is no %v", at, schema["type"])}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := object[fmt.Sprint(name)]; !ok {
			faults = append(faults, fmt.Sprintf("%s.%v is missing", at, name))
		}
	}
	for name, value := range object {
		property, known := properties[name].(map[string]any)
		switch {
		case known:
			faults = append(faults, s.faults(property, value, at+"."+name)...)
		case open:
			faults = append(faults, s.faults(rest, value, at+"."+name)...)
		default:
			faults = append(faults, at+"."+name+" is unknown")
		}
	}
	return faults
}

// TestSchemasFindMistakes: typical mistakes are found.
func TestSchemasFindMistakes(t *testing.T) {
	t.Parallel()
	const good = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  replicas: 2
  selector: {matchLabels: {app: a}}
  template:
    spec:
      containers: [{name: a, image: b, ports: [{containerPort: 80}]}]
`
	if faults := conforms(t, good); faults != nil {
		t.Errorf("good: %q", faults)
	}
	for want, change := range map[string][2]string{
		".replcias is unknown":           {"replicas", "replcias"},
		".selector is missing":           {"  selector: {matchLabels: {app: a}}\n", ""},
		"replicas: two is no integer":    {"replicas: 2", "replicas: two"},
		"containerPort is missing":       {"containerPort: 80", "name: http"},
		"there is no schema for apps/v9": {"apps/v1", "apps/v9"},
		"containers: a map is no array":  {"containers: [{name: a, image: b, ports: [{containerPort: 80}]}]", "containers: {name: a}"},
	} {
		if faults := conforms(t, strings.Replace(good, change[0], change[1], 1)); len(faults) != 1 || !strings.Contains(faults[0], want) {
			t.Errorf("%q: %q", want, faults)
		}
	}
}
