// Package rules says which events are kept, and for how long: one list of rules, of which the first that fits an event
// counts.
//
//   - {name: noise, where: "type=Normal,reason in (Pulled,Created)", namespaces: ["ci-*"], drop: true}
//   - {name: warnings, where: "type=Warning", keep: 90d}
//
// A rule with drop works in the mirror, which does not copy what fits it. A server stores what it has acknowledged, so
// it passes over these rules. A rule with keep is a retention of the server. In the mirror it keeps later rules from
// dropping what fits it.
package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/event"
)

// The limits of a file. Expiry passes over the log once for each different time.
const (
	MaxRules     = 100
	MaxDurations = 8         // besides 0, for ever
	MaxFile      = 256 << 10 // bytes
)

// Field is what a rule can ask for.
type Field uint8

// The fields, all of which but the name of the object are dimensions of queries ([event.Dimensions]).
const (
	Type Field = iota
	Reason
	Kind // of the object
	Name // of the object
	Namespace
	Reporter // reportingController, else the component of the deprecated source
	Cluster
	numFields
)

// fieldNames are the names of the fields.
var fieldNames = [numFields]string{"type", "reason", "kind", "name", "namespace", "reporter", "cluster"}

// Facts are what rules ask of an event, by [Field]. They may share memory with it.
type Facts [numFields][]byte

// FactsOf returns the facts of a stored event, which share memory with it.
func FactsOf(namespace []byte, a event.Attributes) (f Facts) {
	var source []byte
	for field, text := range a.Fields() {
		switch field {
		case event.Type:
			f[Type] = text
		case event.Reason:
			f[Reason] = text
		case event.RegardingKind:
			f[Kind] = text
		case event.RegardingName:
			f[Name] = text
		case event.ReportingController:
			f[Reporter] = text
		case event.Source:
			source = text
		}
	}
	f[Reporter] = event.Reporter(f[Reporter], source)
	for key, value := range a.Labels() {
		if string(key) == event.ClusterLabel {
			f[Cluster] = value
		}
	}
	f[Namespace] = namespace
	return f
}

// Rule says what happens to the events that fit it.
type Rule struct {
	Name  string
	Terms []Term        // all of which an event has to meet; none: any event fits
	Drop  bool          // the mirror does not copy them
	Keep  time.Duration // unless Drop: the server deletes them so long after their last write; 0: never
}

// Term requires that a field has one of some values or, with Not, none of them. A * at the end of a value stands for
// any text.
type Term struct {
	Field  Field
	Values []string
	Not    bool
}

// newTerm checks a term of a selector.
func newTerm(t selectorTerm) (Term, error) {
	field := slices.Index(fieldNames[:], t.Field)
	if field < 0 {
		return Term{}, fmt.Errorf("there is no field %q: there are %s", t.Field, strings.Join(fieldNames[:], ", "))
	}
	for _, v := range t.Values {
		switch at := strings.Index(v, "*"); {
		case at >= 0 && at < len(v)-1:
			return Term{}, fmt.Errorf("%q of %s: only the last character of a value can be *, which stands for any text", v, t.Field)
		case strings.TrimSpace(v) != v:
			return Term{}, fmt.Errorf("%q of %s begins or ends with a blank: take it out", v, t.Field)
		}
	}
	return Term{Field(field), t.Values, t.Not}, nil
}

func (t *Term) accepts(text []byte) bool {
	for _, v := range t.Values {
		if n := len(v) - 1; n >= 0 && v[n] == '*' {
			if len(text) >= n && string(text[:n]) == v[:n] {
				return !t.Not
			}
		} else if string(text) == v {
			return !t.Not
		}
	}
	return t.Not
}

// Fits reports whether an event meets all terms.
func (r *Rule) Fits(f *Facts) bool {
	for i := range r.Terms {
		if t := &r.Terms[i]; !t.accepts(f[t.Field]) {
			return false
		}
	}
	return true
}

// String says what the rule does.
func (r *Rule) String() string {
	switch {
	case r.Drop:
		return "drop"
	case r.Keep == 0:
		return "keep for ever"
	}
	return "keep " + r.Keep.String()
}

// Set is a list of rules. It is immutable, and safe for concurrent use. Nil has no rules.
type Set struct{ rules []Rule }

// All returns the rules in their order. The caller must not change them.
func (s *Set) All() []Rule {
	if s == nil {
		return nil
	}
	return s.rules
}

