package request

import (
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/event"
)

// decodePlain reads an event as nearly all clients send it: every member is
// known, comes once and has the right type. It returns false for everything else,
// and for everything that is wrong, which the library decodes then.
//
// It is here for its speed: a typical body takes 2.9 µs instead of 12.4, and so a
// whole create 39 µs of processor time instead of 48 (BenchmarkCreate of package
// api, without net/http). A body of 3 MiB takes 2 ms instead of 15, and is
// decoded in pieces with other requests in between, which the library cannot.
func (c *Decoder) decodePlain(v event.View, body []byte) (*eventsv1.Event, bool) {
	ev := new(eventsv1.Event)
	return ev, c.setPlain(v, body, ev)
}

// setPlain sets the members that such a body has in an existing event.
func (c *Decoder) setPlain(v event.View, body []byte, ev *eventsv1.Event) bool {
	if c.Limits.Depth < plainDepth {
		return false
	}
	r := plainReader{text: string(body), view: v, apiVersion: c.APIVersion(v)}
	r.event(ev)
	r.space()
	return !r.failed && r.at == len(r.text)
}

// plainDepth is the deepest nesting of the members that are known here.
const plainDepth = 3

// coreNames maps the members that have another name in core/v1 to their name in
// events/v1. The events/v1 names themselves are unknown in core/v1.
var coreNames = map[string]string{
	"involvedObject": "regarding", "message": "note", "source": "deprecatedSource", "reportingComponent": "reportingController",
	"firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount",
	"regarding": "", "note": "", "deprecatedSource": "", "reportingController": "",
	"deprecatedFirstTimestamp": "", "deprecatedLastTimestamp": "", "deprecatedCount": "",
}

func (r *plainReader) event(ev *eventsv1.Event) {
	r.members(func(name string) bool {
		if r.view == event.CoreV1 {
			if other, ok := coreNames[name]; ok {
				name = other
			}
		}
		switch name {
		case "kind":
			return r.string() == event.Kind
		case "apiVersion":
			return r.string() == r.apiVersion
		case "metadata":
			r.metadata(&ev.ObjectMeta)
		case "eventTime":
			ev.EventTime.Time = r.time(metav1.RFC3339Micro)
		case "series":
			if ev.Series == nil {
				ev.Series = new(eventsv1.EventSeries)
			}
			r.series(ev.Series)
		case "reportingController":
			ev.ReportingController = r.string()
		case "reportingInstance":
			ev.ReportingInstance = r.string()
		case "action":
			ev.Action = r.string()
		case "reason":
			ev.Reason = r.string()
		case "regarding":
			r.reference(&ev.Regarding)
		case "related":
			if ev.Related == nil {
				ev.Related = new(corev1.ObjectReference)
			}
			r.reference(ev.Related)
		case "note":
			ev.Note = r.string()
		case "type":
			ev.Type = r.string()
		case "deprecatedSource":
			r.source(&ev.DeprecatedSource)
		case "deprecatedFirstTimestamp":
			ev.DeprecatedFirstTimestamp.Time = r.time(time.RFC3339)
		case "deprecatedLastTimestamp":
			ev.DeprecatedLastTimestamp.Time = r.time(time.RFC3339)
		case "deprecatedCount":
			ev.DeprecatedCount = r.number()
		default:
			return false
		}
		return true
	})
}

// metadata reads what clients set. Name and namespace are copied because they
// outlive the request: as substrings they would keep the whole body in memory.
func (r *plainReader) metadata(m *metav1.ObjectMeta) {
	r.members(func(name string) bool {
		switch name {
		case "name":
			m.Name = strings.Clone(r.string())
		case "generateName":
			m.GenerateName = r.string()
		case "namespace":
			m.Namespace = strings.Clone(r.string())
		case "uid":
			m.UID = types.UID(r.string())
		case "resourceVersion":
			m.ResourceVersion = r.string()
		case "creationTimestamp":
			m.CreationTimestamp.Time = r.time(time.RFC3339)
		case "labels":
			r.dict(&m.Labels)
		case "annotations":
			r.dict(&m.Annotations)
		default:
			return false
		}
		return true
	})
}

// dict adds to a map. It may have any number of members.
func (r *plainReader) dict(into *map[string]string) {
	read := map[string]string{}
	r.each(func(name string) bool {
		_, twice := read[name]
		read[name] = r.string()
		return !twice
	})
	if *into == nil {
		*into = read
		return
	}
	maps.Copy(*into, read)
}

func (r *plainReader) series(s *eventsv1.EventSeries) {
	r.members(func(name string) bool {
		switch name {
		case "count":
			s.Count = r.number()
		case "lastObservedTime":
			s.LastObservedTime.Time = r.time(metav1.RFC3339Micro)
		default:
			return false
		}
		return true
	})
}

func (r *plainReader) source(s *corev1.EventSource) {
	r.members(func(name string) bool {
		switch name {
		case "component":
			s.Component = r.string()
		case "host":
			s.Host = r.string()
		default:
			return false
		}
		return true
	})
}

func (r *plainReader) reference(ref *corev1.ObjectReference) {
	r.members(func(name string) bool {
		switch name {
		case "kind":
			ref.Kind = r.string()
		case "namespace":
			ref.Namespace = r.string()
		case "name":
			ref.Name = r.string()
		case "uid":
			ref.UID = types.UID(r.string())
		case "apiVersion":
			ref.APIVersion = r.string()
		case "resourceVersion":
			ref.ResourceVersion = r.string()
		case "fieldPath":
			ref.FieldPath = r.string()
		default:
			return false
		}
		return true
	})
}
