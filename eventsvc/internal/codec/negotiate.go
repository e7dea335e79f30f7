package codec

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Scope says what an answer can be: it decides which transforms an Accept
// header may ask for.
type Scope uint8

// The scopes of answers.
const (
	ScopeObject Scope = iota // one event
	ScopeList                // an event list
	ScopeWatch               // a watch stream
	ScopeStatus              // errors and the answer to delete: transforms are ignored
	ScopeOther               // discovery, namespaces, reviews: no transforms
)

// Media is a wire format.
type Media uint8

// The wire formats, in the order in which the server prefers them.
const (
	JSON Media = iota
	YAML
	Protobuf
)

// Transform is another shape in which a client may ask for events.
type Transform uint8

// The transforms.
const (
	None    Transform = iota // the events themselves
	Table                    // rows and columns, as kubectl prints them
	Partial                  // PartialObjectMetadata, or its list
)

// Format is what was negotiated for an answer.
type Format struct {
	Media         Media
	As            Transform
	TableVersion  string                     // v1 or v1beta1, with Table
	IncludeObject metav1.IncludeObjectPolicy // with Table
	Pretty        bool                       // indented JSON
}

// ContentType is the Content-Type header of an answer in this format.
func (f Format) ContentType(watch bool) string {
	switch {
	case f.Media == YAML:
		return "application/yaml"
	case f.Media == Protobuf && watch:
		return "application/vnd.kubernetes.protobuf;stream=watch"
	case f.Media == Protobuf:
		return "application/vnd.kubernetes.protobuf"
	default:
		return "application/json"
	}
}

// Negotiate chooses the format of an answer from the Accept header and the
// query of a request. The error is a 406 or, for a bad includeObject, a 400.
func (c *Codec) Negotiate(r *http.Request, s Scope) (Format, error) { return Format{}, nil }
