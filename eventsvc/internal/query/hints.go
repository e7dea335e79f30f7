package query

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query/search"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/nearest"
)

// maxHintValues and maxHintBytes bound the values that are compared with a term: of a dimension, and the texts of all.
const maxHintValues, maxHintBytes = 5_000, 512 << 10

// FindHints looks for terms of the search, of the selectors and of other parameters that fit nothing in the range, and
// for what may have been meant. It is for answers that are empty. Values are those of the namespaces that the caller
// may list.
func (s *Snapshot) FindHints(ctx context.Context, namespaces []string, subject Subject, allows func(namespace, cluster string) bool) error {
	terms := s.query.Terms.asked(namespaces, subject)
	if len(terms) == 0 {
		return nil
	}
	values := hintValues{of: map[string]map[string]bool{}, cut: map[string]bool{}}
	sees := func(d event.Dimensions) bool { return allows(d.Namespace, d.Cluster) } // any namespace: one may be mistyped
	err := s.values(ctx, nil, sees, values.add)
	alone := len(terms) == 1
	if err == nil {
		terms, err = s.withoutObjects(ctx, terms, sees)
	}
	if err == nil && slices.ContainsFunc(terms, func(w wish) bool { return w.Kind == search.Field && w.Name == objectName }) {
		err = s.names(ctx, sees, &values)
	}
	for _, term := range terms {
		if hint := hintOf(term, alone, values); hint != "" && !slices.Contains(s.Head.Hints, hint) {
			s.Head.Hints = append(s.Head.Hints, hint)
		}
	}
	if err == nil && len(s.Head.Hints) == 0 {
		err = s.hintOfApart(ctx, terms, sees)
	}
	return err
}

const (
	// maxApart bounds the terms that are counted alone.
	maxApart = 8
	// wholeRange is a step, in seconds, that no range leaves.
	wholeRange = 1 << 40
)

// hintOfApart says how often terms on dimensions fit what was observed, if each does and no observation fits all.
func (s *Snapshot) hintOfApart(ctx context.Context, terms []wish, sees func(event.Dimensions) bool) error {
	terms = slices.DeleteFunc(terms, func(w wish) bool { return !w.Dimensional() })
	terms = terms[:min(len(terms), maxApart)]
	if len(terms) < 2 {
		return nil
	}
	all := 1<<len(terms) - 1 // a group is the set of the terms that fit
	by := make([]string, len(terms))
	for i := range terms {
		by[i] = terms[i].Name
	}
	c := store.Count{Range: store.Range{From: s.begin(), To: s.To, Revision: s.Head.Revision, Sees: sees}, By: by, Step: wholeRange}
	c.Filter = (&Terms{bookkeeping: s.query.Terms.bookkeeping}).filter()
	c.Group = func(d event.Dimensions, _ event.Regarding) (fit int) {
		for i, term := range terms {
			if term.fits(*d.Text(term.Name)) {
				fit |= 1 << i
			}
		}
		return fit
	}
	counts, together := make([]int64, len(terms)), false
	err := s.querier.Timeline.Count(ctx, c, func(o store.Occurred) {
		together = together || o.Group == all
		for i := range counts {
			counts[i] += o.Count * int64(o.Group>>i&1)
		}
	})
	if err != nil || together || slices.Contains(counts, 0) {
		return err
	}
	fit := make([]string, len(terms))
	for i, n := range counts {
		fit[i] = fmt.Sprintf("%s fits %d", terms[i].Text, n)
	}
	s.Head.Hints = []string{"nothing that was observed in this range fits all terms; alone, " + strings.Join(fit, ", ")}
	return nil
}

// hintValues are the values of dimensions, and names of objects.
type hintValues struct {
	of   map[string]map[string]bool
	cut  map[string]bool // those of which there are more
	size int
}

// The fields of objects that are no dimensions, and that something may be missing for.
const objectName, objectUID = "name", "uid"

func (h *hintValues) add(field, value string) {
	known := h.of[field]
	if known == nil {
		known = map[string]bool{}
		h.of[field] = known
	}
	switch {
	case known[value]:
	case len(known) == maxHintValues, h.size >= maxHintBytes:
		h.cut[field] = true
	default:
		known[value] = true
		h.size += len(value)
	}
}

