package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// maxHead bounds what is kept of an answer's head.
const maxHead = 64 << 10

// Answer is one HTTP/1.1 answer, parsed as it arrives.
type Answer struct {
	Status int
	// Encoding is the Content-Encoding, empty for identity.
	Encoding string
	// Size is the number of bytes of the body, without chunk framing.
	Size int
	// Body is the body where it was kept, and only valid until the next request.
	Body []byte

	keep   bool           // collect the body
	sink   func(p []byte) // or hand it on as it arrives
	state  state
	head   []byte // of the part being read, where it came in pieces
	left   int    // bytes to come of the body or of this chunk
	closes bool   // the body ends with the connection
}

type state uint8

const (
	inHead state = iota
	inBody
	inChunkSize
	inChunk
	inTrailer
	untilClose
	complete
)

var errFraming = errors.New("an answer that is not HTTP/1.1")

// reset makes a ready for the next answer and keeps its memory.
func (a *Answer) reset(keep bool) {
	*a = Answer{keep: keep, sink: a.sink, Body: a.Body[:0], head: a.head[:0]}
}

// feed takes what arrived. It returns true when the answer is complete; bytes
// after its end are an error, because nothing was asked for yet.
func (a *Answer) feed(p []byte) (bool, error) {
	for len(p) > 0 {
		var err error
		switch a.state {
		case inHead:
			p, err = a.readHead(p)
		case inChunkSize:
			p, err = a.readChunkSize(p)
		case inTrailer:
			p, err = a.readTrailer(p)
		case inBody, inChunk:
			p = a.readBody(p)
		case untilClose:
			a.take(p)
			return false, nil
		case complete:
			return true, fmt.Errorf("%w: %d bytes after its end", errFraming, len(p))
		}
		if err != nil {
			return false, err
		}
	}
	return a.state == complete, nil
}

// take passes on a piece of the body.
func (a *Answer) take(p []byte) {
	a.Size += len(p)
	if a.sink != nil {
		a.sink(p)
	} else if a.keep {
		a.Body = append(a.Body, p...)
	}
}

// upTo collects bytes up to and including end. It returns nil until it has seen
// end.
func (a *Answer) upTo(end string, p []byte) (found, rest []byte, err error) {
	if len(a.head) == 0 {
		if i := bytes.Index(p, []byte(end)); i >= 0 {
			return p[:i+len(end)], p[i+len(end):], nil
		}
	}
	from := max(len(a.head)-len(end)+1, 0)
	a.head = append(a.head, p...)
	i := bytes.Index(a.head[from:], []byte(end))
	if i < 0 {
		if len(a.head) > maxHead {
			return nil, nil, fmt.Errorf("%w: no end of the head within %d bytes", errFraming, maxHead)
		}
		return nil, nil, nil
	}
	n := from + i + len(end)
	found, rest = a.head[:n], p[len(p)-(len(a.head)-n):]
	a.head = a.head[:0]
	return found, rest, nil
}

func (a *Answer) readHead(p []byte) ([]byte, error) {
	head, rest, err := a.upTo("\r\n\r\n", p)
	if head == nil {
		return nil, err
	}
	if len(head) < 12 || string(head[:9]) != "HTTP/1.1 " {
		return nil, errFraming
	}
	if a.Status, err = strconv.Atoi(string(head[9:12])); err != nil {
		return nil, errFraming
	}
	length, chunked, err := a.readFields(head)
	switch {
	case err != nil:
		return nil, err
	case chunked:
		a.state = inChunkSize
	case length > 0:
		a.state, a.left = inBody, length
	case length == 0 || a.Status == 204 || a.Status == 304:
		a.state = complete
	case a.closes:
		a.state = untilClose
	default:
		return nil, fmt.Errorf("%w: neither a length nor chunks", errFraming)
	}
	return rest, nil
}

// readFields looks at the header fields that tell where the body ends.
func (a *Answer) readFields(head []byte) (length int, chunked bool, err error) {
	length = -1
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		value = bytes.TrimSpace(value)
		switch {
		case is(name, "content-length"):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return 0, false, fmt.Errorf("%w: Content-Length %q", errFraming, value)
			}
		case is(name, "transfer-encoding"):
			chunked = is(value, "chunked")
		case is(name, "connection"):
			a.closes = is(value, "close")
		case is(name, "content-encoding"):
			a.Encoding = string(value)
		}
	}
	return length, chunked, nil
}

// is compares a header's name with a lower-case one.
func is(name []byte, lower string) bool {
	return len(name) == len(lower) && bytes.EqualFold(name, []byte(lower))
}

func (a *Answer) readBody(p []byte) []byte {
	n := min(a.left, len(p))
	a.take(p[:n])
	if a.left -= n; a.left == 0 {
		if a.state == inBody {
			a.state = complete
		} else {
			a.state = inChunkSize
		}
	}
	return p[n:]
}

// readChunkSize reads a chunk's first line, and before it the line end of the
// chunk before.
func (a *Answer) readChunkSize(p []byte) ([]byte, error) {
	if len(a.head) == 0 && a.Size > 0 && (p[0] == '\r' || p[0] == '\n') {
		return p[1:], nil
	}
	line, rest, err := a.upTo("\r\n", p)
	if line == nil {
		return nil, err
	}
	digits, _, _ := bytes.Cut(line[:len(line)-2], []byte(";"))
	size, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 31)
	if err != nil {
		return nil, fmt.Errorf("%w: chunk size %q", errFraming, digits)
	}
	if a.state, a.left = inChunk, int(size); size == 0 {
		a.state = inTrailer
	}
	return rest, nil
}

// readTrailer reads the lines after the last chunk up to the empty one.
func (a *Answer) readTrailer(p []byte) ([]byte, error) {
	line, rest, err := a.upTo("\r\n", p)
	if len(line) == 2 {
		a.state = complete
	}
	return rest, err
}
