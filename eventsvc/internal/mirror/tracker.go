package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/mirror/objectchange"
)

const (
	seriesTime = time.Minute // in which changes of the same fields are one event
	seriesMost = 3           // events about one object in this time; further changes are added to the last

	pageOfObjects = "100" // of a list: an object may have a MiB
)

// tracker makes events of what changes in the objects of a resource, in one namespace or all of them.
//
// The position in the file is the source's version up to which everything is written. It stays before the first change that a
// series has and its event not yet: a killed mirror sees these changes again. What was seen of an object is stored after the
// events that tell of it, so that a change that is seen again gets the same event.
type tracker struct {
	*copier
	resource Resource
	seen     *objectchange.State
	hashes   map[string][]uint64 // of the hidden values of objects, by uid
	open     map[string]*series  // objects with changes that their events do not have yet, by uid
	held     string              // version before the first of these changes; "": there are none
	inexact  bool                // changes come from a list: they happened at some time since the cursor was complete
}

// series has an object as it is now, and which of its series have to be written again.
type series struct {
	now  *objectchange.Seen
	late map[string]bool // by version
}

func newTrackers(m *Mirror, namespaces []string) (all []*copier) {
	for _, resource := range m.Changes {
		for _, namespace := range namespaces {
			if !resource.Namespaced && namespace != "" {
				m.Log.Warn("objects of no namespace are not followed, because the mirror copies some namespaces only", "resource", resource.String())
				break
			}
			name := "objects/" + resource.String()
			if namespace != "" {
				name += "/" + namespace
			}
			c := baseCopier(m, namespace, name, resource.path(namespace))
			c.copied = &tracker{copier: c, resource: resource, seen: m.State, hashes: map[string][]uint64{}, open: map[string]*series{}}
			all = append(all, c)
		}
	}
	return all
}

// begin continues from the position in the file. Without one, the source is listed, and nothing is claimed about what was before.
func (t *tracker) begin(ctx context.Context) error {
	position, err := t.seen.Position(t.path)
	if err != nil {
		return err
	}
	t.cursor = cursor{version: position.Version, complete: position.Complete}
	t.saved, t.savedAt = t.cursor, time.Now()
	if position.Version == "" {
		return t.list(ctx, reasonFirst)
	}
	t.moved(position.Version)
	return nil
}

// list compares all objects with what was seen of them.
func (t *tracker) list(ctx context.Context, reason string) error {
	t.metrics.lists.WithLabelValues(t.label(), reason).Inc()
	t.Log.InfoContext(ctx, "listing objects", "resource", t.resource.String(), "reason", reason)
	t.inexact = true
	t.await(nil)
	defer func() { t.inexact = false }()
	if err := t.flush(ctx, nil, nil, true); err != nil {
		return err
	}
	gone, err := t.seen.UIDs(t.path)
	if err != nil {
		return err
	}
	var wait client.Backoff
	asked := time.Now()
	version, err := t.pages(ctx, func(p *client.Page) error {
		wait.Reset()
		t.sourceFailed(nil)
		var b batch
		for _, raw := range p.Items {
			if uid := t.see(&b, raw); uid != "" {
				delete(gone, uid)
			}
		}
		return t.flush(ctx, &b, nil, true)
	}, func(err error) error {
		if client.Gone(err) || client.Code(err) == http.StatusNotFound {
			return err
		}
		t.sourceFailed(err)
		return wait.Wait(ctx, err)
	})
	if client.Code(err) == http.StatusNotFound { // a custom resource that is not defined yet
		t.Log.WarnContext(ctx, "the source has no such resource", "resource", t.resource.String(), "again", notServed)
		return client.Sleep(ctx, notServed)
	}
	if err != nil {
		return err
	}
	var b batch
	for _, uid := range slices.Sorted(maps.Keys(gone)) {
		t.lose(&b, uid, nil, version)
	}
	t.moved(version)
	t.cursor.complete = asked
	return t.flush(ctx, &b, &t.cursor, true)
}

// pages lists the objects. No two trackers do so at once, because objects take twenty times as much memory as what is kept of them.
func (t *tracker) pages(ctx context.Context, each func(*client.Page) error, again func(error) error) (version string, err error) {
	t.listing.Lock()
	defer t.listing.Unlock()
	return t.Source.Pages(ctx, t.path, url.Values{"limit": {pageOfObjects}}, each, func(err error) error {
		t.listing.Unlock()
		defer t.listing.Lock()
		return again(err)
	})
}

// apply makes events of changes that a watch has told.
func (t *tracker) apply(ctx context.Context, changes []client.Change) error {
	if len(changes) == 0 {
		return nil
	}
	var b batch
	before := t.cursor.version
	for _, c := range changes {
		switch {
		case c.Seen():
			t.see(&b, c.Object)
		case c.Type == watch.Deleted:
			if now := t.read(c.Object); now != nil {
				t.lose(&b, string(now.UID), now, c.Version)
			}
		}
	}
	if len(t.open) > 0 && t.held == "" {
		t.held = before
	}
	if err := t.flush(ctx, &b, nil, false); err != nil {
		return err
	}
	t.moved(changes[len(changes)-1].Version)
	return nil
}

