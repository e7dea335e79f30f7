// Package maintenance keeps a store within its limits: it deletes events past their
// retention, moves the compact revision over history past its time or size, and brings
// back the disk space of both.
//
// # Contract
//
// [Maintenance.Run] does a round every ten seconds, and within one second after
// [Maintenance.Hurry]. A round ([Maintenance.Round]):
//
//  1. if there is little room, compress sealed segments of any age, and trim and compact;
//  2. expire: delete events through the committer, like any other write;
//  3. trim: move the compact revision, and account for what that makes dead;
//  4. compact: unlink the first sealed segments as long as they have neither a needed record nor an observation that is
//     counted, and rewrite those that are dead in large part;
//  5. project how old events get before there is no room; rewrite the index if it is mostly empty or mostly new;
//  6. compress sealed segments whose events are old, by when they were observed, for a few seconds at most.
//
// A deletion stays in the log until no older version of its event can be in the files,
// because an index that is made again from the log would bring that back. The saved
// account of what is dead can be wrong after a crash. So a segment is read once since the
// start before it is unlinked, and before deletions behind it are dropped. A segment
// counts as there until its unlinking is synced.
//
// What was observed is kept for as long as any event is, although its records are gone: its columns
// stay when a segment is rewritten, and the file stays until all of that is past its time.
//
// The files: maintenance.go has the round, retention.go expires, history.go trims, compact.go unlinks and rewrites,
// compress.go compresses, projection.go looks ahead; damage.go drops what cannot be read.
//
// # Errors
//
// A round ends with its first error; the next one goes on from there. Where the disk is
// too full even for deletions, a round still trims and compacts, and then returns
// [store.ErrFull]. A damaged record is neither deleted nor trimmed: it is evidence.
//
// # Concurrency
//
// All methods are safe for concurrent use; one round runs at a time, and
// [Maintenance.Pause] keeps off the next. Readers and writers go on meanwhile. What only
// the committer may change is changed between two commits.
//
// The package does not know who writes or reads.
package maintenance
