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
	return r.nothing(in, "text without events")
}

var (
	tableHead = regexp.MustCompile(`^(NAMESPACE +)?((LAST|FIRST) SEEN|LASTSEEN|FIRSTSEEN) .*REASON`)
	// tableRow is a line without the head: when it was last seen, perhaps how often, the type, the reason and the object.
	tableRow  = regexp.MustCompile(`^(\S+ +)?(<unknown>|<invalid>|([0-9]+[ydhms])+)( \(x[0-9]+ over [^)]*\))? +(Normal|Warning) +\S+ +[a-z0-9.]+/`)
	described = regexp.MustCompile(`^(Events:(\s|$)|Type +Reason +Age +From)`)
)

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
