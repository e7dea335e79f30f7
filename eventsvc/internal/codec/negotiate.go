package codec

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"tidings.example/eventsvc/internal/codec/request"
)

// Scope is the kind of an answer. It decides which transforms an Accept header may
// ask for.
type Scope uint8

// The scopes of answers.
const (
	ScopeObject Scope = iota // one event
	ScopeList                // an event list
	ScopeWatch               // a watch stream
	ScopeOther               // errors, discovery, namespaces, reviews: no transforms
)

const streamParameter = ";stream=watch"

// Transform is another shape in which a client may ask for events.
type Transform uint8

// The transforms.
const (
	None    Transform = iota // the events themselves
	Table                    // rows and columns, as kubectl prints them
	Partial                  // PartialObjectMetadata, or its list
)

// Format is what was negotiated for an answer. The zero value is JSON.
type Format struct {
	Media         request.Media
	As            Transform
	TableVersion  string                     // v1 or v1beta1, with Table
	IncludeObject metav1.IncludeObjectPolicy // with Table
	Pretty        bool                       // indented JSON
}

// ContentType is the Content-Type header of an answer in this format.
func (f Format) ContentType(watch bool) string {
	if watch && f.Media == request.Protobuf {
		return request.MediaTypes[request.Protobuf] + streamParameter
	}
	return request.MediaTypes[f.Media]
}

// Negotiate chooses the format of an answer by the Accept header and the query of a
// request: the client's most preferred clause that the scope has. The error is a
// 406 or, for a bad includeObject, a 400.
func Negotiate(r *http.Request, s Scope) (Format, error) {
	accept := r.Header.Get("Accept")
	f, kind, ok := negotiate(accept, s)
	switch {
	case !routable(accept):
		return Format{}, unroutable(s)
	case !ok:
		return Format{}, notAcceptable(s)
	}
	f.Pretty = f.Media == request.JSON && s != ScopeWatch && (f.Pretty || wantsPretty(r))
	switch {
	case f.As == Table:
		f.IncludeObject = metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject"))
		errs := validation.ValidateTableOptions(&metav1.TableOptions{IncludeObject: f.IncludeObject})
		if len(errs) > 0 {
			return Format{}, apierrors.NewBadRequest("Unable to convert to Table as requested: " + errs[0].Error())
		}
	case kind == partialKind && s == ScopeList:
		return Format{}, statusNotAcceptable("you requested PartialObjectMetadata, but the requested object is a list (*core.EventList)")
	case kind == partialKind+"List" && s != ScopeList:
		return Format{}, statusNotAcceptable("you requested PartialObjectMetadataList, but the requested object is not a list (*core.Event)")
	}
	return f, nil
}

// negotiate returns the format of the best clause and the kind it asks for.
func negotiate(accept string, s Scope) (Format, string, bool) {
	if accept == "" || accept == request.MediaTypes[request.JSON] { // as most small clients send
		return Format{}, "", true
	}
	for _, clause := range parseAccept(accept) {
		for media := range request.Media(len(request.MediaTypes)) {
			if s == ScopeWatch && media == request.YAML || !clause.accepts(request.MediaTypes[media]) {
				continue
			}
			if f, ok := clause.format(media, s); ok {
				return f, clause.params["as"], true
			}
		}
	}
	return Format{}, "", false
}

// routable tells whether the router of kube-apiserver would pass a request on to
// negotiation: one clause must name a media type that is served, or be */*. The
// router knows no other wildcard and ignores parameters.
func routable(accept string) bool {
	if strings.TrimSpace(accept) == "" {
		return true
	}
	for clause := range strings.SplitSeq(accept, ",") {
		media, _, _ := strings.Cut(clause, ";")
		media = strings.ToLower(strings.TrimSpace(media)) // RFC 9110 section 8.3.1
		if media == "*/*" || slices.Contains(request.MediaTypes[:], media) {
			return true
		}
	}
	return false
}

var streamTypes = []string{request.MediaTypes[request.JSON] + streamParameter, request.MediaTypes[request.Protobuf] + streamParameter}

// unroutable is the 406 of the router, which has empty details. Lists and watches
// share a path, which has the media types of both.
func unroutable(s Scope) error {
	types := request.MediaTypes[:]
	if s == ScopeList || s == ScopeWatch {
		types = slices.Concat(types, streamTypes)
	}
	err := statusNotAcceptable("406: Not Acceptable\n\nAvailable representations: " + strings.Join(types, ", "))
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

// notAcceptable is the 406 for parameters that cannot be met.
func notAcceptable(s Scope) error {
	types := request.MediaTypes[:]
	if s == ScopeWatch {
		types = streamTypes
	}
	return statusNotAcceptable("only the following media types are accepted: " + strings.Join(types, ", "))
}

func statusNotAcceptable(message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Message: message, Reason: metav1.StatusReasonNotAcceptable, Code: http.StatusNotAcceptable,
	}}
}

// wantsPretty tells whether to indent JSON: the query asks for it, or the client is
// curl, wget or a browser, as in kube-apiserver.
func wantsPretty(r *http.Request) bool {
	if strings.Contains(r.URL.RawQuery, "pretty") {
		if v := r.URL.Query().Get("pretty"); v != "" {
			pretty, _ := strconv.ParseBool(v)
			return pretty
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}
