package mirror

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/event"
)

// Enrichment says which labels copies get that their events do not have. The zero value adds none. With any of them,
// copies have the uid of their namespace too.
type Enrichment struct {
	Owner           bool     // the controller at the top of the object, and the node
	Labels          bool     // the object's [UsualLabels] and CopyLabels
	Namespace       bool     // NamespaceLabels
	CopyLabels      []string // keys of objects
	NamespaceLabels []string // keys of namespaces
}

// On reports whether anything is added.
func (e Enrichment) On() bool { return e.Owner || e.Labels || e.Namespace }

// UsualLabels are the keys by which people find what belongs together. Versions and hashes are not among them, because
// they have a new value with each rollout.
var UsualLabels = []string{
	"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component", "app.kubernetes.io/part-of", "app", "k8s-app",
}

const (
	// MaxChosenLabels is how many keys CopyLabels and NamespaceLabels may have together: with the others they are 16.
	MaxChosenLabels = maxAdded - 4 - 6
	maxAdded        = 16
	maxAddedBytes   = 1024

	enrichWait = 250 * time.Millisecond // for what is not known yet
	firstWait  = 10 * time.Second       // for the first list of pods and namespaces, before any event is read
	fresh      = 10 * time.Second       // the pod of an older event is known, if there is one
)

// NamespaceKey returns the key under which a label of a namespace is copied. A key has one slash, so another one
// becomes an underscore. The error says why that is no key.
func NamespaceKey(label string) (string, error) {
	key := event.NamespaceLabelPrefix + strings.ReplaceAll(label, "/", "_")
	if problems := append(validation.IsQualifiedName(label), validation.IsQualifiedName(key)...); len(problems) > 0 {
		return "", fmt.Errorf("%q cannot be copied as %s: %s", label, key, problems[0])
	}
	return key, nil
}

// What was found out about the object and the namespace of an event, as the metric names it. The later one counts if
// they differ.
const (
	enrichedAdded   = "added"
	enrichedUnknown = "unknown" // there is no such object any more, or there never was
	enrichedOff     = "off"     // the source does not let it be read
	enrichedLate    = "late"    // not in time
)

var enrichedOrder = []string{enrichedAdded, enrichedUnknown, enrichedOff, enrichedLate}

// facts are what an object adds to events about it.
type facts struct {
	namespace            string
	ownerKind, ownerName string
	labels               string // each key and each value ends with a NUL
}

// found is what is known of an object or a namespace.
type found[V any] struct {
	value  V
	result string
	soon   <-chan struct{} // not nil: it may be known when this is closed, and there is no result yet
}

// enricher finds the labels to add. It is safe for concurrent use.
type enricher struct {
	Enrichment
	metrics    *metrics
	keys       []string // of the labels of objects
	pods       index[podKey, unique.Handle[facts]]
	podsOf     map[string]*reflector // by namespace; "": all
	namespaces index[string, namespace]
	spaces     *reflector
	objects    *objects
}

func newEnricher(c Config, m *metrics) *enricher {
	e := &enricher{Enrichment: c.Enrich, metrics: m, podsOf: map[string]*reflector{}}
	if e.Labels {
		e.keys = slices.Concat(UsualLabels, e.CopyLabels)
	}
	only := c.Source.Metadata()
	e.spaces = newReflector(only, "/api/v1/namespaces", "namespaces", namespacesOf{e}, c.Log)
	if e.Owner || e.Labels {
		for _, namespace := range c.Namespaces {
			path := "/api/v1/namespaces/" + namespace + "/pods"
			if namespace == "" {
				path = "/api/v1/pods"
			}
			e.podsOf[namespace] = newReflector(only, path, "pods", podsOf{e, namespace}, c.Log)
		}
		e.objects = newObjects(c.Source, e.factsOf, c.Log)
	}
	return e
}

// run follows pods and namespaces, and reads other objects, until ctx ends.
func (e *enricher) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, r := range e.reflectors() {
		all.Go(func() { r.run(ctx) })
	}
	if e.objects != nil {
		all.Go(func() { e.objects.run(ctx) })
	}
	all.Wait()
}

func (e *enricher) reflectors() []*reflector {
	return append(slices.Collect(maps.Values(e.podsOf)), e.spaces)
}

// begun waits until pods and namespaces are known or cannot be read. Otherwise the events that the cluster has when a
// mirror begins would be copied without labels.
func (e *enricher) begun(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	for _, r := range e.reflectors() {
		select {
		case <-r.answered:
		case <-ctx.Done():
		}
	}
}

// enrich sets what is added to the items that are not known. It waits for objects that have just been created, at most
// enrichWait for all items together.
func (e *enricher) enrich(ctx context.Context, items []item, known *known) {
	ctx, cancel := context.WithTimeout(ctx, enrichWait)
	defer cancel()
	var waiting []*item
	for i := range items {
		it := &items[i]
		if known.has(it) {
			continue
		}
		object, space := e.object(it), e.space(it)
		if object.soon != nil || space.soon != nil {
			waiting = append(waiting, it)
			continue
		}
		e.add(it, object, space)
	}
	for _, it := range waiting {
		e.add(it, await(ctx, it, e.object), await(ctx, it, e.space))
	}
}

