package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/net/http2/hpack"
)

// HTTP/2 (RFC 9113), as far as a client needs it that has one open stream on
// each connection.
const (
	preface      = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameHead    = 9
	largeWindow  = 1<<31 - 1 // the largest there is
	firstWindow  = 1<<16 - 1 // of a connection, until it is raised
	windowRefill = 1 << 30   // consumed bytes after which the windows are refilled
)

// Frame types (section 6).
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameSettings     = 0x4
	framePush         = 0x5
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindowUpdate = 0x8
	frameContinuation = 0x9
)

// Flags of frames.
const (
	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

// session is the HTTP/2 state of one connection.
type session struct {
	write    func([]byte) error
	stream   uint32 // of the current request
	encoder  *hpack.Encoder
	encoded  bytes.Buffer
	decoder  *hpack.Decoder
	block    []byte // header block in parts
	window   int    // bytes that the server is ready to take
	consumed int    // bytes since the connection's window was refilled
	received int    // bytes of the current stream since its window was

	head    []byte // of the frame that is arriving
	payload []byte // of it, unless it is data
	left    int    // bytes of it to come
}

// newSession sends the preface and the settings. It refuses pushes and opens
// the largest windows, so that flow control does not slow an answer down.
func newSession(write func([]byte) error) (*session, error) {
	s := &session{write: write, decoder: hpack.NewDecoder(4096, nil), window: firstWindow}
	s.encoder = hpack.NewEncoder(&s.encoded)
	out := append([]byte(preface), frame(frameSettings, 0, 0, 12)...)
	out = append(out, 0, 2, 0, 0, 0, 0) // ENABLE_PUSH 0
	out = binary.BigEndian.AppendUint32(append(out, 0, 4), largeWindow)
	out = append(out, windowUpdate(0, largeWindow-firstWindow)...)
	return s, write(out)
}

// frame is the head of a frame.
func frame(kind, flags byte, stream uint32, length int) []byte {
	head := []byte{byte(length >> 16), byte(length >> 8), byte(length), kind, flags}
	return binary.BigEndian.AppendUint32(head, stream)
}

func windowUpdate(stream uint32, by int) []byte {
	return binary.BigEndian.AppendUint32(frame(frameWindowUpdate, 0, stream, 4), uint32(by))
}

// request sends a request that is formatted as one of HTTP/1.1, on a new stream.
func (s *session) request(text []byte) error {
	head, body, ok := bytes.Cut(text, []byte("\r\n\r\n"))
	if !ok || len(body) > s.window {
		return fmt.Errorf("a request with %d bytes of body, of which the server takes %d", len(body), s.window)
	}
	if err := s.encode(head); err != nil {
		return err
	}
	if s.stream == 0 {
		s.stream = 1
	} else {
		s.stream += 2
	}
	s.received = 0 // its window is a new one
	flags := byte(flagEndHeaders)
	if len(body) == 0 {
		flags |= flagEndStream
	}
	out := append(frame(frameHeaders, flags, s.stream, s.encoded.Len()), s.encoded.Bytes()...)
	if len(body) > 0 {
		out = append(append(out, frame(frameData, flagEndStream, s.stream, len(body))...), body...)
		s.window -= len(body)
	}
	return s.write(out)
}

// encode writes the header block of a request into s.encoded.
func (s *session) encode(head []byte) error {
	s.encoded.Reset()
	first, rest, _ := bytes.Cut(head, []byte("\r\n"))
	words := bytes.Fields(first)
	if len(words) != 3 {
		return fmt.Errorf("request line %q", first)
	}
	fields := []hpack.HeaderField{
		{Name: ":method", Value: string(words[0])},
		{Name: ":scheme", Value: "https"},
		// Every path is different. Sensitive keeps it out of the header table,
		// where it would push the token out.
		{Name: ":path", Value: string(words[1]), Sensitive: true},
	}
	for line := range bytes.SplitSeq(rest, []byte("\r\n")) {
		name, value, ok := bytes.Cut(line, []byte(": "))
		if !ok {
			continue
		}
		f := hpack.HeaderField{Name: string(bytes.ToLower(name)), Value: string(value)}
		if f.Name == "host" {
			f.Name = ":authority"
		}
		fields = append(fields, f)
	}
	for _, f := range fields {
		if err := s.encoder.WriteField(f); err != nil {
			return fmt.Errorf("header: %w", err)
		}
	}
	return nil
}

// feed takes what arrived, into a. It returns true when the answer is complete.
func (s *session) feed(a *Answer, p []byte) (done bool, err error) {
	for len(p) > 0 && err == nil {
		if len(s.head) < frameHead {
			n := min(frameHead-len(s.head), len(p))
			s.head = append(s.head, p[:n]...)
			if p = p[n:]; len(s.head) < frameHead {
				break
			}
			s.left = int(s.head[0])<<16 | int(s.head[1])<<8 | int(s.head[2])
			s.payload = s.payload[:0]
		}
		n := min(s.left, len(p))
		if s.head[3] == frameData {
			s.consumed += n
			if s.ours() {
				s.received += n
				a.take(p[:n])
			}
		} else {
			s.payload = append(s.payload, p[:n]...)
		}
		p = p[n:]
		if s.left -= n; s.left == 0 {
			err = s.handle(a)
			s.head = s.head[:0]
		}
	}
	if err == nil && s.consumed >= windowRefill {
		err = s.write(windowUpdate(0, s.consumed))
		s.consumed = 0
	}
	if err == nil && s.received >= windowRefill {
		err = s.write(windowUpdate(s.stream, s.received))
		s.received = 0
	}
	return a.state == complete, err
}

// ours tells that the arriving frame belongs to the current stream.
func (s *session) ours() bool {
	return binary.BigEndian.Uint32(s.head[5:])&largeWindow == s.stream
}

// handle acts on a frame that has arrived whole.
func (s *session) handle(a *Answer) error {
	kind, flags := s.head[3], s.head[4]
	switch kind {
	case frameData:
		if flags&flagPadded != 0 {
			return errors.New("HTTP/2: padded data, which nobody sends")
		}
	case frameHeaders, frameContinuation:
		if err := s.headers(a, kind, flags); err != nil {
			return err
		}
	default:
		return s.control(kind, flags)
	}
	if s.ours() && kind != frameContinuation && flags&flagEndStream != 0 {
		a.state = complete
	}
	return nil
}

// control acts on a frame that carries nothing of an answer.
func (s *session) control(kind, flags byte) error {
	switch kind {
	case frameSettings:
		if flags&flagAck == 0 {
			return s.write(frame(frameSettings, flagAck, 0, 0))
		}
	case framePing:
		if flags&flagAck == 0 {
			return s.write(append(frame(framePing, flagAck, 0, len(s.payload)), s.payload...))
		}
	case frameWindowUpdate:
		if len(s.payload) == 4 && binary.BigEndian.Uint32(s.head[5:]) == 0 {
			s.window += int(binary.BigEndian.Uint32(s.payload))
		}
	case frameReset, frameGoAway, framePush:
		return fmt.Errorf("HTTP/2: frame of type %d ends the stream: %x", kind, s.payload)
	}
	return nil // unknown frames are ignored (section 4.1)
}

// headers reads a header block, which may come in several frames.
func (s *session) headers(a *Answer, kind, flags byte) error {
	part := s.payload
	if kind == frameHeaders {
		s.block = s.block[:0]
		if flags&(flagPadded|flagPriority) != 0 {
			return errors.New("HTTP/2: padding or priority in an answer's headers")
		}
	}
	s.block = append(s.block, part...)
	if flags&flagEndHeaders == 0 {
		return nil
	}
	fields, err := s.decoder.DecodeFull(s.block)
	if err != nil {
		return fmt.Errorf("HTTP/2: headers: %w", err)
	}
	for _, f := range fields {
		switch f.Name {
		case ":status":
			if a.Status, err = strconv.Atoi(f.Value); err != nil {
				return fmt.Errorf("HTTP/2: status %q", f.Value)
			}
		case "content-encoding":
			a.Encoding = f.Value
		}
	}
	return nil
}
