// Package index finds the newest version of every event by its key.
//
// # Contract
//
// The index is made from a log of records and can be made again from it. It has two
// parts: a bbolt file, and memtables with what is not in the file yet. [Index.Put] goes
// to the active memtable. [Index.Freeze] sets that aside, and [Index.Merge] brings it
// into the file in order of keys, which changes each page once for many events. After
// [Open] the owner puts again what the log has behind [Index.Merged].
//
// [Index.View] shows memtables and file as one, by key: [View.Newest] and [View.Iterate]. Merges leave entries and
// pages that are not full; [Index.Rewrite] fills them.
//
// If the file was empty when it was opened, as when a dump is read, most keys that were never put are not looked for in
// it: a filter in memory tells (filter.go).
//
// # Errors
//
// A file that cannot be used is a [*store.FileError]; removing it loses nothing. A
// damaged entry is a [*store.CorruptError], and nothing is merged into it. After a write that failed for another
// reason than room nothing is written to the file any more ([ErrFailed]), and Unwritable is
// called. Reads go on.
//
// # Concurrency
//
// Put, Size and Freeze have one caller at a time. Merge and Rewrite exclude each other.
// Everything else is safe for concurrent use, and readers take no lock for the
// memtables.
//
// # Format
//
// Numbers are big-endian.
//
//	index.db
//	├── meta      format, store, merged, merging, live, trimmed, dead, loose
//	└── keys      the last of some keys "namespace/name" → these with their revisions, CRC32C 4: see keys.go
//
// The package knows revisions of records. It does not know where records
// are, what segments are, or when something is to be trimmed.
package index
