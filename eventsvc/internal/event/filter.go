package event

import (
	"bytes"
	"slices"

	eventsv1 "k8s.io/api/events/v1"
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

// A Subject is what a filter is asked about: a version of an event. Its dimensions are found when they are needed
// first.
type Subject struct {
	Namespace, Name string
	Attributes      Attributes
	Text            []byte // of [AppendText]

	dimensions *Dimensions // nil: not found yet
}

// SubjectOf returns the subject of an event that is in no store.
func SubjectOf(ev *eventsv1.Event) *Subject {
	a := AttributesOf(ev)
	return &Subject{Namespace: ev.Namespace, Name: ev.Name, Attributes: a, Text: AppendText(nil, []byte(ev.Note), a)}
}

// OfDimensions returns the subject of events of which only the dimensions are known, for filters that ask for nothing
// else.
func OfDimensions(d Dimensions) *Subject { return &Subject{dimensions: &d} }

// Dimensions returns the dimensions of the event, without the pattern of its note.
func (s *Subject) Dimensions() *Dimensions {
	if s.dimensions == nil {
		s.dimensions = new(DimensionsOf(s.Namespace, s.Attributes))
	}
	return s.dimensions
}

// Matches reports whether a version matches. Every other evaluation of a filter has to agree with this one.
func (f *Filter) Matches(s *Subject) bool {
	switch f.Kind {
	case FilterAll:
		return !slices.ContainsFunc(f.Parts, func(part *Filter) bool { return !part.Matches(s) })
	case FilterAny:
		return slices.ContainsFunc(f.Parts, func(part *Filter) bool { return part.Matches(s) })
	case FilterNot:
		return !f.Parts[0].Matches(s)
	case FilterLabels:
		return f.Labels(s.Attributes)
	case FilterWord:
		note, rest := CutNote(s.Text)
		return bytes.IndexByte(f.Word, 0) < 0 && (bytes.Contains(Fold(nil, note), f.Word) || !f.Note && bytes.Contains(Fold(nil, rest), f.Word))
	case FilterField:
		return f.Fits(s.Field(f.Field))
	case FilterGap:
		g, marked := s.Attributes.Gap()
		return marked && (g.Rule != "") == f.Dropped
	case FilterPlace:
		return f.Allows(s.Dimensions().Namespace, s.Dimensions().Cluster)
	case FilterDimensions:
		return f.Wants(*s.Dimensions())
	}
	if f.OnPattern() {
		note, _ := CutNote(s.Text)
		return f.Fits(Pattern(note, s.Attributes.Field(RegardingName), []byte(s.Namespace)))
	}
	return f.Fits(*s.Dimensions().Text(f.Dimension))
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

// Field returns the text of a field, also of those of the key.
func (s *Subject) Field(f Field) string {
	switch f {
	case FieldNamespace:
		return s.Namespace
	case FieldName:
		return s.Name
	}
	return string(s.Attributes.Field(f))
}
