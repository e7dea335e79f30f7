package request

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"tidings.example/eventsvc/internal/codec/fields"
	"tidings.example/eventsvc/internal/event"
)

// Decoder reads the bodies of requests in both views.
type Decoder struct {
	Group event.Group

	// Fields keeps the managed fields of the same group.
	Fields *fields.Tracker
}

// New returns the decoder of a group.
func New(group event.Group, tracker *fields.Tracker) *Decoder {
	return &Decoder{Group: group, Fields: tracker}
}

// DecodeEvent reads an event from a request body. Validation is Ignore, Warn
// or Strict ("" is Warn): unknown and duplicate fields are ignored, returned as
// warnings (with an error too), or an error.
func (c *Decoder) DecodeEvent(v event.View, contentType string, body []byte, validation string) (*eventsv1.Event, []string, error) {
	media, err := bodyMedia(contentType)
	if err != nil {
		return nil, nil, err
	}
	if media == JSON {
		if err := checkShape(body); err != nil {
			return nil, nil, err
		}
		if ev, ok := c.decodePlain(v, body); ok {
			return ev, nil, nil
		}
	}
	return c.decodeFully(v, media, body, validation)
}

// decodeFully is DecodeEvent by the libraries.
func (c *Decoder) decodeFully(v event.View, media Media, body []byte, validation string) (*eventsv1.Event, []string, error) {
	obj, strict := event.NewObject(v), validation != metav1.FieldValidationIgnore
	kind, problems, err := c.decodeBody(media, body, obj, strict)
	if named, known := c.Group.ViewOf(kind.APIVersion); known && named != v {
		// kube-apiserver decodes a body as the version that it names before it
		// compares that version with the URL's, so errors of decoding come first.
		kind, problems, err = c.decodeBody(media, body, event.NewObject(named), strict)
	}
	if err := c.checkKind(v, kind, err, body); err != nil {
		return nil, nil, err
	}
	if len(problems) > 0 && validation == metav1.FieldValidationStrict {
		return nil, nil, unusable(kind, c.Group.GroupVersion(v).Version, runtime.NewStrictDecodingError(problems))
	}
	if kind.APIVersion != "" && kind.APIVersion != c.Group.APIVersion(v) {
		return nil, warnings(problems), apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)", kind.APIVersion, c.Group.APIVersion(v)))
	}
	return event.Hub(obj), warnings(problems), nil
}

// bodyMedia is the wire format of a request body. No Content-Type means JSON.
func bodyMedia(contentType string) (Media, error) {
	if contentType == "" || contentType == MediaTypes[JSON] {
		return JSON, nil
	}
	if name, _, err := mime.ParseMediaType(contentType); err == nil {
		if media := slices.Index(MediaTypes[:], name); media >= 0 {
			return Media(media), nil
		}
	}
	return JSON, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonUnsupportedMediaType, Code: http.StatusUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " +
			strings.Join(MediaTypes[:], ", "),
	}}
}

// errUnrecognized wraps the error of a body whose kind cannot be read.
type errUnrecognized struct{ error }

// decodeBody reads an event. It returns the kind that the body names and, if
// strict, its unknown and duplicate fields as problems.
func (c *Decoder) decodeBody(media Media, body []byte, obj event.Object, strict bool) (kind metav1.TypeMeta, problems []error, err error) {
	if media == Protobuf {
		kind, err = c.readProto(body, obj)
		return kind, nil, err
	}
	text, problems, err := c.readText(media, body, obj, strict)
	var limit *event.LimitError
	var unrecognized errUnrecognized
	if err == nil || errors.As(err, &limit) || errors.As(err, &unrecognized) {
		return *obj.GetObjectKind().(*metav1.TypeMeta), problems, err
	}
	// Only now read the kind, as kube-apiserver does first, for the same text of
	// the error.
	gvk, kindErr := jsonserializer.DefaultMetaFactory.Interpret(text)
	if kindErr != nil {
		return kind, nil, errUnrecognized{kindErr}
	}
	kind.APIVersion, kind.Kind = gvk.ToAPIVersionAndKind()
	return kind, nil, err
}

