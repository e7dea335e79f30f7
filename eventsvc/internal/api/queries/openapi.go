package queries

import (
	"encoding/json"
	"maps"
	"slices"

	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/query/changes"
)

// schema is a part of an OpenAPI document.
type schema map[string]any

// OpenAPI describes the queries in OpenAPI 3.0.
func OpenAPI() ([]byte, error) {
	paths := schema{}
	for _, p := range append(slices.Clip(endpoints), reading) {
		paths[Path+"/"+p.name] = schema{"get": p.operation()}
	}
	return json.Marshal(schema{
		"openapi": "3.0.0", "info": schema{"title": "Tidings queries", "version": "v1"}, "paths": paths,
		"components": schema{"schemas": schemas(), "securitySchemes": schema{"BearerToken": schema{
			"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer token",
		}}},
		"security": []any{schema{"BearerToken": []any{}}},
	})
}

// operation describes the GET of an endpoint.
func (p *endpoint) operation() schema {
	var in []schema
	for _, name := range p.parameters {
		in = append(in, schema{
			"name": name, "in": "query", "description": descriptions[name], "schema": p.schema(name), "required": p.required == name,
		})
	}
	status := func(description string) schema {
		return schema{"description": description, "content": schema{mediaJSON: schema{"schema": ref("Status")}}}
	}
	forms := schema{mediaJSON: ref(p.name), mediaCSV: schema{"type": "string"}, mediaTable: ref("table"), mediaLines: ref("part")}
	content := schema{}
	for _, media := range p.medias() {
		content[media] = schema{"schema": forms[media]}
	}
	return schema{
		"operationId": p.name, "description": p.summary, "parameters": in,
		"responses": schema{
			"200": schema{"description": "OK", "content": content},
			"400": status("A parameter is wrong: details.causes[].field names it."),
			"401": status("There is no token, or it is not valid."),
			"403": status("The caller may not list the events of a namespace."),
			"406": status("No form that the answer has is accepted."),
			"429": status("There are too many requests."),
		},
	}
}

// schema describes the values of a parameter.
func (p *endpoint) schema(name string) schema {
	switch name {
	case "limit":
		return schema{"type": "integer", "minimum": 1, "maximum": p.maxLimit, "default": p.limit}
	case "values":
		return schema{"type": "integer", "minimum": 1, "maximum": query.MaxFacetValues, "default": query.DefaultFacetValues}
	case "order":
		return schema{"type": "string", "enum": p.orders, "default": p.orders[0]}
	case "formulas":
		return schema{"type": "string", "enum": []string{escapeFormulas}}
	case "by", "over":
		return schema{"type": "string", "description": "Of " + query.Names(p.by)}
	case repeated:
		return schema{"type": "array", "items": schema{"type": "string"}}
	}
	return schema{"type": "string"}
}

func ref(name string) schema { return schema{"$ref": "#/components/schemas/" + name} }

