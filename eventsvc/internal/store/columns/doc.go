// Package columns keeps what versions of events report as columns, so that questions that nobody has foreseen are
// answered from a few numbers per version.
//
// # Contract
//
// A [Row] is a version of an event: an observation, with its dimensions, its object, its labels and its note. A
// [Builder] takes rows in the order of their revisions and makes a table of them: pieces, each with a key, which its
// owner stores. A [Table] reads pieces where they are stored. A [Scan] decides chunk by chunk which rows match an
// [event.Filter]; a [Counter] counts them by groups.
//
// Every answer is what event.Filter.Matches says of each version, read one by one. Fields that are no column (the name
// of an event, the resourceVersion of its object) are asked of the owner, by revision.
//
// Of a light row only the dimensions and the occurrence are left. It matches filters on dimensions, and no filter on
// anything else.
//
// # Form
//
// A column is numbers by row: codes of texts in a dictionary, or times, counts and revisions. 512 rows are a chunk,
// which has a width in bits, the least of its numbers, what each is beyond it, and a CRC32C that covers the place of
// the chunk too. 16 chunks are a piece.
//
// A note is a template and words: what has a digit, or resembles the names of Kubernetes or of the object, is a word in
// a dictionary; the rest is the template. So for a text that is searched each template says "always", "never", or which
// words its notes must have. Notes that are long, or of which there are too many kinds, are plain: they are stored as
// they are, and read one by one.
//
//	key    last revision of the table 8, column 1, number 2
//	column 0 to 18      number: of the piece. Offsets of the ends of chunks 4 each, CRC32C 4; chunks; the same offsets and CRC32C again
//	       chunk        width 1, least number (uvarint), packed numbers (little-endian), CRC32C 4
//	column 48           number: of the chunk. Its plain notes, each with its length (uvarint), as a zstd frame; CRC32C 4
//	column 49           number 0 and 1: each namespace of a cluster that rows have, with a bit for each chunk that has some; CRC32C 4
//	column 64 to 76     a dictionary: number of texts, their lengths (uvarints), the texts; CRC32C 4
//	column 96 to 108    the same, as a zstd frame; CRC32C 4
//	column 127          number 0 and 1: rows 4, first revision 8, first second 8, last second 8, plain notes 4; CRC32C 4
//
// # Errors
//
// Damage is an error that wraps [boltfile.ErrChecksum] and names the column and the rows: a chunk at most, and nothing
// of it is served. A dictionary is read from its copy then. Numbers that contradict each other are damage too.
//
// # Concurrency
//
// Nothing here is safe for concurrent use but [Known], and that different tables may read the same pieces.
package columns
