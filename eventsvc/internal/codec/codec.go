// Package codec turns events into bytes and back: request bodies in, the
// stored form, and everything that goes out.
package codec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/event"
)

// Codec knows the wire formats of both views. It is safe for concurrent use.
type Codec struct {
	group string // events.{group_domain}
}

// New returns the codec of the group events.{groupDomain}.
func New(groupDomain string) (*Codec, error) {
	group := "events." + groupDomain
	if errs := validation.IsDNS1123Subdomain(group); len(errs) > 0 {
		return nil, fmt.Errorf("group domain %q: %s", groupDomain, strings.Join(errs, "; "))
	}
	return &Codec{group: group}, nil
}

// GroupVersion is the group and version that a view shows.
func (c *Codec) GroupVersion(v event.View) schema.GroupVersion {
	if v == event.CoreV1 {
		return corev1.SchemeGroupVersion
	}
	return schema.GroupVersion{Group: c.group, Version: "v1"}
}

// Resource names the resource in a view, as errors print it.
func (c *Codec) Resource(v event.View) schema.GroupResource {
	return schema.GroupResource{Group: c.GroupVersion(v).Group, Resource: "events"}
}