// members describes an object whose members are all there, but for the optional ones.
func members(all schema, optional ...string) schema {
	var required []string
	for name := range all {
		if !slices.Contains(optional, name) {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	return schema{"type": "object", "properties": all, "required": required}
}

func list(of schema) schema { return schema{"type": "array", "items": of} }

func dictionary(of schema) schema { return schema{"type": "object", "additionalProperties": of} }

// answerOf describes an answer with what all answers have, and more.
func answerOf(more schema, optional ...string) schema {
	text := schema{"type": "string"}
	all := schema{
		"range": ref("range"), "revision": text, "historyFrom": schema{"type": "string", "format": "date-time"},
		"gaps": list(ref("gap")), "late": list(ref("gap")), "dropped": list(ref("drop")), "namespaces": list(text), "clusters": list(text),
		"partial": schema{"type": "boolean"}, "partialReason": text, "hints": list(text), "permalink": text,
	}
	maps.Copy(all, more)
	return members(all, append(optional, "late", "dropped", "namespaces", "clusters", "partialReason", "hints")...)
}

// schemas describe the answers.
func schemas() schema {
	text, number, yes := schema{"type": "string"}, schema{"type": "integer", "format": "int64"}, schema{"type": "boolean"}
	at := schema{"type": "string", "format": "date-time"}
	kind := schema{"type": "string", "enum": []changes.Kind{
		changes.New, changes.More, changes.Again, changes.Less, changes.Silent, changes.Failing, changes.Changed,
	}}
	state := schema{"type": "string", "enum": []query.State{query.Ongoing, query.Over, query.Once, changes.Usual, changes.Unknown}}
	every := schema{"type": "integer", "format": "int64", "description": "Seconds between two occurrences, as usual."}
	counted := schema{"type": "string", "enum": []string{ofOccurrences, ofEvents}}
	overview := schema{
		"counted": counted, "total": number, "facets": dictionary(list(ref("value"))), "other": dictionary(number), "distinct": dictionary(number),
		"step": text, "over": list(text), "buckets": list(ref("bucket")), "items": list(ref("Event")), "continue": text,
	}
	part := maps.Clone(overview)
	part["counting"], part["error"] = members(schema{"since": at, "until": at, "progress": text}, "since", "until"), ref("Status")
	all := schema{
		"overview": answerOf(overview, "over", "continue"),
		"part":     schema{"type": "object", "properties": part, "description": "A line before the last one, which is an overview, or an error."},
		"Event":    schema{"type": "object", "description": "Event of events.k8s.io/v1, in the group of this service."},
		"Status":   schema{"type": "object", "description": "Status of Kubernetes."},
		"range":    members(schema{"from": at, "to": at}),
		"gap":      members(schema{"from": at, "to": at, "cluster": text}),
		"drop":     members(schema{"from": at, "to": at, "cluster": text, "rule": text, "count": number}),
		"value":    members(schema{"value": text, "count": number}),
		"bucket":   members(schema{"start": at, "count": number, "counts": dictionary(schema{}), "other": number}, "counts", "other"),
		"group": members(schema{
			"by": dictionary(schema{}), "count": number, "first": at, "last": at, "every": every, "state": state, "events": text, "sample": ref("Event"),
		}, "every", "sample"),
		"change": members(schema{
			"by": dictionary(text), "object": text, "also": list(text), "namespaces": list(text), "kind": kind,
			"now": number, "before": schema{"type": "number"}, "score": schema{"type": "number"}, "why": text, "statistics": text, "first": at, "last": at,
			"every": every, "state": state, "former": ref("former"), "follows": ref("reference"), "events": text, "sample": ref("Event"),
		}, "object", "also", "namespaces", "first", "last", "every", "former", "follows", "sample"),
		"former":    members(schema{"first": at, "last": at, "count": number, "events": text}),
		"reference": members(schema{"by": dictionary(text), "object": text, "first": at, "events": text}, "object"),
		"verdict": members(schema{
			"text": text, "state": state, "kind": kind, "by": dictionary(text), "object": text, "since": at, "last": at, "every": every,
			"former": ref("former"), "events": text, "cause": ref("reference"),
		}, "kind", "by", "object", "since", "last", "every", "former", "events", "cause"),
		"happened": members(schema{"time": at, "revision": text, "count": number, "deleted": yes, "event": ref("Event")}, "deleted"),
		"events":   answerOf(schema{"items": list(ref("Event")), "continue": text, "total": number}, "continue", "total"),
		"histogram": answerOf(schema{
			"counted": counted, "step": text, "by": list(text), "buckets": list(ref("bucket")), "total": number,
		}, "by"),
		"cluster":  members(schema{"name": text, "completeUntil": at, "lag": number, "every": number, "late": yes, "lastEvent": at, "gaps": number, "mirror": text}, "every", "lastEvent", "mirror"),
		"clusters": answerOf(schema{"items": list(ref("cluster"))}),
		"facets": answerOf(schema{
			"counted": counted, "facets": dictionary(list(ref("value"))), "other": dictionary(number), "distinct": dictionary(number), "total": number,
		}),
		"groups":  answerOf(schema{"counted": counted, "groups": list(ref("group")), "continue": text}, "continue"),
		"changes": answerOf(schema{"scope": text, "verdict": ref("verdict"), "changes": list(ref("change"))}, "scope"),
		"came":    members(schema{"reason": text, "type": text, "count": number, "first": at, "last": at, "every": every, "state": state}, "every"),
		"table":   answerOf(schema{"scope": text, "verdict": ref("verdict"), "continue": text, "columns": list(text), "rows": list(list(text))}, "scope", "verdict", "continue"),
		"object":  answerOf(schema{"series": list(ref("came")), "items": list(ref("happened")), "continue": text}, "series", "continue"),
	}
	maps.Copy(all, searchSchemas())
	maps.Copy(all, deletedSchemas())
	return all
}

func searchSchemas() schema {
	text, yes := schema{"type": "string"}, schema{"type": "boolean"}
	return schema{
		"term": members(schema{"field": text, "values": list(text), "not": yes}, "not"),
		"tree": schema{"type": "object", "properties": schema{
			"all": list(ref("tree")), "any": list(ref("tree")), "not": ref("tree"), "word": text, "note": yes, "field": text, "label": text, "values": list(text),
		}},
		"search": members(schema{"terms": list(ref("term")), "tree": ref("tree"), "mistake": text}, "tree", "mistake"),
	}
}

func deletedSchemas() schema {
	text, yes, number := schema{"type": "string"}, schema{"type": "boolean"}, schema{"type": "integer", "format": "int64"}
	return schema{
		"deleter": schema{"type": "object", "properties": schema{"user": text, "client": text, "audit": text}},
		"deletion": members(schema{
			"time": schema{"type": "string", "format": "date-time"}, "revision": text, "by": ref("deleter"), "believed": yes, "source": number, "event": ref("Event"),
		}, "believed", "source"),
		"deleted": answerOf(schema{"items": list(ref("deletion")), "continue": text, "total": number}, "continue", "total"),
	}
}
