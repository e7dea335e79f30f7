// Package entry is the stored form of what the log has under a revision: a version of an event,
// or its deletion.
//
// # Contract
//
// [Append] makes a record of an [Entry], and [Parse] verifies and parses one. [Split] and
// [SplitBody] are for callers that have verified it, or use only its sizes. The checksum of a
// record covers its revision too, so that a record in the place of another is found as damage.
// An Entry shares memory with its record.
//
// # Errors
//
// Parse returns [boltfile.ErrChecksum] for a record that is not as it was written.
// [ParseStored] and [Corrupt] make a [*store.CorruptError] of an error, with the revision.
//
// # Concurrency
//
// Everything is safe for concurrent use.
//
// # Format
//
//	record (numbers big-endian)
//	┌──────┬───────────┬──────────┬────────────┬──────────────┬────────┐
//	│ kind │ namespace │   key    │ attributes │   previous   │  time  │
//	│  1   │ length 2  │ length 2 │  length 4  │  revision 8  │   8    │
//	├──────┴───────────┴┬─────────┴────────────┴┬─────────────┴┬───────┤
//	│ key               │ attributes            │ value        │ CRC32C│
//	│ "namespace/name"  │                       │              │   4   │
//	└───────────────────┴───────────────────────┴──────────────┴───────┘
//	kind: 1 created, 2 modified, 3 deleted (no attributes, no value)
//
// The package does not know where records are kept: in segments, in blocks, and until a
// checkpoint in the write-ahead log. The PostgreSQL engine has the same kinds in its table.
package entry
