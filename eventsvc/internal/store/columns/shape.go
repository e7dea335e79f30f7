package columns

import (
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// A shape is what values of protobuf have in common: steps. What differs is in the columns of their rows, to which a
// step refers, or in cells. A step is a number (uvarint).
const (
	stepEnd        = iota // a message ends
	stepMessage           // a message begins
	stepText              // a text: length (uvarint) and text are a cell
	stepValue             // a text: its code in the dictionary of values (uvarint) is a cell
	stepUUID              // a text: 16 bytes are a cell
	stepDecimal           // a text: the difference to the number of its rows, zigzag (uvarint), is a cell
	stepSuffix            // a text with a number at its end; flags (1 byte) follow: see suffixOfValue
	stepNumber            // a number: it is a cell (uvarint)
	stepDifference        // a number: the difference to the second of the observation, zigzag (uvarint), is a cell
	stepSecond            // the second of the observation, and what is beyond it
	stepNanos
	stepFirstNanos // beyond the second of the first observation
	stepWritten    // the second of the write
	stepCount
	stepLabels                      // the labels of the row, as fields of the metadata
	stepRef                         // and more: a text of the row
	stepLiteral = stepRef + numRefs // and more: so many bytes, which follow
)

// The texts of a row to which a shape can refer. The first ones are the dimensions.
const (
	refObject = numDims + iota
	refObjectUID
	refObjectNamespace
	refVersion // apiVersion of the object
	refPath    // fieldPath of the object
	refNote
	numRefs
	refLabels = numRefs // to which stepLabels refers
	allRefs   = numRefs + 1
)

// The flags of a number in hexadecimal digits at the end of a text. In front of it and a dot is the name of the object,
// or a text of the dictionary of values, whose code (uvarint) is a cell. The number is 8 bytes, or its difference to
// the first observation in nanoseconds, zigzag (uvarint). Another dot and digits for copyBytes may be behind it.
const (
	suffixOfValue = 1
	suffixFar     = 2
	suffixCopy    = 4

	copyBytes = 5
	minDigits = 6
)

// The bytes that a shape begins with.
const (
	headKind     = iota // of the record
	headPrevious        // 1: the revisions to the version before (uvarint) are a cell
	headCounted         // 1: what was counted beyond the count (uvarint) is a cell
	headMark            // markNone, markVersion or markText
	shapeHead
)

// What the cells of cellRows begin with: a byte that says whether a zstd frame follows.
const (
	cellsRaw   = 0
	cellsFrame = 1
)

const (
	markNone    = iota
	markVersion // the difference of the version to that of its rows, zigzag (uvarint), is a cell
	markText    // length (uvarint) and text are a cell
)

// versionMark precedes the version in a mark that has nothing else.
var versionMark = []byte{0, 0}

const (
	// noShape is the code of the shape of rows whose versions are not held here, and plainShape that of rows whose cells
	// are the version as it is stored.
	noShape    = 0
	plainShape = 1
	ownShapes  = 2

	maxValue   = 1 << 20  // bytes of a value that has a shape
	maxCells   = 16 << 10 // of its cells
	maxShape   = 4 << 10
	maxShapes  = 1 << 12 // that have texts; as many again have none
	maxNested  = 8
	maxFew     = 8   // different texts in one place of values, each of which is a part of shapes
	maxFewText = 512 // bytes of one
	maxPlaces  = 1 << 12

	maxPlain = 128 << 10 // bytes of a version that is held as it is stored
	// smallCells is how many bytes the cells of cellRows have at most that are never compressed. Versions that are stored
	// as they are have more.
	smallCells = 8 << 10

	// cellRows is how many rows have a checksum together for their cells.
	cellRows = 32
)

// A message says which fields of a protobuf message are messages. Of a map it is an entry: field 1 is the key.
type message struct {
	isMap  bool
	fields map[protowire.Number]*message
}

// eventMessage is the message of [k8s.io/api/events/v1.Event].
var eventMessage = func() *message {
	type fields = map[protowire.Number]*message
	plain, entry := &message{}, &message{isMap: true}
	metadata := &message{fields: fields{8: plain, 9: plain, 11: entry, 12: entry, 13: plain, 17: {fields: fields{4: plain, 7: plain}}}}
	return &message{fields: fields{1: metadata, 2: plain, 3: {fields: fields{2: plain}}, 8: plain, 9: plain, 12: plain, 13: plain, 14: plain}}
}()

const fieldLabels = 11 // of the metadata, the first field

// placeOf returns the place of a field in values: its number within the place of its message.
func placeOf(place uint64, number protowire.Number) uint64 {
	return bits.RotateLeft64(place, 5)*0x9e3779b97f4a7c15 + uint64(number)
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
