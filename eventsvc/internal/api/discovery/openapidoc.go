package discovery

import (
	"slices"
	"strings"
	"unicode"

	"tidings.example/eventsvc/internal/event"
)

// openAPI writes the OpenAPI document of some groups, in version 2 or 3.
type openAPI struct {
	version int
	groups  []Group
	schemas map[string]any // by name, with the references of version 3
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

// document is the whole document.
func (o openAPI) document() map[string]any {
	info := map[string]any{"title": "Tidings events", "version": "v" + apiMajor + "." + apiMinor + ".0"}
	paths := map[string]any{}
	for _, g := range o.groups {
		schema := "io.k8s.api.events.v1."
		if g.Group == "" {
			schema = "io.k8s.api.core.v1."
		}
		for path, ops := range operations(schema) {
			paths[g.Path()+path] = o.path(g, path, ops)
		}
	}
	if o.version == 2 {
		return map[string]any{
			"swagger": "2.0", "info": info, "paths": paths, "definitions": o.definitions(paths),
			"securityDefinitions": map[string]any{"BearerToken": map[string]any{
				"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer token",
			}},
			"security": []any{map[string]any{"BearerToken": []any{}}},
		}
	}
	return map[string]any{
		"openapi": "3.0.0", "info": info, "paths": paths,
		"components": map[string]any{
			"schemas": o.definitions(paths),
			"securitySchemes": map[string]any{"BearerToken": map[string]any{
				"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer token",
			}},
		},
		"security": []any{map[string]any{"BearerToken": []any{}}},
	}
}

// definitions are the schemas that the paths need, with the references of the
// document's version.
func (o openAPI) definitions(paths any) any {
	needed := map[string]any{}
	o.collect(paths, needed)
	if o.version == 3 {
		return needed
	}
	return withReferences(needed)
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

// withReferences copies a tree and turns its references into those of version 2.
func withReferences(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if text, ok := value.(string); ok && key == "$ref" {
				out[key] = strings.Replace(text, "#/components/schemas/", "#/definitions/", 1)
			} else {
				out[key] = withReferences(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withReferences(v[i])
		}
		return out
	default:
		return v
	}
}

// path is one path with its operations and the parameters that they share.
func (o openAPI) path(g Group, path string, ops []operation) map[string]any {
	var shared []any
	for _, name := range []string{"name", "namespace"} {
		if strings.Contains(path, "{"+name+"}") {
			shared = append(shared, o.parameter(name, "path"))
		}
	}
	item := map[string]any{}
	if ops[0].action != "" {
		item["parameters"] = append(shared, o.parameter("pretty", "query"))
	}
	for _, op := range ops {
		item[op.method] = o.operation(g, op)
	}
	return item
}

func (o openAPI) operation(g Group, op operation) map[string]any {
	group, _, _ := strings.Cut(g.Group, ".") // as in EventsV1Api of generated clients
	if group == "" {
		group = "core"
	}
	var parameters []any
	for _, name := range op.parameters {
		parameters = append(parameters, o.parameter(name, "query"))
	}
	out := map[string]any{
		"operationId": operationID(op.id, group+"_"+g.Version),
		"tags":        []any{group + "_" + g.Version},
		"responses":   o.responses(op),
	}
	if op.action != "" {
		out["x-kubernetes-action"] = op.action
		out["x-kubernetes-group-version-kind"] = map[string]any{
			"group": g.Group, "version": g.Version, "kind": event.Kind,
		}
	}
	if op.body != "" {
		required := op.body != metaSchema+"DeleteOptions"
		if o.version == 2 {
			parameters = append(parameters, map[string]any{"in": "body", "name": "body", "required": required, "schema": o.reference(op.body)})
		} else {
			body := map[string]any{"content": content(bodyTypes(op.method), o.reference(op.body))}
			if required {
				body["required"] = true
			}
			out["requestBody"] = body
		}
	}
	if len(parameters) > 0 {
		out["parameters"] = parameters
	}
	if o.version == 2 {
		out["consumes"], out["produces"], out["schemes"] = bodyTypes(op.method), answerTypes(op), []string{"https"}
	}
	return out
}

// operationID puts the group and version into an operation's name, behind its
// verb: listCoreV1NamespacedEvent. Generated clients are named by it.
func operationID(id, tag string) string {
	at := strings.IndexFunc(id, unicode.IsUpper)
	group, version, _ := strings.Cut(tag, "_")
	upper := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	return id[:at] + upper(group) + upper(version) + id[at:]
}

func bodyTypes(method string) []string {
	if method == "patch" {
		return []string{
			"application/json-patch+json", "application/merge-patch+json",
			"application/strategic-merge-patch+json", "application/apply-patch+yaml",
		}
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

func (o openAPI) responses(op operation) map[string]any {
	ok := func(text string) map[string]any {
		if o.version == 2 {
			return map[string]any{"description": text, "schema": o.reference(op.answer)}
		}
		return map[string]any{"description": text, "content": content(answerTypes(op), o.reference(op.answer))}
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

func content(types []string, schema any) map[string]any {
	out := map[string]any{}
	for _, t := range types {
		out[t] = map[string]any{"schema": schema}
	}
	return out
}

func (o openAPI) reference(schema string) map[string]any {
	if o.version == 2 {
		return map[string]any{"$ref": "#/definitions/" + schema}
	}
	return map[string]any{"$ref": "#/components/schemas/" + schema}
}
