package query

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query/search"
)

// Terms are what the selectors, the search and the cluster of a query ask for.
type Terms struct {
	dimensions  []term          // of the selectors
	rest        *event.Selector // what else the selectors ask for; nil: nothing
	search      *search.Expr    // nil: nothing
	cluster     string          // named by a parameter
	bookkeeping bool            // what mirrors say of their own work is asked for
}

// asksBookkeeping reports whether terms name a reason of book-keeping events, or their reporter.
func (t *Terms) asksBookkeeping() (asked bool) {
	names := func(text string) bool {
		return slices.ContainsFunc([]string{event.CursorReason, event.DroppedReason, event.GapReason, event.GapReporter}, func(name string) bool { return strings.EqualFold(name, text) })
	}
	for _, one := range t.dimensions {
		asked = asked || !one.not && slices.ContainsFunc(one.values, names)
	}
	t.search.Terms(func(one *search.Expr, wanted bool) {
		asked = asked || wanted && (slices.ContainsFunc(one.Values, names) || names(string(one.Word)))
	})
	return asked
}

// ReadSearch returns what people see of a search, and the tree of what it asks for. The tree leaves out what mirrors
// say of their own work, unless the search asks for it.
func ReadSearch(text string) ([]search.Part, *search.Tree, error) {
	e, err := search.Parse(text)
	if err != nil {
		return []search.Part{}, nil, err
	}
	tree := e.Tree()
	if !(&Terms{search: e}).asksBookkeeping() {
		own := &search.Tree{All: []*search.Tree{
			{Field: string(Reporter), Values: []string{event.GapReporter}}, {Field: string(Reason), Values: []string{event.CursorReason, event.DroppedReason, event.GapReason}},
		}}
		tree = &search.Tree{All: slices.DeleteFunc([]*search.Tree{tree, {Not: own}}, func(t *search.Tree) bool { return t == nil })}
	}
	return e.Written(), tree, nil
}

// unasked are the events that are left out because nobody asks for them ([event.Dimensions.Bookkeeping]).
var unasked = event.All(
	&event.Filter{Kind: event.FilterDimension, Dimension: string(Reporter), Fits: func(reporter string) bool { return reporter == event.GapReporter }},
	&event.Filter{Kind: event.FilterDimension, Dimension: string(Reason), Fits: func(reason string) bool {
		return (&event.Dimensions{Reporter: event.GapReporter, Reason: reason}).Bookkeeping()
	}},
)

// term requires that a dimension has one of some values or, with not, none of them.
type term struct {
	dimension Dimension
	values    []string
	not       bool
}

func (t *term) accepts(text string) bool { return t.not != slices.Contains(t.values, text) }

// fieldOf are the fields that ask for dimensions: by the name of the dimension, or by that
// of lists. A reporter is the reportingController or, of events that have none, the
// component of the source, in facets and groups as well: so reportingController asks for
// that here.
var fieldOf = func() map[string]Dimension {
	all := map[string]Dimension{"regarding.kind": Kind, "metadata.namespace": Namespace, "reportingController": Reporter}
	for _, d := range Counted {
		all[string(d)] = d
	}
	return all
}()

// ParseTerms reads a field selector, a label selector and a search ([search.Parse]). The selectors have the form and
// the fields of lists; each dimension is a field as well.
func ParseTerms(fieldSelector, labelSelector, text string) (t Terms, err error) {
	byField, err := fields.ParseSelector(fieldSelector)
	if err != nil {
		return t, invalid("fieldSelector", "%v", err)
	}
	byLabel, err := labels.Parse(labelSelector)
	if err != nil {
		return t, invalid("labelSelector", "%v", err)
	}
	var rest event.Selector
	for _, r := range byField.Requirements() {
		if err := t.addField(r, &rest); err != nil {
			return t, err
		}
	}
	required, _ := byLabel.Requirements()
	for _, r := range required {
		if one, ok := clusterTerm(r); ok {
			t.dimensions = append(t.dimensions, one)
			continue
		}
		rest.Labels = append(rest.Labels, r)
	}
	if len(rest.Fields)+len(rest.Labels) > 0 {
		t.rest = &rest
	}
	if t.search, err = search.Parse(text); err != nil {
		return t, invalid("search", "%v", err)
	}
	t.bookkeeping = t.asksBookkeeping()
	return t, nil
}

// InCluster adds a term on the cluster, which is compared without case, as in a search.
func (t *Terms) InCluster(name string) { t.cluster = name }

// NamespaceOf returns the namespace that a search names, if it names one.
func NamespaceOf(text string) []string {
	e, err := search.Parse(text)
	if err != nil {
		return nil // the query reports the mistake
	}
	for _, term := range e.Conjuncts() {
		if namesOne(term) {
			return []string{strings.ToLower(term.Values[0])}
		}
	}
	return nil
}

