package discovery

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/event"
)

// openAPI makes the OpenAPI document of some groups.
type openAPI struct {
	groups  []Group
	schemas map[string]any // by name
}

// operation is one method of a path. Clients look at its action and, for
// PATCH, at its query parameters: kubectl does not write without seeing
// fieldValidation there.
type operation struct {
	method, action, id string // without an action it is about no object: discovery
	parameters         []string
	body, answer       string // names of schemas
	created, accepted  bool   // may answer 201, 202 too
}

const metaSchema = "io.k8s.apimachinery.pkg.apis.meta.v1."

// operations are those of the paths below the version of a view.
func operations(schema string) map[string][]operation {
	event, list, status := schema+"Event", schema+"EventList", metaSchema+"Status"
	patch, options, change := metaSchema+"Patch", metaSchema+"DeleteOptions", metaSchema+"WatchEvent"
	reads := []string{
		"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
		"resourceVersionMatch", "sendInitialEvents", "shardSelector", "timeoutSeconds", "watch",
	}
	writes := []string{"dryRun", "fieldManager", "fieldValidation"}
	deletes := []string{
		"dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents", "propagationPolicy",
	}
	return map[string][]operation{
		"/":       {{method: "get", id: "getAPIResources", answer: metaSchema + "APIResourceList"}},
		"/events": {{method: "get", action: "list", id: "listEventForAllNamespaces", parameters: reads, answer: list}},
		"/namespaces/{namespace}/events": {
			{method: "get", action: "list", id: "listNamespacedEvent", parameters: reads, answer: list},
			{method: "post", action: "post", id: "createNamespacedEvent", parameters: writes, body: event, answer: event, created: true},
			{
				method: "delete", action: "deletecollection", id: "deleteCollectionNamespacedEvent", body: options, answer: status,
				parameters: append(slices.Clone(deletes), reads[1:len(reads)-1]...),
			},
		},
		"/namespaces/{namespace}/events/{name}": {
			{method: "get", action: "get", id: "readNamespacedEvent", answer: event},
			{method: "put", action: "put", id: "replaceNamespacedEvent", parameters: writes, body: event, answer: event, created: true},
			{
				method: "patch", action: "patch", id: "patchNamespacedEvent", body: patch, answer: event, created: true,
				parameters: append(slices.Clone(writes), "force"),
			},
			{method: "delete", action: "delete", id: "deleteNamespacedEvent", parameters: deletes, body: options, answer: status, accepted: true},
		},
		"/watch/events":                               {{method: "get", action: "watchlist", id: "watchEventListForAllNamespaces", parameters: reads, answer: change}},
		"/watch/namespaces/{namespace}/events":        {{method: "get", action: "watchlist", id: "watchNamespacedEventList", parameters: reads, answer: change}},
		"/watch/namespaces/{namespace}/events/{name}": {{method: "get", action: "watch", id: "watchNamespacedEvent", parameters: reads, answer: change}},
	}
}

const (
	definitions = "#/definitions/"        // where version 2 has schemas
	components  = "#/components/schemas/" // where version 3 has them
)

// version2 returns the document in version 2.
func (o openAPI) version2() ([]byte, error) {
	paths := map[string]any{}
	for _, g := range o.groups {
		schema := "io.k8s.api.events.v1."
		if g.Group == "" {
			schema = "io.k8s.api.core.v1."
		}
		for path, ops := range operations(schema) {
			paths[g.Path()+path] = describePath(g, path, ops)
		}
	}
	needed := map[string]any{}
	o.collect(paths, needed)
	b, err := json.Marshal(map[string]any{
		"swagger": "2.0", "info": map[string]any{"title": "Tidings events", "version": "v" + apiMajor + "." + apiMinor + ".0"},
		"paths": paths, "definitions": needed,
		"securityDefinitions": map[string]any{"BearerToken": map[string]any{
			"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer token",
		}},
		"security": []any{map[string]any{"BearerToken": []any{}}},
	})
	return bytes.ReplaceAll(b, []byte(components), []byte(definitions)), err
}

// version3 returns the document in version 3.
func (o openAPI) version3() ([]byte, error) {
	b, err := o.version2()
	if err != nil {
		return nil, err
	}
	var v2 spec.Swagger
	if err := json.Unmarshal(b, &v2); err != nil {
		return nil, err
	}
	v3 := openapiconv.ConvertV2ToV3(&v2)
	v3.SecurityRequirement = v2.Security // the conversion leaves this out, and the following
	for _, p := range v3.Paths.Paths {
		for _, op := range []*spec3.Operation{p.Post, p.Put, p.Patch} {
			if op != nil {
				op.RequestBody.Required = true
			}
		}
	}
	b, err = json.Marshal(v3)
	return bytes.ReplaceAll(b, []byte(definitions), []byte(components)), err
}

// collect adds the schemas that a tree refers to, and those that they refer to.
func (o openAPI) collect(v any, needed map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			text, ok := value.(string)
			if !ok || key != "$ref" {
				o.collect(value, needed)
				continue
			}
			name := text[strings.LastIndex(text, "/")+1:]
			if _, seen := needed[name]; !seen {
				needed[name] = o.schemas[name]
				o.collect(o.schemas[name], needed)
			}
		}
	case []any:
		for _, value := range v {
			o.collect(value, needed)
		}
	}
}