// sorted returns the values of a field.
func (h *hintValues) sorted(field string) []string { return slices.Sorted(maps.Keys(h.of[field])) }

// withoutObjects leaves out the terms on names and uids of objects that something fits.
func (s *Snapshot) withoutObjects(ctx context.Context, terms []wish, sees func(event.Dimensions) bool) (left []wish, err error) {
	for _, term := range terms {
		fits := false
		if term.Kind == search.Field && (term.Name == objectName || term.Name == objectUID) && err == nil {
			c := store.Count{By: []string{}, Filter: term.Filter(), Step: wholeRange}
			err = s.countUntil(ctx, c, sees, func(event.Regarding) (more bool) {
				fits = true
				return false
			})
		}
		if !fits {
			left = append(left, term)
		}
	}
	return left, err
}

// names adds the names of objects of which something was observed in the range, until there are too many.
func (s *Snapshot) names(ctx context.Context, sees func(event.Dimensions) bool, values *hintValues) error {
	c := store.Count{By: []string{}, Objects: true, Step: wholeRange}
	return s.countUntil(ctx, c, sees, func(object event.Regarding) (more bool) {
		values.add(objectName, object.Name)
		return !values.cut[objectName]
	})
}

// countUntil calls group with the groups of a count of the range, until that returns false.
func (s *Snapshot) countUntil(ctx context.Context, c store.Count, sees func(event.Dimensions) bool, group func(event.Regarding) (more bool)) error {
	until, enough := context.WithCancel(ctx)
	defer enough()
	c.Range = store.Range{From: s.begin(), To: s.To, Revision: s.Head.Revision, Sees: sees}
	c.Group = func(_ event.Dimensions, object event.Regarding) int {
		if !group(object) {
			enough()
		}
		return -1
	}
	if err := s.querier.Timeline.Count(until, c, nil); until.Err() == nil || ctx.Err() != nil {
		return err
	}
	return nil
}

// A wish is a term that something has to fit, in the form of a term of a search.
type wish struct {
	*search.Expr
	fits func(value string) bool // whether a value of the dimension is as wished
}

// asked returns the wishes of a question.
func (t *Terms) asked(namespaces []string, subject Subject) (all []wish) {
	t.search.Terms(func(term *search.Expr, wanted bool) {
		switch {
		case wanted:
			all = append(all, wish{term, term.Fits})
		case term.Text == "n": // nobody leaves out all that has this letter
			all = append(all, wish{Expr: &search.Expr{Kind: search.Word, Text: "-n"}})
		}
	})
	add := func(field, text string, fits func(string) bool, values ...string) {
		all = append(all, wish{&search.Expr{Kind: search.Field, Name: field, Values: values, Text: text}, fits})
	}
	equal := func(to string) func(string) bool {
		return func(value string) bool { return strings.EqualFold(value, to) }
	}
	for _, term := range t.dimensions { // selectors compare as Kubernetes does
		if !term.not {
			add(string(term.dimension), string(term.dimension)+"="+strings.Join(term.values, ","), term.accepts, term.values...)
		}
	}
	for _, name := range namespaces {
		add(string(Namespace), "namespace "+name, equal(name), name)
	}
	if t.cluster != "" {
		add(string(Cluster), "cluster "+t.cluster, equal(t.cluster), t.cluster)
	}
	if subject.Kind != "" {
		add(string(Kind), "kind "+subject.Kind, equal(subject.Kind), subject.Kind)
	}
	if subject.Name != "" {
		add(objectName, "name "+subject.Name, func(value string) bool { return value == subject.Name }, subject.Name)
	}
	if subject.UID != "" {
		add(objectUID, "uid "+subject.UID, func(value string) bool { return value == subject.UID }, subject.UID)
	}
	return all
}

// hintOf says what may have been meant by a term, empty if nothing is known. Alone says that a search has no other
// term.
func hintOf(term wish, alone bool, values hintValues) string {
	switch {
	case term.Kind == search.Word && !term.Note:
		return hintOfWord(term.Text, alone, values)
	case term.Kind != search.Field || term.Name == string(Pattern):
		return ""
	case slices.ContainsFunc(term.Values, expression.MatchString):
		return term.Text + " fits nothing in this range: " + noExpressions
	case !term.Dimensional():
		if hint := hintOfCase(term.Expr); hint != "" || term.Name != objectName && term.Name != objectUID {
			return hint
		}
	}
	known := values.sorted(term.Name)
	if values.cut[term.Name] || slices.ContainsFunc(known, term.fits) {
		return ""
	}
	hint := term.Text + " fits nothing in this range"
	if term.Name == objectUID { // one that is similar means nothing
		return hint
	}
	for _, value := range term.Values {
		if best := nearest.Name(value, slices.Values(known)); best != "" {
			return hint + ": probably " + best + " was meant"
		}
	}
	return hint
}

