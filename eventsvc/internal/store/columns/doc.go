// Package columns keeps what versions of events report as columns, so that questions that nobody has foreseen are
// answered from a few numbers per version.
//
// # Contract
//
// A [Row] is a version of an event: an observation, with its dimensions, its object, its labels and its note, and
// the version itself as it is stored. A [Builder] takes rows in the order of their revisions and makes a table of
// them: pieces, each with a key, which its owner stores. The rows so far can be read as a table
// where they are ([Builder.Growing]). A [Table] reads pieces where they are stored. A [Scan]
// decides chunk by chunk which rows match an [event.Filter]; a [Counter] counts them by groups. [Records] reads
// versions.
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
// A value is a shape, cells, and what its row has. The shape is what values have in common: the steps in which their
// protobuf is written. A step is a text of the shape itself, or refers to a text or number of the row, or to a cell.
// A text is a part of shapes as long as its place has few different ones; then the dictionary of values has it, or,
// if it is not repeated, the cells do. UUIDs, numbers, and the ends of names are shorter in cells. A version that
// does not read back byte for byte is stored as it is, instead of its cells. See shape.go for the steps.
//
//	key    last revision of the table 8, column 1, number 2
//	column 0 to 21      number: of the piece. Offsets of the ends of chunks 4 each, CRC32C 4; chunks; the same
//	                    offsets and CRC32C again
//	       chunk        width 1, least number (uvarint), packed numbers (little-endian), CRC32C 4
//	column 48           number: of the chunk. Its plain notes, each with its length (uvarint), as a zstd frame; CRC32C 4
//	column 49           number 0 and 1: each namespace of a cluster that rows have, with a bit for each chunk
//	                    that has some; CRC32C 4
//	column 50           number: of the chunk. Offsets as above; the cells of 32 rows each; the offsets again
//	       cells        0, or 1 if the rest is a zstd frame 1; bases of numbers in texts and of versions (uvarints); of
//	                    each row the length of its cells (uvarint), and these; CRC32C 4
//	column 64 to 79     a dictionary: number of texts 4; of each 64 of them where texts and lengths begin 4 each, and
//	                    their CRC32C 4; where texts and lengths end 4 each; CRC32C of all this 4; the lengths
//	                    (uvarints); the texts
//	column 96 to 111    the same, as a zstd frame; CRC32C 4
//	column 127          number 0 and 1: rows 4, first revision 8, revision behind which the table begins 8, first
//	                    second 8, last second 8, first second of a version that is held 8, plain notes 4,
//	                    light rows 4, rows with a gap 4; CRC32C 4
//
// # Errors
//
// Damage is an error that wraps [boltfile.ErrChecksum] and names the column and the rows: a chunk at most, and nothing
// of it is served. A dictionary is read from its copy then. Damaged cells cost 32 rows. Numbers that contradict each
// other are damage too.
//
// # Concurrency
//
// A [Table] is safe for concurrent use. Nothing else here is.
package columns
