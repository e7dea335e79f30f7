package changes_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// memory is a timeline in memory: the simplest one that can hold a million events.
// Its revisions follow the time of observation.
type memory struct {
	store.Timeline // nil: for what is not asked here

	start      time.Time
	written    time.Time // when it was first written to; zero: at the first observation
	dimensions []event.Dimensions
	known      map[event.Dimensions]int32
	events     []memoryEvent
	byName     map[memoryKey]int32
	seen       []observation // sorted by time, once sorted
	before     []observation // of the timeline that it continues
	cluster    string        // of what is said
}

// timeToLive is after how many seconds a cluster forgets an event: what comes then is another one.
const timeToLive = 3600

// memoryKey is what makes two observations ones of the same event.
type memoryKey struct {
	dimensions int32
	name       string
}

type memoryEvent struct {
	memoryKey
	note  string
	first int64
	last  int64
	count int64
}

type observation struct {
	second       int64
	event, count int32 // count of the event up to this one
	dimensions   int32 // of the event: looked up there, each one of a million is a miss of the cache
}

func newMemory(start time.Time) *memory {
	return &memory{start: start, known: map[event.Dimensions]int32{}, byName: map[memoryKey]int32{}}
}

// fork returns a timeline that has all of a sorted one. What is said to it are other events.
func (m *memory) fork() *memory {
	f := newMemory(m.start)
	f.dimensions, f.known, f.events, f.before = slices.Clip(m.dimensions), maps.Clone(m.known), slices.Clip(m.events), m.seen
	return f
}

// say records an observation, in seconds after the start. It is one more of the same
// event if the object and the dimensions are the same.
func (m *memory) say(at float64, namespace, kind, name, typ, reason, reporter, note string) {
	d := event.Dimensions{Cluster: m.cluster, Namespace: namespace, Type: typ, Reason: reason, Kind: kind, Reporter: reporter}
	i, ok := m.known[d]
	if !ok {
		i = int32(len(m.dimensions))
		m.known[d] = i
		m.dimensions = append(m.dimensions, d)
	}
	k := memoryKey{i, name}
	e, ok := m.byName[k]
	if !ok {
		e = int32(len(m.events))
		m.byName[k] = e
		m.events = append(m.events, memoryEvent{memoryKey: k, note: note})
	}
	m.seen = append(m.seen, observation{second: m.start.Unix() + int64(at), event: e, dimensions: i})
}

// sort ends the recording.
func (m *memory) sort() {
	inTime := func(a, b observation) int { return cmp.Compare(a.second, b.second) }
	slices.SortStableFunc(m.seen, inTime)
	newest := make([]int32, len(m.events)) // number of the event that an event has become
	for i := range newest {
		newest[i] = int32(i)
	}
	for i := range m.seen {
		o := &m.seen[i]
		e := &m.events[newest[o.event]]
		if e.count > 0 && o.second-e.last > timeToLive {
			newest[o.event] = int32(len(m.events))
			m.events = append(m.events, memoryEvent{memoryKey: e.memoryKey, note: e.note})
			e = &m.events[newest[o.event]]
		}
		if e.count++; e.count == 1 {
			e.first = o.second
		}
		e.last = o.second
		o.event, o.count = newest[o.event], int32(e.count)
	}
	all := make([]observation, 0, len(m.before)+len(m.seen))
	for _, o := range m.seen {
		n, _ := slices.BinarySearchFunc(m.before, observation{second: o.second + 1}, inTime)
		all = append(append(all, m.before[:n]...), o)
		m.before = m.before[n:]
	}
	m.seen, m.before, m.byName = append(all, m.before...), nil, nil
}

// until returns the revision of the last observation before a time.
func (m *memory) until(at time.Time) uint64 { return uint64(m.index(at, uint64(len(m.seen)))) }

func (m *memory) index(at time.Time, revision uint64) int {
	return sort.Search(int(revision), func(i int) bool { return m.seen[i].second >= at.Unix() })
}

func (m *memory) bounds(r store.Range) (from, to int, revision uint64) {
	revision = min(cmp.Or(r.Revision, uint64(len(m.seen))), uint64(len(m.seen)))
	return m.index(r.From, revision), m.index(r.To, revision), revision
}

// Count implements [store.Timeline].
func (m *memory) Count(ctx context.Context, c store.Count, visit func(store.Occurred)) error {
	from, to, _ := m.bounds(c.Range)
	if c.Objects {
		for i := from; i < to; i++ {
			e := &m.events[m.seen[i].event]
			d := m.dimensions[e.dimensions]
			if c.Filter != nil && !c.Filter.Matches(event.SubjectOf(m.event(i))) {
				continue
			}
			if c.Patterns() {
				d.Pattern = event.Pattern([]byte(e.note), []byte(e.name), []byte(d.Namespace))
			}
			if group := c.Group(d, event.Regarding{Kind: d.Kind, Namespace: d.Namespace, Name: e.name}); group >= 0 {
				visit(store.Occurred{Group: group, Second: m.seen[i].second, Count: 1})
			}
		}
		return ctx.Err()
	}
	const unknown = -2
	groups := make([]int, len(m.dimensions))
	for i := range groups {
		groups[i] = unknown
	}
	for i := to - 1; i >= from; i-- {
		d := m.seen[i].dimensions
		if groups[d] == unknown {
			groups[d] = c.Group(m.dimensions[d], event.Regarding{})
		}
		if groups[d] >= 0 {
			visit(store.Occurred{Group: groups[d], Second: m.seen[i].second, Count: 1})
		}
	}
	return ctx.Err()
}

