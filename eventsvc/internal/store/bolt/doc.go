// Package bolt is the engine of package store on bbolt files: the change log is
// the data, the rest is made from it.
//
// # Files
//
// A data directory holds
//
//	log-<base>.db   segments of the log, each with the revisions from its base on;
//	                the newest is the head, the others are sealed: never written,
//	                only replaced whole or unlinked
//	journal         the newest records, until the head has them; of fixed length
//	index.db        where the newest version of each event is; its file lock keeps
//	                a second process out; without it it is made again from the log
//	*.tmp           files in the making, removed at start
//
// Those in .db are bbolt files with a bucket "meta" whose entry "format" names the
// store and the version of the format, and "store" a random id that is equal in
// all files that belong together, the journal too. The version is 1, and 2 in a
// head with a journal in use: a program that does not know of journals refuses
// such a store, and would overlook the last writes otherwise. A store that was
// closed is of version 1 throughout, unless that has failed, and needs no journal.
//
// Package seglog describes the segments, package index index.db, package wal the journal.
// The journal is a sixteenth of a segment long, but from 128 KiB to 4 MiB.
//
// # Writing
//
// One goroutine, the committer, takes whatever writes are waiting into one frame
// of the journal: one write for all, which has ended when it is on the disk, and
// no timer. It checks each against the state that the batch has come to, so that
// one that is refused does not touch its neighbours. The blocks of the journal are
// there from the start, and a frame begins with a block of its own: so a commit
// changes nothing but data, in one piece, and the file system notes nothing of it
// in a journal of its own. After the commit the committer puts the new revisions
// into the memtable, publishes the changes in order of revision, answers the
// writers and wakes the watchers.
//
// The records of a frame stay in memory until the head has them. When a half of
// the journal is full they are checkpointed into the head, in one transaction beside
// the committer, while the other half takes what comes; the committer waits only
// if that is full before the checkpoint has ended. They are checkpointed too when the
// head is to be sealed, for a backup, and when the store is closed. A commit of very many
// records, or one that an empty half has no room for, goes straight into the head,
// with all that is in the journal; and so does every commit until the next start where there was no room
// on the disk to make a journal.
//
// A start writes the newest meta page of head and index again, and the newest frame
// of the journal: what it reads of a process that was killed may be in the page cache
// alone, after a sync that has failed, and no sync would tell. See [boltfile.Open].
//
// A start that finds a head of version 2 reads from the journal what the head does
// not have. A frame is begun when the one before it is on the disk: so the last,
// if it is not whole, was cut short, and nobody was told of it. A journal that is
// missing, cut, of another store or without a frame that others follow on is
// refused by name. A damaged record in a frame that others follow on is found by
// who reads it, as in the log.
//
// The memtable, a skip list whose nodes are found by the hashes of their keys too,
// is the part of the index that is not in the file yet; at its limit it is frozen
// and merged in order of keys, which dirties each page of the index once for many
// events. After a crash the memtable is made again from the log and the journal
// behind "merged".
//
// # Reading
//
// A list goes over memtables and index as one, in order of keys. Where the
// newest version is newer than the revision asked for, it follows the records'
// previous revisions down. A selector that asks for a field or label to have a
// value goes by the terms instead. Records are looked up some at a time, in the
// order in which they lie; those that the head may not have yet are found in
// memory, as they are in the journal. What is found has its checksum verified, and
// is copied out of the mapped pages or shown to the caller where it is; nobody
// waits inside a transaction, and one that is left open for the next reader does
// not outlast the next write. A first look, which decides only what is then read
// again, takes no checksums. Who uses one part of values verifies that, and what
// is in front of the parts, and not the other part: most of what a checksum costs
// is to fetch what it covers.
//
// A watch reads from a ring of the newest changes that all watches share, and
// from the log where the ring has left it behind. A change wakes those who watch
// its namespace, or all; many of them group by group, so that other work has its
// turn between them.
//
// # Forgetting
//
//	 oldest record                compact revision                 newest
//	───┼──────────────────────────────┼───────────────────────────────┼──▶ revision
//	   │ only what is still the       │ everything: each state from   │
//	   │ newest version of its event  │ here on can be read, each     │
//	   │                              │ change behind can be watched  │
//
// An event past its retention is deleted by a write like any other. The compact revision
// moves over history that is past its own time or size. A record is dead when it
// was superseded at or before the compact revision; sealed segments with much dead in
// them are written anew, dead ones at the old end are unlinked. A deletion stays
// until no older version can be left in the files, because an index that is made
// again from the log would bring that back. The index keeps an account of what is
// dead in each segment, but a kill, a power cut or a new index can leave it wrong.
// So a deletion is dropped only when all segments before it were read since the
// start, and a segment is read before it is unlinked. It counts as there until the
// unlink is synced.
//
// # Gaps
//
// Revisions rise, but not always by one. A sealed segment notes with which
// revision it ends, and the next one begins behind that, so there may be any
// number of revisions between two records: those of commits that failed, and, in
// a store that was restored or took over the events of another, all that its
// clients may know from before ([DB.BumpRevision]). The compact revision is then behind
// the gap.
//
// # Promises
//
// They are listed with their tests, R1 to R21, in deploy/docs/storage.md.
package bolt