// namesOne reports whether a term names one namespace.
func namesOne(term *search.Expr) bool {
	return term.Kind == search.Field && term.Name == string(Namespace) && len(term.Values) == 1 && !strings.Contains(term.Values[0], "*") && term.Values[0] != ""
}

// OfSeries splits a search. wanted evaluates the terms on kinds, reasons, types, namespaces and clusters. others has
// the terms for which events have to be read. Both are nil if there are none. A term that names one namespace is in
// neither.
func (t *Terms) OfSeries() (wanted func(event.Dimensions) bool, others *Terms) {
	var read []*search.Expr
	series := event.All()
	for _, e := range t.search.Conjuncts() {
		if namesOne(e) { // it is what the question is about
			continue
		}
		ok := e.Dimensional()
		e.Terms(func(term *search.Expr, _ bool) {
			ok = ok && slices.Contains([]Dimension{Type, Reason, Kind, Namespace, Cluster}, Dimension(term.Name))
		})
		if !ok {
			read = append(read, e)
			continue
		}
		series.Parts = append(series.Parts, e.Filter())
	}
	if len(read) > 0 {
		others = &Terms{search: &search.Expr{Kind: search.And, Parts: read}}
	}
	if len(series.Parts) > 0 {
		wanted = func(d event.Dimensions) bool { return series.Matches(event.OfDimensions(d)) }
	}
	return wanted, others
}

// addField adds a requirement on a field: to the dimensions if it is one of them, else to the rest.
func (t *Terms) addField(r fields.Requirement, rest *event.Selector) error {
	if strings.Contains(r.Value, "*") {
		return invalid("fieldSelector", "%s=%s: * is no pattern here, as in lists: ask with search, such as name:web-*", r.Field, r.Value)
	}
	not := r.Operator == selection.NotEquals
	if d, ok := fieldOf[r.Field]; ok {
		t.dimensions = append(t.dimensions, term{d, []string{event.CutDimension(r.Value)}, not})
		return nil
	}
	one, err := fieldRequirement(r.Field, r.Value, not)
	rest.Fields = append(rest.Fields, one)
	return err
}

// fieldRequirement reads a term on a field that is no dimension.
func fieldRequirement(field, value string, not bool) (event.FieldRequirement, error) {
	// An inequality is never taken out of the selector, whatever its field is.
	selector := fields.OneTermNotEqualSelector(field, value)
	parsed, err := event.ParseSelector(event.EventsV1, selector.String(), "")
	if err != nil || parsed.Selector == nil {
		return event.FieldRequirement{}, invalid("fieldSelector", "there is no field %q: there are %s", field, fieldNames())
	}
	one := parsed.Selector.Fields[0]
	one.Not = not
	return one, nil
}

// fieldNames are the fields that can be asked for.
func fieldNames() string {
	return Names(Indexed) + ", metadata.name, metadata.namespace, reportingController, regarding.kind, regarding.namespace, " +
		"regarding.name, regarding.uid, regarding.apiVersion, regarding.resourceVersion, regarding.fieldPath"
}

// clusterTerm turns a requirement on the label of clusters into one on the dimension,
// unless it tells apart an empty label from none, which the dimension does not.
func clusterTerm(r labels.Requirement) (term, bool) {
	if r.Key() != event.ClusterLabel || r.Values().Has("") {
		return term{}, false
	}
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		return term{Cluster, r.Values().UnsortedList(), false}, true
	case selection.NotEquals, selection.NotIn:
		return term{Cluster, r.Values().UnsortedList(), true}, true
	}
	return term{}, false
}

// matching returns all that is asked for as a filter.
func (t *Terms) matching() *event.Filter {
	all := event.All(t.rest.Filter())
	for i := range t.dimensions {
		term := &t.dimensions[i]
		all.Parts = append(all.Parts, &event.Filter{Kind: event.FilterDimension, Dimension: string(term.dimension), Fits: term.accepts})
	}
	if t.cluster != "" {
		same := func(name string) bool { return strings.EqualFold(name, t.cluster) }
		all.Parts = append(all.Parts, &event.Filter{Kind: event.FilterDimension, Dimension: string(Cluster), Fits: same})
	}
	for _, e := range t.search.Conjuncts() {
		all.Parts = append(all.Parts, e.Filter())
	}
	return all
}

// Filter returns what the terms ask of events, without what nobody asks for.
func (t *Terms) Filter() *event.Filter {
	all := t.matching()
	if !t.bookkeeping {
		all.Parts = append(all.Parts, &event.Filter{Kind: event.FilterNot, Parts: []*event.Filter{unasked}})
	}
	return all
}
