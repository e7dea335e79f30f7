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
//	index.db        where the newest version of each event is; its file lock keeps
//	                a second process out; without it it is made again from the log
//	*.tmp           files in the making, removed at start
//
// Each is a bbolt file with a bucket "meta" whose entry "format" names the store
// and the version of the format, and "store" a random id that is equal in all
// files that belong together.
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
//	form: 0, or 1 for a value with two parts, of which readers use one or both;
//	its attributes, which say themselves where they end, are then followed by
//	┌───────┬────────┬────────┬────────┐
//	│ first │ second │ CRC32C │ CRC32C │  where in the value each part begins, and
//	│   4   │   4    │   4    │   4    │  a checksum for the readers of each
//	└───────┴────────┴────────┴────────┘
//	and their length is that of both. parts.go says what the checksums cover; the
//	last one covers all, in either form
//
//	index.db
//	├── meta      format, store, merged, merging, live, trimmed, dead
//	├── keys      "namespace/name" → revision·2 + deleted 8, CRC32C 4
//	└── terms     hash of a field or label with its value 8, last revision 8
//	              → number, differences between revisions (uvarints), CRC32C 4
//
// # Writing
//
// One goroutine, the committer, takes whatever writes are waiting into one
// transaction of the head: one sync for all, no timer. It checks each against
// the state that the batch has come to, so that one that is refused does not
// touch its neighbours. The head is made longer ahead of need, by blocks of zeros
// that are synced, so that the syncs of a commit write over what is there and do
// not wait for the journal of the file system. After the commit it puts the new revisions into the
// memtable, publishes the changes in order of revision, answers the writers and
// wakes the watchers. The memtable, a skip list whose nodes are found by the
// hashes of their keys too, is the part of the index that is not in the file yet;
// at its limit it is frozen and merged in order of keys, which dirties each page
// of the index once for many events. After a crash the memtable is made again
// from the log behind "merged".
//
// # Reading
//
// A list goes over memtables and index as one, in order of keys. Where the
// newest version is newer than the revision asked for, it follows the records'
// previous revisions down. A selector that asks for a field or label to have a
// value goes by the terms instead. Records are looked up some at a time, in the
// order in which they lie. What is found has its checksum verified, and is
// copied out of the mapped pages or shown to the caller where it is;
// transactions are short and nobody waits inside one. A first look, which
// decides only what is then read again, takes no checksums. Who uses one part of
// values verifies that, and what is in front of the parts, and not the other
// part: most of what a checksum costs is to fetch what it covers.
//
// A watch reads from a ring of the newest changes that all watches share, and
// from the log where the ring has left it behind. A change wakes those who watch
// its namespace, or all; many of them group by group, so that other work has its
// turn between them.
//
// # Forgetting
//
//	 oldest record                horizon                          newest
//	───┼──────────────────────────────┼───────────────────────────────┼──▶ revision
//	   │ only what is still the       │ everything: each state from   │
//	   │ newest version of its event  │ here on can be read, each     │
//	   │                              │ change behind can be watched  │
//
// An event past its retention is deleted by a write like any other. The horizon
// moves over history that is past its own time or size. A record is dead when it
// was superseded at or before the horizon; sealed segments with much dead in
// them are written anew, dead ones at the old end are unlinked. A deletion stays
// until no older version can be left in the files, so that making the index
// anew brings nothing back.
//
// # Promises
//
// They are listed with their tests, R1 to R21, in deploy/docs/storage.md.
package bolt
