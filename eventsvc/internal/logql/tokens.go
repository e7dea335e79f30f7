package logql

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// tokens reads an expression token by token. The first error is thrown, and caught in Parse.
type tokens struct {
	lexer      lexer
	now, ahead token
	depth      int
	*bounds
}

// bounds counts what the query has so far of what is bounded.
type bounds struct{ parts, alternatives, instructions int }

func (s *tokens) advance() {
	t, err := s.lexer.next()
	if err != nil {
		panic(err)
	}
	s.now, s.ahead = s.ahead, t
}

// fail throws an error at a token.
func (s *tokens) fail(t token, format string, args ...any) {
	panic(t.errorf(format, args...))
}

// unexpected throws the error of a token that may not stand there.
func (s *tokens) unexpected(expected ...string) {
	text := "syntax error: unexpected " + s.now.name()
	if len(expected) > 0 {
		text += ", expecting " + strings.Join(expected, " or ")
	}
	s.fail(s.now, "%s", text)
}

// lacking throws the error of a construct that Loki knows and this subset does not.
func (s *tokens) lacking(what string, supported ...string) {
	text := "syntax error: unexpected " + what + ", which is not supported here"
	if len(supported) > 0 {
		text += ": supported are " + strings.Join(supported, ", ")
	}
	s.fail(s.now, "%s", text)
}

// is reports whether the token is a symbol.
func (s *tokens) is(symbol string) bool { return s.now.kind == tokenSymbol && s.now.text == symbol }

// isWord reports whether the token is a word of the language, in upper or lower case.
func (s *tokens) isWord(word string) bool {
	return s.now.kind == tokenIdentifier && strings.EqualFold(s.now.text, word)
}

// expect moves over a symbol.
func (s *tokens) expect(symbol string) {
	if !s.is(symbol) {
		s.unexpected(symbol)
	}
	s.advance()
}

// accept moves over a symbol if it is there.
func (s *tokens) accept(symbol string) bool {
	ok := s.is(symbol)
	if ok {
		s.advance()
	}
	return ok
}

// take returns the text of a token of a kind and moves over it.
func (s *tokens) take(k kind, name string) string {
	if s.now.kind != k {
		s.unexpected(name)
	}
	text := s.now.text
	s.advance()
	return text
}

// list reads items that are separated by commas, up to the symbol at their end.
func (s *tokens) list(end string, item func()) {
	for more := !s.accept(end); more; {
		item()
		if more = !s.accept(end); more && !s.accept(",") {
			s.unexpected(end, ",")
		}
	}
}

// enter counts a level of nesting, until leave is called.
func (s *tokens) enter() (leave func()) {
	if s.depth++; s.depth > maxDepth {
		s.fail(s.now, "the expression is nested more than %d levels deep", maxDepth)
	}
	return func() { s.depth-- }
}

// part counts a part of the expression.
func (s *tokens) part() {
	if s.parts++; s.parts > maxParts {
		s.fail(s.now, "the expression has more than %d matchers, filters and operands", maxParts)
	}
}

// alternative counts a text or a regular expression of a line filter.
func (s *tokens) alternative() {
	if s.alternatives++; s.alternatives > MaxAlternatives {
		s.fail(s.now, "the line filters of the query have more than %d alternatives: a regular expression such as a|b|c is one", MaxAlternatives)
	}
}

// label reads the name of a label.
func (s *tokens) label() string {
	if s.now.kind == tokenIdentifier && slices.Contains(reserved, strings.ToLower(s.now.text)) {
		s.unexpected("IDENTIFIER")
	}
	return s.take(tokenIdentifier, "IDENTIFIER")
}

// signed reads a number with or without a sign.
func (s *tokens) signed() float64 {
	sign := 1.0
	if s.accept("-") {
		sign = -1
	} else {
		s.accept("+")
	}
	at := s.now
	v, err := strconv.ParseFloat(s.take(tokenNumber, "NUMBER"), 64)
	if err != nil || math.IsInf(v, 0) {
		s.fail(at, "unable to parse literal as a float: %q", at.text)
	}
	return sign * v
}
