// Package usage keeps account of what a store holds and of the room that it takes.
//
// # Contract
//
// Every record of the log is one of three: live, the newest version of an event that
// exists; dead, needed by no state that can be read; or history, the rest. The committer
// reports with [Usage.AddBytes] how the live ones change. Maintenance reports what is
// dead, segment by segment ([Usage.Trim], [Usage.SetSegment]). Both accounts are saved
// in the index file: the live one with each memtable that is merged, the dead one by the
// methods that change it. A crash or a new index can leave the saved account of a
// segment wrong, so [SegmentAccount].Counted tells whether it was verified since the start.
//
// Usage.Namespaces has how many events each namespace has, also at the newest revisions
// before the present one.
//
// [Usage.Full] decides whether there is room for new events and for deletions, and [Usage.Reserve] whether there is for
// a file that is to be rewritten (diskroom.go). They count what the files take and what they will grow by, so that the
// files never take more than MaxBytes. [Usage.HistoryLimit] and [Usage.Excess] say what has to go so that there is
// room. History goes before events. [SegmentBytes] and [MemtableKeys] derive from MaxBytes when a file of the log is
// sealed, and when the memtable is merged.
//
// A [Breakdown] says who takes the room: how many events there are, how many bytes they take and
// how fast they arrive, by namespace, type and reporter.
//
// # Errors
//
// A failed save is an error of package index; the account in memory is right
// nevertheless. Full returns [store.ErrFull].
//
// # Concurrency
//
// All methods are safe for concurrent use.
//
// The package does not know when anything is deleted or compacted.
package usage
