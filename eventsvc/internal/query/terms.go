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

// Terms are what the selectors of a query ask for. A term on a dimension costs nothing,
// others need events to be read.
type Terms struct {
	dimensions []term
	reasons    []event.FieldRequirement // that one is asked for, which stores may find fast
	// Rest are the terms that are not on dimensions; nil: none.
	Rest *event.Selector
	// The other expressions of a search: on dimensions, on texts, and all that are neither.
	byDimension, byText, mixed []*search.Expr
	search                     *search.Expr // all of it
	cluster                    string       // that a parameter names
	bookkeeping                bool         // what mirrors say of their own work is asked for
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
	e, err := search.Parse(text)
	if err != nil {
		return t, invalid("search", "%v", err)
	}
	t.setSearch(e, &rest)
	t.bookkeeping = t.asksBookkeeping()
	return t, nil
}

// setSearch adds a search to the terms. rest has the terms of the other parameters that are not on dimensions.
func (t *Terms) setSearch(e *search.Expr, rest *event.Selector) {
	t.search = e
	for _, part := range e.Conjuncts() {
		t.addSearch(part, rest)
	}
	if len(rest.Fields)+len(rest.Labels) > 0 {
		t.Rest = rest
	}
}

// addSearch adds an expression that must match to the earliest stage that can evaluate it.
func (t *Terms) addSearch(e *search.Expr, rest *event.Selector) {
	if e.Dimensional() {
		t.byDimension = append(t.byDimension, e)
		return
	}
	if e.Textual() {
		t.byText = append(t.byText, e)
		return
	}
	term, not := e, e.Kind == search.Not
	if not {
		term = e.Parts[0]
	}
	if f, ok := term.ExactField(); ok && len(term.Values) == 1 && !strings.Contains(term.Values[0], "*") {
		rest.Fields = append(rest.Fields, event.FieldRequirement{Field: f, Value: term.Values[0], Not: not})
		return
	}
	if r := labelRequirement(term, not); r != nil {
		rest.Labels = append(rest.Labels, *r)
		return
	}
	t.mixed = append(t.mixed, e)
}

// InCluster adds a term on the cluster, which is compared without case, as in a search.
func (t *Terms) InCluster(name string) {
	t.cluster = name
}

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
// the terms for which events have to be read, nil if there are none. A term that names one namespace is in neither.
func (t *Terms) OfSeries() (wanted func(event.Dimensions) bool, others *Terms) {
	var exprs, read []*search.Expr
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
		exprs = append(exprs, e)
	}
	if len(read) > 0 {
		others = new(Terms)
		others.setSearch(&search.Expr{Kind: search.And, Parts: read}, new(event.Selector))
	}
	return func(d event.Dimensions) bool {
		return !slices.ContainsFunc(exprs, func(e *search.Expr) bool { return !e.Matches(&search.Subject{Dimensions: &d}) })
	}, others
}

// labelRequirement returns a term on a label as a requirement, nil if it is none.
func labelRequirement(term *search.Expr, not bool) *labels.Requirement {
	operator := selection.In
	switch {
	case term.Kind != search.Label:
		return nil
	case len(term.Values) == 0 && not:
		operator = selection.DoesNotExist
	case len(term.Values) == 0:
		operator = selection.Exists
	case not:
		operator = selection.NotIn
	}
	r, err := labels.NewRequirement(term.Name, operator, term.Values)
	if err != nil { // the value is a pattern, or no value of a label
		return nil
	}
	return r
}

// addField adds a requirement on a field: to the dimensions if it is one of them, else to the rest.
func (t *Terms) addField(r fields.Requirement, rest *event.Selector) error {
	if strings.Contains(r.Value, "*") {
		return invalid("fieldSelector", "%s=%s: * is no pattern here, as in lists: ask with search, such as name:web-*", r.Field, r.Value)
	}
	not := r.Operator == selection.NotEquals
	if d, ok := fieldOf[r.Field]; ok {
		t.dimensions = append(t.dimensions, term{d, []string{event.CutDimension(r.Value)}, not})
		if d == Reason && !not {
			t.reasons = append(t.reasons, event.FieldRequirement{Field: event.Reason, Value: r.Value})
		}
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

// selector returns the terms by which a store may find events without reading all of a
// time; nil: none.
func (t *Terms) selector() *event.Selector {
	if len(t.reasons) == 0 {
		return t.Rest
	}
	s := &event.Selector{Fields: t.reasons}
	if t.Rest != nil {
		s = &event.Selector{Fields: slices.Concat(t.reasons, t.Rest.Fields), Labels: t.Rest.Labels}
	}
	return s
}

// wanted reports whether events with these dimensions can match.
func (t *Terms) wanted(d event.Dimensions) bool {
	for i := range t.dimensions {
		term := &t.dimensions[i]
		if !term.accepts(*term.dimension.of(&d)) {
			return false
		}
	}
	if t.cluster != "" && !strings.EqualFold(d.Cluster, t.cluster) {
		return false
	}
	for _, e := range t.byDimension {
		of := d // a copy, because what a Subject has is allocated
		if !e.Matches(&search.Subject{Dimensions: &of}) {
			return false
		}
	}
	return true
}

// filter returns the terms as a filter.
func (t *Terms) filter() *event.Filter {
	all := event.All(t.Rest.Filter())
	if !t.bookkeeping {
		all.Parts = append(all.Parts, &event.Filter{Kind: event.FilterNot, Parts: []*event.Filter{unasked}})
	}
	for i := range t.dimensions {
		term := &t.dimensions[i]
		all.Parts = append(all.Parts, &event.Filter{Kind: event.FilterDimension, Dimension: string(term.dimension), Fits: term.accepts})
	}
	if t.cluster != "" {
		same := func(name string) bool { return strings.EqualFold(name, t.cluster) }
		all.Parts = append(all.Parts, &event.Filter{Kind: event.FilterDimension, Dimension: string(Cluster), Fits: same})
	}
	for _, e := range slices.Concat(t.byDimension, t.byText, t.mixed) {
		all.Parts = append(all.Parts, e.Filter())
	}
	return all
}
