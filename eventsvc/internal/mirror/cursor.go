package mirror

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/client"
)

// cursor says how far everything of the source is written. The zero value is that of a mirror that has copied nothing.
type cursor struct {
	version  string
	complete time.Time // the source had nothing later than version at this time; zero: unknown
}

// The annotations of the event that holds the cursor.
const (
	annotationCursor   = "mirror.tidings.example/cursor"
	annotationComplete = "mirror.tidings.example/cursor-time"
)

// cursorName returns the name of the event that holds the cursor.
func (c *copier) cursorName() string {
	name := "eventsvc-mirror." + c.Cluster
	if c.namespace != "" {
		name += "." + c.namespace
	}
	return name
}

// scope names the events of the source that are copied, for messages.
func (c *copier) scope() string {
	if c.namespace == "" {
		return "all events"
	}
	return "the events of namespace " + c.namespace
}

// loadCursor returns the cursor, or the zero value if there is none yet. If only its version is missing, because somebody has
// removed that, the time remains.
func (c *copier) loadCursor(ctx context.Context) (cursor, error) {
	var ev corev1.Event
	err := c.Target.Do(ctx, client.Request{Path: eventPath(c.CursorNamespace, c.cursorName())}, &ev)
	if missing(err, "events") {
		return cursor{}, nil
	}
	complete, malformed := time.Parse(time.RFC3339, ev.Annotations[annotationComplete])
	if malformed != nil {
		complete = ev.LastTimestamp.Time // older programs have stored no better time
	}
	return cursor{version: ev.Annotations[annotationCursor], complete: complete}, err
}

// saveCursor writes the cursor and overwrites any other, because every value that it ever had stays true.
func (c *copier) saveCursor(ctx context.Context, at cursor) error {
	now := metav1.Now()
	ev := c.newOwn(c.cursorName(), corev1.EventTypeNormal, "Mirrored")
	ev.Message = fmt.Sprintf("%s of cluster %s up to resourceVersion %s are here", c.scope(), c.Cluster, at.version)
	ev.FirstTimestamp, ev.LastTimestamp = now, now
	ev.Annotations = map[string]string{annotationCursor: at.version}
	if !at.complete.IsZero() {
		ev.Annotations[annotationComplete] = at.complete.UTC().Format(time.RFC3339)
	}
	return c.put(ctx, ev)
}

// newOwn returns an event that the mirror itself reports.
func (c *copier) newOwn(name, eventType, reason string) *corev1.Event {
	ev := &corev1.Event{
		InvolvedObject:      corev1.ObjectReference{Kind: "Cluster", Name: c.Cluster, Namespace: c.CursorNamespace},
		Type:                eventType,
		Reason:              reason,
		Source:              corev1.EventSource{Component: "eventsvc-mirror"},
		ReportingController: controller,
	}
	ev.APIVersion, ev.Kind = "v1", "Event"
	ev.Name, ev.Namespace, ev.Labels = name, c.CursorNamespace, c.labels()
	return ev
}

// controller is the reportingController of the mirror's own events.
const controller = "tidings.example/mirror"

// put stores an event of the mirror, whether there is one of its name or not.
func (c *copier) put(ctx context.Context, ev *corev1.Event) error {
	return c.Target.Do(ctx, client.Request{Method: http.MethodPut, Path: eventPath(ev.Namespace, ev.Name), Body: ev}, nil)
}

// check asks the source from time to time for its version, and sends what it learns to marks. Once the cursor has reached
// that version, it is known to have been complete at that time. The time at which a change arrives would not tell that:
// while the mirror catches up, later changes are minutes old already.
func (c *copier) check(ctx context.Context, marks chan<- cursor) {
	for {
		before, asked := c.state.reached(), time.Now()
		version, err := c.Source.Version(ctx, c.path)
		switch {
		case err != nil: // the watch tells of failures
		case before != version && client.Newer(before, version):
			return // the versions have started over, as the next watch will find out
		default:
			select {
			case marks <- cursor{version: version, complete: asked}:
			case <-ctx.Done():
			}
		}
		if client.Sleep(ctx, checkEvery) != nil {
			return
		}
	}
}

// passMark notes the time of the mark if the cursor has reached its version.
func (c *copier) passMark() {
	if c.mark != nil && !client.Newer(c.mark.version, c.cursor.version) {
		c.cursor.complete, c.mark = c.mark.complete, nil
	}
}