// save stores the position, and writes the series that are over.
func (t *tracker) save(ctx context.Context) error {
	t.savedAt = time.Now()
	return t.flush(ctx, nil, &t.cursor, ctx.Err() != nil)
}

// batch is what is to be written: events, and then what was seen of objects.
type batch struct {
	items   []item
	objects map[string]*objectchange.Seen // by uid; nil: gone
}

func (b *batch) put(uid string, seen *objectchange.Seen) {
	if b.objects == nil {
		b.objects = map[string]*objectchange.Seen{}
	}
	b.objects[uid] = seen
}

// flush writes a batch, the series that are over (or all of them), and then what was seen of the objects, with the position if
// there is one to be saved.
func (t *tracker) flush(ctx context.Context, b *batch, at *cursor, all bool) error {
	if b == nil {
		b = new(batch)
	}
	t.takeOver(b, all)
	if len(b.items) > 0 {
		if err := t.write(ctx, b.items); err != nil {
			return err
		}
	}
	position := objectchange.Position{Version: t.saved.version, Complete: t.saved.complete}
	if at != nil {
		position = objectchange.Position{Version: at.version, Complete: at.complete}
		if t.held != "" {
			position.Version = t.held
		}
	}
	if len(b.objects) == 0 && position.Version == t.saved.version && position.Complete.Equal(t.saved.complete) {
		return nil
	}
	if err := t.seen.Put(t.path, b.objects, position); err != nil {
		return fmt.Errorf("the file of --changes-state: %w", err)
	}
	t.saved = cursor{version: position.Version, complete: position.Complete}
	return nil
}

// takeOver adds the series that are over (or all of them) to a batch.
func (t *tracker) takeOver(b *batch, all bool) {
	for _, uid := range slices.Sorted(maps.Keys(t.open)) {
		s := t.open[uid]
		if _, other := b.objects[uid]; all || other || slices.ContainsFunc(s.now.Series, func(e objectchange.Series) bool {
			return s.late[e.Version] && time.Since(e.First) >= seriesTime
		}) {
			b.items = append(t.lateItems(s), b.items...)
			if !other {
				b.put(uid, s.now)
			}
			delete(t.open, uid)
		}
	}
	if len(t.open) == 0 {
		t.held = ""
	}
}

// read reads an object. What is no object is counted and left out.
func (t *tracker) read(raw json.RawMessage) *objectchange.Seen {
	now, err := objectchange.Read(raw, t.resource.apiVersion(), t.resource.Kind)
	if err != nil {
		t.appendNone(nil, err)
		return nil
	}
	return now
}

// before returns what was seen of an object before, nil if nothing was.
func (t *tracker) before(b *batch, uid string) *objectchange.Seen {
	if s := t.open[uid]; s != nil {
		return s.now
	}
	if seen, ok := b.objects[uid]; ok {
		return seen
	}
	seen, err := t.seen.Object(t.path, uid)
	if err != nil {
		t.Log.Warn("an object counts as new, because the file of --changes-state is damaged", "uid", uid, "error", err)
		return nil
	}
	if seen != nil {
		seen.SetHashes(t.hashes[uid])
	}
	return seen
}

// see compares an object with what was seen of it. It returns the uid.
func (t *tracker) see(b *batch, raw json.RawMessage) string {
	now := t.read(raw)
	if now == nil {
		return ""
	}
	uid := string(now.UID)
	before := t.before(b, uid)
	first := t.cursor.version == "" // nothing is claimed about what was before
	switch {
	case before == nil && (first || t.inexact && now.Created.Before(t.cursor.complete.Truncate(time.Second))):
		b.put(uid, now)
	case before == nil:
		b.put(uid, now)
		t.add(b, now, event.ObjectCreated, "created", now.Version, objectchange.Created(now), now.Created, now.Created, 1)
	case !t.inexact && !client.Newer(now.Version, before.Version):
		return uid // seen before the mirror was killed
	default:
		t.compare(b, before, now)
	}
	if hashes := now.Hashes(); len(hashes) > 0 {
		t.hashes[uid] = hashes
	}
	return uid
}