// readText reads JSON or YAML into an object. It returns the JSON that it has
// decoded and, if strict, the unknown and duplicate fields.
func (c *Decoder) readText(media Media, body []byte, obj Object, strict bool) (text []byte, problems []error, err error) {
	text = body
	if media == YAML {
		if err := checkYAML(body); err != nil {
			return nil, nil, err
		}
		if text, err = yaml.YAMLToJSON(body); err != nil {
			return nil, nil, errUnrecognized{err}
		}
		if strict {
			// Duplicate keys are lost in the conversion to JSON.
			if _, err := yaml.YAMLToJSONStrict(body); err != nil {
				problems = append(problems, err)
			}
		}
	}
	if err := checkShape(text); err != nil {
		return nil, nil, err
	}
	switch ev := obj.(type) {
	case *eventsv1.Event, *corev1.Event:
		found, err := event.Decode(text, ev.(event.Object), strict)
		return text, append(problems, found...), err
	}
	return text, problems, kjson.UnmarshalCaseSensitivePreserveInts(text, obj)
}

// readProto reads protobuf into an object and returns the kind that the body names.
func (c *Decoder) readProto(body []byte, obj Object) (metav1.TypeMeta, error) {
	envelope, err := openEnvelope(body)
	if err != nil {
		return metav1.TypeMeta{}, errUnrecognized{err}
	}
	return metav1.TypeMeta{Kind: envelope.Kind, APIVersion: envelope.APIVersion}, readMessage(envelope.Raw, obj)
}

// readMessage reads the message of an object.
func readMessage(message []byte, obj Object) error {
	err := checkFields(message)
	if err == nil {
		err = obj.Unmarshal(message)
	}
	if err == nil {
		err = checkCounts(message, obj)
	}
	return err
}

func openEnvelope(body []byte) (*runtime.Unknown, error) {
	message, ok := bytes.CutPrefix(body, []byte(Magic))
	switch {
	case len(body) == 0:
		return nil, errors.New("empty data")
	case !ok:
		return nil, fmt.Errorf("provided data does not appear to be a protobuf message, expected prefix %v", []byte(Magic))
	case len(message) == 0:
		return nil, errors.New("empty body")
	}
	envelope := new(runtime.Unknown)
	return envelope, envelope.Unmarshal(message)
}

// checkKind turns an error of decoding, or a kind that is not an event, into a 400
// with the text of kube-apiserver.
func (c *Decoder) checkKind(v event.View, kind metav1.TypeMeta, err error, body []byte) error {
	var unrecognized errUnrecognized
	var limit *event.LimitError
	switch {
	case errors.As(err, &limit):
		return err
	case errors.As(err, &unrecognized):
		return cannotRecognize(unrecognized.error, body)
	}
	gv, gvErr := c.Group.GroupVersion(v), error(nil)
	if kind.APIVersion != "" && kind.APIVersion != c.Group.APIVersion(v) {
		gv, gvErr = schema.ParseGroupVersion(kind.APIVersion)
	}
	switch {
	case gvErr != nil:
		return cannotRecognize(gvErr, body)
	case kind.Kind != "" && kind.Kind != event.Kind:
		return unusable(kind, gv.Version, fmt.Errorf("converting (%s.%s) to (core.Event): unknown conversion", gv.Version, kind.Kind))
	case err != nil:
		return unusable(kind, gv.Version, err)
	}
	return nil
}

func cannotRecognize(err error, body []byte) error {
	return apierrors.NewBadRequest(fmt.Sprintf(
		"the object provided is unrecognized (must be of type Event): %v (%s)", err, summary(body)))
}

func unusable(kind metav1.TypeMeta, version string, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a Event: %v", cmp.Or(kind.Kind, event.Kind), version, err))
}

// summary shows the first bytes of a body, in hexadecimal unless it looks like
// JSON.
func summary(body []byte) string {
	const shown = 30
	head, more := body, ""
	if len(body) > shown {
		head, more = body[:shown], " ..."
	}
	switch {
	case len(body) == 0:
		return "<empty>"
	case body[0] == '{':
		return string(head) + more
	default:
		return hex.EncodeToString(head) + more
	}
}

// warnings are the texts of problems for Warning headers. The YAML reader reports
// all duplicate keys in one text, a line each, below a heading.
func warnings(problems []error) []string {
	var texts []string
	for _, p := range problems {
		text := strings.TrimPrefix(p.Error(), "error converting YAML to JSON: ")
		lines, isYAML := strings.CutPrefix(text, "yaml: unmarshal errors:\n")
		if !isYAML {
			texts = append(texts, p.Error())
			continue
		}
		for line := range strings.SplitSeq(lines, "\n") {
			texts = append(texts, strings.TrimSpace(line))
		}
	}
	return texts
}
