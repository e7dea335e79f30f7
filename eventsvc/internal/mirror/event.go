package mirror

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/eventsvc/internal/event"
)

// item is an event of the source that is to be written.
type item struct {
	copy    *corev1.Event // as it is to be stored, without what is added
	uid     string
	version string
	written time.Time // when the source says that it was last written
	created time.Time // when the source has stored its first version
	about   *facts    // of the object, if they are known with the event; nil: they are found
	added   addition
}

// newItem makes the copy of an event, without the fields that only a server sets, without finalizers, which nobody
// would remove from the copy, and without owners, which a garbage collector would miss. It changes the event.
func (m *Mirror) newItem(ev *corev1.Event) item {
	it := item{copy: ev, uid: string(ev.UID), version: ev.ResourceVersion, written: lastWritten(ev), created: ev.CreationTimestamp.Time}
	annotations := map[string]string{event.SourceUID: it.uid, event.SourceVersion: it.version}
	delete(ev.Annotations, event.SourceLabels) // only the mirror says which labels of a copy are replaced
	if own := slices.DeleteFunc(slices.Sorted(maps.Keys(ev.Labels)), reserved); len(own) > 0 {
		annotations[event.SourceLabels] = strings.Join(own, ",")
	}
	ev.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}
	ev.ObjectMeta = metav1.ObjectMeta{
		Name: event.CopyName(m.Cluster, ev.Name, ev.UID), Namespace: ev.Namespace,
		Labels:      labels.Merge(ev.Labels, m.labels()),
		Annotations: labels.Merge(ev.Annotations, annotations),
	}
	return it
}

// lastWritten returns the latest of the times of an event.
func lastWritten(ev *corev1.Event) time.Time {
	times := []time.Time{ev.CreationTimestamp.Time, ev.FirstTimestamp.Time, ev.LastTimestamp.Time, ev.EventTime.Time}
	if ev.Series != nil {
		times = append(times, ev.Series.LastObservedTime.Time)
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

// labels returns the labels of every copy: the one that queries use, and [Config.Label].
func (m *Mirror) labels() map[string]string {
	labels := map[string]string{event.ClusterLabel: m.Cluster}
	if m.Label != "" {
		labels[m.Label] = m.Cluster
	}
	return labels
}
