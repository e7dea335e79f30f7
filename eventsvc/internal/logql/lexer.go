package logql

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	tokenEnd kind = iota
	tokenIdentifier
	tokenString
	tokenNumber
	tokenDuration
	tokenBytes // 5KB, which Loki knows and the subset does not
	tokenRange // [5m]
	tokenSymbol
)

var kindNames = [...]string{
	tokenEnd: "$end", tokenIdentifier: "IDENTIFIER", tokenString: "STRING", tokenNumber: "NUMBER",
	tokenDuration: "DURATION", tokenBytes: "BYTES", tokenRange: "RANGE",
}

// token is a word of an expression.
type token struct {
	kind      kind
	text      string // as it stands there; of a string what it means
	duration  time.Duration
	line, col int
}

// name is what error messages call the token, as Loki's do.
func (t token) name() string {
	if word := strings.ToLower(t.text); t.kind == tokenSymbol || t.kind == tokenIdentifier && slices.Contains(reserved, word) {
		return word
	}
	return kindNames[t.kind]
}

// symbols are the longest first, because the first that fits is taken.
var symbols = []string{
	"|=", "|~", "|>", "!=", "!~", "!>", "=~", "==", ">=", "<=", "{", "}", "(", ")", ",", "|", "=", ">", "<", "+", "-", "*", "/", "%", "^",
}

// lexer cuts an expression into tokens.
type lexer struct {
	rest      string
	line, col int
}

// skip moves over n bytes.
func (l *lexer) skip(n int) {
	for _, r := range l.rest[:n] {
		if l.col++; r == '\n' {
			l.line, l.col = l.line+1, 1
		}
	}
	l.rest = l.rest[n:]
}

var (
	// blank is white space and comments.
	blank = regexp.MustCompile(`^([ \t\r\n]|#[^\n]*)*`)
	// quoted is a text in quotes, or in backquotes (60).
	quoted = regexp.MustCompile(`^("([^"\\\n]|\\(?s:.))*"|\x60[^\x60]*\x60)`)
	// identifier is a name or a word of the language.
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)
	// quantity is a number with its exponent or its units.
	quantity = regexp.MustCompile(`^[0-9.]+([eE][+-]?[0-9]+|[0-9A-Za-z_.µμ]*)`)
)

// next returns the next token.
func (l *lexer) next() (token, error) {
	l.skip(len(blank.FindString(l.rest)))
	t := token{line: l.line, col: l.col}
	if l.rest == "" {
		return t, nil
	}
	switch c := l.rest[0]; {
	case c == '"' || c == '`':
		return l.string(t)
	case c == '[':
		return l.window(t)
	case digit(c), c == '.' && len(l.rest) > 1 && digit(l.rest[1]):
		return l.number(t)
	case letter(c):
		t.kind, t.text = tokenIdentifier, identifier.FindString(l.rest)
		l.skip(len(t.text))
		return t, nil
	}
	return l.symbol(t)
}

// symbol reads an operator or a bracket.
func (l *lexer) symbol(t token) (token, error) {
	for _, s := range symbols {
		if strings.HasPrefix(l.rest, s) {
			t.kind, t.text = tokenSymbol, s
			l.skip(len(s))
			return t, nil
		}
	}
	r, _ := utf8.DecodeRuneInString(l.rest)
	return t, t.errorf("syntax error: unexpected character %q", r)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// string reads a text in quotes, with the escapes of Go, or in backquotes.
func (l *lexer) string(t token) (token, error) {
	literal := quoted.FindString(l.rest)
	if literal == "" {
		return t, t.errorf("literal not terminated")
	}
	text, err := strconv.Unquote(literal)
	if err != nil {
		return t, t.errorf("invalid escape in the string %s", literal)
	}
	t.kind, t.text = tokenString, text
	l.skip(len(literal))
	return t, nil
}

// window reads the range of a range aggregation.
func (l *lexer) window(t token) (token, error) {
	n := strings.IndexByte(l.rest, ']')
	if n < 0 {
		return t, t.errorf("missing closing ']' in duration")
	}
	text := strings.TrimSpace(l.rest[1:n])
	if strings.ContainsRune(text, ':') {
		return t, t.errorf("syntax error: unexpected RANGE [%s]: subqueries are not supported", text)
	}
	d, err := ParseDuration(text)
	if err != nil {
		return t, t.errorf("%s", err)
	}
	if d == 0 {
		return t, t.errorf("the range [%s] is empty", text)
	}
	t.kind, t.text, t.duration = tokenRange, l.rest[:n+1], d
	l.skip(n + 1)
	return t, nil
}

// number reads a number, a duration or a size.
func (l *lexer) number(t token) (token, error) {
	t.text = quantity.FindString(l.rest)
	if _, err := strconv.ParseFloat(t.text, 64); err == nil && !strings.ContainsAny(t.text, "xX_") {
		t.kind = tokenNumber
	} else if d, err := ParseDuration(t.text); err == nil {
		t.kind, t.duration = tokenDuration, d
	} else if size(t.text) {
		t.kind = tokenBytes
	} else {
		return t, t.errorf("syntax error: %q is neither a number nor a duration", t.text)
	}
	l.skip(len(t.text))
	return t, nil
}

// size reports whether a text is a number of bytes, such as 5KB or 1.5MiB.
func size(text string) bool {
	unit := strings.ToLower(strings.TrimLeft(text, "0123456789."))
	unit = strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")
	return len(unit) <= 1 && strings.Contains("kmgtpe", unit)
}

func (t token) errorf(format string, args ...any) *Error {
	return &Error{Line: t.line, Col: t.col, Message: fmt.Sprintf(format, args...)}
}

// units are those of Prometheus' durations, in the order in which they may follow each
// other.
var units = []struct {
	name string
	is   time.Duration
}{
	{"y", 365 * 24 * time.Hour}, {"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour},
	{"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
}

// ParseDuration reads a duration as LogQL has them: of Prometheus (1d12h) or of Go (1.5s).
// It is not negative.
func ParseDuration(text string) (time.Duration, error) {
	invalid := fmt.Errorf("not a valid duration string: %q", text)
	rest, next := text, 0
	var total time.Duration
	for rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		name := rest[digits:]
		name = name[:len(name)-len(strings.TrimLeft(name, "ywdhms"))]
		n, err := strconv.ParseInt(rest[:digits], 10, 32)
		for next < len(units) && units[next].name != name {
			next++
		}
		if err != nil || next == len(units) {
			break
		}
		total += time.Duration(n) * units[next].is
		if n > 0 && (total < 0 || time.Duration(n) > maxDuration/units[next].is) {
			return 0, invalid
		}
		rest = rest[digits+len(name):]
		next++
	}
	if rest == "" && text != "" {
		if total > maxDuration {
			return 0, invalid
		}
		return total, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 && d <= maxDuration {
		return d, nil
	}
	return 0, invalid
}

// maxDuration bounds durations, so that times can be computed with them.
const maxDuration = 100 * 365 * 24 * time.Hour

// formatDuration is the text of a duration that ParseDuration reads.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	if d%time.Millisecond != 0 {
		return d.String()
	}
	var b strings.Builder
	for _, u := range units[2:] { // days and less: nobody counts in years
		if n := d / u.is; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d -= n * u.is
		}
	}
	return b.String()
}
