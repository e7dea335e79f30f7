package event

import (
	"bytes"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// A Filter is an expression about what versions of events say. The zero value matches all.
type Filter struct {
	Kind  FilterKind
	Parts []*Filter // of FilterAll and FilterAny; FilterNot has one

	Dimension string                               // of FilterDimension: one of [DimensionNames], or [PatternDimension]
	Field     Field                                // of FilterField
	Fits      func(text string) bool               // of both
	Exact     string                               // of FilterField: the only text that fits; empty: Fits tells
	Labels    func(labels.Labels) bool             // of FilterLabels
	Allows    func(namespace, cluster string) bool // of FilterPlace
	Wants     func(Dimensions) bool                // of FilterDimensions
	Word      []byte                               // of FilterWord, folded ([Fold]). One with a NUL is nowhere
	Note      bool                                 // of FilterWord: the word has to be in the note
	Dropped   bool                                 // of FilterGap
}

// FilterKind is the kind of a [Filter].
type FilterKind uint8

// The kinds of filters.
const (
	FilterAll        FilterKind = iota // all parts match
	FilterAny                          // one part matches
	FilterNot                          // its part does not match
	FilterDimension                    // the text of a dimension fits
	FilterField                        // the text of a field fits
	FilterLabels                       // the labels fit
	FilterPlace                        // namespace and cluster are allowed
	FilterDimensions                   // the dimensions together are wanted
	FilterWord                         // the text of [AppendText] contains a word
	FilterGap                          // the version is marked with a [Gap]: of a rule if Dropped is set, else of none
)

// All returns a filter that matches where each of the filters does. A nil filter matches everything.
func All(parts ...*Filter) *Filter {
	return &Filter{Parts: slices.DeleteFunc(parts, func(f *Filter) bool { return f == nil })}
}

// Filter returns the selector as a filter, nil if it is nil.
func (s *Selector) Filter() *Filter {
	if s == nil {
		return nil
	}
	all := &Filter{}
	for _, r := range s.Fields {
		part := &Filter{Kind: FilterField, Field: r.Field, Fits: func(text string) bool { return (text == r.Value) != r.Not }}
		if !r.Not {
			part.Exact = r.Value
		}
		all.Parts = append(all.Parts, part)
	}
	for _, r := range s.Labels {
		all.Parts = append(all.Parts, &Filter{Kind: FilterLabels, Labels: r.Matches})
	}
	if s.Clusters != nil {
		all.Parts = append(all.Parts, &Filter{Kind: FilterLabels, Labels: func(l labels.Labels) bool { return s.matchesCluster(l.Get(ClusterLabel)) }})
	}
	if s.Dropped {
		all.Parts = append(all.Parts, &Filter{Kind: FilterGap, Dropped: true})
	}
	return all
}

// Matches reports whether a version matches, of which the text is that of [AppendText]. Every other
// evaluation of a filter has to agree with this one.
func (f *Filter) Matches(namespace, name string, a Attributes, text []byte) bool {
	matches := func(part *Filter) bool { return part.Matches(namespace, name, a, text) }
	switch f.Kind {
	case FilterAll:
		return !slices.ContainsFunc(f.Parts, func(part *Filter) bool { return !matches(part) })
	case FilterAny:
		return slices.ContainsFunc(f.Parts, matches)
	case FilterNot:
		return !matches(f.Parts[0])
	case FilterLabels:
		return f.Labels(a)
	case FilterWord:
		note, rest := CutNote(text)
		return bytes.IndexByte(f.Word, 0) < 0 && (bytes.Contains(Fold(nil, note), f.Word) || !f.Note && bytes.Contains(Fold(nil, rest), f.Word))
	case FilterField:
		return f.Fits(FieldText(f.Field, namespace, name, a))
	case FilterGap:
		g, marked := a.Gap()
		return marked && (g.Rule != "") == f.Dropped
	}
	d := DimensionsOf(namespace, a)
	if f.OnPattern() {
		note, _ := CutNote(text)
		d.Pattern = Pattern(note, a.Field(RegardingName), []byte(namespace))
	}
	switch f.Kind {
	case FilterDimension:
		return f.Fits(*d.Text(f.Dimension))
	case FilterPlace:
		return f.Allows(d.Namespace, d.Cluster)
	}
	return f.Wants(d)
}

// OnDimensions reports whether a filter looks at nothing but dimensions, which outlive their events.
func (f *Filter) OnDimensions() bool {
	switch f.Kind {
	case FilterAll, FilterAny, FilterNot:
		return !slices.ContainsFunc(f.Parts, func(part *Filter) bool { return !part.OnDimensions() })
	case FilterField:
		return slices.Contains([]Field{Type, Reason, RegardingKind, FieldNamespace}, f.Field)
	}
	return f.Kind == FilterDimension && !f.OnPattern() || f.Kind == FilterPlace || f.Kind == FilterDimensions
}

// OnPattern reports whether a filter is of the pattern of the note.
func (f *Filter) OnPattern() bool {
	return f.Kind == FilterDimension && f.Dimension == PatternDimension
}

// FieldText returns the text of a field of a version, also of those of its key.
func FieldText(f Field, namespace, name string, a Attributes) string {
	switch f {
	case FieldNamespace:
		return namespace
	case FieldName:
		return name
	}
	return string(a.Field(f))
}
