package changes

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// Bounds of what is read to find objects that began to fail.
const (
	maxWarnings  = 2000 // events in the window
	maxEarlier   = 3000 // events before it
	maxVersions  = 10_000
	lookBackTime = 24 * time.Hour
)

// warned is what the warnings in the window say about objects.
type warned struct {
	object    *object            // the one that the question is about
	workloads []*failure         // with warnings in the window and none before
	concerned map[tallyKey]int   // objects with a warning in the window
	reached   int64              // second from which on earlier warnings were looked at
	others    map[tallyKey]int64 // workloads with that warning before the window
	subjects  map[subject]int64  // objects, owners, workloads, ReplicaSets and nodes of the warnings in the window
}

// object is what is known of the object that a question is about.
type object struct {
	name    string
	now     map[tallyKey]int64 // occurrences in the window
	failure *failure
	before  bool // it had warnings before the window
}

// workloadKey names objects that one owner makes.
type workloadKey struct{ cluster, namespace, kind, name string }

// failure is a workload whose objects had warnings in the window and none before.
type failure struct {
	tallyKey // of its earliest warning
	name     string
	exact    bool // name is the name of one object, not of a workload
	first    int64
	counts   map[string]int64    // of its warnings by reason
	objects  map[string]struct{} // by name
}

func newFailure(k tallyKey, name string, first int64) *failure {
	return &failure{tallyKey: k, name: name, first: first, counts: map[string]int64{}, objects: map[string]struct{}{}}
}

func (f *failure) add(k tallyKey, name string, first, n int64) {
	f.objects[name] = struct{}{}
	f.counts[k.reason] += n
	if first < f.first || first == f.first && k.reason < f.reason {
		f.first, f.tallyKey = first, k
	}
}

// objects finds the objects that began to fail in the window.
func (c *comparison) objects(ctx context.Context) error {
	if c.q.ofObject() {
		return c.oneObject(ctx)
	}
	found, before, err := c.warnings(ctx)
	if err != nil {
		return err
	}
	for k := range before {
		delete(found, k)
	}
	if err := c.earlier(ctx, found); err != nil {
		return err
	}
	c.warned.workloads = slices.SortedFunc(maps.Values(found), func(a, b *failure) int {
		return cmp.Or(a.compare(b.tallyKey), strings.Compare(a.name, b.name))
	})
	for _, f := range c.warned.workloads {
		if f.exact = len(f.objects) == 1; f.exact {
			for f.name = range f.objects { // the only one
			}
		} else {
			f.name += "-*"
		}
	}
	return nil
}

func (k tallyKey) compare(other tallyKey) int {
	return cmp.Or(strings.Compare(k.cluster, other.cluster), strings.Compare(k.namespace, other.namespace),
		strings.Compare(k.kind, other.kind), strings.Compare(k.reason, other.reason), strings.Compare(k.typ, other.typ))
}

// warnings reads the warnings in the window. It returns the workloads that have any, and
// those of them with a warning that began before the window.
func (c *comparison) warnings(ctx context.Context) (found map[workloadKey]*failure, before map[workloadKey]bool, err error) {
	found, before = map[workloadKey]*failure{}, map[workloadKey]bool{}
	c.warned.concerned = map[tallyKey]int{}
	objects := map[tallyKey]map[string]struct{}{}
	from := c.answer.Range.From
	visit := func(v *store.View, at store.Moment) bool {
		d := event.DimensionsOf(v.Namespace, v.Attributes)
		k, name := keyOf(&d), string(v.Attributes.Field(event.RegardingName))
		w := workloadKey{d.Cluster, d.Namespace, d.Kind, workload(name)}
		if objects[k] == nil {
			objects[k] = map[string]struct{}{}
		}
		objects[k][name] = struct{}{}
		first, n := at.Time, int64(1)
		if o, ok := v.Attributes.Occurrence(); ok && o.Count > 1 {
			first, n = o.First, o.Count
		}
		c.warned.concern(k, name, &d, n)
		if first.Before(from) {
			before[w] = true
			return true
		}
		f := found[w]
		if f == nil {
			f = newFailure(k, w.name, first.Unix())
			found[w] = f
		}
		f.add(k, name, first.Unix(), n)
		return true
	}
	err = c.readWarnings(ctx, visit)
	for k, names := range objects {
		c.warned.concerned[k] = len(names)
	}
	return found, before, err
}

// readWarnings visits the newest warnings of the window: those of the namespaces of the question,
// and as many elsewhere.
func (c *comparison) readWarnings(ctx context.Context, visit func(*store.View, store.Moment) bool) error {
	for _, own := range []bool{true, false} {
		if !own && len(c.q.Namespaces) == 0 {
			break
		}
		reads := 0
		wanted := func(d event.Dimensions) bool {
			return d.Type == corev1.EventTypeWarning && !d.Bookkeeping() && c.q.wanted(d) && c.q.asked(d.Namespace) == own
		}
		err := c.observed(ctx, store.TimeQuery{Range: c.answer.Range, Wanted: wanted}, maxWarnings, func(v *store.View, at store.Moment) bool {
			reads++
			return visit(v, at)
		})
		if err != nil {
			return err
		}
		if own && reads >= maxWarnings {
			c.partial("only the newest %d warnings of the window were searched for objects that began to fail", maxWarnings)
		}
	}
	return nil
}

