package logql

import (
	"strconv"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/flow"
)

// Expr is a parsed expression: a [*Log] or a [Metric].
type Expr interface {
	// String is the expression in its normal form, on one line.
	String() string
}

// Metric is an expression whose value is a number for each series and point in time.
type Metric interface {
	Expr
	metric()
}

// Log selects lines.
type Log struct {
	Matchers []Matcher
	Stages   []Stage
}

// Matcher compares the value of a label with a text or a regular expression. A label
// that is not set has the empty value.
type Matcher struct {
	Name  string
	Op    string // = != =~ !~
	Value string

	re *pattern // for =~ and !~, anchored
}

// matches reports whether a value fits.
func (m *Matcher) matches(turns *flow.Turns, value string) bool {
	switch m.Op {
	case "=":
		return value == m.Value
	case "!=":
		return value != m.Value
	case "=~":
		return m.re.matches(turns, value)
	default:
		return !m.re.matches(turns, value)
	}
}

// Stage is a step of a pipeline.
type Stage interface {
	String() string
	// process changes the labels of an entry. It reports false if the entry is left out.
	process(e *Entry) bool
	// needs calls use with the names of the labels that the stage depends on. It reports
	// false if it depends on more than labels.
	needs() (labels []string, only bool)
}

type (
	// lineFilter keeps the lines that have one of the texts, or none of them.
	lineFilter struct {
		op          string // |= != |~ !~ |> !>
		texts       []string
		expressions []string   // for all but |= and !=
		res         []*pattern // likewise
	}
	// jsonStage makes the fields of the event labels.
	jsonStage struct{}
	// logfmtStage makes the key=value pairs of the line labels.
	logfmtStage struct{}
	// labelFilter keeps entries by their labels.
	labelFilter struct{ condition }
	// selection drops labels, or keeps only them.
	selection struct {
		keep     bool
		matchers []Matcher // without an operator: whatever the value is
	}
)

// condition is part of a label filter.
type condition interface {
	String() string
	holds(e *Entry) bool
	names() []string
}

type (
	textCondition   struct{ Matcher }
	numberCondition struct {
		name, op string
		value    float64
		duration bool // value is a duration in nanoseconds
	}
	joinedCondition struct {
		op          string // and, or
		left, right condition
	}
)

// RangeAggregation counts lines in a window of time before each point.
type RangeAggregation struct {
	Op            string // count_over_time or rate
	Log           *Log
	Range, Offset time.Duration
}

// Grouping says by which labels series are put together.
type Grouping struct {
	Without bool
	Labels  []string
}

// VectorAggregation puts series together.
type VectorAggregation struct {
	Op       string // sum, min, max, avg, topk, bottomk
	K        int    // of topk and bottomk
	Grouping *Grouping
	Of       Metric
}

// Binary computes with two metrics.
type Binary struct {
	Op          string // + - * / % ^
	Left, Right Metric
}

// Literal is a number.
type Literal struct{ Value float64 }

// Vector is a series without labels that has a constant value.
type Vector struct{ Value float64 }

func (*RangeAggregation) metric()  {}
func (*VectorAggregation) metric() {}
func (*Binary) metric()            {}
func (*Literal) metric()           {}
func (*Vector) metric()            {}

// String implements [Expr].
func (l *Log) String() string {
	text := "{" + joined(l.Matchers) + "}"
	for _, s := range l.Stages {
		text += " " + s.String()
	}
	return text
}

// joined returns matchers, separated by commas.
func joined(all []Matcher) string {
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = all[i].String()
	}
	return strings.Join(texts, ", ")
}

// String returns the matcher as it stands in a selector.
func (m *Matcher) String() string {
	if m.Op == "" {
		return m.Name
	}
	return m.Name + m.Op + strconv.Quote(m.Value)
}

func (f *lineFilter) String() string {
	text := f.op + " "
	for i, t := range f.texts {
		if i > 0 {
			text += " or "
		}
		text += strconv.Quote(t)
	}
	return text
}

func (jsonStage) String() string   { return "| json" }
func (logfmtStage) String() string { return "| logfmt" }

func (f *labelFilter) String() string { return "| " + f.condition.String() }

func (s *selection) String() string {
	if s.keep {
		return "| keep " + joined(s.matchers)
	}
	return "| drop " + joined(s.matchers)
}

func (c *numberCondition) String() string {
	if c.duration {
		return c.name + c.op + formatDuration(time.Duration(c.value))
	}
	return c.name + c.op + formatNumber(c.value)
}

func (c *joinedCondition) String() string {
	return "( " + c.left.String() + " " + c.op + " " + c.right.String() + " )"
}

// String implements [Expr].
func (a *RangeAggregation) String() string {
	text := a.Op + "(" + a.Log.String() + " [" + formatDuration(a.Range) + "]"
	switch {
	case a.Offset > 0:
		text += " offset " + formatDuration(a.Offset)
	case a.Offset < 0:
		text += " offset -" + formatDuration(-a.Offset)
	}
	return text + ")"
}

// String implements [Expr].
func (a *VectorAggregation) String() string {
	text := a.Op
	if g := a.Grouping; g != nil {
		word := " by ("
		if g.Without {
			word = " without ("
		}
		text += word + strings.Join(g.Labels, ", ") + ") "
	}
	text += "("
	if a.K > 0 {
		text += strconv.Itoa(a.K) + ", "
	}
	return text + a.Of.String() + ")"
}

// String implements [Expr].
func (b *Binary) String() string {
	return "(" + b.Left.String() + " " + b.Op + " " + b.Right.String() + ")"
}

// String implements [Expr].
func (l *Literal) String() string { return formatNumber(l.Value) }

// String implements [Expr].
func (v *Vector) String() string { return "vector(" + formatNumber(v.Value) + ")" }

// formatNumber is the text of a number that the lexer reads.
func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Groupings calls use with every label that a metric groups by.
func Groupings(m Metric, use func(name string)) {
	switch m := m.(type) {
	case *VectorAggregation:
		if m.Grouping != nil && !m.Grouping.Without {
			for _, name := range m.Grouping.Labels {
				use(name)
			}
		}
		Groupings(m.Of, use)
	case *Binary:
		Groupings(m.Left, use)
		Groupings(m.Right, use)
	}
}