// Dropped returns the rule by which a mirror does not copy an event, nil if it copies it. What mirrors themselves
// report is never dropped: where they stand, what they did not see, and what they dropped.
func (s *Set) Dropped(f *Facts) *Rule {
	if string(f[Reporter]) == event.GapReporter {
		return nil
	}
	if i := slices.IndexFunc(s.All(), func(r Rule) bool { return r.Fits(f) }); i >= 0 && s.rules[i].Drop {
		return &s.rules[i]
	}
	return nil
}

// Decides returns the index of the rule that drops an event or, if none does, of the one that says how long it is kept;
// -1 if there is none.
func (s *Set) Decides(f *Facts) int {
	r := s.Dropped(f)
	if r == nil {
		r = s.Kept(f)
	}
	return slices.IndexFunc(s.All(), func(other Rule) bool { return r != nil && other.Name == r.Name })
}

// Kept returns the rule that says how long a server keeps an event, nil if none does.
func (s *Set) Kept(f *Facts) *Rule {
	all := s.All()
	for i := range all {
		if r := &all[i]; !r.Drop && r.Fits(f) {
			return r
		}
	}
	return nil
}

// Drops reports whether a rule drops anything.
func (s *Set) Drops() bool { return slices.ContainsFunc(s.All(), func(r Rule) bool { return r.Drop }) }

// Durations returns the different times for which rules keep events, in order, without 0.
func (s *Set) Durations() []time.Duration {
	var all []time.Duration
	for _, r := range s.All() {
		if !r.Drop && r.Keep > 0 {
			all = append(all, r.Keep)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Forever reports whether a rule keeps events for ever.
func (s *Set) Forever() bool {
	return slices.ContainsFunc(s.All(), func(r Rule) bool { return !r.Drop && r.Keep == 0 })
}

// Unreachable says which rules never count, and why: no event fits them, or one rule before them fits all of their
// events. A rule with drop does not hide a later rule with keep, because the server ignores drop.
func (s *Set) Unreachable() (texts []string) {
	for i := range s.All() {
		r := &s.rules[i]
		if r.empty() {
			texts = append(texts, fmt.Sprintf("--rules-file: %s never counts, because no event can meet all of its terms: take one out", r.Name))
			continue
		}
		by := slices.IndexFunc(s.rules[:i], func(before Rule) bool { return before.covers(r) && (!before.Drop || r.Drop) })
		if by >= 0 {
			texts = append(texts, fmt.Sprintf("--rules-file: %s never counts, because %s before it fits the same events: put it first, or take it out",
				r.Name, s.rules[by].Name))
		}
	}
	return texts
}

// empty reports whether no event can fit a rule, as far as its terms on one field tell.
func (r *Rule) empty() bool {
	for i, a := range r.Terms {
		if a.Not && slices.Contains(a.Values, "*") {
			return true
		}
		for _, b := range r.Terms[i+1:] {
			if a.Field != b.Field || a.Not && b.Not {
				continue
			}
			if a.Not {
				a, b = b, a
			}
			if !b.Not && disjoint(a.Values, b.Values) || b.Not && within(a.Values, b.Values) {
				return true
			}
		}
	}
	return false
}

// covers reports whether a rule fits every event that another one fits.
func (r *Rule) covers(other *Rule) bool {
	return !slices.ContainsFunc(r.Terms, func(t Term) bool {
		return !slices.ContainsFunc(other.Terms, func(o Term) bool { return o.implies(t) }) && (t.Not || !slices.Contains(t.Values, "*"))
	})
}

// implies reports whether every event that meets a term meets another one.
func (t Term) implies(other Term) bool {
	switch {
	case t.Field != other.Field:
		return false
	case t.Not:
		return other.Not && within(other.Values, t.Values)
	case other.Not:
		return disjoint(t.Values, other.Values)
	}
	return within(t.Values, other.Values)
}

// within reports whether every text that one of some values stands for is also one that others stand for.
func within(values, others []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool {
		return !slices.ContainsFunc(others, func(wider string) bool {
			prefix, open := strings.CutSuffix(wider, "*")
			return v == wider || open && strings.HasPrefix(strings.TrimSuffix(v, "*"), prefix)
		})
	})
}

// disjoint reports whether no text is one that some values stand for and others too.
func disjoint(values, others []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool {
		return slices.ContainsFunc(others, func(o string) bool { return within([]string{v}, []string{o}) || within([]string{o}, []string{v}) })
	})
}

// check returns an error if a rule of a file is wrong.
func (r *Rule) check() error {
	switch {
	case r.Drop && len(r.Terms) == 0:
		return errors.New("drop without where and namespaces would drop everything: say what")
	case r.Keep < 0:
		return fmt.Errorf("keep: %s is negative: set a duration such as 24h or 30d, or 0 for ever", r.Keep)
	}
	return nil
}