// hintOfCase is for the fields that are compared as they are written. Few of their values have capital letters.
func hintOfCase(term *search.Expr) string {
	for _, value := range term.Values {
		if lower := strings.ToLower(value); lower != value {
			return fmt.Sprintf("%s is compared as it is written: perhaps %s was meant", term.Text, lower)
		}
	}
	return ""
}

// expression is what regular expressions have in other languages of searches, and names do not.
var expression = regexp.MustCompile(`^/.+/$|^[~^]|[^\\]\$$|\\[dswb]|\[[^\]]+\][+*?]|\.[+*]|\(\?|.\|.|[=!]~`)

const noExpressions = "there are no regular expressions: write words, OR, or * in the value of a field, as in name:web-*"

// notWords are words that people write in other languages of searches, and what to write here.
var notWords = []struct {
	form *regexp.Regexp
	say  string
}{
	{regexp.MustCompile(`^[A-Za-z.]+[<>]=?[0-9]`), "numbers cannot be compared: ask for groups, which are sorted by their count"},
	{expression, noExpressions},
	{regexp.MustCompile(`^(or|and|not|&&?|\|\|?)$`), "write OR, AND and NOT in capital letters"},
	{regexp.MustCompile(`^![^!]`), "write - in place of ! to leave something out"},
	{regexp.MustCompile(`^-n$`), "there are no flags here: write ns:NAME for a namespace"},
}

// fieldLike is a word that looks like a term on a field.
var fieldLike = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_./-]*)([:=])([^/:=].*)$`)

// hintOfField says what to write instead of a term on a field that does not exist.
func hintOfField(word string) string {
	parts := fieldLike.FindStringSubmatch(word)
	if parts == nil {
		return ""
	}
	name, value := parts[1], parts[3]
	hint := fmt.Sprintf("%s is a word, as there is no field %s: ", word, name)
	best := nearest.Name(name, slices.Values(search.Fields()))
	switch {
	case search.IsKind(name):
		return fmt.Sprintf("%swrite %s/%s", hint, strings.ToLower(name), value)
	case best != "":
		return hint + "probably " + best + " was meant"
	case parts[2] == "=":
		return fmt.Sprintf("%swrite label:%s for a label", hint, word)
	}
	return hint + "there are " + strings.Join(search.Fields(), ", ") + " and label"
}

// looksLikeName reports whether a word is more probably a name than a word of a sentence.
func looksLikeName(word string) bool {
	return strings.ContainsAny(word, "-_.:/0123456789") || strings.ToLower(word) != word
}

// hintOfWord says what to write instead of a word of another language, or looks for a word among the fields and the
// dimensions that people search for by bare words. A word of a sentence is no mistyped name.
func hintOfWord(word string, alone bool, values hintValues) string {
	for _, not := range notWords {
		if not.form.MatchString(word) {
			return word + " is a word: " + not.say
		}
	}
	if hint := hintOfField(word); hint != "" {
		return hint
	}
	for _, d := range []Dimension{Type, Namespace, Cluster, Kind, Reporter} { // of which words find nothing
		for value := range values.of[string(d)] {
			if strings.EqualFold(value, word) {
				return fmt.Sprintf("%s is a %s: write %s", word, d, search.Term(string(d), value))
			}
		}
	}
	if !alone && !looksLikeName(word) {
		return ""
	}
	for _, d := range []Dimension{Reason, Node, Namespace, Kind, Cluster} {
		known := values.sorted(string(d))
		best := nearest.Name(word, slices.Values(known))
		if best != "" && !strings.Contains(strings.ToLower(best), strings.ToLower(word)) {
			return fmt.Sprintf("%s is perhaps a mistyped %s, which is a %s", word, best, d)
		}
	}
	return ""
}
