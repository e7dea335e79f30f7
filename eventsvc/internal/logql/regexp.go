package logql

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"tidings.example/eventsvc/internal/flow"
)

// The bounds of expressions.
const (
	// MaxLength is how many bytes an expression may have.
	MaxLength = 16 << 10
	// MaxRegexp is how many bytes a regular expression may have.
	MaxRegexp = 4 << 10
	// MaxInstructions is how many instructions all regular expressions of a query may have
	// together. What it costs to match a text grows with them.
	MaxInstructions = 5000
	// MaxAlternatives is how many texts and regular expressions the line filters of a query
	// may have, because each is looked for in the whole line.
	MaxAlternatives = 100
	// maxDepth is how deep expressions may be nested.
	maxDepth = 50
	// maxParts is how many matchers, stages and conditions an expression may have.
	maxParts = 500
)

// pieceOfWork bounds what is matched in one turn, in characters times instructions. Each
// may take 20 ns.
const pieceOfWork = 10_000

// pattern is a compiled regular expression.
type pattern struct {
	re           *regexp.Regexp
	instructions int
}

// compile compiles a regular expression of RE2. One that is anchored matches whole
// values only, as in selectors. The expressions before it in the query have so many
// instructions. One that is too large is refused before it is compiled, which takes seconds
// and hundreds of megabytes for a long text that is repeated a thousand times.
func compile(text string, anchored bool, before int) (*pattern, error) {
	if len(text) > MaxRegexp {
		return nil, fmt.Errorf("the regular expression has %d bytes, more than %d", len(text), MaxRegexp)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	n := instructions(parsed)
	if before+n > MaxInstructions {
		return nil, fmt.Errorf("the regular expressions of the query have %d instructions up to this one, more than %d", before+n, MaxInstructions)
	}
	if anchored {
		text = "^(?s:" + text + ")$"
	}
	re, err := regexp.Compile(text)
	return &pattern{re, n}, err
}

// instructions returns how many instructions a regular expression is compiled to, or
// somewhat more. Package syntax has bounded the result to a few millions.
func instructions(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCapture, syntax.OpStar:
		n += 2
	case syntax.OpPlus, syntax.OpQuest:
		n++
	case syntax.OpAlternate:
		n += len(re.Sub) - 1
	case syntax.OpRepeat: // x{2,4} is xx(?:x(?:x)?)?
		if re.Max < 0 {
			n = n*max(re.Min, 1) + 2
		} else {
			n = n*re.Max + re.Max - re.Min
		}
	}
	return max(n, 1)
}

// appendLiterals appends texts that every match has.
func appendLiterals(parts []string, re *syntax.Regexp) []string {
	switch {
	case re.Op == syntax.OpLiteral:
		return append(parts, string(re.Rune))
	case re.Op == syntax.OpConcat, re.Op == syntax.OpCapture, re.Op == syntax.OpPlus, re.Op == syntax.OpRepeat && re.Min > 0:
		for _, sub := range re.Sub {
			parts = appendLiterals(parts, sub)
		}
	}
	return parts
}

// matches reports whether a text has a match, false once the turns are over. A long text is
// matched in several turns.
func (p *pattern) matches(turns *flow.Turns, text string) bool {
	if !turns.Next() {
		return false
	}
	each := max(1, pieceOfWork/p.instructions)
	if len(text) <= each {
		return p.re.MatchString(text)
	}
	return p.re.MatchReader(&pieces{turns: turns, text: text, each: each, left: each}) && turns.Err() == nil
}

// pieces reads a text in several turns. It ends early with them.
type pieces struct {
	turns *flow.Turns
	text  string
	each  int // characters of a turn
	left  int // of this turn
}

// ReadRune implements [io.RuneReader].
func (p *pieces) ReadRune() (r rune, size int, err error) {
	if p.left == 0 {
		if !p.turns.Next() {
			return 0, 0, io.EOF
		}
		p.left = p.each
	}
	if p.text == "" {
		return 0, 0, io.EOF
	}
	p.left--
	r, size = utf8.DecodeRuneInString(p.text)
	p.text = p.text[size:]
	return r, size, nil
}
