package logql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Words of LogQL by what they are. The subset lacks some of them.
var (
	rangeWords      = []string{"count_over_time", "rate"}
	rangeLacking    = strings.Fields("rate_counter bytes_over_time bytes_rate avg_over_time sum_over_time min_over_time max_over_time stdvar_over_time stddev_over_time quantile_over_time first_over_time last_over_time absent_over_time")
	vectorWords     = []string{"sum", "min", "max", "avg", "topk", "bottomk"}
	vectorLacking   = strings.Fields("count stddev stdvar sort sort_desc approx_topk label_replace")
	stageLacking    = strings.Fields("regexp pattern unpack line_format label_format unwrap decolorize")
	operatorLacking = strings.Fields("or and unless == != > >= < <=")
	modifiers       = strings.Fields("bool on ignoring group_left group_right")
	reserved        = slices.Concat(stageLacking, operatorLacking, modifiers, strings.Fields("by without offset json logfmt drop keep ip"))
)

// logParser reads log queries by recursive descent.
type logParser struct{ *tokens }

// Parse parses an expression. An error is an [*Error].
func Parse(text string) (Expr, error) { return parse(text, &bounds{}) }

// parse parses an expression within bounds that it may share with others.
func parse(text string, within *bounds) (expr Expr, err error) {
	switch {
	case len(text) > MaxLength:
		return nil, &Error{Message: fmt.Sprintf("the expression has %d bytes, more than %d", len(text), MaxLength)}
	case !utf8.ValidString(text):
		return nil, &Error{Message: "invalid UTF-8 encoding"}
	}
	p := &tokens{lexer: lexer{rest: text, line: 1, col: 1}, bounds: within}
	defer func() {
		if thrown := recover(); thrown != nil {
			e, ok := thrown.(*Error)
			if !ok {
				panic(thrown)
			}
			expr, err = nil, e
		}
	}()
	p.advance()
	p.advance()
	expr = metricParser{p}.expression()
	if p.now.kind != tokenEnd {
		p.unexpected()
	}
	return expr, nil
}

// ParseLog parses an expression that selects lines.
func ParseLog(text string) (*Log, error) { return parseLog(text, &bounds{}) }

func parseLog(text string, within *bounds) (*Log, error) {
	expr, err := parse(text, within)
	if err != nil {
		return nil, err
	}
	l, ok := expr.(*Log)
	if !ok {
		return nil, &Error{Message: "only a log query can be used here: a selector such as {namespace=\"default\"}, and filters"}
	}
	return l, nil
}

// ParseSelector parses an expression that selects streams.
func ParseSelector(text string) (*Log, error) { return parseSelector(text, &bounds{}) }

func parseSelector(text string, within *bounds) (*Log, error) {
	l, err := parseLog(text, within)
	if err == nil && len(l.Stages) > 0 {
		return nil, &Error{Message: "only label matchers are supported"}
	}
	return l, err
}

