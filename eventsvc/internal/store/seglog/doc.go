// Package seglog encodes the records of the log.
//
// # Contract
//
// An [Entry] is a version of an event, or its deletion, with its revision. [AppendRecord]
// encodes it, and a [Parser] verifies and parses it. The checksum of a record covers its
// revision too, under which it is stored, so that a record in the place of another is
// found as damage.
//
// # Errors
//
// [boltfile.ErrChecksum] and other errors of [ParseRecord] report damage;
// [Parser.Parse] makes them a [*store.CorruptError]. Damage is never served.
//
// # Format
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
//	form: 0, or 1 for a value with two sections, of which readers use one or both;
//	its attributes, which carry their length, are then followed by
//	┌───────┬────────┬────────┬────────┐
//	│ first │ second │ CRC32C │ CRC32C │  offsets of the sections in the value, and
//	│   4   │   4    │   4    │   4    │  a checksum for the readers of each
//	└───────┴────────┴────────┴────────┘
//	and the attributes length is that of both. sections.go says what the checksums
//	cover; the last one covers everything, in either form
//
// The package knows nothing of the index, of the queue of writes, or of retention.
package seglog
