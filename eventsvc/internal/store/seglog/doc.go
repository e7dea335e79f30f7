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
// The head is not immutable: the open transaction of a reader keeps bbolt from reusing its pages. The head then grows
// by those that checkpoints change meanwhile, and is cut to what it has when it is sealed.
//
// [Reader.Tables] returns what records report as columns (package columns), of which questions are answered. Sealed
// segments have them in their files. A head gets a table in its file as soon as there are enough records, and has all
// of them in memory as well, with the pending records.
//
// A row is an observation: what one version reports. Rows stay when records go: of a version that Rewrite leaves out
// there is a light row, with its dimensions and its occurrence. Without its columns nobody knows of it. So damage of
// them is an error of those who ask, also after another Rewrite.
//
// An [Entry] is a parsed record: a version of an event, or its deletion ([AppendEntry],
// [Reader.Get]). The checksum of a record covers its revision too, so that a record in the place
// of another is found as damage. An Entry shares memory with its record.
//
// A compressed segment has its records in columns, and is otherwise like any other: it has the same records, byte by
// byte. The columns are tables of up to 131,072 rows, so that most files have one and each text once. Each says behind
// which revision it begins, so that a missing one is noticed. Deletions, damaged records and very large ones are in the
// log beside them.
//
// The files: tables.go is the columns in memory, parts.go those of a file, segment.go one file and log.go all of them.
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
//	│             compressed: 1 if the records are in columns, 2 if they are in the log;
//	│             columns: the last revision of the last table; through: up to which revision all records are in tables;
//	│             lost: the first revision of which something is damaged; each with CRC32C 4
//	├── log       revision 8 → record, or gap; in a compressed segment what is in no column
//	├── next      first revision 8 → versions that records of this segment superseded, by their revisions, CRC32C 4
//	└── columns   the pieces of tables, see package columns
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
// The package knows bbolt and records of the write-ahead log. Apart from [IndexedLog] it knows
// nothing of the index; it knows nothing of the queue of writes, or of retention, and does not
// decide what is needed.
package seglog