// ParseSelectors parses the selectors of one request, which may be as large as one
// expression together.
func ParseSelectors(texts []string) ([]*Log, error) {
	var all []*Log
	within := &bounds{}
	for _, text := range texts {
		l, err := parseSelector(text, within)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// log reads a log query, in parentheses or not.
func (p logParser) log() *Log {
	defer p.enter()()
	if p.accept("(") {
		l := p.log()
		p.expect(")")
		return l
	}
	l := &Log{Matchers: p.selector()}
	p.stages(l)
	return l
}

// selector reads the matchers of a stream selector.
func (p logParser) selector() []Matcher {
	p.expect("{")
	var all []Matcher
	p.list("}", func() { all = append(all, p.matcher(p.label())) })
	return all
}

// matcherOps are the operators between a label and a text.
var matcherOps = []string{"=", "!=", "=~", "!~"}

// matcher reads the rest of a matcher of a label.
func (p logParser) matcher(name string) Matcher {
	p.part()
	if p.now.kind != tokenSymbol || !slices.Contains(matcherOps, p.now.text) {
		p.unexpected(matcherOps...)
	}
	m := Matcher{Name: name, Op: p.now.text}
	p.advance()
	at := p.now
	if p.isWord("ip") {
		p.lacking("ip")
	}
	m.Value = p.take(tokenString, "STRING")
	m.re = p.compile(at, m.Op, m.Value, true)
	return m
}

// compile compiles the text at a token if an operator is about regular expressions.
func (p logParser) compile(at token, op, text string, anchored bool) *pattern {
	if !strings.HasSuffix(op, "~") && !strings.HasSuffix(op, ">") {
		return nil
	}
	re, err := compile(text, anchored, p.instructions)
	if err != nil {
		p.fail(at, "%s", err)
	}
	p.instructions += re.instructions
	return re
}

// stages reads the stages of a pipeline.
func (p logParser) stages(l *Log) {
	for p.now.kind == tokenSymbol {
		switch p.now.text {
		case "|=", "|~", "|>", "!=", "!~", "!>":
			l.Stages = append(l.Stages, p.lineFilter())
		case "|":
			p.advance()
			l.Stages = append(l.Stages, p.stage(l))
		default:
			return
		}
	}
}

// anything stands for any text in the pattern of a line.
const anything = "<_>"

// lineFilter reads a line filter with all its alternatives.
func (p logParser) lineFilter() Stage {
	f := &lineFilter{op: p.now.text}
	p.advance()
	for {
		p.part()
		p.alternative()
		at := p.now
		if p.isWord("ip") {
			p.lacking("ip")
		}
		text := p.take(tokenString, "STRING")
		f.texts = append(f.texts, text)
		ofPattern := strings.HasSuffix(f.op, ">")
		expression := text
		if ofPattern {
			expression = strings.ReplaceAll(regexp.QuoteMeta(text), anything, ".*")
		}
		if re := p.compile(at, f.op, expression, ofPattern); re != nil {
			f.expressions, f.res = append(f.expressions, expression), append(f.res, re)
		}
		if !p.isWord("or") {
			return f
		}
		p.advance()
	}
}

// stage reads what is behind a bar.
func (p logParser) stage(l *Log) Stage {
	p.part()
	if p.now.kind != tokenIdentifier {
		if p.is("(") {
			return &labelFilter{p.condition(0)}
		}
		p.unexpected("IDENTIFIER")
	}
	switch word := strings.ToLower(p.now.text); {
	case word == "json":
		p.advance()
		if p.now.kind == tokenIdentifier {
			p.fail(p.now, "syntax error: unexpected %s: json takes no expressions here, it makes all fields of the event labels", p.now.name())
		}
		return jsonStage{}
	case word == "logfmt":
		if n := len(l.Stages); n == 0 || l.Stages[n-1] != (jsonStage{}) {
			p.lacking("logfmt", "json, and label filters")
		}
		p.advance()
		return logfmtStage{}
	case word == "drop", word == "keep":
		p.advance()
		return &selection{keep: word == "keep", matchers: p.selection()}
	case slices.Contains(stageLacking, word):
		p.lacking(word, "json", "drop", "keep", "label filters")
	}
	return &labelFilter{p.condition(0)}
}

// selection reads the labels of drop and keep.
func (p logParser) selection() []Matcher {
	var all []Matcher
	for {
		name := p.label()
		if p.now.kind == tokenSymbol && slices.Contains(matcherOps, p.now.text) {
			all = append(all, p.matcher(name))
		} else {
			p.part()
			all = append(all, Matcher{Name: name})
		}
		if !p.accept(",") {
			return all
		}
	}
}

// The precedences of or and and in label filters.
const (
	precedenceOr = iota + 1
	precedenceAnd
)

// condition reads label filters that are joined with operators of a precedence or a
// higher one. As in Loki, a comma or nothing is an and that everything behind it belongs
// to.
func (p logParser) condition(lowest int) condition {
	defer p.enter()()
	left := p.comparison()
	for {
		switch {
		case p.isWord("and") && lowest <= precedenceAnd:
			p.advance()
			left = &joinedCondition{"and", left, p.condition(precedenceAnd + 1)}
		case p.isWord("or") && lowest <= precedenceOr:
			p.advance()
			left = &joinedCondition{"or", left, p.condition(precedenceOr + 1)}
		case p.accept(","), p.is("("), p.now.kind == tokenIdentifier && !slices.Contains(reserved, strings.ToLower(p.now.text)):
			left = &joinedCondition{"and", left, p.condition(0)}
		default:
			return left
		}
	}
}

// numberOps are the operators between a label and a number.
var numberOps = []string{"=", "==", "!=", ">", ">=", "<", "<="}

// comparison reads one label filter, or several in parentheses.
func (p logParser) comparison() condition {
	p.part()
	if p.accept("(") {
		c := p.condition(0)
		p.expect(")")
		return c
	}
	name := p.label()
	if p.now.kind != tokenSymbol || !slices.Contains(numberOps, p.now.text) && !slices.Contains(matcherOps, p.now.text) {
		p.unexpected(append(slices.Clone(matcherOps), numberOps[1:]...)...)
	}
	if p.ahead.kind == tokenString || !slices.Contains(numberOps, p.now.text) || p.ahead.kind == tokenIdentifier {
		return &textCondition{p.matcher(name)}
	}
	c := &numberCondition{name: name, op: p.now.text}
	if c.op == "=" {
		c.op = "=="
	}
	p.advance()
	switch p.now.kind {
	case tokenDuration:
		c.value, c.duration = float64(p.now.duration), true
		p.advance()
	case tokenBytes:
		p.lacking("BYTES ("+p.now.text+")", "texts", "numbers", "durations")
	default:
		c.value = p.signed()
	}
	return c
}
