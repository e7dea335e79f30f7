// Package mirror copies the events of a Kubernetes cluster into an event server, which keeps them for weeks.
//
//	cluster ── list, page by page ──┐
//	   │                            ├─► batch ─► write by name and version ─► cursor
//	   └────── watch from cursor ───┘
//
// The files: mirror.go decides where to begin after a start, lists, watches and begins again; bulkwrite.go writes;
// cursor.go says how far everything is written and when that is saved, gap.go what is missing; own.go makes the events
// that both are stored as; event.go makes the copy of an event, known.go remembers what the target has, drop.go drops
// by rules, state.go is for probes and metrics.
//
// All waiting changes are written by as few bulk requests as their sizes allow. A change does not wait for others to
// join it.
//
// While the target does not answer, the mirror tries again until it does, and reads on only until [batchSize] changes
// wait. So an outage of the target loses nothing that the source still keeps afterwards.
//
// Everything is read and written through core/v1, which has all fields of old and new events.
//
// No event is lost or doubled, whichever side is killed at whatever time:
//
//   - The name of a copy is made of the event's name, and of a hash of the cluster's name and the event's uid.
//     However often it is written, it is one object. Events of other clusters, and later events of the same name, are
//     other objects.
//   - Annotations of a copy hold the uid and the resourceVersion that it shows. A version that comes again, or late,
//     changes nothing.
//   - The cursor is the source's version up to which everything is written. It is an event of the target, and it is
//     written after the events that it stands for. A mirror that starts continues to watch from there, and so does
//     one that finds an older one than it has saved: the target was restored, or has lost writes.
//   - If the source no longer keeps the cursor's version (410), or if its versions have started over, it is listed
//     again. What it had deleted before the list was never seen. The target gets an event with the reason MirrorGap,
//     which says from when until when that was so. A mirror that continues from its cursor without a list has missed
//     nothing.
//
// A gap begins at the last time at which the cursor is known to have been complete: the source is asked for its version
// every 30 seconds, and once the cursor has reached that version, it was complete when the source was asked. That time
// is stored with the cursor.
//
// What the source deletes, mostly because of its age, stays at the target.
//
// Two mirrors of one cluster write the same copies. So they may run at once, and none has to be elected.
//
// # Labels of objects
//
// An event names an object, and nothing else is left of it when the object is gone. So copies get labels of the object
// and of the namespace: see [Enrichment].
//
//	cluster ── metadata of pods and namespaces, followed ──► index ──┐
//	   │                                                             ├─► labels of the copy
//	   └────── metadata of other objects, one by one ──► objects ────┘
//
// reflect.go follows, objectindex.go keeps what it saw, objects.go reads others one by one, owner.go finds the
// controller, enrich.go adds the labels. tracker.go makes events of changes of objects of the kinds in resource.go.
//
// They are found by uid, so that another object of the same name lends nothing. They are a help and no part of the
// event: it waits 250 ms for them at most, and is copied without where the source does not let them be read.
package mirror
