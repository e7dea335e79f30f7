package dump

import (
	"bytes"
	"io"
	"regexp"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// readText reads a text file.
func (r *reader) readText(p *peeker, name string, in level) error {
	var content io.Reader = p
	head := p.head
	if order, ok := utf16Order(head); ok {
		wide := newPeeker(unicode.UTF16(order, unicode.IgnoreBOM).NewDecoder().Reader(p))
		content, head = wide, wide.head
	}
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		_, _ = io.ReadFull(content, make([]byte, len("\ufeff"))) // it is in the head
		head = head[len("\ufeff"):]
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return r.nothing(in, "no text, and no archive that is known")
	}
	content = transform.NewReader(content, &latin{other: func() {
		r.report.note(Position{File: name}, "the text is not all UTF-8: what is not was read as Windows-1252")
	}})
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

// utf16Order returns the order of the bytes of UTF-16, by its mark or by the zero bytes of its first characters, which
// are ASCII in every dump. It returns false if the text is not UTF-16.
func utf16Order(head []byte) (order unicode.Endianness, ok bool) {
	switch {
	case len(head) < 4:
		return order, false
	case head[0] == 0xff && head[1] == 0xfe, head[0] != 0 && head[1] == 0 && head[2] != 0 && head[3] == 0:
		return unicode.LittleEndian, true
	case head[0] == 0xfe && head[1] == 0xff, head[0] == 0 && head[1] != 0 && head[2] == 0 && head[3] != 0:
		return unicode.BigEndian, true
	}
	return order, false
}

// latin passes on UTF-8, and turns other bytes into it as those of Windows-1252, which older programs of Windows write.
type latin struct {
	transform.NopResetter
	other func() // is called for the first other byte
}

// Transform implements [transform.Transformer].
func (l *latin) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	if n := min(len(src), len(dst)); utf8.Valid(src[:n]) { // nearly always
		nSrc = copy(dst, src)
		nDst = nSrc
	}
	for nSrc < len(src) {
		c, size := utf8.DecodeRune(src[nSrc:])
		if c == utf8.RuneError && size == 1 {
			if !atEOF && !utf8.FullRune(src[nSrc:]) {
				return nDst, nSrc, transform.ErrShortSrc
			}
			c = l.decode(src[nSrc])
		}
		if nDst+utf8.RuneLen(c) > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += utf8.EncodeRune(dst[nDst:], c)
		nSrc += size
	}
	return nDst, nSrc, nil
}

// decode returns a byte as a character of Windows-1252. Five bytes are none.
func (l *latin) decode(b byte) rune {
	if l.other != nil {
		l.other()
		l.other = nil
	}
	c := charmap.Windows1252.DecodeByte(b)
	if c == rune(b) && b < 0xa0 {
		return utf8.RuneError
	}
	return c
}
