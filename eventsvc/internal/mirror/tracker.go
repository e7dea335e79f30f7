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
// What was seen of an object, and the source's version up to which everything was, are stored at once, after the events
// that tell of it. So a killed mirror makes the same events again. Changes that are added to an event are in the file
// at once, and in the event when its minute is over.
type tracker struct {
	*copier
	resource Resource
	seen     *objectchange.State
	hashes   map[string]map[string]uint64 // of the hidden values of objects, by uid
	late     map[string]time.Time         // objects with changes that their events do not have yet, by uid: when these are due
	inexact  bool                         // changes come from a list: they happened at some time since the cursor was complete
}

func newTrackers(m *Mirror, namespaces []string) (all []*copier) {
	for _, resource := range m.Changes {
		for _, namespace := range namespaces {
			if !resource.Namespaced && namespace != "" {
				m.Log.Warn("objects of no namespace are not followed, because the mirror copies some namespaces only", "resource", resource.String())
				break
			}
			name := strings.TrimSuffix("objects/"+resource.String()+"/"+namespace, "/")
			c := baseCopier(m, namespace, name, resource.path(namespace))
			c.copied = &tracker{copier: c, resource: resource, seen: m.State, hashes: map[string]map[string]uint64{}, late: map[string]time.Time{}}
			all = append(all, c)
		}
	}
	return all
}

// begin continues from the position in the file. Without one, the source is listed, and nothing is claimed about what
// was before.
func (t *tracker) begin(ctx context.Context) error {
	position, err := t.seen.Position(t.path)
	if err != nil {
		return err
	}
	t.cursor = cursor{version: position.Version, complete: position.Complete}
	t.saved, t.savedAt = t.cursor, time.Now()
	maps.Copy(t.late, position.Late)
	if position.Version == "" {
		return t.list(ctx, reasonFirst)
	}
	t.moved(position.Version)
	return nil
}

// list compares all objects with what was seen of them.
func (t *tracker) list(ctx context.Context, reason string) error {
	t.metrics.lists.WithLabelValues(t.name, reason).Inc()
	t.Log.InfoContext(ctx, "listing objects", "resource", t.resource.String(), "reason", reason)
	t.inexact = true
	t.await(nil)
	defer func() { t.inexact = false }()
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
			delete(gone, t.see(&b, raw, false))
		}
		return t.flush(ctx, &b, t.cursor)
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
	at := cursor{version: version, complete: asked}
	if err := t.flush(ctx, &b, at); err != nil {
		return err
	}
	t.moved(version)
	t.cursor.complete = asked
	return nil
}

// pages lists the objects. No two trackers do so at once, because objects take twenty times as much memory as what is
// kept of them.
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
	at := t.cursor
	for _, c := range changes {
		at.version = c.Version
		switch {
		case c.Seen():
			t.see(&b, c.Object, c.Type == watch.Added)
		case c.Type == watch.Deleted:
			if now := t.read(c.Object); now != nil {
				t.lose(&b, string(now.UID), now, c.Version)
			}
		}
	}
	if len(b.objects) > 0 {
		if err := t.flush(ctx, &b, at); err != nil {
			return err
		}
	}
	t.moved(at.version)
	return nil
}

