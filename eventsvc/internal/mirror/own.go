package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
)

// annotationDropped is the annotation of the cursor's event that has the counts of hours that are not over, in JSON.
const annotationDropped = "mirror.tidings.example/dropped"

// annotationGapNamespace is the annotation of a report of a gap that has the only namespace that it concerns; not set:
// all.
const annotationGapNamespace = "mirror.tidings.example/gap-namespace"

// ownEvents are the events of the target that a copier itself reports: its cursor, and its gaps.
type ownEvents struct {
	*Mirror
	namespace string // of the source; "": all
}

// cursorName returns the name of the event that holds the cursor.
func (o ownEvents) cursorName() string {
	name := "eventsvc-mirror." + o.Cluster
	if o.namespace != "" {
		name += "." + o.namespace
	}
	return name
}

// scope names the events of the source that are copied, for messages.
func (o ownEvents) scope() string {
	if o.namespace == "" {
		return "all events"
	}
	return "the events of namespace " + o.namespace
}

// event returns one of these events.
func (o ownEvents) event(name, eventType, reason string) *corev1.Event {
	ev := &corev1.Event{
		InvolvedObject:      corev1.ObjectReference{Kind: "Cluster", Name: o.Cluster, Namespace: o.CursorNamespace},
		Type:                eventType,
		Reason:              reason,
		Source:              corev1.EventSource{Component: "eventsvc-mirror"},
		ReportingController: event.GapReporter,
	}
	ev.APIVersion, ev.Kind = "v1", "Event"
	ev.Name, ev.Namespace, ev.Labels = name, o.CursorNamespace, o.labels()
	return ev
}

// loadCursor returns the cursor and the counts that are stored with it, or zero values if there is none yet. If only
// its version is missing, because somebody has removed that, the time remains. The revision is that of the target.
func (o ownEvents) loadCursor(ctx context.Context) (at cursor, dropped map[drop]int64, revision string, err error) {
	var ev corev1.Event
	err = o.Target.Do(ctx, client.Request{Path: eventPath(o.CursorNamespace, o.cursorName())}, &ev)
	if missing(err, "events") {
		return cursor{}, nil, "", nil
	}
	complete, malformed := time.Parse(time.RFC3339, ev.Annotations[event.CursorComplete])
	if malformed != nil {
		complete = ev.LastTimestamp.Time // of the write: it was not known when the cursor was complete
	}
	_ = json.Unmarshal([]byte(ev.Annotations[annotationDropped]), &dropped) // what somebody has changed is counted anew
	last, _ := time.Parse(time.RFC3339, ev.Annotations[event.CursorLast])
	return cursor{version: ev.Annotations[event.CursorVersion], complete: complete, last: last}, dropped, ev.ResourceVersion, err
}

// saveCursor writes the cursor with its counts, if the one that is stored still has the revision, or if there is still
// none ("").
func (o ownEvents) saveCursor(ctx context.Context, at cursor, dropped map[drop]int64, revision string) error {
	now := metav1.Now()
	ev := o.event(o.cursorName(), corev1.EventTypeNormal, event.CursorReason)
	ev.Message = fmt.Sprintf("%s of cluster %s up to resourceVersion %s are here", o.scope(), o.Cluster, at.version)
	ev.FirstTimestamp, ev.LastTimestamp = now, now
	ev.ResourceVersion = revision
	ev.Annotations = map[string]string{event.CursorVersion: at.version, event.CursorMirror: o.Version}
	if len(dropped) > 0 {
		ev.Annotations[annotationDropped] = encodeDrops(dropped)
	}
	if !at.complete.IsZero() {
		ev.Annotations[event.CursorComplete] = stamp(at.complete)
	}
	if !at.last.IsZero() {
		ev.Annotations[event.CursorLast] = stamp(at.last)
	}
	if revision == "" {
		return o.Target.Do(ctx, client.Request{Method: http.MethodPost, Path: client.EventsPath("", ev.Namespace), Body: ev}, nil)
	}
	return o.put(ctx, ev)
}

// gapName returns the name of the event that reports a gap: the same one if it is reported again, because the mirror
// was killed before it could save the next cursor.
func (o ownEvents) gapName(g gap) string {
	sum := sha256.Sum256([]byte(g.cursor.version + "/" + stamp(g.cursor.complete)))
	return fmt.Sprintf("%s.gap.%x", o.cursorName(), sum[:5])
}

// gap returns the event that reports a gap.
func (o ownEvents) gap(g gap, reason string) *corev1.Event {
	ev := o.event(o.gapName(g), corev1.EventTypeWarning, event.GapReason)
	ev.Message = g.note(o, reason)
	ev.FirstTimestamp, ev.LastTimestamp = metav1.NewTime(g.cursor.complete), metav1.NewTime(g.end())
	ev.Annotations = o.between(g.cursor.complete, g.end())
	return ev
}

// between returns the annotations of an event that reports what happened between two times.
func (o ownEvents) between(from, to time.Time) map[string]string {
	annotations := map[string]string{event.GapFrom: stamp(from), event.GapTo: stamp(to)}
	if o.namespace != "" {
		annotations[annotationGapNamespace] = o.namespace
	}
	return annotations
}

// put stores one of these events, whether there is one of its name or not.
func (o ownEvents) put(ctx context.Context, ev *corev1.Event) error {
	return o.Target.Do(ctx, client.Request{Method: http.MethodPut, Path: eventPath(ev.Namespace, ev.Name), Body: ev}, nil)
}