// Observed implements [store.Timeline], newest first only.
func (m *memory) Observed(ctx context.Context, q store.TimeQuery, visit func(*store.View, store.Moment) bool) (store.TimePage, error) {
	from, to, revision := m.bounds(q.Range)
	p := store.TimePage{Revision: revision}
	if q.After.Revision > 0 {
		to = int(q.After.Revision) - 1
	}
	later := make([]bool, len(m.events)) // events that were observed again
	for i := int(revision) - 1; i >= from; i-- {
		o := m.seen[i]
		if later[o.event] {
			continue
		}
		later[o.event] = true
		if i >= to || q.Wanted != nil && !q.Wanted(m.dimensions[o.dimensions]) {
			continue
		}
		v := m.view(i)
		if !q.Selector.Matches(v.Namespace, v.Name, v.Attributes) {
			continue
		}
		p.Last = store.Moment{Time: time.Unix(o.second, 0).UTC(), Revision: uint64(i + 1)}
		if !visit(v, p.Last) {
			p.More = true
			break
		}
	}
	return p, ctx.Err()
}

// Versions implements [store.Timeline].
func (m *memory) Versions(ctx context.Context, s *event.Selector, visit func(*store.View, bool) bool) error {
	wanted := map[int32]bool{}
	for i, o := range m.seen {
		v := m.view(i)
		wanted[o.event] = wanted[o.event] || s.Matches(v.Namespace, v.Name, v.Attributes)
	}
	for i, o := range m.seen {
		if wanted[o.event] && !visit(m.view(i), false) {
			break
		}
	}
	return ctx.Err()
}

// Begin implements [store.Timeline].
func (m *memory) Begin(context.Context) (observed, written time.Time, err error) {
	observed = time.Now()
	if len(m.seen) > 0 {
		observed = time.Unix(m.seen[0].second, 0)
	}
	if m.written.IsZero() {
		return observed, observed, nil
	}
	return observed, m.written, nil
}

// event returns the event after an observation.
func (m *memory) event(i int) *eventsv1.Event {
	o := m.seen[i]
	e := &m.events[o.event]
	d := m.dimensions[e.dimensions]
	ev := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: d.Namespace, Name: e.name + "." + string(appendHex(nil, o.event)), CreationTimestamp: metav1.Unix(e.first, 0)},
		EventTime:           metav1.NewMicroTime(time.Unix(e.first, 0)),
		Regarding:           corev1.ObjectReference{Kind: d.Kind, Namespace: d.Namespace, Name: e.name, UID: types.UID("uid-" + e.name)},
		Reason:              d.Reason,
		Type:                d.Type,
		Note:                e.note,
		Action:              d.Reason,
		ReportingController: d.Reporter,
		ReportingInstance:   d.Reporter + "-0",
	}
	if d.Kind == "Node" || strings.HasPrefix(d.Kind, "Cluster") {
		ev.Regarding.Namespace = ""
	}
	if o.count > 1 {
		ev.Series = &eventsv1.EventSeries{Count: o.count, LastObservedTime: metav1.NewMicroTime(time.Unix(o.second, 0))}
	}
	return ev
}

func appendHex(b []byte, n int32) []byte {
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[n>>shift&15])
	}
	return b
}

func (m *memory) view(i int) *store.View {
	ev := m.event(i)
	a := event.AttributesOf(ev)
	if ev.Series != nil {
		before := *ev
		before.Series = &eventsv1.EventSeries{Count: ev.Series.Count - 1, LastObservedTime: ev.Series.LastObservedTime}
		a = a.Since(event.AttributesOf(&before))
	}
	return &store.View{
		Key: store.Key{Namespace: ev.Namespace, Name: ev.Name}, Revision: uint64(i + 1), Time: time.Unix(m.seen[i].second, 0).UTC(),
		Attributes: a, Value: binary.AppendUvarint(nil, uint64(i)),
	}
}

// note returns the note of an event of this timeline.
func (m *memory) note(v *store.View) ([]byte, error) {
	i, _ := binary.Uvarint(v.Value)
	return []byte(m.events[m.seen[i].event].note), nil
}

func everywhere(string, string) bool { return true }

func only(namespace string) func(namespace, cluster string) bool {
	return func(n, _ string) bool { return n == namespace }
}

// noon is the time at which small timelines are asked.
var noon = time.Date(2026, 5, 13, 12, 0, 0, 0, time.UTC)

// minutes is a time in minutes before noon, in seconds after the start of a timeline that
// begins two days before noon.
func minutes(before float64) float64 { return 48*3600 - 60*before }

func small(t *testing.T, record func(m *memory)) *memory {
	t.Helper()
	m := newMemory(noon.Add(-48 * time.Hour))
	record(m)
	m.sort()
	return m
}
