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
	values := hintValues{of: map[string]map[string]bool{}, cut: map[string]bool{}}
	sees := func(d event.Dimensions) bool { return allows(d.Namespace, d.Cluster) } // any namespace: one may be mistyped
	err := s.values(ctx, dimensionsOf(terms), sees, values.add)
	var apart []string // terms on fields that something fits
	for _, term := range terms {
		fits := false
		if err == nil {
			fits, err = s.fitsSome(ctx, term, sees, &values)
		}
		if fits {
			apart = append(apart, term.Text)
		} else if hint := hintOf(term, len(terms) == 1, values); hint != "" && !slices.Contains(s.Head.Hints, hint) {
			s.Head.Hints = append(s.Head.Hints, hint)
		}
	}
	if err == nil && len(s.Head.Hints) == 0 && len(apart) > 1 {
		s.Head.Hints = []string{"each of " + strings.Join(apart, ", ") + " fits something in this range, but nothing fits all terms"}
	}
	return err
}

// fitsSome reports whether something in the range fits a term on a field. If it is the name of an object and nothing
// does, the names that there are become known.
func (s *Snapshot) fitsSome(ctx context.Context, term wish, sees func(event.Dimensions) bool, values *hintValues) (fits bool, err error) {
	switch {
	case term.Kind != search.Field:
		return false, nil
	case term.Dimensional():
		for value := range values.of[term.Name] {
			fits = fits || term.fits(value)
		}
		return fits, nil
	case term.Name == objectName || term.Name == objectUID:
		err = s.countUntil(ctx, store.Count{Filter: term.Filter()}, sees, func(event.Regarding) (more bool) {
			fits = true
			return false
		})
	}
	if term.Name == objectName && !fits && err == nil && values.of[objectName] == nil {
		err = s.countUntil(ctx, store.Count{Objects: true}, sees, func(object event.Regarding) (more bool) {
			values.add(objectName, object.Name)
			return !values.cut[objectName]
		})
	}
	return fits, err
}

// wholeRange is a step, in seconds, that no range leaves.
const wholeRange = 1 << 40

// countUntil calls group with the groups of a count of the range, until that returns false.
func (s *Snapshot) countUntil(ctx context.Context, c store.Count, sees func(event.Dimensions) bool, group func(event.Regarding) (more bool)) error {
	until, enough := context.WithCancel(ctx)
	defer enough()
	c.Range = store.Range{From: s.begin(), To: s.To, Revision: s.Head.Revision, Sees: sees}
	c.By, c.Step = []string{}, wholeRange
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

// A wish is a term that something has to fit, in the form of a term of a search.
type wish struct {
	*search.Expr
	fits func(value string) bool // whether a value of the dimension is as wished
}

// dimensionsOf returns the dimensions whose values tell what some terms mean.
func dimensionsOf(terms []wish) []string {
	by := []string{}
	for _, term := range terms {
		switch {
		case term.Kind == search.Field && term.Dimensional():
			by = append(by, term.Name)
		case term.Kind == search.Word && !term.Note:
			for _, d := range slices.Concat(wordDimensions, nearDimensions) {
				by = append(by, string(d))
			}
		}
	}
	return by
}

// wordDimensions are those of which words find nothing, and nearDimensions those of which people mistype values.
var (
	wordDimensions = []Dimension{Type, Namespace, Cluster, Kind, Reporter}
	nearDimensions = []Dimension{Reason, Node, Namespace, Kind, Cluster}
)

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
	for _, d := range wordDimensions {
		for value := range values.of[string(d)] {
			if strings.EqualFold(value, word) {
				return fmt.Sprintf("%s is a %s: write %s", word, d, search.Term(string(d), value))
			}
		}
	}
	if !alone && !looksLikeName(word) {
		return ""
	}
	for _, d := range nearDimensions {
		known := values.sorted(string(d))
		best := nearest.Name(word, slices.Values(known))
		if best != "" && !strings.Contains(strings.ToLower(best), strings.ToLower(word)) {
			return fmt.Sprintf("%s is perhaps a mistyped %s, which is a %s", word, best, d)
		}
	}
	return ""
}
