package request

import (
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"tidings.example/eventsvc/internal/event"
)

// Apply decodes an apply patch of manager, merges it into the stored event, and
// returns the result and warnings about duplicate fields. Live is nil if there is
// no event yet. A conflict with other managers is a 409 unless forced.
func (c *Decoder) Apply(v event.View, live *eventsv1.Event, patch []byte, manager string, force bool, validation string) (*eventsv1.Event, []string, error) {
	if err := checkYAML(patch); err != nil {
		return nil, nil, err
	}
	text, err := yaml.ToJSON(patch)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest("error encoding patch: " + err.Error())
	}
	if err := checkShape(text); err != nil {
		return nil, nil, err
	}
	applied := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal(patch, &applied.Object); err != nil {
		return nil, nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
	}
	// Values of a wrong type are refused before conflicts are looked for.
	if _, err := event.DecodeTree(applied.Object, event.NewObject(v), false); err != nil {
		return nil, nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
	}
	event.CanonicalTimes(applied.Object)
	merged, err := c.Fields.Apply(v, live, applied, manager, force)
	if err != nil {
		return nil, nil, err
	}
	var problems []error
	if validation != metav1.FieldValidationIgnore {
		err = yaml.UnmarshalStrict(patch, &map[string]any{})
	}
	if err != nil {
		if validation == metav1.FieldValidationStrict {
			return nil, nil, apierrors.NewBadRequest("error strict decoding patch: " + err.Error())
		}
		problems = []error{err}
	}
	return merged, warnings(problems), nil
}