// earlier reads warnings before the window, newest first, and drops the workloads that
// have any.
func (c *comparison) earlier(ctx context.Context, found map[workloadKey]*failure) error {
	kinds := map[workloadKey]bool{} // without names
	for w := range found {
		w.name = ""
		kinds[w] = true
	}
	r := c.answer.Range
	r.From, r.To = r.From.Add(-lookBackTime), r.From
	c.warned.reached, c.warned.others = r.From.Unix(), map[tallyKey]int64{}
	if len(found) == 0 {
		return nil
	}
	type other struct {
		tallyKey
		name string
	}
	others := map[other]bool{}
	wanted := func(d event.Dimensions) bool {
		return d.Type == corev1.EventTypeWarning && kinds[workloadKey{d.Cluster, d.Namespace, d.Kind, ""}]
	}
	reads := 0
	return c.observed(ctx, store.TimeQuery{Range: r, Wanted: wanted}, maxEarlier, func(v *store.View, at store.Moment) bool {
		d := event.DimensionsOf(v.Namespace, v.Attributes)
		name := workload(string(v.Attributes.Field(event.RegardingName)))
		delete(found, workloadKey{d.Cluster, d.Namespace, d.Kind, name})
		if o := (other{keyOf(&d), name}); !others[o] {
			others[o] = true
			c.warned.others[o.tallyKey]++
		}
		if reads++; reads == maxEarlier {
			c.warned.reached = at.Time.Unix()
		}
		return true
	})
}

// oneObject reads all versions of the events about the object of the question.
func (c *comparison) oneObject(ctx context.Context) error {
	q := c.q.Object
	c.warned.object = &object{name: q.Name, now: map[tallyKey]int64{}}
	err := c.observed(ctx, store.TimeQuery{Range: c.answer.Range}, 1, func(*store.View, store.Moment) bool { return false })
	if err != nil {
		return err // it was asked for the newest revision only
	}
	s := &event.Selector{}
	for _, r := range []event.FieldRequirement{
		{Field: event.RegardingUID, Value: q.UID}, {Field: event.RegardingKind, Value: q.Kind},
		{Field: event.RegardingName, Value: q.Name},
	} {
		if r.Value != "" {
			s.Fields = append(s.Fields, r)
		}
	}
	reads := 0
	err = c.timeline.Versions(ctx, s, func(v *store.View, gone bool) bool {
		if !gone && v.Revision <= c.answer.Range.Revision && c.q.wanted(event.DimensionsOf(v.Namespace, v.Attributes)) {
			c.warned.object.version(v, c.answer.Range)
			d := event.DimensionsOf(v.Namespace, v.Attributes)
			c.warned.concern(keyOf(&d), string(v.Attributes.Field(event.RegardingName)), &d, 1)
		}
		reads++
		return reads < maxVersions
	})
	if reads >= maxVersions {
		c.partial("only %d versions of events about the object were read", maxVersions)
	}
	if o := c.warned.object; o.failure != nil && !o.before {
		c.warned.workloads = []*failure{o.failure}
	}
	c.warned.reached = c.answer.Range.From.Add(-lookBackTime).Unix()
	return err
}

// version takes notice of a version of an event about the object.
func (o *object) version(v *store.View, r store.Range) {
	at, ok := v.Attributes.Occurrence()
	if !ok {
		at = event.Occurrence{Time: v.Time, Count: 1, New: 1}
	}
	d := event.DimensionsOf(v.Namespace, v.Attributes)
	k, warning := keyOf(&d), d.Type == corev1.EventTypeWarning
	at.Spread(func(second, _, n int64) {
		if n == 0 || second >= r.To.Unix() {
			return
		}
		o.name = string(v.Attributes.Field(event.RegardingName))
		if second < r.From.Unix() {
			o.before = o.before || warning
			return
		}
		o.now[k] += n
		if !warning {
			return
		}
		if o.failure == nil {
			o.failure = newFailure(k, o.name, second)
			o.failure.exact = true
		}
		o.failure.add(k, o.name, second, n)
	})
}

// generated are the characters of suffixes that controllers give to names
// (k8s.io/apimachinery/pkg/util/rand): no vowels and no digits that look like them.
const generated = "bcdfghjklmnpqrstvwxz2456789"

// workload returns the part of a name that all objects of one owner share: it cuts the
// suffix of a Pod, the hash of its ReplicaSet, the ordinal of a StatefulSet's Pod and the
// time of a CronJob's Job.
func workload(name string) string {
	for range 3 {
		i := strings.LastIndexByte(name, '-')
		if i <= 0 || !isGenerated(name[i+1:]) {
			break
		}
		name = name[:i]
	}
	return name
}

func isGenerated(suffix string) bool {
	digits, random := 0, 0
	for _, r := range suffix {
		if r >= '0' && r <= '9' {
			digits++
		}
		if strings.ContainsRune(generated, r) {
			random++
		}
	}
	switch n := len(suffix); {
	case n == 0 || n > 10:
		return false
	case digits == n:
		return true
	case random == n && n == 5: // of a Pod
		return true
	default: // of a ReplicaSet; a word without vowels would have no digit
		return random == n && n >= 8 && digits > 0
	}
}
