package load

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// TestWindows: after much data over several streams the connection's window is
// refilled by all of it, and a stream's by what came on that stream alone: more
// would overflow it, which ends the stream.
func TestWindows(t *testing.T) {
	t.Parallel()
	given := map[uint32]int{} // by stream; 0: the connection
	s, err := newSession(func(p []byte) error {
		for p = bytes.TrimPrefix(p, []byte(preface)); len(p) >= frameHead; {
			size := int(p[0])<<16 | int(p[1])<<8 | int(p[2])
			if p[3] == frameWindowUpdate {
				given[binary.BigEndian.Uint32(p[5:])] += int(binary.BigEndian.Uint32(p[frameHead:]))
			}
			p = p[frameHead+size:]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	clear(given) // of the greeting
	const chunk = 16 << 10
	for stream, size := range []int{windowRefill * 3 / 5, windowRefill * 3 / 5, windowRefill + chunk} {
		if err := s.request([]byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		data := append(frame(frameData, 0, s.stream, chunk), make([]byte, chunk)...)
		var a Answer
		for range size / chunk {
			if _, err := s.feed(&a, data); err != nil {
				t.Fatal(err)
			}
		}
		if got := given[s.stream]; stream < 2 && got != 0 || stream == 2 && (got < windowRefill || got > size) {
			t.Errorf("stream %d was given %d more after %d", s.stream, got, size)
		}
	}
	if got := given[0]; got < 2*windowRefill || got > windowRefill*11/5+chunk {
		t.Errorf("the connection was given %d more", got)
	}
}
