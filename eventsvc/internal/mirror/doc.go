// Package mirror copies the events of a Kubernetes cluster into an event server, which keeps them for weeks.
//
//	cluster ── list, page by page ──┐
//	   │                            ├─► batch ─► write each, by name and version ─► cursor
//	   └────── watch from cursor ───┘             (in parallel, one after the other for the same event)
//
// Everything is read and written through core/v1, which carries events of the old and the new style whole.
//
// Without loss or double, whichever side is killed when:
//
//   - A copy's name is made of the event's name, the cluster's and the event's uid: however often it is written, it is one
//     object, and events of other clusters or later events of the same name are others.
//   - A copy remembers the uid and resourceVersion that it shows, so that a version that comes again, or late, changes
//     nothing.
//   - The cursor, the source's version up to which everything has been written, is an event of the target itself. It is
//     written after what it stands for, never before. A mirror that starts goes on watching from there.
//   - A source that has forgotten the cursor's version (410), or started over, is listed again.
//
// What the source deletes, mostly for its age, stays.
package mirror