// save stores the position, and writes the events that are due.
func (t *tracker) save(ctx context.Context) error {
	t.savedAt = time.Now()
	var b batch
	for _, uid := range slices.Sorted(maps.Keys(t.late)) {
		if t.late[uid].After(t.savedAt) {
			continue
		}
		delete(t.late, uid)
		if seen := t.before(&b, uid); seen != nil {
			t.settle(&b, seen, t.savedAt)
			b.put(uid, seen)
		}
	}
	return t.flush(ctx, &b, t.cursor)
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

// flush writes the events of a batch, and then what was seen of the objects, with a position.
func (t *tracker) flush(ctx context.Context, b *batch, at cursor) error {
	if err := t.write(ctx, b.items); err != nil {
		return err
	}
	if err := t.seen.Put(t.path, b.objects, objectchange.Position{Version: at.version, Complete: at.complete, Late: t.late}); err != nil {
		return fmt.Errorf("the file of --changes-state: %w", err)
	}
	for uid, seen := range b.objects {
		t.know(uid, seen)
	}
	if t.saved = at; len(t.late) > 0 {
		t.saved.version = "" // to be saved soon, so that what is late is looked at
	}
	return nil
}

// know keeps the hashes of an object.
func (t *tracker) know(uid string, seen *objectchange.Seen) {
	if delete(t.hashes, uid); seen != nil && len(seen.Hashes) > 0 {
		t.hashes[uid] = seen.Hashes
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
	if seen, ok := b.objects[uid]; ok {
		return seen
	}
	seen, err := t.seen.Object(t.path, uid)
	if err != nil {
		t.Log.Warn("what changed in an object is not known, because the file of --changes-state is damaged", "uid", uid, "error", err)
	}
	if seen != nil {
		seen.Hashes = t.hashes[uid]
	}
	return seen
}

// see compares an object with what was seen of it. It returns the uid. Of an object of a list nothing tells that it is
// new but its age, and before the first list nothing is claimed.
func (t *tracker) see(b *batch, raw json.RawMessage, added bool) string {
	now := t.read(raw)
	if now == nil {
		return ""
	}
	uid := string(now.UID)
	before := t.before(b, uid)
	switch {
	case before == nil:
		b.put(uid, now)
		if added || t.inexact && t.cursor.version != "" && !now.Created.Before(t.cursor.complete.Truncate(time.Second)) {
			t.add(b, now, event.ObjectCreated, "created", objectchange.Created(now), now.Created, now.Created, 1)
		}
	case !t.inexact && !client.Newer(now.Version, before.Version):
		// seen before the mirror was killed
	default:
		t.compare(b, before, now)
	}
	return uid
}

// compare makes an event of what differs, or adds to one that is less than a minute old.
func (t *tracker) compare(b *batch, before, now *objectchange.Seen) {
	changes := objectchange.Compare(before, now)
	uid := string(now.UID)
	now.Series = before.Series
	if len(changes) == 0 {
		if t.know(uid, now); b.objects[uid] != nil {
			b.put(uid, now)
		}
		return
	}
	author, at := objectchange.Author(before, now, changes)
	latest := time.Now()
	if at.IsZero() || at.After(latest) || t.inexact && (at.Before(t.cursor.complete) || latest.Sub(at) < seriesTime) {
		at = latest
	}
	var from, to time.Time
	over := at
	if t.inexact {
		from, to, over = t.cursor.complete, latest, latest.Add(seriesTime)
	}
	t.settle(b, before, over)
	now.Series = slices.DeleteFunc(before.Series, func(s objectchange.Series) bool { return over.Sub(s.First) >= seriesTime })
	b.put(uid, now)
	for i := range now.Series {
		if s := &now.Series[i]; s.Covers(changes) || i == seriesMost-1 {
			*s = s.Extended(changes, author, at)
			s.Late = true
			t.due(now)
			return
		}
	}
	if !t.inexact {
		now.Series = append(now.Series, objectchange.Series{Version: now.Version, First: at}.Extended(changes, author, at))
	}
	t.add(b, now, event.ObjectChanged, now.Version, objectchange.Changed(now, changes, 1, author, from, to), at, at, 1)
}

// settle writes the events of an object that do not tell all of their series, if its minute is over at a time.
func (t *tracker) settle(b *batch, seen *objectchange.Seen, at time.Time) {
	seen.Series = slices.Clone(seen.Series)
	for i := range seen.Series {
		if s := &seen.Series[i]; s.Late && at.Sub(s.First) >= seriesTime {
			s.Late = false
			note := objectchange.Changed(seen, s.Changes(), s.Count, s.Author, time.Time{}, time.Time{})
			t.add(b, seen, event.ObjectChanged, s.Version, note, s.First, s.Last, s.Count)
		}
	}
	t.due(seen)
}

// due notes when the first late series of an object is over.
func (t *tracker) due(seen *objectchange.Seen) {
	delete(t.late, string(seen.UID))
	if i := slices.IndexFunc(seen.Series, func(s objectchange.Series) bool { return s.Late }); i >= 0 {
		t.late[string(seen.UID)] = seen.Series[i].First.Add(seriesTime)
	}
}

// lose makes an event of the deletion of an object. What a list no longer has was deleted at an unknown time.
func (t *tracker) lose(b *batch, uid string, last *objectchange.Seen, version string) {
	before := t.before(b, uid)
	b.put(uid, nil)
	if before == nil {
		return // its deletion was seen before the mirror was killed
	}
	var from, to time.Time
	now := time.Now()
	t.settle(b, before, now.Add(seriesTime))
	if last == nil {
		last, from, to = before, t.cursor.complete, now
		last.Version = version
	}
	t.add(b, last, event.ObjectDeleted, "deleted", objectchange.Deleted(last, from, to), now, now, 1)
}

// add appends an event about an object. Its name is made of what tells it from other events about the object, so that
// the event is the same one however often the change is seen.
func (t *tracker) add(b *batch, about *objectchange.Seen, reason, which, note string, first, last time.Time, count int32) {
	ev := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: cutName(about.Name) + "." + strings.ToLower(which), Namespace: about.Namespace,
			UID: types.UID(string(about.UID) + "/" + which), ResourceVersion: about.Version, CreationTimestamp: metav1.NewTime(first),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: about.APIVersion, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name, UID: about.UID, ResourceVersion: about.Version,
		},
		Type: corev1.EventTypeNormal, Reason: reason, Message: note, Count: count,
		FirstTimestamp: metav1.NewTime(first), LastTimestamp: metav1.NewTime(last),
		Source: corev1.EventSource{Component: "eventsvc-mirror"}, ReportingController: event.GapReporter,
	}
	if ev.Namespace == "" {
		ev.Namespace = metav1.NamespaceDefault // as for other events about objects of no namespace
	}
	it := t.newItem(ev)
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
