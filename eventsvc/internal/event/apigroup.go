package event

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Group is the API group of the events/v1 view. The zero value is not valid.
type Group struct {
	name       string // events.{group_domain}
	apiVersion string // name and version, as objects carry them
}

// NewGroup returns the group events.{groupDomain}. The error says why the name
// is no DNS subdomain.
func NewGroup(groupDomain string) (Group, error) {
	name := "events." + groupDomain
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		return Group{}, fmt.Errorf("group domain %q: %s", groupDomain, strings.Join(errs, "; "))
	}
	return Group{name: name, apiVersion: name + "/v1"}, nil
}

// GroupVersion is the group and version of a view.
func (g Group) GroupVersion(v View) schema.GroupVersion {
	if v == CoreV1 {
		return corev1.SchemeGroupVersion
	}
	return schema.GroupVersion{Group: g.name, Version: "v1"}
}

// APIVersion is GroupVersion as objects carry it.
func (g Group) APIVersion(v View) string {
	if v == CoreV1 {
		return "v1"
	}
	return g.apiVersion
}

// ViewOf returns the view with an apiVersion, and false if there is none.
func (g Group) ViewOf(apiVersion string) (View, bool) {
	for _, v := range []View{EventsV1, CoreV1} {
		if g.APIVersion(v) == apiVersion {
			return v, true
		}
	}
	return 0, false
}

// Resource names the resource in a view, as errors print it.
func (g Group) Resource(v View) schema.GroupResource {
	return schema.GroupResource{Group: g.GroupVersion(v).Group, Resource: "events"}
}

// Show returns an event as a view has it, with kind and apiVersion. It shares
// maps, slices and pointers with its argument.
func (g Group) Show(v View, ev *eventsv1.Event) Object {
	shown := *ev
	shown.TypeMeta = metav1.TypeMeta{Kind: Kind, APIVersion: g.APIVersion(v)}
	if v == CoreV1 {
		return ToCore(&shown)
	}
	return &shown
}

// Object is an event in one of the views: *eventsv1.Event or *corev1.Event.
type Object interface {
	runtime.Object
	metav1.Object
	Unmarshal([]byte) error
}

// NewObject returns an empty event of a view.
func NewObject(v View) Object {
	if v == CoreV1 {
		return &corev1.Event{}
	}
	return &eventsv1.Event{}
}

// Hub is the inverse of [Group.Show]: it returns an event of either view as the
// hub type, without kind and apiVersion.
func Hub(obj runtime.Object) *eventsv1.Event {
	ev, ok := obj.(*eventsv1.Event)
	if !ok {
		ev = FromCore(obj.(*corev1.Event))
	}
	ev.TypeMeta = metav1.TypeMeta{}
	return ev
}
