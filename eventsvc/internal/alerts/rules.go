package alerts

import (
	_ "embed" // the ready rules
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query/search"
	"tidings.example/shared/cli"
)

// Ready are rules for the first day, as a file.
//
//go:embed ready.yaml
var Ready []byte

// The limits of a file and of a rule.
const (
	MaxFile        = 256 << 10 // bytes
	maxRules       = 200
	maxOccurrences = 1000
	maxSilence     = 7 * 24 * time.Hour
	nameLabel      = "alertname"
)

// Rule says which events are an alert.
type Rule struct {
	Name                 string
	Search               *event.Filter // an event that it matches is an occurrence
	EndedBy              *event.Filter // an event that it matches ends the alert with the same labels; may be nil
	Occurrences          int64         // so many
	Within, For, Silence time.Duration // in this time begin it, if they are not over after this time; after this time without one it is over

	labels, annotations []field
}

var (
	nameForm  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,62}$`)
	labelForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Parse reads a file of rules, a YAML list. The error names each mistake with its line.
func Parse(data []byte) (rules []*Rule, err error) {
	var file yaml.Node
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(file.Content) == 0 || file.Content[0].Kind != yaml.SequenceNode || len(file.Content[0].Content) > maxRules {
		return nil, fmt.Errorf("line %d: this is no list of rules, of which there can be %d: write - name: NAME, and so on", max(1, file.Line), maxRules)
	}
	p := &parser{}
	for _, n := range file.Content[0].Content {
		r := p.rule(n)
		if slices.ContainsFunc(rules, func(before *Rule) bool { return before.Name == r.Name }) {
			p.wrong(n, "another rule before it is named %q: choose another name", r.Name)
		}
		rules = append(rules, r)
	}
	return rules, errors.Join(p.errs...)
}

// parser collects mistakes.
type parser struct{ errs []error }

func (p *parser) wrong(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("line %d: "+format, append([]any{n.Line}, args...)...))
}

// pairs calls visit with the keys and values of a mapping.
func (p *parser) pairs(n *yaml.Node, what string, visit func(key, value *yaml.Node)) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		p.wrong(n, "%s must be a mapping of names to values", what)
		return
	}
	seen := map[string]bool{}
	for pair := range slices.Chunk(n.Content, 2) {
		if seen[pair[0].Value] {
			p.wrong(pair[0], "%s has %s twice: take one away", what, pair[0].Value)
		}
		seen[pair[0].Value] = true
		visit(pair[0], pair[1])
	}
}

// rule reads one rule.
func (p *parser) rule(n *yaml.Node) *Rule {
	r, before := &Rule{Occurrences: 1, Within: 10 * time.Minute, Silence: 15 * time.Minute}, len(p.errs)
	p.pairs(n, "a rule", func(key, value *yaml.Node) {
		if err := p.value(r, key.Value, value); err != nil {
			p.wrong(value, "%s: %w", key.Value, err)
		}
	})
	a, b := &Facts{Reason: "a", Note: "a", Type: "a", Reporter: "a", Event: "a", Link: "a", Time: "a", Count: 1}, &Facts{}
	switch {
	case len(p.errs) > before:
	case r.Name == "" || r.Search == nil:
		p.wrong(n, "a rule needs a name, which is the label alertname, and a search, such as type:warning reason:BackOff")
	case r.For > r.Silence || r.Occurrences > 1 && r.Within > r.Silence:
		p.wrong(n, "silence %s is shorter than for or within: what is over by then cannot begin an alert", r.Silence)
	case r.EndedBy != nil && keyOf(render(r.labels, a, maxText)) != keyOf(render(r.labels, b, maxText)):
		p.wrong(n, "labels differ between an alert and the event that ends it: with endedBy, use .Cluster, .Namespace, .Kind, .Name, .Owner, .Node and .Labels only")
	}
	return r
}

// value reads the value of a key.
func (p *parser) value(r *Rule, name string, n *yaml.Node) (err error) {
	switch name {
	case "name":
		if r.Name = n.Value; !nameForm.MatchString(r.Name) {
			err = errors.New("must begin with a letter and have letters, digits, - and _, at most 63")
		}
	case "search", "endedBy":
		var e *search.Expr
		if e, err = search.Parse(n.Value); err == nil && e == nil {
			err = errors.New("is empty, and would match every event: write a search")
		}
		if err == nil {
			*map[string]**event.Filter{"search": &r.Search, "endedBy": &r.EndedBy}[name] = e.Filter()
		}
	case "occurrences":
		if r.Occurrences, err = strconv.ParseInt(n.Value, 10, 64); err != nil || r.Occurrences < 1 || r.Occurrences > maxOccurrences {
			err = fmt.Errorf("%q is no number from 1 to %d", n.Value, maxOccurrences)
		}
	case "within", "for", "silence":
		err = r.duration(name, n.Value)
	case "labels":
		r.labels = p.fields(name, n)
	case "annotations":
		r.annotations = p.fields(name, n)
	default:
		err = errors.New("is unknown: a rule has name, search, endedBy, occurrences, within, for, silence, labels and annotations")
	}
	return err
}

// duration reads one of the times of a rule.
func (r *Rule) duration(name, text string) (err error) {
	into := map[string]*time.Duration{"within": &r.Within, "for": &r.For, "silence": &r.Silence}[name]
	least := map[string]time.Duration{"within": time.Second, "silence": time.Minute}[name]
	if *into, err = cli.ParseDuration(text); err == nil && (*into < least || *into > maxSilence) {
		err = fmt.Errorf("%q must be from %s to %s", text, least, maxSilence)
	}
	return err
}

// fields reads the templates of labels or annotations.
func (p *parser) fields(what string, n *yaml.Node) (all []field) {
	p.pairs(n, what, func(key, value *yaml.Node) {
		f, err := newField(key.Value, value.Value)
		if !labelForm.MatchString(key.Value) || strings.HasPrefix(key.Value, "__") || key.Value == nameLabel || value.Kind != yaml.ScalarNode {
			err = fmt.Errorf("a name has letters, digits and _, and is not %s, which is the name of the rule; its value is a text", nameLabel)
		}
		if err != nil {
			p.wrong(value, "%s: %s: %w", what, key.Value, err)
		}
		all = append(all, f)
	})
	return all
}
