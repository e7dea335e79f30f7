// Package watch delivers published writes to watchers in order of revision.
//
// # Contract
//
// An engine publishes the changes of each commit, oldest first, with
// [Hub.Publish]. Every [Watcher] then gets each change that its query covers
// exactly once, in order, from the revision it started after. No publisher ever
// waits for a watcher.
//
// The hub keeps the newest changes in one ring, bounded in entries and in bytes,
// that all watchers read at their own positions. Publishing therefore costs the
// same for one watcher as for a thousand. A watcher whose position the ring has
// overwritten reads on from the engine's [Log], and returns to the ring when it
// has caught up. It never skips a change: if the log no longer has it, the
// watcher ends with the log's error (an expired revision).
//
// The files: hub.go has the ring, topic.go says who is woken, watcher.go reads ring or log without a gap between them,
// change.go says what a change is to a selector.
//
// # Concurrency
//
// All methods of [Hub] are safe for concurrent use, but Publish must be called by
// one goroutine at a time, with rising revisions. A Watcher is used by one
// goroutine; only Close may be called from another.
//
// # What it does not know
//
// Files, transactions and record formats. It depends on package store alone, so
// that every engine uses the same hub.
package watch
