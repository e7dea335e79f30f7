// Package seglog keeps the log of a store: records by revision, in segments.
//
// # Contract
//
// A [Segment] is a bbolt file. The newest one is the head, which [Log.Checkpoint]
// appends to; the others are sealed, and only replaced whole or removed. Records that are
// durable in the write-ahead log, and may not be in the head yet, are the pending records.
// The owner sets them ([Log.SetPending]), and readers see both as one.
//
// [Log.View] calls a function with a [Reader], which finds records by revision
// ([Reader.Get]), follows the versions of an event ([Reader.At]) and goes over the log
// ([Reader.Scan]). [Segment.Seal], [Log.NewHead] and [Log.Add] rotate the head.
// [Log.Rewrite] copies what its caller needs of a sealed segment, compressed or not, and
// [Log.CopyAcknowledged] all that was published of a head that failed, for failover; the
// caller renames the copies, opens them and swaps them in ([Log.Replace],
// [Log.ReplaceHead]).
//
// Each segment is indexed by time: package observed encodes when and how often its records
// were observed. [Reader.Occurrences] counts that, and [Moments] goes over the records in
// that order. Counts stay when records go: Rewrite keeps the sums of records that it leaves
// out, and [Log.Carry] copies the sums of a segment that is to be unlinked to the head, in
// one transaction with a note that they are there. From then on readers leave out the
// segment that they came from, whether it is unlinked or not.
//
// What a record says is the matter of package entry.
//
// A compressed segment has its records in blocks (package recordfile), and is otherwise like any
// other: it has the same records, byte by byte, and the same index by time. Readers inflate a
// block when they need a record of it, and keep some in a cache that all share. Those that go
// over the log leave the cache alone.
//
// # Errors
//
// A file that cannot be used, or is missing between others, is a [*store.FileError]. A
// damaged record, and each record of a damaged block, is a [*store.CorruptError] and is never
// served. [ErrGone] reports that
// there is no record of a revision. After a failed write, other than one that was
// [Segment.Refused], the owner must not write to a head again, because a repeated sync does
// not report what was lost.
//
// # Concurrency
//
// Methods that change the log or a segment have one caller at a time; Checkpoint may run
// beside SaveCompactRevision and NoteWAL. Everything else is safe for concurrent use,
// also while segments are swapped: View calls its function again if a file was closed
// meanwhile.
//
// # Format
//
//	log-<base>.db
//	├── meta      format, store, base, compact; when sealed: end, bytes;
//	│             wal, of a head: whether the write-ahead log may have records that it lacks;
//	│             carried: what segments up to this base report is in this one;
//	│             both with CRC32C 4; runs: when sealed with an index by time that
//	│             becomes much smaller by a rewrite; blocks: the segment is compressed
//	├── log       revision 8 → record; empty in a compressed segment
//	├── blocks    only in a compressed segment: see package recordfile
//	├── series    number 4 → namespace, type, reason, kind, reporter, cluster, CRC32C 4
//	└── observed  minute 8, last revision 8 → run of entries (see package observed), CRC32C 4;
//	              instead of the revision the base of the segment that the run was carried from
//
// The package knows bbolt and records of the write-ahead log. It knows nothing of the
// index, of the queue of writes, or of retention, and does not decide what is needed.
package seglog
