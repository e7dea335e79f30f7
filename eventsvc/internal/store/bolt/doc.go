// Package bolt is the engine of package store on bbolt files. The log of changes is the
// data; the index is made from it.
//
// # Contract
//
// [Open] opens the store in a directory and puts its parts together:
//
//	write  Update, DeleteMany → commit (queue, batches, write-ahead log, head)
//	read   Get, List, Changes → index (newest versions) → seglog (columns, records)
//	       Timeline           → columns of segments and head (rows by the time of their observation)
//	watch  Watch              → watch (ring of the newest changes), seglog for older ones
//	upkeep Run                → maintenance (retention, compaction), with usage
//	files  Snapshot, Restore: an archive of the files; Check: reads and compares everything
//
// The package itself has the reads (read*.go, time*.go), the wiring and the recovery at start. reader.go says which
// revisions are still held, readplan.go by which way a list is read, watch.go which revisions are to come. The
// parts have no pointer to it.
//
// # Files
//
// A data directory holds
//
//	log-<base>.db   segments of the log, each with the revisions from its base on;
//	                the newest is the head, the others are sealed: never written,
//	                only replaced whole or unlinked
//	wal             the write-ahead log: the newest records, until the head has them
//	index.db        where the newest version of each event is; if it is missing it is
//	                made again from the log
//	*.tmp           files in the making, removed at start
//
// The lock of the directory itself keeps a second process out.
//
// Packages seglog, wal and index describe their formats. Files in .db are bbolt files
// whose bucket "meta" names the version of the format and the random id of the store.
//
// # Recovery
//
// A start writes the newest meta page of head and index again, and the newest frame of
// the write-ahead log. What a killed process has left may be in the page cache alone,
// after a sync that has failed, and no further sync would tell (see [boltfile.Open]).
// Then it reads from the write-ahead log what the head does not have, and puts into the
// index what the log has behind [index.Index.Merged].
//
// # History
//
//	 oldest record                compact revision                 newest
//	---+------------------------------+-------------------------------+--> revision
//	   │ only what is still the       │ everything: each state from   │
//	   │ newest version of its event  │ here on can be read, each     │
//	   │                              │ change behind can be watched  │
//
// Package commit gives out revisions, after a start behind the last one that is there. They rise,
// but not always by one: those of commits that failed are left out, and
// so are, in a store that was restored or took over the events of another, all that its
// clients may know from before ([DB.BumpRevision]). The compact revision is then behind
// the gap.
//
// # Errors and concurrency
//
// Errors are those of package store. All methods of [DB] are safe for concurrent use.
//
// The promises of the store are listed with their tests, R1 to R22, in
// deploy/docs/explanation/storage.md.
package bolt
