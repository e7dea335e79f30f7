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
// [Log.Rewrite] copies what its caller needs of a sealed segment, compressed or not; the caller
// renames the copy, opens it, swaps it in ([Log.Replace]) and lets the old one go ([Log.LetGo]).
//
// # Lifetime of files
//
// Segments are held by a reference count, as the parts of VictoriaLogs and the blocks of Prometheus. The log has a list
// of its present segments, which is never changed but replaced, and counts who reads it ([Log.Acquire], Release). The
// list has a reference to each of its segments, and so has the log. A file that is rewritten or removed is unlinked at
// once: it has no name any more, but can be read, and takes room on the disk, until it is closed. Whoever releases the
// last reference closes it. Readers never find a file closed, and no function of theirs is called again.
// [Log.UnlinkedBytes] is the room that such files take; nobody waits for a client while holding segments, so that this
// is short. [Log.Close] waits for all readers.
//
// The head is not immutable: an open transaction keeps bbolt from reusing its pages. A long read ends that transaction
// when it lets others go first ([Reader.Rest]), and begins another one when it needs the head again.
//
// [Reader.Tables] returns what records report as columns (package columns), of which questions are answered. Those of a
// compressed segment are in its file. Others are made in memory when they are needed.
//
// Each segment is indexed by time (files time*.go): when and how often its records were
// observed, by dimensions alone. [Moments.Occurrences] counts. A segment that was rewritten also has sums
// of whole hours, which those who count by hours read instead.
// Counts stay when records go: Rewrite keeps the sums of records that it leaves out, and
// [Log.Carry] copies the sums of a segment that is to be unlinked to the head, in one
// transaction with a note that they are there. From then on readers leave out the segment
// that they came from, whether it is unlinked or not.
//
// An [Entry] is a parsed record: a version of an event, or its deletion ([AppendEntry],
// [Reader.Get]). The checksum of a record covers its revision too, so that a record in the place
// of another is found as damage. An Entry shares memory with its record.
//
// A compressed segment has its records in columns, and is otherwise like any other: it has the same records, byte by
// byte, and the same index by time. The columns are tables of up to 65,536 rows. Each says behind which revision it
// begins, so that a missing one is noticed. Deletions, damaged records and very large ones are in the log beside them.
//
// The files: tables.go is the columns in memory, parts.go those of a file, time*.go the index by time, segment.go
// one file and log.go all of them.
//
// An [IndexedLog] is a log with its index, for those that read both.
//
// # Errors
//
// A file that cannot be used, or is missing between others, is a [*store.FileError]. A damaged record is a
// [*store.CorruptError] and is never served; below, damage is [boltfile.ErrChecksum]. Of records that are lost when a
// segment is written again the new one has a gap, which says so. [ErrGone] reports that there is no record of a
// revision. After a failed write, other than one that was [Segment.Refused], the owner must not write to a head again,
// because a repeated sync does not report what was lost.
//
// # Concurrency
//
// Methods that change the log or a segment have one caller at a time; Checkpoint may run
// beside SaveCompactRevision and NoteWAL. Everything else is safe for concurrent use,
// also while segments are swapped. A Reader is for one goroutine.
//
// # Format
//
//	log-<base>.db
//	├── meta      format, store, base, compact; when sealed: end, bytes;
//	│             wal, of a head: whether the write-ahead log may have records that it lacks;
//	│             carried: what segments up to this base report is in this one;
//	│             both with CRC32C 4; runs: when sealed with an index by time that
//	│             becomes much smaller by a rewrite; compressed: the segment has columns;
//	│             columns: the last revision of the last table; lost: the first revision whose record
//	│             is damaged; both with CRC32C 4
//	├── log       revision 8 → record, or gap; in a compressed segment what is in no column
//	├── next      first revision 8 → versions that records of this segment superseded, by their revisions, CRC32C 4
//	├── columns   only in a compressed segment: the pieces of tables, see package columns
//	├── series    number 4 → namespace, type, reason, kind, reporter, cluster, owner, CRC32C 4;
//	│             number 4 → node, CRC32C 4
//	├── observed  minute 8, last revision 8 → run of entries, CRC32C 4;
//	│             instead of the revision the base of the segment that the run was carried from
//	└── sums      only in a segment that was rewritten, if no run was damaged: hour 8 → sums of its runs, CRC32C 4
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
//	gap     revisions that are lost. The key is the last one: first one 8, CRC32C of both 4
//
//	next    for each version the revisions behind the one before (uvarint), and
//	        twice the revisions from it to the one that superseded it, + 1 if that is a deletion (uvarint)
//
//	run of entries: what some records report of one minute
//	key    minute since 1970, its first bit flipped 8, last revision 8
//	value  last revision - first one (uvarint), first second 1, last second 1,
//	       cells, CRC32C of key and value 4
//	cell   number of the series - that of the cell before (uvarint),
//	       length of its entries (uvarint), entries
//	entry  62 and one more than the number of its node (uvarint), or 0, unless that is as before,
//	       63 and its span in seconds (uvarint) if it has one,
//	       second | 64 if the increment follows | 128 if its record is no longer held 1,
//	       unless that is so: revision - that of the entry before, or the first one (uvarint),
//	       increment (uvarint) if it is not 1
//
// A run is never changed. A minute may have many runs, of which none repeats what is in another.
// The flipped bit keeps the keys in order of time before 1970 too. The seconds let a reader pass
// over runs of a minute in which very much has happened.
//
//	sums of an hour: what all its runs report. The key is the hour since 1970, its first bit flipped 8
//	sum    number of the series - that of the sum before (uvarint), first second of the hour (uvarint),
//	       twice the seconds from there to the last one, or twice its span and 1 (uvarint), occurrences (uvarint)
//
// Entries whose span ends in a later hour have sums of their own, and all others of a series and an hour have one. The
// CRC32C of sums covers their key too. Where sums are damaged or missing, the runs of the hour are read.
//
// The package knows bbolt and records of the write-ahead log. Apart from [IndexedLog] it knows
// nothing of the index; it knows nothing of the queue of writes, or of retention, and does not
// decide what is needed.
package seglog