// describePath returns one path with its operations and the parameters that they share.
func describePath(g Group, path string, ops []operation) map[string]any {
	var shared []any
	for _, name := range []string{"name", "namespace"} {
		if strings.Contains(path, "{"+name+"}") {
			shared = append(shared, parameter(name, "path"))
		}
	}
	item := map[string]any{}
	if ops[0].action != "" {
		item["parameters"] = append(shared, parameter("pretty", "query"))
	}
	writes := slices.Contains(g.Resources[0].Verbs, "create")
	for _, op := range ops {
		if op.method == "get" || writes {
			item[op.method] = describe(g, op)
		}
	}
	return item
}

func describe(g Group, op operation) map[string]any {
	group, _, _ := strings.Cut(g.Group, ".") // as in EventsV1Api of generated clients
	group = cmp.Or(group, "core")
	var parameters []any
	for _, name := range op.parameters {
		parameters = append(parameters, parameter(name, "query"))
	}
	out := map[string]any{
		"operationId": operationID(op.id, group, g.Version),
		"tags":        []any{group + "_" + g.Version},
		"responses":   responses(op),
		"consumes":    bodyTypes(op.method), "produces": answerTypes(op), "schemes": []string{"https"},
	}
	if op.action != "" {
		out["x-kubernetes-action"] = op.action
		out["x-kubernetes-group-version-kind"] = map[string]any{
			"group": g.Group, "version": g.Version, "kind": event.Kind,
		}
	}
	if op.body != "" {
		parameters = append(parameters, map[string]any{
			"in": "body", "name": "body", "required": op.method != "delete", "schema": reference(op.body),
		})
	}
	if len(parameters) > 0 {
		out["parameters"] = parameters
	}
	return out
}

// operationID puts the group and version into an operation's name, after its
// verb: listCoreV1NamespacedEvent. Generated clients are named by it.
func operationID(id, group, version string) string {
	at := strings.IndexFunc(id, unicode.IsUpper)
	upper := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	return id[:at] + upper(group) + upper(version) + id[at:]
}

func bodyTypes(method string) []string {
	if method == "patch" {
		return httpio.PatchTypes
	}
	return []string{"*/*"}
}

func answerTypes(op operation) []string {
	types := []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}
	if slices.Contains(op.parameters, "watch") {
		types = append(types, "application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
	}
	return types
}

func responses(op operation) map[string]any {
	ok := func(text string) map[string]any {
		return map[string]any{"description": text, "schema": reference(op.answer)}
	}
	out := map[string]any{"200": ok("OK"), "401": map[string]any{"description": "Unauthorized"}}
	if op.created {
		out["201"] = ok("Created")
	}
	if op.accepted {
		out["202"] = ok("Accepted")
	}
	return out
}

func reference(schema string) map[string]any { return map[string]any{"$ref": definitions + schema} }

// parameter describes a parameter of a path or a query.
func parameter(name, in string) map[string]any {
	about := parameters()[name]
	out := map[string]any{"name": name, "in": in, "description": about.text, "type": about.kind, "uniqueItems": true}
	if in == "path" {
		out["required"] = true
	}
	return out
}

type about struct{ kind, text string }

// parameters explains every parameter.
func parameters() map[string]about {
	return map[string]about{
		"name":      {"string", "Name of the event."},
		"namespace": {"string", "Namespace of the events."},
		"pretty":    {"string", "Indent JSON answers if true; the default is to do so for browsers and command-line tools."},

		"allowWatchBookmarks":  {"boolean", "Let a watch carry BOOKMARK events, which say how far it has come."},
		"continue":             {"string", "Token of the previous page: go on where it ended, at the same version."},
		"fieldSelector":        {"string", "Only events whose fields have these values. Comma means and; =, == and != compare."},
		"labelSelector":        {"string", "Only events whose labels meet these requirements."},
		"limit":                {"integer", "At most so many events in one answer; metadata.continue is the token of the next page."},
		"resourceVersion":      {"string", "Which version to read, or after which to watch."},
		"resourceVersionMatch": {"string", "How resourceVersion is meant: Exact or NotOlderThan."},
		"shardSelector":        {"string", "Accepted, and without effect: a list or watch is never a shard."},
		"sendInitialEvents":    {"boolean", "Begin a watch with the state there is, and a bookmark behind it."},
		"timeoutSeconds":       {"integer", "End the call after so many seconds."},
		"watch":                {"boolean", "Stream changes instead of listing."},

		"dryRun":          {"string", "All: do everything but store the result."},
		"fieldManager":    {"string", "Who is noted as the manager of the fields that this changes."},
		"fieldValidation": {"string", "What becomes of unknown and duplicate fields: Ignore, Warn or Strict."},
		"force":           {"boolean", "Take fields over from other managers when applying."},

		"gracePeriodSeconds": {"integer", "Accepted, and without effect on events."},
		"ignoreStoreReadErrorWithClusterBreakingPotential": {"boolean", "Deletes an event that cannot be read, and no other; refused for a collection."},
		"orphanDependents":  {"boolean", "Deprecated. Without effect on events but for the code of the answer: 202 if false and finalizers hold the event."},
		"propagationPolicy": {"string", "Orphan, Background or Foreground: accepted, and without effect on events."},
	}
}
