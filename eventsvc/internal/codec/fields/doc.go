// Package fields keeps metadata.managedFields of events: which client, called
// the field manager, set which fields. Server-side apply is decided by it.
//
// # Contract
//
// [Tracker.Update] records what a create, put or patch has changed.
// [Tracker.Apply] merges an apply patch into an event and records its fields.
// Both give what kube-apiserver gives: the merging is that of package
// managedfields of the Kubernetes libraries. Most creates, and changes by the
// only manager of an event, are recorded without the library (plain.go): the result
// is the same, and a create costs 3 µs instead of 150.
//
// # Errors
//
// Apply returns a 409 Status for a conflict with another manager and a 400 for
// everything else, because only the patch can be wrong. Update fails only if
// the library does.
//
// # Concurrency
//
// A [Tracker] is safe for concurrent use. It changes no event but the one that
// Update is told to record in.
//
// # What it does not know
//
// Bodies, wire formats, their limits, and the stored form: package codec decodes
// a patch before it comes here. The schemas come from the caller too.
package fields
