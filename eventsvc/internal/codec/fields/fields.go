package fields

import (
	"bytes"
	"encoding/json"
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
	"k8s.io/kube-openapi/pkg/validation/spec"

	"tidings.example/eventsvc/internal/event"
)

// Tracker keeps managed fields in both views.
type Tracker struct {
	group    event.Group
	managers [2]*managedfields.FieldManager // by view
}

// New returns the tracker of a group. Models returns the OpenAPI schemas by which
// the fields of a view are merged.
func New(group event.Group, models func(event.Group, event.View) (map[string]*spec.Schema, error)) (*Tracker, error) {
	t := &Tracker{group: group}
	for _, v := range []event.View{event.EventsV1, event.CoreV1} {
		schemas, err := models(group, v)
		if err != nil {
			return nil, err
		}
		types, err := managedfields.NewTypeConverter(schemas, false)
		if err != nil {
			return nil, fmt.Errorf("read the schemas of managed fields: %w", err)
		}
		gv, convert := group.GroupVersion(v), versions{group}
		t.managers[v], err = managedfields.NewDefaultFieldManager(types, convert, convert, convert,
			gv.WithKind(event.Kind), group.GroupVersion(event.EventsV1), "", nil)
		if err != nil {
			return nil, fmt.Errorf("managed fields of %s: %w", gv, err)
		}
	}
	return t, nil
}

// Update records in the managed fields of next what manager changed since live,
// which is nil if next is new. If next has managed fields, the client wants to
// replace those of live by them; nil keeps those of live, and an empty list
// removes them.
func (t *Tracker) Update(v event.View, live, next *eventsv1.Event, manager string) error {
	if live == nil {
		if t.trackCreate(v, next, manager) {
			return nil
		}
		live = &eventsv1.Event{}
	} else if t.trackPlain(v, live, next, manager) {
		return nil
	}
	return t.trackFully(v, live, next, manager)
}

// trackFully is Update by the library.
func (t *Tracker) trackFully(v event.View, live, next *eventsv1.Event, manager string) error {
	tracked, err := t.managers[v].Update(t.group.Show(v, live), t.group.Show(v, next), manager)
	if err != nil {
		return fmt.Errorf("managed fields of %s/%s: %w", next.Namespace, next.Name, err)
	}
	next.ManagedFields = tracked.(metav1.Object).GetManagedFields()
	return nil
}

// Apply merges an apply patch of manager into an event as the view shows it, and
// returns the result. Live is nil if there is no event yet. Unless forced, a
// field that another manager has set otherwise is a conflict.
func (t *Tracker) Apply(v event.View, live *eventsv1.Event, patch *unstructured.Unstructured, manager string, force bool) (*eventsv1.Event, error) {
	if live == nil {
		live = &eventsv1.Event{}
	}
	merged, err := t.managers[v].Apply(t.group.Show(v, live), patch, manager, force)
	if err != nil {
		return nil, applyError(err)
	}
	return event.Hub(merged), nil
}

// applyError returns a Status as it is and makes every other error a 400: it is
// about what the client sent, although kube-apiserver answers 500.
func applyError(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err
	}
	return apierrors.NewBadRequest(err.Error())
}

// Same tells whether two events are equal apart from their resourceVersion and
// the times in their managed fields: a write of the one over the other changes
// nothing then.
func Same(a, b *eventsv1.Event) bool {
	if surelyDiffer(a, b) {
		return false
	}
	return bytes.Equal(essence(a), essence(b)) || respelled(a, b) && bytes.Equal(essence(spelled(a)), essence(spelled(b)))
}

// respelled reports whether some managed field is not written byte for byte as in the other event, although it may say
// the same: somebody has indented the JSON, or sorted it.
func respelled(a, b *eventsv1.Event) bool {
	return len(a.ManagedFields) == len(b.ManagedFields) && !slices.EqualFunc(a.ManagedFields, b.ManagedFields, func(a, b metav1.ManagedFieldsEntry) bool {
		return a.FieldsV1 == nil || b.FieldsV1 == nil || bytes.Equal(a.FieldsV1.Raw, b.FieldsV1.Raw)
	})
}

// spelled returns an event whose managed fields are written in one way.
func spelled(ev *eventsv1.Event) *eventsv1.Event {
	out := *ev
	out.ManagedFields = slices.Clone(ev.ManagedFields)
	for i := range out.ManagedFields {
		if f := out.ManagedFields[i].FieldsV1; f != nil {
			var all any
			if json.Unmarshal(f.Raw, &all) == nil {
				raw, _ := json.Marshal(all) // it was JSON
				out.ManagedFields[i].FieldsV1 = &metav1.FieldsV1{Raw: raw}
			}
		}
	}
	return &out
}

// surelyDiffer compares only the members that most changes are about, which is
// much cheaper than comparing everything.
func surelyDiffer(a, b *eventsv1.Event) bool {
	if a.Note != b.Note || a.DeprecatedCount != b.DeprecatedCount || (a.Series == nil) != (b.Series == nil) {
		return true
	}
	return a.Series != nil && a.Series.Count != b.Series.Count
}

// essence encodes what [Same] compares of an event. It uses protobuf, in which nil
// and empty are the same.
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

// versions converts events between the views for the library.
type versions struct{ group event.Group }

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
	return k.group.Show(v, &eventsv1.Event{}), err
}

func (k versions) view(gv schema.GroupVersion) (event.View, error) {
	v, ok := k.group.ViewOf(gv.String())
	if !ok {
		return 0, runtime.NewNotRegisteredErrForKind("eventsvc", gv.WithKind(event.Kind))
	}
	return v, nil
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
		return k.group.Show(v, ev), nil // without a change of in, which Hub would make
	}
	return k.group.Show(v, event.Hub(in)), nil
}

func (k versions) structured(u *unstructured.Unstructured) (runtime.Object, error) {
	v, err := k.view(u.GroupVersionKind().GroupVersion())
	if err != nil {
		return nil, err
	}
	obj := event.NewObject(v)
	_, err = event.DecodeTree(u.Object, obj, false)
	return obj, err
}
