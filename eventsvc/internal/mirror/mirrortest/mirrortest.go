// Package mirrortest reads what a mirror has written, for tests of mirrors.
package mirrortest

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tidings.example/eventsvc/internal/event"
)

// BySource returns the copies of a cluster by the uid at the source. It is an error if two copies show the same event.
func BySource(t testing.TB, copies map[string]corev1.Event) map[string]corev1.Event {
	t.Helper()
	all := map[string]corev1.Event{}
	for name, ev := range copies {
		uid := ev.Annotations[event.SourceUID]
		if uid == "" { // the cursor
			continue
		}
		if other, ok := all[uid]; ok {
			t.Errorf("%s and %s are copies of the same event", name, other.Name)
		}
		all[uid] = ev
	}
	return all
}

// Content returns an event without the fields that a server or the mirror sets.
func Content(ev corev1.Event, cluster string) corev1.Event {
	labels, annotations := maps.Clone(ev.Labels), maps.Clone(ev.Annotations)
	for _, key := range []string{"cluster", event.ClusterLabel} {
		if labels[key] == cluster {
			delete(labels, key)
		}
	}
	for _, added := range []string{"owner-kind", "owner-name", "node", "namespace-uid"} {
		delete(labels, "tidings.example/"+added)
	}
	delete(annotations, event.SourceUID)
	delete(annotations, event.SourceVersion)
	delete(annotations, event.SourceLabels)
	ev.ObjectMeta.Reset()
	ev.Labels, ev.Annotations = map[string]string{}, map[string]string{}
	maps.Copy(ev.Labels, labels)
	maps.Copy(ev.Annotations, annotations)
	return ev
}

// Cursor returns the version that an event of the mirror, as decoded JSON, holds as its cursor.
func Cursor(t testing.TB, object map[string]any) string {
	t.Helper()
	version, _ := Annotations(t, object)["mirror.tidings.example/cursor"].(string)
	return version
}

// Annotations are those of an event, as decoded JSON.
func Annotations(t testing.TB, object map[string]any) map[string]any {
	t.Helper()
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		t.Fatalf("no event: %v", object)
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}
