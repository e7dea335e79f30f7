package request

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"tidings.example/eventsvc/internal/event"
)

// plainReader reads JSON from position at. What it returns is not valid once it
// has failed. The strings it returns share the memory of text.
type plainReader struct {
	text       string
	at         int
	failed     bool
	pieces     pieces
	view       event.View
	apiVersion string
}

func (r *plainReader) space() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\n', '\r', '\t':
			r.at++
		default:
			return
		}
	}
}

// take reads one character if it comes next.
func (r *plainReader) take(c byte) bool {
	r.space()
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

func (r *plainReader) string() string {
	if !r.take('"') {
		r.failed = true
		return ""
	}
	n, ascii := plainRun(r.text[r.at:])
	text, from := "", r.at
	if r.at += n; r.at < len(r.text) && r.text[r.at] == '"' {
		r.at++
		text = r.text[from : r.at-1]
	} else {
		text, ascii = r.escaped(from), false
	}
	if !ascii && !utf8.ValidString(text) { // the library replaces what is not
		r.failed = true
	}
	return text
}

// plainRun counts the bytes before the first quote, backslash or control
// character, which JSON requires to be escaped (RFC 8259 section 7), and tells
// whether all of them are ASCII. It yields in between, as s may be a whole body.
func plainRun[T string | []byte](s T) (n int, ascii bool) {
	if len(s) <= piece {
		return plainPart(s)
	}
	for ascii = true; ; runtime.Gosched() {
		part := s[n:min(n+piece, len(s))]
		m, plain := plainPart(part)
		n, ascii = n+m, ascii && plain
		if m < len(part) || n == len(s) {
			return n, ascii
		}
	}
}

// plainPart is plainRun without a break. It examines eight bytes at once.
func plainPart[T string | []byte](s T) (n int, ascii bool) {
	const each, top = 0x0101010101010101, 0x8080808080808080 // of the eight bytes: one, and the highest bit
	var seen uint64
	for ; len(s)-n >= 8; n += 8 {
		p := s[n : n+8]
		w := uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 |
			uint64(p[4])<<32 | uint64(p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
		// Subtraction sets the highest bit of a byte that is too small. The
		// borrow may set that of the next bytes too, but only the first counts.
		quote, backslash := w^each*'"', w^each*'\\'
		ends := ((w-each*' ')&^w | (quote-each)&^quote | (backslash-each)&^backslash) & top
		if ends != 0 {
			before := bits.TrailingZeros64(ends) / 8
			seen |= w & (1<<(8*before) - 1)
			return n + before, seen&top == 0
		}
		seen |= w
	}
	for ; n < len(s) && s[n] != '"' && s[n] != '\\' && s[n] >= ' '; n++ {
		seen |= uint64(s[n])
	}
	return n, seen&top == 0
}

// escaped reads a string that begins at from and has its first escape at r.at. It
// fails if there is something else, or the string does not end.
func (r *plainReader) escaped(from int) string {
	var text strings.Builder
	text.Grow(r.at - from + max(0, strings.IndexByte(r.text[r.at:], '"'))) // at least
	text.WriteString(r.text[from:r.at])
	for r.at+1 < len(r.text) && r.text[r.at] == '\\' {
		r.pieces.reach(r.at)
		c := r.text[r.at+1]
		r.at += 2
		if c == 'u' {
			text.WriteRune(r.unit())
		} else if c = escapes[c]; c != 0 {
			text.WriteByte(c)
		} else {
			break
		}
		if r.at < len(r.text) && r.text[r.at] != '\\' {
			n, _ := plainRun(r.text[r.at:])
			text.WriteString(r.text[r.at : r.at+n])
			r.at += n
		}
		if r.at < len(r.text) && r.text[r.at] == '"' {
			r.at++
			return text.String()
		}
	}
	r.failed = true
	return ""
}

// escapes maps the letter after a backslash to the character it stands for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unit reads the four digits of a \u escape. It fails for half a surrogate pair,
// which is left to the library.
func (r *plainReader) unit() rune {
	if len(r.text)-r.at < 4 {
		r.failed = true
		return 0
	}
	n, err := strconv.ParseUint(r.text[r.at:r.at+4], 16, 16)
	r.at += 4
	if err != nil || utf16.IsSurrogate(rune(n)) {
		r.failed = true
	}
	return rune(n)
}

func (r *plainReader) number() int32 {
	r.space()
	from, n := r.at, int64(0)
	for ; r.at < len(r.text) && '0' <= r.text[r.at] && r.text[r.at] <= '9' && n <= math.MaxInt32; r.at++ {
		n = n*10 + int64(r.text[r.at]-'0')
	}
	if r.at == from || n > math.MaxInt32 || r.text[from] == '0' && r.at-from > 1 {
		r.failed = true
	}
	return int32(n)
}

// time reads a time in a layout. Null is the zero time.
func (r *plainReader) time(layout string) time.Time {
	r.space()
	if strings.HasPrefix(r.text[r.at:], "null") {
		r.at += len("null")
		return time.Time{}
	}
	t, err := time.Parse(layout, r.string())
	if err != nil {
		r.failed = true
		return time.Time{}
	}
	return t.Local()
}

// each reads an object. It calls read with the name of each member; read consumes
// the value, or returns false if it does not know the member.
func (r *plainReader) each(read func(name string) bool) {
	if !r.take('{') {
		r.failed = true
		return
	}
	if r.take('}') {
		return
	}
	for {
		r.pieces.reach(r.at)
		name := r.string()
		if !r.take(':') || r.failed || !read(name) || r.failed {
			break
		}
		if r.take('}') {
			return
		}
		if !r.take(',') {
			break
		}
	}
	r.failed = true
}

// members is each for an object of at most 20 members, none of which comes twice.
func (r *plainReader) members(read func(name string) bool) {
	var seen [20]string // an event has 17
	n := 0
	r.each(func(name string) bool {
		if n == len(seen) || slices.Contains(seen[:n], name) {
			return false
		}
		seen[n] = name
		n++
		return read(name)
	})
}
