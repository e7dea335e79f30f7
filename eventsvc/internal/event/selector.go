package event

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Selector is a conjunction of requirements on fields and labels.
type Selector struct {
	Fields []FieldRequirement
	Labels []labels.Requirement
	// Clusters are patterns of [MatchPattern] for what [ClusterLabel] may say, which is nothing where there is no such
	// label. Nil: anything.
	Clusters []string
	// Dropped requires that the server believes the event when it reports what a rule dropped: see
	// [Attributes.WithReport].
	Dropped bool
}

// FieldRequirement requires that a field has a value or, with Not, that it does not.
type FieldRequirement struct {
	Field Field
	Value string
	Not   bool
}

// MatchPattern reports whether a pattern matches a whole text: * stands for any text, also
// an empty one. It takes time in proportion to the text for each *.
func MatchPattern(pattern, text string) bool {
	first, rest, more := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !ok || !more {
		return ok && text == ""
	}
	for {
		part, behind, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		i := strings.Index(text, part) // the first place leaves the most for the other parts
		if i < 0 {
			return false
		}
		text, rest = text[i+len(part):], behind
	}
}

// Matches reports whether an event meets every requirement. A nil selector
// matches everything.
func (s *Selector) Matches(namespace, name string, a Attributes) bool {
	if s == nil {
		return true
	}
	for i := range s.Fields {
		if !s.Fields[i].matches(namespace, name, a) {
			return false
		}
	}
	for i := range s.Labels {
		if !s.Labels[i].Matches(a) {
			return false
		}
	}
	if s.Clusters != nil && !s.matchesCluster(a.Get(ClusterLabel)) {
		return false
	}
	if s.Dropped {
		g, _ := a.Gap()
		return g.Rule != ""
	}
	return true
}

func (s *Selector) matchesCluster(name string) bool {
	return slices.ContainsFunc(s.Clusters, func(pattern string) bool { return MatchPattern(pattern, name) })
}

func (r *FieldRequirement) matches(namespace, name string, a Attributes) bool {
	var equal bool
	switch {
	case r.Field == FieldNamespace:
		equal = namespace == r.Value
	case r.Field == FieldName:
		equal = name == r.Value
	default:
		equal = string(a.Field(r.Field)) == r.Value // without a copy
	}
	return equal != r.Not
}

// Selection is the parsed form of a fieldSelector and a labelSelector. Namespace and
// Name are set if the selector requires exactly one, so that less is read.
type Selection struct {
	Namespace string
	Name      string
	Selector  *Selector // nil: everything
}

// ParseSelector parses the two selectors of a list, watch or deletecollection
// request. The fields that may be named depend on the view. An error is a 400 with
// the text of kube-apiserver.
func ParseSelector(v View, fieldSelector, labelSelector string) (Selection, error) {
	if fieldSelector == "" && labelSelector == "" {
		return Selection{}, nil
	}
	byLabel, err := labels.Parse(labelSelector)
	if err != nil {
		return Selection{}, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(fieldSelector)
	if err != nil {
		return Selection{}, apierrors.NewBadRequest(err.Error())
	}
	var sel Selection
	var want Selector
	known := selectable(v)
	for _, req := range byField.Requirements() {
		f, ok := known[req.Field]
		if !ok {
			return Selection{}, apierrors.NewBadRequest("field label not supported: " + req.Field)
		}
		if !sel.narrow(f, req) {
			want.Fields = append(want.Fields, FieldRequirement{
				Field: f, Value: req.Value, Not: req.Operator == selection.NotEquals,
			})
		}
	}
	want.Labels, _ = byLabel.Requirements()
	if len(want.Fields)+len(want.Labels) > 0 {
		sel.Selector = &want
	}
	return sel, nil
}

// narrow uses a requirement of one namespace or one name to narrow the selection, and
// reports whether it did. A second requirement, and one of the empty value, which no
// event has, stay in the selector.
func (s *Selection) narrow(f Field, req fields.Requirement) bool {
	var one *string
	switch f {
	case FieldNamespace:
		one = &s.Namespace
	case FieldName:
		one = &s.Name
	default:
		return false
	}
	if *one != "" || req.Value == "" || req.Operator == selection.NotEquals {
		return false
	}
	*one = req.Value
	return true
}