// compare makes an event of what differs, or adds to one that is less than a minute old.
func (t *tracker) compare(b *batch, before, now *objectchange.Seen) {
	changes := objectchange.Compare(before, now)
	uid := string(now.UID)
	now.Series = before.Series
	if len(changes) == 0 {
		switch s := t.open[uid]; {
		case s != nil:
			s.now = now
		case b.objects[uid] != nil:
			b.put(uid, now)
		}
		return
	}
	author, at := objectchange.Author(before, now, changes)
	if latest := time.Now(); at.IsZero() || at.After(latest) {
		at = latest
	}
	now.Series = slices.DeleteFunc(slices.Clone(now.Series), func(s objectchange.Series) bool { return at.Sub(s.First) >= seriesTime && !t.late(uid, s.Version) })
	if !t.inexact && t.extend(b, now, changes, at) {
		return
	}
	var from, to time.Time
	if t.inexact && (at.Before(t.cursor.complete) || time.Since(at) < seriesTime) {
		at = time.Now()
	}
	if t.inexact {
		from, to = t.cursor.complete, time.Now()
	}
	if s := t.open[uid]; s != nil {
		b.items = append(b.items, t.lateItems(s)...)
		delete(t.open, uid)
	}
	now.Series = append(now.Series, objectchange.Extend(objectchange.Series{Version: now.Version, First: at}, changes, at))
	b.put(uid, now)
	t.add(b, now, event.ObjectChanged, now.Version, now.Version, objectchange.Changed(changes, 1, author, from, to), at, at, 1)
}

// extend adds changes to an event of the object that is less than a minute old. It reports false if there is none for them.
func (t *tracker) extend(b *batch, now *objectchange.Seen, changes []objectchange.Change, at time.Time) bool {
	uid, to := string(now.UID), now.Series
	for i := range to {
		if at.Sub(to[i].First) < seriesTime && (objectchange.Covers(&to[i], changes) || len(to) == seriesMost && i == seriesMost-1) {
			to[i] = objectchange.Extend(to[i], changes, at)
			s := t.open[uid]
			if s == nil {
				s = &series{late: map[string]bool{}}
				t.open[uid] = s
			}
			s.now, s.late[to[i].Version] = now, true
			delete(b.objects, uid) // is put when the series is written
			return true
		}
	}
	return false
}

// late reports whether the event of a series has to be written again.
func (t *tracker) late(uid, version string) bool {
	s := t.open[uid]
	return s != nil && s.late[version]
}

// lateItems returns the events of the series of an object that have to be written again.
func (t *tracker) lateItems(s *series) []item {
	var b batch
	for i := range s.now.Series {
		if e := &s.now.Series[i]; s.late[e.Version] {
			changes := objectchange.Since(e, s.now)
			author, _ := objectchange.Author(nil, s.now, changes)
			t.add(&b, s.now, event.ObjectChanged, e.Version, s.now.Version, objectchange.Changed(changes, e.Count, author, time.Time{}, time.Time{}), e.First, e.Last, e.Count)
		}
	}
	return b.items
}

// lose makes an event of the deletion of an object. What a list no longer has was deleted at an unknown time.
func (t *tracker) lose(b *batch, uid string, last *objectchange.Seen, version string) {
	before := t.before(b, uid)
	if s := t.open[uid]; s != nil {
		b.items = append(b.items, t.lateItems(s)...)
		delete(t.open, uid)
	}
	b.put(uid, nil)
	delete(t.hashes, uid)
	if before == nil {
		return // its deletion was seen before the mirror was killed
	}
	var from, to time.Time
	if last == nil {
		last, from, to = before, t.cursor.complete, time.Now()
	}
	now := time.Now()
	t.add(b, last, event.ObjectDeleted, "deleted", version, objectchange.Deleted(last, from, to), now, now, 1)
}

// add appends an event about an object. Its name is made of what tells it from other events about the object, so that the event is
// the same one however often the change is seen.
func (t *tracker) add(b *batch, about *objectchange.Seen, reason, which, version, note string, first, last time.Time, count int32) {
	ev := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: cutName(about.Name) + "." + strings.ToLower(which), Namespace: about.Namespace,
			UID: types.UID(string(about.UID) + "/" + which), ResourceVersion: version, CreationTimestamp: metav1.NewTime(first),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: about.APIVersion, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name, UID: about.UID, ResourceVersion: about.Version,
		},
		Type: corev1.EventTypeNormal, Reason: reason, Message: note, Count: count,
		FirstTimestamp: metav1.NewTime(first), LastTimestamp: metav1.NewTime(last),
		Source: corev1.EventSource{Component: "eventsvc-mirror"}, ReportingController: controller,
	}
	if ev.Namespace == "" {
		ev.Namespace = metav1.NamespaceDefault // as for other events about objects of no namespace
	}
	it := t.newItem(ev, count > 1)
	if t.enricher != nil && t.enricher.objects != nil {
		m := new(metadata)
		m.Metadata.Name, m.Metadata.Namespace, m.Metadata.UID = about.Name, about.Namespace, about.UID
		m.Metadata.CreationTimestamp, m.Metadata.Labels, m.Metadata.OwnerReferences = metav1.NewTime(about.Created), about.Labels, about.Owners
		it.about = new(t.enricher.factsOf(about.Kind, m))
	}
	b.items = append(b.items, it)
}

// cutName returns the part of an object's name that leaves room in the name of an event.
func cutName(name string) string {
	const most = 180
	return strings.TrimRight(name[:min(len(name), most)], "-.")
}
