package events

import (
	"encoding/json"
	"strconv"

	"tidings.example/eventsvc/internal/codec/request"
)

// BulkOpenAPI describes [BulkPath] in OpenAPI 3.0.
func BulkOpenAPI() ([]byte, error) {
	type schema = map[string]any
	text := schema{"type": "string"}
	parameter := func(name, description string) schema {
		return schema{"name": name, "in": "query", "description": description, "schema": text}
	}
	status := func(description string) schema {
		return schema{"description": description, "content": schema{"application/json": schema{"schema": schema{"$ref": "#/components/schemas/Status"}}}}
	}
	lines := func(of string) schema {
		return schema{mediaNDJSON: schema{"schema": schema{"$ref": "#/components/schemas/" + of}}}
	}
	body := lines("Event")
	body[request.MediaTypes[request.Protobuf]] = schema{"schema": schema{"type": "string", "format": "binary"}}
	return json.Marshal(schema{
		"openapi": "3.0.0", "info": schema{"title": "Tidings bulk writes", "version": "v1"},
		"paths": schema{BulkPath: schema{"post": schema{
			"operationId": "storeEvents", "description": "Stores many events: new ones, and later versions of copies. The body has an event in each line, the answer a result in each.",
			"parameters": []schema{
				parameter("dryRun", "All: nothing is stored."), parameter("fieldManager", "Who sets the fields; default: the name in the user agent."),
				parameter("fieldValidation", "Strict: a line with unknown or duplicate fields is refused."), parameter("timeout", "How long it may take, such as 10s."),
			},
			"requestBody": schema{"required": true, "description": "At most " + strconv.Itoa(MaxBulk) + " lines, or as many items of an EventList in protobuf.", "content": body},
			"responses": schema{
				"200": schema{"description": "A result for each line, in order.", "content": lines("result")},
				"400": status("There are no lines, or a parameter is wrong."),
				"401": status("There is no token, or it is not valid."),
				"403": status("The caller may create events in no namespace."),
				"413": status("There are too many lines or bytes."),
				"415": status("The body is in another format."),
				"429": status("There are too many requests or writes: send the same lines again."),
				"503": status("Nothing can be written at present: send the same lines again."),
			},
		}}},
		"components": schema{
			"schemas": schema{
				"Event":  schema{"type": "object", "description": "Event of core/v1, with metadata.namespace."},
				"Status": schema{"type": "object", "description": "Status of Kubernetes."},
				"result": schema{
					"type": "object", "required": []string{"index", "code"},
					"properties": schema{
						"index": schema{"type": "integer", "description": "of the line, from 0"},
						"code":  schema{"type": "integer", "description": "201: created, 200: the copy was replaced, or is there in this version or a later one, others as for a create or a replacement"},
						"name":  text, "resourceVersion": text, "replaced": schema{"type": "boolean", "description": "the line replaced an earlier version of the copy"}, "reason": schema{"type": "string", "description": "why it was refused"},
					},
				},
			},
			"securitySchemes": schema{"BearerToken": schema{"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer token"}},
		},
		"security": []any{schema{"BearerToken": []any{}}},
	})
}
