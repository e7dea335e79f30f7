// Package seglog keeps the log of a store: records by revision, in segments.
//
// # Contract
//
// A [Segment] is a bbolt file. The newest one is the head, which [Segment.Checkpoint]
// appends to; the others are sealed, and only replaced whole or removed. Records that are
// durable in the write-ahead log, and may not be in the head yet, are the pending records.
// The owner sets them ([Log.SetPending]), and readers see both as one.
//
// [Log.View] calls a function with a [Reader], which finds records by revision
// ([Reader.Get]), follows the versions of an event ([Reader.At]) and goes over the log
// ([Reader.Scan]). [Segment.Seal], [Log.NewHead] and [Log.Add] rotate the head.
// [Segment.Rewrite] copies what its caller needs of a sealed segment, and
// [Log.CopyAcknowledged] all that was published of a head that failed, for failover; the
// caller renames the copies, opens them and swaps them in ([Log.Replace],
// [Log.ReplaceHead]).
//
// An [Entry] is a parsed record: a version of an event, or its deletion. The checksum of a
// record covers its revision too, so that a record in the place of another is found as
// damage.
//
// # Errors
//
// A file that cannot be used, or is missing between others, is a [*store.FileError]. A
// damaged record is a [*store.CorruptError] and is never served. [ErrGone] reports that
// there is no record of a revision. After a failed write, other than one that was
// [Segment.Refused], the owner must not write to a head again, because a repeated sync does
// not report what was lost.
//
// # Concurrency
//
// Methods that change the log or a segment have one caller at a time; Checkpoint may run
// beside SaveCompactRevision and SetFormat. Everything else is safe for concurrent use,
// also while segments are swapped: View calls its function again if a file was closed
// meanwhile.
//
// # Format
//
//	log-<base>.db
//	├── meta      format, store, base, horizon; when sealed: end, bytes
//	├── log       revision 8 → record
//	└── minutes   minute 8, namespace, type, reason, kind → created 8, modified 8, CRC32C 4
//
//	record (numbers big-endian)
//	┌──────┬──────┬───────────┬─────────┬────────────┬──────────────┬────────┐
//	│ kind │ form │ namespace │   key   │ attributes │   previous   │  time  │
//	│  1   │  1   │ length 2  │ length 2│  length 4  │  revision 8  │   8    │
//	├──────┴──────┴─────┬─────┴─────────┴─────┬──────┴──────────────┼────────┤
//	│ key               │ attributes          │ value               │ CRC32C │
//	│ "namespace/name"  │                     │                     │   4    │
//	└───────────────────┴─────────────────────┴─────────────────────┴────────┘
//	kind: 1 created, 2 modified, 3 deleted (no attributes, no value)
//	form: 0, or 1 in records of older programs: the attributes end with 16 bytes that are
//	not used any more
//
// The package knows bbolt and records of the write-ahead log. It knows nothing of the
// index, of the queue of writes, or of retention, and does not decide what is needed.
package seglog