// await finds something, and waits for it until ctx ends.
func await[V any](ctx context.Context, it *item, find func(*item) found[V]) found[V] {
	f := find(it)
	if f.soon == nil {
		return f
	}
	select {
	case <-f.soon:
	case <-ctx.Done():
	}
	if f = find(it); f.soon != nil {
		f.result = enrichedLate
	}
	return f
}

// object finds the facts of the object that an event is about.
func (e *enricher) object(it *item) found[facts] {
	about := &it.copy.InvolvedObject
	switch {
	case it.about != nil:
		return found[facts]{value: *it.about, result: enrichedAdded}
	case e.objects == nil:
		return found[facts]{result: enrichedAdded}
	case about.Kind == "Pod":
		return e.pod(it)
	case string(about.UID) == about.Name && about.Kind == "Node": // kubelets do not know the uid of their node
		return found[facts]{result: enrichedAdded}
	case about.UID == "":
		return found[facts]{result: enrichedUnknown}
	}
	return e.objects.find(reference{about.APIVersion, about.Kind, it.copy.Namespace, about.Name, about.UID})
}

func (e *enricher) pod(it *item) found[facts] {
	of := e.podsOf[it.copy.Namespace]
	if of == nil {
		of = e.podsOf[""]
	}
	pod := e.pods.find(keyOf(it.copy.InvolvedObject.UID), of.state(), time.Since(it.written) < fresh)
	if pod.result != enrichedAdded {
		return found[facts]{result: pod.result, soon: pod.soon}
	}
	if pod.value.Value().namespace != it.copy.Namespace { // somebody claims a pod of another namespace
		return found[facts]{result: enrichedUnknown}
	}
	return found[facts]{value: pod.value.Value(), result: enrichedAdded}
}

// space finds the namespace of an event, as it was when the event was created.
func (e *enricher) space(it *item) found[namespace] {
	f := e.namespaces.find(it.copy.Namespace, e.spaces.state(), time.Since(it.written) < fresh)
	if f.result == enrichedAdded && f.value.created.After(it.created) {
		if f.value.former == nil {
			return found[namespace]{result: enrichedUnknown}
		}
		f.value = *f.value.former
	}
	return f
}

// add sets what is added to an item, and counts how that went.
func (e *enricher) add(it *item, object found[facts], space found[namespace]) {
	later := max(slices.Index(enrichedOrder, object.result), slices.Index(enrichedOrder, space.result))
	e.metrics.enriched.WithLabelValues(enrichedOrder[later]).Inc()
	it.added = addition{labels: map[string]string{}}
	if e.Owner {
		kind, name := object.value.ownerKind, object.value.ownerName
		if about := it.copy.InvolvedObject; kind == "" && object.result != enrichedLate && !controlled[about.Kind] || top[about.Kind] {
			kind, name = about.Kind, about.Name
		}
		if kind != "" && name != "" {
			it.added.put(event.OwnerKindLabel, labelValue(kind))
			it.added.put(event.OwnerNameLabel, labelValue(name))
			if it.added.labels[event.OwnerNameLabel] != name {
				it.added.owner = name
			}
		}
		if node := nodeOf(it.copy); node != "" {
			it.added.put(event.NodeLabel, labelValue(node))
		}
	}
	if space.value.uid != "" {
		it.added.put(event.NamespaceUIDLabel, space.value.uid)
	}
	for key, value := range pairs(object.value.labels) {
		it.added.put(key, value)
	}
	for key, value := range pairs(space.value.labels) {
		it.added.put(key, value)
	}
}

// addition is what is added to a copy.
type addition struct {
	labels map[string]string
	bytes  int
	owner  string // the owner's whole name, if the label has only a part of it
}

// put adds a label, unless that would be too much.
func (a *addition) put(key, value string) {
	if size := len(key) + len(value); len(a.labels) < maxAdded && a.bytes+size <= maxAddedBytes {
		a.labels[key], a.bytes = value, a.bytes+size
	}
}

// reserved reports whether a label has the same value in every version of a copy once it is there.
func reserved(key string) bool {
	switch key {
	case event.OwnerKindLabel, event.OwnerNameLabel, event.NodeLabel, event.NamespaceUIDLabel:
		return true
	}
	return strings.HasPrefix(key, event.NamespaceLabelPrefix)
}

// whole returns the copy with what is added. An event's own labels win: those of a copy that is mirrored again, for
// instance.
func (it *item) whole() corev1.Event {
	ev := *it.copy
	ev.Labels = labels.Merge(it.added.labels, ev.Labels)
	if it.added.owner != "" && ev.Labels[event.OwnerNameLabel] == it.added.labels[event.OwnerNameLabel] {
		ev.Annotations = labels.Merge(ev.Annotations, map[string]string{event.OwnerNameLabel: it.added.owner})
	}
	return ev
}

// labelValue returns a text as the value of a label. Of one that is too long, or has characters that a value cannot
// have, it is the first 54 characters and a hash of all.
func labelValue(text string) string {
	if len(validation.IsValidLabelValue(text)) == 0 {
		return text
	}
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' {
			return c
		}
		return '-'
	}, text)
	sum := sha256.Sum256([]byte(text))
	return strings.TrimLeft(fmt.Sprintf("%s-%x", plain[:min(len(plain), 54)], sum[:4]), "-_.")
}
