// Package observed encodes what was observed, by the minute of its observation, and keeps
// it in two buckets of a bbolt file.
//
// # Contract
//
// A run says what some records of a segment report of one minute: for each series, which
// is a number for [event.Dimensions], entries with the second, the revision of the record
// and how often it was observed. A run is never changed. A minute may have many runs, of
// which none repeats what is in another.
//
// [AppendRun] encodes a run and [Parse] verifies and opens one. [Merge] puts entries in
// the order of a run, and sums those whose records are no longer held, which have revision
// 0. [AppendSeries] and [ParseSeries] encode the texts of a series.
//
// A [Collection] gathers what records report. [Collection.Save] appends it to the buckets
// of a file as runs; the [Numbering] of that file knows which numbers its series have.
// [Minutes] goes over what one file has, minute by minute, to write it to another one.
//
// # Errors
//
// Damage is a [boltfile.ErrChecksum]. A run whose checksum is right, and whose bytes make
// no sense all the same, is one too.
//
// # Concurrency
//
// A Collection and a Numbering have one user at a time. Everything else has no state.
//
// # Format
//
//	key    minute since 1970, its first bit flipped 8, last revision 8
//	value  last revision - first one (uvarint), first second 1, last second 1,
//	       cells, CRC32C of key and value 4
//	cell   number of the series - that of the cell before (uvarint),
//	       length of its entries (uvarint), entries
//	entry  63 and its span in seconds (uvarint) if it has one,
//	       second | 64 if the increment follows | 128 if its record is no longer held 1,
//	       unless that is so: revision - that of the entry before, or the first one (uvarint),
//	       increment (uvarint) if it is not 1
//
//	series number 4 → six texts with their lengths (uvarints), CRC32C of number and texts 4
//
// The flipped bit keeps the keys in order of time before 1970 too. The seconds let a
// reader pass over runs of a minute in which very much has happened.
//
// The package does not know segments, or which records are held.
package observed
