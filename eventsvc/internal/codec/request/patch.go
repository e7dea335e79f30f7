package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"tidings.example/eventsvc/internal/event"
)

// CheckPatch refuses a JSON, merge or strategic merge patch that is not JSON or
// breaks a limit. It is called before the event is read.
func (c *Decoder) CheckPatch(patch []byte) error {
	if err := checkShape(patch); err != nil {
		return err
	}
	if _, plain := plainOperations(patch); !plain && !json.Valid(patch) {
		return apierrors.NewBadRequest("invalid JSON patch")
	}
	return nil
}

// Patch applies a JSON, merge or strategic merge patch to a stored event, as
// the view shows it, and returns the patched event and warnings. Live is not
// changed. The caller must have called [Decoder.CheckPatch], and checks name,
// namespace and resourceVersion of the result.
func (c *Decoder) Patch(v event.View, patchType types.PatchType, patch []byte, live *eventsv1.Event, validation string) (*eventsv1.Event, []string, error) {
	if next, ok := c.patchPlain(v, patchType, patch, live); ok {
		return next, nil, nil
	}
	return c.patchFully(v, patchType, patch, live, validation)
}

// patchFully is Patch by the libraries.
func (c *Decoder) patchFully(v event.View, patchType types.PatchType, patch []byte, live *eventsv1.Event, validation string) (*eventsv1.Event, []string, error) {
	shown := c.Group.Show(v, live)
	var p patched
	var err error
	strict := validation != metav1.FieldValidationIgnore
	switch patchType {
	case types.JSONPatchType, types.MergePatchType:
		p, err = c.patchText(v, patchType, patch, shown, strict)
	case types.StrategicMergePatchType:
		p, err = patchStrategic(v, patch, shown, strict)
	default:
		err = apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch",
			c.Group.Resource(v), live.Name, fmt.Sprintf("unknown patch type %q", patchType), 0, false)
	}
	if err == nil && len(p.problems) > 0 && validation == metav1.FieldValidationStrict {
		err = invalidPatch(p.text, runtime.NewStrictDecodingError(p.problems))
	}
	if err != nil {
		return nil, nil, err
	}
	return event.Hub(p.obj), warnings(p.problems), nil
}

// patchPlain applies a merge or strategic merge patch that only sets values, as
// event recorders send them: reading it over the event gives the same at a tenth
// of the cost. It returns false for every other patch and for every error:
// patchFully has the texts of kube-apiserver.
func (c *Decoder) patchPlain(v event.View, patchType types.PatchType, patch []byte, live *eventsv1.Event) (*eventsv1.Event, bool) {
	isMerge := patchType == types.MergePatchType || patchType == types.StrategicMergePatchType
	// Null removes a member, $ begins a directive.
	if !isMerge || bytes.Contains(patch, []byte("$")) || bytes.Contains(patch, []byte(`\u0024`)) || bytes.Contains(patch, []byte("null")) {
		return nil, false
	}
	next := live.DeepCopy()
	next.ManagedFields = live.ManagedFields // a plain patch has no lists
	return next, c.setPlain(v, patch, next)
}

type patched struct {
	obj      event.Object
	text     string  // for errors
	problems []error // unknown and duplicate fields
}

// invalidPatch is the 422 for a patch whose result is not an event. It has neither kind
// nor name, as in kube-apiserver.
func invalidPatch(text string, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), text, err.Error()),
	})
}

// rejectedPatch is the 422 for a patch that cannot be executed. Like kube-apiserver
// it does not tell the client why.
func rejectedPatch(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}

// patchText applies a patch that works on the JSON of an object.
func (c *Decoder) patchText(v event.View, patchType types.PatchType, patch []byte, shown event.Object, strict bool) (patched, error) {
	text, err := json.Marshal(shown)
	if err != nil {
		return patched{}, fmt.Errorf("encode event to patch it: %w", err)
	}
	var problems []error
	if patchType == types.JSONPatchType {
		text, problems, err = c.applyJSONPatch(text, patch, strict)
	} else {
		text, problems, err = applyMergePatch(text, patch, strict)
	}
	if err != nil {
		return patched{}, err
	}
	p := patched{text: string(text)}
	p.obj, p.problems, err = c.decodePatched(v, text, strict)
	if err != nil {
		return p, invalidPatch(p.text, err)
	}
	p.problems = slices.Concat(problems, p.problems)
	return p, nil
}

// decodePatched reads the result of a patch as the version that it names, as
// kube-apiserver does. If the patch has changed the version, the members of the
// old view are unknown fields and are dropped. If it has removed the version, all
// members are dropped, the name too.
func (c *Decoder) decodePatched(v event.View, text []byte, strict bool) (event.Object, []error, error) {
	gvk, err := jsonserializer.DefaultMetaFactory.Interpret(text)
	if err != nil {
		return nil, nil, err
	}
	named, known := c.Group.ViewOf(gvk.GroupVersion().String())
	switch {
	case gvk.Version == "":
		problems, err := kjson.UnmarshalStrict(text, &metav1.TypeMeta{})
		return event.NewObject(v), problems, err
	case !known, gvk.Kind != "" && gvk.Kind != event.Kind:
		return nil, nil, fmt.Errorf("unable to decode %s into *core.Event", gvk)
	}
	obj := event.NewObject(named)
	problems, err := event.Decode(text, obj, strict)
	return obj, problems, err
}

func applyMergePatch(text, patch []byte, strict bool) ([]byte, []error, error) {
	var problems []error
	if strict {
		var err error
		if problems, err = kjson.UnmarshalStrict(patch, &map[string]any{}); err != nil {
			return nil, nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
		}
	}
	text, err := jsonpatch.MergePatch(text, patch)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return text, problems, nil
}

// patchStrategic applies a strategic merge patch, for which the type of the
// view says how lists are merged.
func patchStrategic(v event.View, patch []byte, shown event.Object, strict bool) (patched, error) {
	changes := map[string]any{}
	problems, err := kjson.UnmarshalStrict(patch, &changes)
	if err != nil {
		return patched{}, apierrors.NewBadRequest(err.Error())
	}
	p := patched{obj: event.NewObject(v), text: fmt.Sprintf("%+v", changes)}
	original, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shown)
	if err != nil {
		return p, fmt.Errorf("take event apart to patch it: %w", err)
	}
	result, err := strategicpatch.StrategicMergeMapPatch(original, changes, event.NewObject(v))
	if err != nil {
		return p, strategicError(err)
	}
	unknown, err := event.DecodeTree(result, p.obj, strict)
	if err != nil {
		return p, invalidPatch(p.text, err)
	}
	if strict {
		p.problems = slices.Concat(problems, unknown)
	}
	return p, nil
}

// strategicError answers a patch that cannot be merged. kube-apiserver answers 500
// to some, such as an unknown directive; here they are a 400.
func strategicError(err error) error {
	if errors.Is(err, mergepatch.ErrNoListOfLists) || errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys) {
		return rejectedPatch(err)
	}
	return apierrors.NewBadRequest(err.Error())
}
