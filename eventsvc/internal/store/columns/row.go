package columns

import (
	"bytes"
	"math"

	"tidings.example/eventsvc/internal/event"
)

// The columns. Those of codes come first.
const (
	colNamespace = iota // the dimensions, in the order of dimensionNames
	colType
	colReason
	colKind
	colReporter
	colCluster
	colOwner
	colNode
	colObject
	colLabels   // the set of labels
	colPlace    // apiVersion and fieldPath of the object, and what the reporter is ([reporting])
	colTemplate // of the note
	colSecond   // of the last observation
	colMicro    // within it
	colSpan     // microseconds from the first observation to the last
	colCount
	colNew
	colRevision // beyond the first one of the table and the rows between the two
	colShape    // of the value
	colWritten  // when the version was written, in nanoseconds
	colGap      // whether the version is marked with a gap
	numColumns

	colWords = numColumns // the words of notes, of which a row may have any number
	numDims  = colNode + 1
)

var dimensionNames = [numDims]string{"namespace", "type", "reason", "kind", "reporter", "cluster", "owner", "node"}

// The dictionaries. The first ones have the codes of the columns of the same number, those of an object its name.
const (
	dictObject     = colObject
	dictLabels     = colLabels
	dictPlace      = colPlace
	dictTemplate   = colTemplate
	dictObjectOf   = colTemplate + 1 // of an object: kind, namespace and uid
	dictWords      = colTemplate + 2
	dictShape      = colTemplate + 3
	dictValues     = colTemplate + 4 // texts of values that no column has
	numDicts       = colTemplate + 5
	columnOfDicts  = 64 // dictionaries are pieces of this column and those behind it
	columnOfCopy   = 96 // and their copies of these
	columnOfPlain  = 48 // notes without a template
	columnOfPlaces = 49 // in which chunks each namespace of a cluster is
	columnOfCells  = 50 // what shapes leave open
	columnOfMeta   = 127
)

// What colGap says.
const (
	gapNone    = 0
	gapNobody  = 1 // nobody watched
	gapDropped = 2 // a rule dropped something
)

// gapOf returns what colGap says of a row.
func (r *Row) gapOf() uint64 {
	g, marked := r.Attributes.Gap()
	switch {
	case !marked || r.Light != nil:
		return gapNone
	case g.Rule != "":
		return gapDropped
	}
	return gapNobody
}

// A Row is what a version of an event reports: an observation. Its slices may share memory.
type Row struct {
	Revision uint64
	event.Occurrence
	Namespace  []byte
	Attributes event.Attributes
	Note       []byte
	// Light is what is left of a version that is no longer held, beside its revision and its occurrence; nil: it is held,
	// and all else counts.
	Light *event.Dimensions
	// Stored is the version as it is stored; nil: it is not held. Record is what it can be made of again, if it can.
	Stored []byte
	Record *Record
}

// A Record is what a version has beside what its row reports.
type Record struct {
	Kind     byte
	Previous uint64 // revision of the version before, 0: none
	Written  int64  // nanoseconds since 1970
	Mark     []byte // of the attributes ([event.Attributes.Mark])
	Value    []byte
}

// texts are the texts of a row by dictionary.
type texts [numDicts][]byte

// split reads the attributes of a row.
func (t *texts) split(r *Row) (uid, objectNamespace []byte) {
	if r.Light != nil {
		for column, name := range dimensionNames {
			t[column] = []byte(*r.Light.Text(name))
		}
		t[dictLabels] = []byte(lightMark)
		return nil, nil
	}
	var in [event.NumFields][]byte
	for f, text := range r.Attributes.Fields() {
		in[f] = text
	}
	t[colType], t[colReason], t[colKind], t[colNode] = in[event.Type], in[event.Reason], in[event.RegardingKind], in[event.Node]
	t[dictObject], t[colReporter] = in[event.RegardingName], event.Reporter(in[event.ReportingController], in[event.Source])
	t[colNamespace], t[dictLabels] = r.Namespace, r.Attributes.LabelSet()
	t[colCluster], t[colOwner] = nil, nil
	if len(t[dictLabels]) > 1 {
		t[colCluster] = []byte(r.Attributes.Get(event.ClusterLabel))
		t[colOwner] = []byte(event.OwnerOf(r.Attributes.Get))
		if node := r.Attributes.Get(event.NodeLabel); node != "" {
			t[colNode] = []byte(node)
		}
	}
	t[dictPlace] = append(append(append(t[dictPlace][:0:0], in[event.RegardingAPIVersion]...), 0), in[event.RegardingFieldPath]...)
	t[dictPlace] = append(append(t[dictPlace], 0), reporting(in[event.ReportingController], in[event.Source])...)
	return in[event.RegardingUID], in[event.RegardingNamespace]
}

// A version has a controller, a source or both, which are the same most of the time. The column of reporters has the
// controller if there is one, and else the source. What tells more is at the end of its place: nothing if both are the
// reporter, sourceOnly if there is no controller, and else otherSource and the source.
const (
	sourceOnly  = 's'
	otherSource = 'o'
)

func reporting(controller, source []byte) []byte {
	switch {
	case bytes.Equal(controller, source):
		return nil
	case len(controller) == 0:
		return []byte{sourceOnly}
	}
	return append([]byte{otherSource}, source...)
}

// cutPlace splits the text of a place.
func cutPlace(place []byte) (version, path, reporting []byte) {
	version, place, _ = bytes.Cut(place, []byte{0})
	path, reporting, _ = bytes.Cut(place, []byte{0})
	return version, path, reporting
}

// numbers sets the numbers of a row that are no codes.
func (r *Row) numbers(n *[numColumns]uint64) {
	micros := r.Time.UnixMicro()
	second := floor(micros, 1e6)
	n[colSecond], n[colMicro] = biased(second), uint64(micros-second*1e6)
	n[colSpan] = uint64(max(0, micros-r.firstMicro(micros)))
	n[colCount], n[colNew], n[colGap] = uint64(r.Count), uint64(r.New), r.gapOf()
}

func (r *Row) firstMicro(last int64) int64 {
	if r.First.IsZero() {
		return last
	}
	return r.First.UnixMicro()
}

// biased and unbiased keep numbers below zero in the order of the others.
func biased(n int64) uint64   { return uint64(n) + math.MaxInt64 + 1 }
func unbiased(n uint64) int64 { return int64(n - math.MaxInt64 - 1) }

func floor(n, by int64) int64 {
	if n < 0 {
		return (n - by + 1) / by
	}
	return n / by
}

// blank returns a text with blanks for NULs, as it is searched.
func blank(text []byte) []byte {
	if bytes.IndexByte(text, 0) < 0 {
		return text
	}
	return bytes.ReplaceAll(text, []byte{0}, []byte{' '})
}
