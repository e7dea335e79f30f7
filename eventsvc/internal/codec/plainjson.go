package codec

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
// known, comes once and has the right type. It leaves everything else, and
// everything that is wrong, to the library and returns false.
func (c *Codec) decodePlain(v event.View, body []byte) (*eventsv1.Event, bool) {
	ev := new(eventsv1.Event)
	return ev, c.setPlain(v, body, ev)
}

// setPlain sets what a body of that kind has in an event that is there.
func (c *Codec) setPlain(v event.View, body []byte, ev *eventsv1.Event) bool {
	if c.Limits.Depth < plainDepth {
		return false
	}
	r := plainReader{text: string(body), view: v, apiVersion: c.APIVersion(v)}
	r.event(ev)
	r.space()
	return !r.failed && r.at == len(r.text)
}

// plainDepth is how deep the members are nested that are known here.
const plainDepth = 3

// coreNames are the members of core/v1 that have another name there.
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

// metadata reads what clients set. Name and namespace outlive the request, the
// body should not.
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
