package logql

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// metricParser reads metrics. It shares the tokens and the limits with the log queries in them.
type metricParser struct{ *tokens }

// expression reads a log query or a metric.
func (p metricParser) expression() Expr {
	if p.logAhead() {
		return logParser(p).log()
	}
	return p.binary(1)
}

// logAhead reports whether a log query comes, which may be in parentheses.
func (p metricParser) logAhead() bool {
	if p.is("{") {
		return true
	}
	if !p.is("(") {
		return false
	}
	rest := p.lexer // behind p.ahead
	t := p.ahead
	for t.kind == tokenSymbol && t.text == "(" {
		var err error
		if t, err = rest.next(); err != nil {
			return false
		}
	}
	return t.kind == tokenSymbol && t.text == "{"
}

// precedences of the operators between metrics. Those of ^ are to the right.
var precedences = map[string]int{"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "^": 3}

// binary reads operands that are joined with operators of a precedence or a higher one.
func (p metricParser) binary(lowest int) Metric {
	defer p.enter()()
	left := p.operand()
	for {
		p.noOperator()
		precedence := 0
		if p.now.kind == tokenSymbol {
			precedence = precedences[p.now.text]
		}
		if precedence == 0 || precedence < lowest {
			return left
		}
		op := p.now.text
		p.advance()
		if p.now.kind == tokenIdentifier && slices.Contains(modifiers, strings.ToLower(p.now.text)) {
			p.lacking(strings.ToLower(p.now.text))
		}
		next := precedence + 1
		if op == "^" {
			next = precedence
		}
		left = p.joined(op, left, p.binary(next))
	}
}

// noOperator throws the error of an operator that the subset lacks.
func (p metricParser) noOperator() {
	if p.now.kind == tokenSymbol && slices.Contains(operatorLacking, p.now.text) ||
		p.now.kind == tokenIdentifier && slices.Contains(operatorLacking, strings.ToLower(p.now.text)) {
		p.lacking(strings.ToLower(p.now.text), "+", "-", "*", "/", "%", "^")
	}
}

// joined is two operands with an operator. Two numbers are one.
func (p metricParser) joined(op string, left, right Metric) Metric {
	p.part()
	l, first := left.(*Literal)
	r, second := right.(*Literal)
	if first && second {
		v := compute(op, l.Value, r.Value)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			p.fail(p.now, "%s %s %s is no number", formatNumber(l.Value), op, formatNumber(r.Value))
		}
		return &Literal{v}
	}
	return &Binary{Op: op, Left: left, Right: right}
}

// operand reads a number, a function or an expression in parentheses.
func (p metricParser) operand() Metric {
	p.part()
	switch {
	case p.now.kind == tokenNumber, p.is("-"), p.is("+"):
		return &Literal{p.signed()}
	case p.accept("("):
		m := p.binary(1)
		p.expect(")")
		return m
	case p.is("{"):
		p.fail(p.now, "syntax error: unexpected {: a log query is no number, use count_over_time or rate")
	case p.now.kind != tokenIdentifier:
		p.unexpected()
	}
	switch word := strings.ToLower(p.now.text); {
	case slices.Contains(rangeWords, word):
		return p.rangeAggregation(word)
	case slices.Contains(vectorWords, word):
		return p.vectorAggregation(word)
	case word == "vector":
		p.advance()
		p.expect("(")
		v := p.signed()
		p.expect(")")
		return &Vector{v}
	case slices.Contains(rangeLacking, word):
		p.lacking(word, rangeWords...)
	case slices.Contains(vectorLacking, word):
		p.lacking(word, vectorWords...)
	}
	p.unexpected()
	return nil
}

// rangeAggregation reads what is behind its name.
func (p metricParser) rangeAggregation(op string) Metric {
	p.advance()
	p.expect("(")
	a := &RangeAggregation{Op: op, Log: &Log{}}
	p.window(a)
	if a.Range == 0 {
		p.unexpected("RANGE")
	}
	p.expect(")")
	if p.isWord("by") || p.isWord("without") {
		p.fail(p.now, "grouping not allowed for %s aggregation", op)
	}
	return a
}

// window reads a log query with its range, which may be in parentheses, and before or
// behind the stages.
func (p metricParser) window(a *RangeAggregation) {
	defer p.enter()()
	if p.accept("(") {
		p.window(a)
		p.expect(")")
		p.ranged(a)
		return
	}
	if p.now.kind == tokenIdentifier || p.now.kind == tokenNumber {
		p.unexpected("{", "(")
	}
	a.Log.Matchers = logParser(p).selector()
	p.ranged(a)
	logParser(p).stages(a.Log)
	p.ranged(a)
	if a.Range == 0 && !p.is(")") {
		p.unexpected("RANGE")
	}
}

// ranged reads a range and an offset, if they are there.
func (p metricParser) ranged(a *RangeAggregation) {
	if p.now.kind == tokenRange {
		if a.Range > 0 {
			p.unexpected(")")
		}
		a.Range = p.now.duration
		p.advance()
	}
	if p.isWord("offset") {
		if a.Range == 0 {
			p.unexpected("RANGE")
		}
		p.advance()
		negative := p.accept("-")
		if p.now.kind != tokenDuration {
			p.unexpected("DURATION")
		}
		if a.Offset = p.now.duration; negative {
			a.Offset = -a.Offset
		}
		p.advance()
	}
}

// vectorAggregation reads what is behind its name.
func (p metricParser) vectorAggregation(op string) Metric {
	defer p.enter()()
	p.advance()
	a := &VectorAggregation{Op: op, Grouping: p.grouping()}
	p.expect("(")
	takesNumber := op == "topk" || op == "bottomk"
	switch number := p.now.kind == tokenNumber && p.ahead.kind == tokenSymbol && p.ahead.text == ","; {
	case takesNumber && !number:
		p.fail(p.now, "parameter required for operation %s", op)
	case number && !takesNumber:
		p.fail(p.now, "unsupported parameter for operation %s(%s,", op, p.now.text)
	case number:
		var err error
		if a.K, err = strconv.Atoi(p.now.text); err != nil || a.K < 1 {
			p.fail(p.now, "invalid parameter %s(%s,", op, p.now.text)
		}
		p.advance()
		p.advance()
	}
	a.Of = p.binary(1)
	p.expect(")")
	if a.Grouping == nil {
		a.Grouping = p.grouping()
	}
	return a
}

// grouping reads by (…) or without (…), nil if there is none.
func (p metricParser) grouping() *Grouping {
	if !p.isWord("by") && !p.isWord("without") {
		return nil
	}
	g := &Grouping{Without: p.isWord("without")}
	p.advance()
	p.expect("(")
	p.list(")", func() {
		p.part()
		g.Labels = append(g.Labels, p.label())
	})
	return g
}
