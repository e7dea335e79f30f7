package query

import (
	"slices"
	"strings"

	"tidings.example/eventsvc/internal/event"
)

// Dimension is what observations are counted by. Its text is its name in parameters and
// answers.
type Dimension string

// The dimensions. All but the object are texts of [event.Dimensions].
const (
	Type      Dimension = "type"
	Reason    Dimension = "reason"
	Kind      Dimension = "kind"
	Namespace Dimension = "namespace"
	Reporter  Dimension = "reporter"
	Cluster   Dimension = "cluster"
	Owner     Dimension = "owner"
	Node      Dimension = "node"
	Object    Dimension = "object"
	// Pattern is the pattern of the note ([event.Pattern]), for which events have to be held.
	Pattern Dimension = event.PatternDimension
)

// Counted are the dimensions of facets and histograms.
var Counted = append(indexed(), Pattern)

// Grouped are the dimensions of groups.
var Grouped = append(indexed(), Pattern, Object)

// Indexed are the dimensions that need no events to be read.
var Indexed = indexed()

func indexed() (all []Dimension) {
	for _, name := range event.DimensionNames {
		all = append(all, Dimension(name))
	}
	return all
}

// ParseBy reads a parameter of dimensions that are separated by commas, of those that are known. None is
// nil. At most most may be named; 0: all of them.
func ParseBy(parameter, text string, known []Dimension, most int) ([]Dimension, error) {
	if text == "" {
		return nil, nil
	}
	var by []Dimension
	for name := range strings.SplitSeq(text, ",") {
		d := Dimension(name)
		switch {
		case !slices.Contains(known, d):
			return nil, invalid(parameter, "%q is no dimension here: there are %s", name, Names(known))
		case slices.Contains(by, d):
			return nil, invalid(parameter, "%q is there twice: keep one", name)
		}
		by = append(by, d)
	}
	if most > 0 && len(by) > most {
		return nil, invalid(parameter, "%d dimensions are named: at most %d can be", len(by), most)
	}
	return by, nil
}

// Names returns the names of dimensions, separated by commas.
func Names(by []Dimension) string {
	names := make([]string, len(by))
	for i, d := range by {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

// of returns the value of an indexed dimension.
func (d Dimension) of(in *event.Dimensions) *string {
	if text := in.Text(string(d)); text != nil {
		return text
	}
	return new(string)
}

// Regarding is the object that an event is about.
type Regarding = event.Regarding

// cut returns an object whose texts are cut as dimensions are ([event.CutDimension]).
func cut(r Regarding) Regarding {
	return Regarding{
		Kind: event.CutDimension(r.Kind), Namespace: event.CutDimension(r.Namespace), Name: event.CutDimension(r.Name), UID: event.CutDimension(r.UID),
	}
}

// Key is what the observations of a group have in common: the dimensions by which they are grouped, and the object if
// that is one of them. Other dimensions are empty, except the namespace and the cluster of an object without a UID.
type Key struct {
	Dimensions event.Dimensions
	Object     Regarding
}

// bytes returns the total length of the texts of a key.
func (k *Key) bytes() int {
	o := &k.Object
	return k.Dimensions.Bytes() + len(o.Kind) + len(o.Namespace) + len(o.Name) + len(o.UID)
}

// keyOf returns the key of an observation. An object without a UID is told apart by its cluster and the namespace of
// its events, so its key has these too.
func keyOf(d event.Dimensions, object Regarding, by []Dimension) (k Key) {
	for _, dimension := range by {
		*dimension.of(&k.Dimensions) = *dimension.of(&d)
	}
	if k.Object = object; slices.Contains(by, Object) && object.UID == "" {
		k.Dimensions.Namespace, k.Dimensions.Cluster = d.Namespace, d.Cluster
	}
	return k
}

// Values returns the values of the dimensions by which a key was made. The object has
// four: kind, namespace, name and UID.
func (k *Key) Values(by []Dimension) []string {
	values := make([]string, 0, len(by)+3)
	for _, d := range by {
		if d == Object {
			o := k.Object
			values = append(values, o.Kind, o.Namespace, o.Name, o.UID)
			continue
		}
		values = append(values, *d.of(&k.Dimensions))
	}
	return values
}
