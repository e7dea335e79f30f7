package codec

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tidings.example/eventsvc/internal/event"
)

// viewEvent is an event as one of the views has it.
type viewEvent interface {
	runtime.Object
	metav1.Object
	Unmarshal([]byte) error
}

func newViewEvent(v event.View) viewEvent {
	if v == event.CoreV1 {
		return &corev1.Event{}
	}
	return &eventsv1.Event{}
}

// hub returns an event in the form that everything inside works on, without
// kind and apiVersion.
func hub(obj runtime.Object) *eventsv1.Event {
	ev, ok := obj.(*eventsv1.Event)
	if !ok {
		ev = event.FromCore(obj.(*corev1.Event))
	}
	ev.TypeMeta = metav1.TypeMeta{}
	return ev
}

// show returns an event as a view has it, with kind and apiVersion. It shares
// what the event refers to.
func (c *Codec) show(v event.View, ev *eventsv1.Event) viewEvent {
	shown := *ev
	shown.TypeMeta = metav1.TypeMeta{Kind: event.Kind, APIVersion: c.apiVersion(v)}
	if v == event.CoreV1 {
		return event.ToCore(&shown)
	}
	return &shown
}

// kindOf is what an object says it is, as it says it.
func kindOf(obj runtime.Object) metav1.TypeMeta {
	switch o := obj.(type) {
	case *corev1.Event:
		return o.TypeMeta
	case *eventsv1.Event:
		return o.TypeMeta
	}
	return metav1.TypeMeta{}
}
