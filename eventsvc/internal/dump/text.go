package dump

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"regexp"
	"unicode/utf16"
	"unicode/utf8"
)

// readText reads a text file.
func (r *reader) readText(p *peeker, name string, in level) error {
	var content io.Reader = p
	head := p.head
	if order := utf16Order(head); order != nil {
		wide := newPeeker(&utf16Reader{r: p, order: order})
		content, head = wide, wide.head
	}
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		_, _ = io.ReadFull(content, make([]byte, len("\ufeff"))) // it is in the head
		head = head[len("\ufeff"):]
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return r.nothing(in, "no text, and no archive that is known")
	}
	content = &encoded{r: content, other: func() {
		r.report.note(Position{File: name}, "the text is not all UTF-8: what is not was read as Windows-1252")
	}}
	t := &textFile{reader: r, source: newSource(content), file: name, inside: in.inside}
	first := bytes.TrimLeft(head, " \t\r\n")
	if len(first) > 0 && first[0] != '{' && first[0] != '[' && isYAML(head) {
		t.yaml()
	}
	t.json()
	if err := t.failed(); err != nil {
		return brokenOff(err)
	}
	if t.begun {
		return nil
	}
	if what := t.table(); what != "" {
		return r.nothing(in, what)
	}
	return r.nothing(in, "text without events: "+askFor)
}

var (
	tableHead = regexp.MustCompile(`^(NAMESPACE +)?((LAST|FIRST) SEEN|LASTSEEN|FIRSTSEEN) .*REASON`)
	// tableRow is a line without the head: when it was last seen, perhaps how often, the type, the reason and the
	// object.
	tableRow  = regexp.MustCompile(`^(\S+ +)?(<unknown>|<invalid>|([0-9]+[ydhms])+)( \(x[0-9]+ over [^)]*\))? +(Normal|Warning) +\S+ +[a-z0-9.]+/`)
	described = regexp.MustCompile(`^(Events:(\s|$)|Type +Reason +Age +From)`)
)

// excerpts are words of records that were made of events, and lack most of them, with who makes such records.
var excerpts = []struct{ word, maker string }{
	{"involved_object", "Metricbeat or the Elastic Agent"},
	{"kubernetes.event.", "Metricbeat or the Elastic Agent"},
	{"k8s.event.", "the receiver k8s_events of OpenTelemetry"},
}

// advise says what to ask for instead of a record that was made of an event.
func (r *reader) advise(text []byte, at Position) {
	for _, e := range excerpts {
		if bytes.Contains(text, []byte(e.word)) {
			r.report.note(at, "a record of "+e.maker+", which lacks most of its event, is not read: "+askFor)
			return
		}
	}
}

const askFor = "ask the sender for the output of kubectl get events -A -o json"

// table tells what text for people a file is, "" if it is none that is known.
func (t *textFile) table() string {
	for _, line := range t.plain {
		switch {
		case tableHead.Match(line), tableRow.Match(line):
			return "the table of kubectl get events, which lacks uids and exact times: " + askFor
		case described.Match(line):
			return "the text of kubectl describe, whose events lack names and exact times: " + askFor
		}
	}
	return ""
}

// utf16Order returns the order of the bytes of UTF-16, by its mark or by the zero bytes of its first
// characters, which are ASCII in every dump; nil: it is not UTF-16.
func utf16Order(head []byte) binary.ByteOrder {
	switch {
	case len(head) < 4:
		return nil
	case head[0] == 0xff && head[1] == 0xfe, head[0] != 0 && head[1] == 0 && head[2] != 0 && head[3] == 0:
		return binary.LittleEndian
	case head[0] == 0xfe && head[1] == 0xff, head[0] == 0 && head[1] != 0 && head[2] == 0 && head[3] != 0:
		return binary.BigEndian
	default:
		return nil
	}
}

// utf16Reader turns UTF-16 into UTF-8 (RFC 2781). What is no character becomes U+FFFD.
type utf16Reader struct {
	r     io.Reader
	order binary.ByteOrder
	in    [4096]byte
	have  int    // bytes in in
	out   []byte // not yet read
	err   error
}

func (u *utf16Reader) Read(b []byte) (int, error) {
	for len(u.out) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		var n int
		n, u.err = u.r.Read(u.in[u.have:])
		u.have += n
		u.out = u.out[:0]
		at := 0
		for ; at+2 <= u.have; at += 2 {
			c := rune(u.order.Uint16(u.in[at:]))
			if utf16.IsSurrogate(c) {
				if at+4 > u.have && u.err == nil {
					break // the other half is to come
				}
				if at+4 <= u.have {
					if pair := utf16.DecodeRune(c, rune(u.order.Uint16(u.in[at+2:]))); pair != utf8.RuneError {
						c, at = pair, at+2
					}
				}
			}
			u.out = utf8.AppendRune(u.out, c)
		}
		u.have = copy(u.in[:], u.in[at:u.have])
		if errors.Is(u.err, io.EOF) && u.have > 0 {
			u.out, u.have = utf8.AppendRune(u.out, utf8.RuneError), 0
		}
	}
	n := copy(b, u.out)
	u.out = u.out[n:]
	return n, nil
}

// windows1252 are the characters 0x80 to 0x9f of Windows-1252. The others are those of Unicode.
var windows1252 = []rune("€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ")

// encoded passes on UTF-8, and turns other bytes into it as those of Windows-1252, which older programs of Windows
// write.
type encoded struct {
	r     io.Reader
	other func() // is called for the first other byte
	in    [16 << 10]byte
	have  int    // bytes in in that are not passed on yet
	out   []byte // not yet read, in in or in room
	room  []byte
	err   error
}

func (e *encoded) Read(b []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil && e.have == 0 {
			return 0, e.err
		}
		if e.err == nil {
			var n int
			n, e.err = e.r.Read(e.in[e.have:])
			e.have += n
		}
		if utf8.Valid(e.in[:e.have]) { // nearly always
			e.out, e.have = e.in[:e.have], 0
			continue
		}
		at := 0
		for e.room = e.room[:0]; at < e.have; {
			if rest := e.in[at:e.have]; rest[0] < utf8.RuneSelf {
				n := 1
				for n < len(rest) && rest[n] < utf8.RuneSelf {
					n++
				}
				e.room, at = append(e.room, rest[:n]...), at+n
				continue
			}
			c, size := utf8.DecodeRune(e.in[at:e.have])
			if c == utf8.RuneError && size == 1 {
				if e.err == nil && !utf8.FullRune(e.in[at:e.have]) {
					break // the rest of it is to come
				}
				c = e.latin(e.in[at])
			}
			e.room, at = utf8.AppendRune(e.room, c), at+size
		}
		e.out, e.have = e.room, copy(e.in[:], e.in[at:e.have])
	}
	n := copy(b, e.out)
	e.out = e.out[n:]
	return n, nil
}

// latin returns a byte as a character of Windows-1252.
func (e *encoded) latin(c byte) rune {
	if e.other != nil {
		e.other()
		e.other = nil
	}
	if c < 0xa0 {
		return windows1252[c-0x80]
	}
	return rune(c)
}
