package codec

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/event"
)

// Codec knows the wire formats of both views. It is safe for concurrent use.
type Codec struct {
	// Now is the clock that the ages in tables count from, time.Now at first.
	Now func() time.Time
	// Limits are [DefaultLimits] at first.
	Limits Limits

	group        string // events.{group_domain}
	groupVersion string
	ownField     []byte // protobuf field of a managed fields entry that is of our group

	fields [2]*managedfields.FieldManager // by view
	drafts sync.Pool                      // *drafting

	framings sync.Pool // *framing
}

// New returns the codec of the group events.{groupDomain}.
func New(groupDomain string) (*Codec, error) {
	group := "events." + groupDomain
	if errs := validation.IsDNS1123Subdomain(group); len(errs) > 0 {
		return nil, fmt.Errorf("group domain %q: %s", groupDomain, strings.Join(errs, "; "))
	}
	c := &Codec{Now: time.Now, Limits: DefaultLimits, group: group, groupVersion: group + "/v1"}
	c.ownField = binary.AppendUvarint([]byte{protoTag(fieldAPIVersion, wireBytes)}, uint64(len(c.groupVersion)))
	c.ownField = append(c.ownField, c.groupVersion...)
	return c, c.newFieldManagers()
}

// GroupVersion is the group and version that a view shows.
func (c *Codec) GroupVersion(v event.View) schema.GroupVersion {
	if v == event.CoreV1 {
		return corev1.SchemeGroupVersion
	}
	return schema.GroupVersion{Group: c.group, Version: "v1"}
}

// apiVersion is GroupVersion as objects carry it.
func (c *Codec) apiVersion(v event.View) string {
	if v == event.CoreV1 {
		return "v1"
	}
	return c.groupVersion
}

// viewOf is the view whose version an object names; false: of none.
func (c *Codec) viewOf(apiVersion string) (event.View, bool) {
	for _, v := range []event.View{event.EventsV1, event.CoreV1} {
		if c.apiVersion(v) == apiVersion {
			return v, true
		}
	}
	return 0, false
}

// Resource names the resource in a view, as errors print it.
func (c *Codec) Resource(v event.View) schema.GroupResource {
	return schema.GroupResource{Group: c.GroupVersion(v).Group, Resource: "events"}
}
