package codec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/yaml"

	"tidings.example/eventsvc/internal/event"
)

// newFieldManagers makes what computes managed fields, for each view.
func (c *Codec) newFieldManagers() error {
	for _, v := range []event.View{event.EventsV1, event.CoreV1} {
		models, err := c.models(v)
		if err != nil {
			return err
		}
		types, err := managedfields.NewTypeConverter(models, false)
		if err != nil {
			return fmt.Errorf("read the embedded schemas: %w", err)
		}
		gv := c.GroupVersion(v)
		c.fields[v], err = managedfields.NewDefaultFieldManager(types, versions{c}, versions{c}, versions{c},
			gv.WithKind(event.Kind), c.GroupVersion(event.EventsV1), "", nil)
		if err != nil {
			return fmt.Errorf("managed fields of %s: %w", gv, err)
		}
	}
	return nil
}

// TrackUpdate records in the managed fields of next what manager changed. Live
// is nil when next is new. Managed fields that next brings along are taken as a
// client's wish to change them; none at all keeps those of live.
func (c *Codec) TrackUpdate(v event.View, live, next *eventsv1.Event, manager string) error {
	if live == nil {
		if c.trackCreate(v, next, manager) {
			return nil
		}
		live = &eventsv1.Event{}
	} else if c.trackPlain(v, live, next, manager) {
		return nil
	}
	return c.trackFully(v, live, next, manager)
}

// trackFully is TrackUpdate for everything that is not plain.
func (c *Codec) trackFully(v event.View, live, next *eventsv1.Event, manager string) error {
	tracked, err := c.fields[v].Update(c.show(v, live), c.show(v, next), manager)
	if err != nil {
		return fmt.Errorf("managed fields of %s/%s: %w", next.Namespace, next.Name, err)
	}
	next.ManagedFields = tracked.(metav1.Object).GetManagedFields()
	return nil
}

// Apply merges an apply patch of manager into the stored event; live is nil
// when there is none. A conflict with other managers is a 409 unless forced.
func (c *Codec) Apply(v event.View, live *eventsv1.Event, patch []byte, manager string, force bool, validation string) (*eventsv1.Event, []string, error) {
	if err := c.checkYAML(patch); err != nil {
		return nil, nil, err
	}
	text, err := yaml.ToJSON(patch)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest("error encoding patch: " + err.Error())
	}
	if err := c.checkShape(text); err != nil {
		return nil, nil, err
	}
	applied := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal(patch, &applied.Object); err != nil {
		return nil, nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
	}
	if live == nil {
		live = &eventsv1.Event{}
	}
	merged, err := c.fields[v].Apply(c.show(v, live), applied, manager, force)
	if err != nil {
		return nil, nil, applyError(err)
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
	return hub(merged), warnings(problems), nil
}

// applyError keeps answers as they are. Everything else is about what the
// client sent, which the original calls its own failure.
func applyError(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err
	}
	return apierrors.NewBadRequest(err.Error())
}

// SameObject tells whether two events are equal but for their resourceVersion
// and the times of their managed fields: then a write changes nothing.
func (c *Codec) SameObject(a, b *eventsv1.Event) bool {
	return !surelyDiffer(a, b) && bytes.Equal(essence(a), essence(b))
}

// surelyDiffer tells whether two events differ in what most changes are about,
// which is much quicker to see than that they are the same.
func surelyDiffer(a, b *eventsv1.Event) bool {
	if a.Note != b.Note || a.DeprecatedCount != b.DeprecatedCount || (a.Series == nil) != (b.Series == nil) {
		return true
	}
	return a.Series != nil && a.Series.Count != b.Series.Count
}

// essence is an event in protobuf, where nil and empty are the same, without
// what does not count as a change.
func essence(ev *eventsv1.Event) []byte {
	plain := *ev
	plain.ResourceVersion = ""
	plain.ManagedFields = slices.Clone(ev.ManagedFields)
	for i := range plain.ManagedFields {
		plain.ManagedFields[i].Time = nil
	}
	b, _ := plain.Marshal() // generated code: only a short buffer is an error
	return b
}

// versions converts between the views for the merging of fields.
type versions struct{ c *Codec }

var errNoConversion = errors.New("events are converted to versions only")

// Convert is not used.
func (versions) Convert(_, _, _ any) error { return errNoConversion }

// ConvertFieldLabel is not used.
func (versions) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errNoConversion
}

// Default does nothing: events have no defaults.
func (versions) Default(runtime.Object) {}

// New makes an empty event of a view.
func (k versions) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	v, err := k.view(kind.GroupVersion())
	return k.c.show(v, &eventsv1.Event{}), err
}

func (k versions) view(gv schema.GroupVersion) (event.View, error) {
	for v := range k.c.fields {
		if k.c.GroupVersion(event.View(v)) == gv {
			return event.View(v), nil
		}
	}
	return 0, runtime.NewNotRegisteredErrForKind("eventsvc", gv.WithKind(event.Kind))
}

// ConvertToVersion returns an event as the view of a version has it.
func (k versions) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gv, ok := target.(schema.GroupVersion)
	if !ok {
		return nil, errNoConversion
	}
	v, err := k.view(gv)
	if err != nil {
		return nil, err
	}
	if u, ok := in.(*unstructured.Unstructured); ok {
		if in, err = k.structured(u); err != nil {
			return nil, err
		}
	}
	if ev, ok := in.(*eventsv1.Event); ok {
		return k.c.show(v, ev), nil
	}
	return k.c.show(v, hub(in)), nil
}

func (k versions) structured(u *unstructured.Unstructured) (runtime.Object, error) {
	v, err := k.view(u.GroupVersionKind().GroupVersion())
	if err != nil {
		return nil, err
	}
	obj := newViewEvent(v)
	return obj, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj)
}
