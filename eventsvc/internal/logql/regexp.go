package logql

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// The bounds of expressions.
const (
	// MaxLength is how many bytes an expression may have.
	MaxLength = 16 << 10
	// MaxRegexp is how many bytes a regular expression may have.
	MaxRegexp = 4 << 10
	// maxProgram is how many instructions a compiled regular expression may have. What
	// it costs to match a text grows with them.
	maxProgram = 5000
	// maxDepth is how deep expressions may be nested.
	maxDepth = 50
	// maxParts is how many matchers, stages and conditions an expression may have.
	maxParts = 500
)

// compile compiles a regular expression of RE2. One that is anchored matches whole
// values only, as in selectors.
func compile(text string, anchored bool) (*regexp.Regexp, error) {
	if len(text) > MaxRegexp {
		return nil, fmt.Errorf("the regular expression has %d bytes, more than %d", len(text), MaxRegexp)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if anchored {
		text = "^(?s:" + text + ")$"
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxProgram {
		return nil, fmt.Errorf("the regular expression is too large: %d instructions, more than %d", len(program.Inst), maxProgram)
	}
	return regexp.Compile(text)
}
