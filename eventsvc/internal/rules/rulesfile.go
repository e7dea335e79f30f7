package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/policy/pattern"
	"tidings.example/shared/cli"
)

// written is a rule as it is in a file.
type written struct {
	Name       string   `yaml:"name"`
	Where      string   `yaml:"where"`
	Namespaces []string `yaml:"namespaces"`
	Drop       *bool    `yaml:"drop"`
	Keep       *string  `yaml:"keep"`
}

// The names that errors of the decoder give to types.
var (
	inRule  = regexp.MustCompile(`in type rules\.written`)
	intoAll = regexp.MustCompile(`into \[\]rules\.written`)
	intoOne = regexp.MustCompile(`into rules\.written`)
)

// Parse reads a file of rules, a YAML list. The error names each rule that is wrong, its field, and what to write
// instead.
func Parse(data []byte) (*Set, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("the file has more than %d bytes", MaxFile)
	}
	var list []written
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	switch err := d.Decode(&list); {
	case errors.Is(err, io.EOF): // no rules
	case err != nil:
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		text = inRule.ReplaceAllString(text, "in a rule (there are name, where, namespaces, drop, keep)")
		text = intoAll.ReplaceAllString(text, "into a list of rules")
		return nil, errors.New(intoOne.ReplaceAllString(text, "into a rule"))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has more than one YAML document: keep one")
	}
	if len(list) > MaxRules {
		return nil, fmt.Errorf("there are %d rules: at most %d can be", len(list), MaxRules)
	}
	var (
		s    = &Set{}
		errs []error
	)
	for i, w := range list {
		r, err := w.rule()
		if err == nil && slices.ContainsFunc(s.rules, func(before Rule) bool { return before.Name == r.Name }) {
			err = errors.New("name: another rule before it has it: choose another name")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("rule %d (%.63q): %w", i+1, w.Name, err))
		}
		s.rules = append(s.rules, r)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if different := s.Durations(); len(different) > MaxDurations {
		return nil, fmt.Errorf("there are %d different times to keep events for: at most %d can be, besides 0", len(different), MaxDurations)
	}
	return s, nil
}

// rule checks a rule of a file.
func (w *written) rule() (r Rule, err error) {
	r.Name = w.Name
	if len(validation.IsDNS1123Label(w.Name)) > 0 {
		return r, errors.New("name: must have lower case letters, digits and dashes, at most 63: metrics and reports are by it")
	}
	terms, err := parseSelector(w.Where)
	if err != nil {
		return r, fmt.Errorf("where: %w", err)
	}
	for _, t := range terms {
		term, err := newTerm(t)
		if err != nil {
			return r, fmt.Errorf("where: %w", err)
		}
		r.Terms = append(r.Terms, term)
	}
	for _, p := range w.Namespaces {
		if err := pattern.Check(p); err != nil {
			return r, fmt.Errorf("namespaces: %w", err)
		}
	}
	if len(w.Namespaces) > 0 {
		r.Terms = append(r.Terms, Term{Field: Namespace, Values: w.Namespaces})
	}
	switch {
	case (w.Drop == nil) == (w.Keep == nil):
		return r, errors.New("needs exactly one of drop: true and keep: DURATION")
	case w.Drop != nil && !*w.Drop:
		return r, errors.New("drop: false does nothing: leave the rule out, or set keep")
	case w.Drop != nil:
		r.Drop = true
	default:
		if r.Keep, err = cli.ParseDuration(*w.Keep); err != nil {
			return r, fmt.Errorf("keep: %w", err)
		}
	}
	return r, r.check()
}
