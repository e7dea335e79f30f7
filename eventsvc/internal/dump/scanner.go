package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxObject is the largest object that is read, in bytes. No API server stores one of this size.
const maxObject = 4 << 20

// lostBytes is how much is kept of an object that is larger, to tell what it is.
const lostBytes = 4 << 10

// maxDepth is how deep objects and lists may be nested, as in a request.
const maxDepth = 100

// source reads text byte by byte, and knows the line. It keeps what follows a mark, so that it can go
// back there. The zero value with buf set reads a text in memory.
type source struct {
	r     io.Reader
	buf   []byte
	pos   int    // of the next byte in buf
	line  int    // of the next byte, from 1
	mark  int    // first byte that is kept; -1: none
	begun int    // line of the mark
	lost  []byte // the beginning of what was kept, if it became too large
	err   error
}

func newSource(r io.Reader) *source {
	return &source{r: r, buf: make([]byte, 0, 64<<10), line: 1, mark: -1}
}

func textSource(text []byte) *source {
	return &source{buf: text, line: 1, mark: -1, err: io.EOF}
}

// fill reads more, and reports whether there is more.
func (s *source) fill() bool {
	if s.err != nil {
		return false
	}
	from := max(s.pos-1, 0) // the byte before tells where a line begins
	if s.mark >= 0 {
		from = s.mark
	}
	if s.mark >= 0 && len(s.buf)-from > maxObject {
		s.lost = bytes.Clone(s.buf[from : from+lostBytes])
		s.mark, from = -1, max(s.pos-1, 0) // nobody wants it any more
	}
	if len(s.buf) == cap(s.buf) && from < cap(s.buf)/2 {
		s.buf = slices.Grow(s.buf, cap(s.buf))
	}
	if from > 0 {
		s.buf = s.buf[:copy(s.buf, s.buf[from:])]
		s.pos -= from
		s.mark = max(s.mark-from, -1)
	}
	for range 100 {
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		if s.err = err; n > 0 || err != nil {
			return n > 0
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// peek returns the next byte, and false at the end.
func (s *source) peek() (byte, bool) {
	if s.pos == len(s.buf) && !s.fill() {
		return 0, false
	}
	return s.buf[s.pos], true
}

// ahead returns the next n bytes, or what there is.
func (s *source) ahead(n int) []byte {
	for len(s.buf)-s.pos < n && s.fill() {
	}
	return s.buf[s.pos:min(len(s.buf), s.pos+n)]
}

// next skips a byte that was peeked.
func (s *source) next() {
	if s.buf[s.pos] == '\n' {
		s.line++
	}
	s.pos++
}

// space skips blanks and line ends, and returns the byte behind them, and false at the end.
func (s *source) space() (byte, bool) {
	if s.pos < len(s.buf) && s.buf[s.pos] > ' ' {
		return s.buf[s.pos], true
	}
	for {
		c, ok := s.peek()
		if !ok || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, ok
		}
		s.next()
	}
}

// rest skips the rest of the line.
func (s *source) rest() {
	for {
		if i := bytes.IndexByte(s.buf[s.pos:], '\n'); i >= 0 {
			s.pos += i
			s.next()
			return
		}
		if s.pos = len(s.buf); !s.fill() {
			return
		}
	}
}

// peekLine returns the rest of the line, up to a limit, without skipping it.
func (s *source) peekLine(limit int) []byte {
	for n := 0; ; {
		if i := bytes.IndexByte(s.buf[s.pos+n:], '\n'); i >= 0 {
			return s.buf[s.pos : s.pos+min(n+i, limit)]
		}
		if n = len(s.buf) - s.pos; n >= limit || !s.fill() {
			return s.buf[s.pos:min(len(s.buf), s.pos+limit)]
		}
	}
}

// keep sets the mark here.
func (s *source) keep() { s.mark, s.begun = s.pos, s.line }

// kept returns what follows the mark, and false if that was too much.
func (s *source) kept() ([]byte, bool) {
	if s.mark < 0 || s.pos-s.mark > maxObject {
		return nil, false
	}
	return s.buf[s.mark:s.pos], true
}

// back returns to the mark, or does nothing if there is none.
func (s *source) back() {
	if s.mark >= 0 {
		s.pos, s.line = s.mark, s.begun
	}
}

// failed returns what ended the source, nil for its end.
func (s *source) failed() error {
	if s.err == nil || errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

// syntaxError says where something is not JSON.
type syntaxError struct {
	line int
	what string
	end  bool // the text ends too early
}

func (e *syntaxError) Error() string { return e.what }

// wrong is the error of the next byte.
func (s *source) wrong(wanted string) error {
	c, ok := s.peek()
	if !ok {
		return &syntaxError{s.line, "it breaks off", true}
	}
	return &syntaxError{line: s.line, what: fmt.Sprintf("%q is no JSON here: %s is expected", c, wanted)}
}

// want skips blanks and one byte.
func (s *source) want(c byte) error {
	if s.pos < len(s.buf) && s.buf[s.pos] == c {
		s.next()
		return nil
	}
	if got, ok := s.space(); !ok || got != c {
		return s.wrong(string(rune(c)))
	}
	s.next()
	return nil
}

// plain has the bytes of a string that need no look.
var plain = func() (table [256]bool) {
	for c := range table {
		table[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return table
}()

// plainRun skips bytes of a string as far as they need no look and are in memory.
func (s *source) plainRun() {
	rest := s.buf[s.pos:]
	n := 0
	for n < len(rest) && plain[rest[n]] {
		n++
	}
	s.pos += n
}

// quoted skips a string.
func (s *source) quoted() error {
	if err := s.want('"'); err != nil {
		return err
	}
	for {
		s.plainRun()
		c, ok := s.peek()
		switch {
		case ok && plain[c]:
		case ok && c == '"':
			s.pos++
			return nil
		case ok && c == '\\':
			s.pos++
			if c, ok := s.peek(); !ok || c < ' ' {
				return s.wrong("an escaped character")
			}
			s.pos++
		default:
			return s.wrong("the end of the string")
		}
	}
}

// word has the bytes of numbers, true, false and null.
var word = func() (table [256]bool) {
	for _, c := range "+-.0123456789Eabcdefghijklmnopqrstuvwxyz" {
		table[c] = true
	}
	return table
}()

// value skips a value. Names and words are not checked: whoever decodes the value does that.
func (s *source) value(depth int) error {
	c, ok := s.space()
	switch {
	case !ok:
		return s.wrong("a value")
	case c == '"':
		return s.quoted()
	case c == '{' || c == '[':
		return s.container(depth)
	case word[c]:
		for ; ok && word[c]; c, ok = s.peek() {
			s.pos++
		}
		return nil
	default:
		return s.wrong("a value")
	}
}

// skip returns the position behind a value in a text that was found to be sound. No blanks are before it.
func skip(text []byte, at int) int {
	for depth := 0; at < len(text); {
		switch c := text[at]; {
		case c == '"':
			at = skipString(text, at)
		case c == '{' || c == '[':
			at++
			depth++
			continue
		case c == '}' || c == ']':
			at++
			depth--
		case word[c]:
			for at < len(text) && word[text[at]] {
				at++
			}
		default: // between the parts of an object or list
			at++
			continue
		}
		if depth <= 0 {
			return at
		}
	}
	return at
}

// skipString returns the position behind a string in such a text.
func skipString(text []byte, at int) int {
	for at++; at < len(text) && text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return min(at+1, len(text))
}

// container skips an object or a list.
func (s *source) container(depth int) error {
	if depth >= maxDepth {
		return &syntaxError{line: s.line, what: fmt.Sprintf("objects and lists are nested deeper than %d", maxDepth)}
	}
	open, _ := s.peek()
	s.pos++
	object := open == '{'
	end := open + 2 // } and ] are two behind { and [
	if c, ok := s.space(); ok && c == end {
		s.pos++
		return nil
	}
	for {
		if object {
			if err := s.quoted(); err != nil {
				return err
			}
			if err := s.want(':'); err != nil {
				return err
			}
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
		c, ok := s.space()
		switch {
		case ok && c == end:
			s.pos++
			return nil
		case !ok || c != ',':
			return s.wrong(", or " + string(rune(end)))
		}
		s.pos++
	}
}
