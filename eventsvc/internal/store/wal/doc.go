// Package wal is a write-ahead log in one file of fixed length. A commit is durable
// after one write and one sync of it; a checkpoint brings its records elsewhere
// later.
//
// # Contract
//
// [Log.Append] returns when a frame of records is on the disk. The owner keeps these
// records elsewhere too before it lets their place be used again, which is called a
// checkpoint:
//
//	┌────────┬───────┬───────┬───────┬───┬───────┬───────┬─────────────────┐
//	│ header │ frame │ frame │ frame │ … │ frame │ frame │ next frame      │
//	├────────┴───────┴───────┴───────┴───┼───────┴───────┴─────────────────┤
//	│ one half: being checkpointed       │ the other: being written        │
//	└────────────────────────────────────┴─────────────────────────────────┘
//
// When a frame no longer fits ([Log.Fits]), [Log.Rotate] continues in the other half,
// while the owner checkpoints the first one and then calls [Log.ReleaseOtherHalf].
// [Log.Reset] is for an owner that has checkpointed everything. After a crash [Open]
// returns the records that are not checkpointed.
//
// The file has all its blocks from the start, and a frame begins at a block of its
// own. An append therefore changes nothing but data, in one piece: the file system
// writes no metadata for it, and no acknowledged frame is ever overwritten in part.
//
// # Errors
//
// A file that is missing, cut, foreign or damaged is a [*store.FileError]. [ErrAppend]
// reports a failed append.
//
// # Concurrency
//
// A Log has one user at a time.
//
// # Format
//
// Numbers are big-endian.
//
//	header, in a block of 4 KiB
//	"tidings event store wal 2\n", length of store id 2, store id, size of the file 8, salt 8, CRC32C 4
//
//	frame, at a multiple of 4 KiB
//	┌──────┬────────┬─────────┬────────┬────────┬────────┬───────────┬───────────────────────────┐
//	│ salt │ before │ records │ length │ CRC32C │ CRC32C │ record... │ (revision 8, length 4)... │
//	│  8   │   8    │    4    │   4    │   4    │   4    │           │ the table                 │
//	└──────┴────────┴─────────┴────────┴────────┴────────┴───────────┴───────────────────────────┘
//	before: the newest revision before the frame; number and length of the records; checksum of the
//	records; checksum of all fields before that and of the table
//
// The table has the revision of every record, because revisions may have gaps: those of a copy that is
// filled from another store, which has removed history.
//
// The salt is random and new whenever a store begins to use the log. No client
// knows it, so no content of an event can pass for a frame.
//
// The package knows nothing of bbolt, nor of what records hold.
package wal
