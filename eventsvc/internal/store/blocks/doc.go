// Package blocks compresses records. A block is some dozens of records that follow each
// other, in one zstd frame (RFC 8878).
//
// # Contract
//
// A [Writer] is given records in order of their revisions and makes blocks of them.
// [Block.Parse] verifies a block and inflates it; [Block.Append] then returns its records, byte
// by byte as they were added, and [Block.Verified] without the checksum, if that
// matched when the block was made. A block says which revisions it covers: a revision that it covers and has no record
// of has none, and there is nothing to be looked for elsewhere.
//
// A [Cache] keeps blocks that were inflated, bounded by their bytes. Blocks that were used
// again since they came in stay longer than those that were used once. Callers give a
// block back after use ([Cache.Done]), because its memory is reused.
//
// # Errors
//
// Parse returns [boltfile.ErrChecksum] for a block that is not as it was written, or is
// another one than that of its key. It looks at nothing else in a block before that. It
// refuses a block that claims to be larger than [MaxBytes] before it inflates it. [ErrTooLarge]
// reports a record that is too large for a block.
//
// # Concurrency
//
// A [Writer] has one user at a time. [Block.Parse] must not run beside other methods of the same
// Block. Everything else is safe for concurrent use.
//
// # Format
//
//	key: the last revision that it covers 8, big-endian
//	value
//	┌────────────────────────────────────────┬────────────┬────────┐
//	│ revisions that it covers before its key│ zstd frame │ CRC32C │
//	│ (uvarint)                              │            │   4    │
//	└────────────────────────────────────────┴────────────┴────────┘
//
// The CRC32C covers the key too. The frame has the checksum of its content that zstd defines.
// It has no dictionary: one of 64 KiB for each segment makes blocks smaller by a tenth, and
// inflating them takes twice the time.
//
//	content: for each record
//	revisions behind the one before (uvarint) | length of the rest (uvarint) | form 1 | the record in this form
//
//	form 0: the record as it is
//	form 1: the record without its checksum
//
// The checksum at the end of a record, [boltfile.Checksum], would not compress. It is left
// out where it matches, and made again. A record that was damaged before has form 0, and
// stays what it was.
//
// The package knows the checksum of records and nothing else of what they say.
package blocks
