package incidents

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// line is one of an export.
type line struct {
	Type   watch.EventType `json:"type"`
	Object *eventsv1.Event `json:"object"`
}

// identities gives events their names and UIDs.
type identities struct {
	rng    *rand.Rand
	known  map[int]identity // of events that come more than once
	copies bool             // as a mirror makes them
}

type identity struct{ name, uid string }

// of returns the identity of a record's event, and whether the event is new.
func (ids *identities) of(r *record) (identity, bool) {
	if id, ok := ids.known[r.series]; ok {
		return id, false
	}
	id := identity{fmt.Sprintf("%s.%016x", r.about.name, ids.rng.Uint64()), uid(ids.rng)}
	if r.more {
		ids.known[r.series] = id
	}
	return id, true
}

// line makes the line of a record, in a week that began at a time.
func (ids *identities) line(r *record, begin time.Time) line {
	id, fresh := ids.of(r)
	kind := watch.Added
	if !fresh {
		kind = watch.Modified
	}
	first, last := begin.Add(r.first), begin.Add(r.at)
	namespace := cmp.Or(r.about.namespace, "default") // where those about nodes are
	ev := &eventsv1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: id.name, UID: types.UID(id.uid), CreationTimestamp: metav1.NewTime(first.Truncate(time.Second)),
		},
		Type: r.typ, Reason: r.name, Action: r.action, Note: r.note, ReportingController: r.reporter, ReportingInstance: r.host,
		Regarding: corev1.ObjectReference{
			APIVersion: r.about.apiVersion, Kind: r.about.kind, Namespace: r.about.namespace, Name: r.about.name, UID: types.UID(r.about.uid), FieldPath: r.path,
		},
	}
	if ids.copies {
		owner := cmp.Or(r.about.owner, r.about)
		ev.Labels = map[string]string{"tidings.example/owner-kind": owner.kind, "tidings.example/owner-name": owner.name}
	}
	if r.action != "" { // a reporter of the new style
		ev.EventTime, ev.ReportingInstance = metav1.NewMicroTime(first), r.reporter+"-control-plane-1"
		if r.count > 1 {
			ev.Series = &eventsv1.EventSeries{Count: int32(r.count), LastObservedTime: metav1.NewMicroTime(last)}
		}
		return line{kind, ev}
	}
	ev.DeprecatedSource = corev1.EventSource{Component: r.reporter, Host: r.host}
	ev.DeprecatedFirstTimestamp, ev.DeprecatedLastTimestamp = metav1.NewTime(first), metav1.NewTime(last)
	ev.DeprecatedCount = int32(r.count)
	return line{kind, ev}
}
