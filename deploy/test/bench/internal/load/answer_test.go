package load

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const chunkedAnswer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\ncontent-encoding: gzip\r\n\r\n" +
	"5;x=y\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"

func TestAnswerInPiecesOfEverySize(t *testing.T) {
	t.Parallel()
	type parsed struct {
		Status   int
		Encoding string
		Size     int
		Body     string
	}
	for _, c := range []struct {
		name, wire string
		want       parsed
	}{
		{"length", "HTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\nabc", parsed{201, "", 3, "abc"}},
		{"empty", "HTTP/1.1 429 Too Many\r\ncontent-length:0\r\n\r\n", parsed{Status: 429}},
		{"no body", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", parsed{Status: 304}},
		{"chunks", chunkedAnswer, parsed{200, "gzip", 16, "hello 0123456789"}},
		{"no chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", parsed{Status: 200}},
	} {
		for size := 1; size <= len(c.wire); size++ {
			var a Answer
			for range 2 { // the second answer reuses the memory of the first
				a.reset(true)
				got, err := feedInPieces(&a, c.wire, size)
				if err != nil || !got {
					t.Fatalf("%s in pieces of %d: complete %v, %v", c.name, size, got, err)
				}
				if diff := cmp.Diff(c.want, parsed{a.Status, a.Encoding, a.Size, string(a.Body)}); diff != "" {
					t.Fatalf("%s in pieces of %d:\n%s", c.name, size, diff)
				}
			}
		}
	}
}

func feedInPieces(a *Answer, wire string, size int) (done bool, err error) {
	for rest := []byte(wire); len(rest) > 0 && err == nil; {
		n := min(size, len(rest))
		done, err = a.feed(rest[:n])
		rest = rest[n:]
		if done && len(rest) > 0 {
			return false, fmt.Errorf("complete with %d bytes to come", len(rest))
		}
	}
	return done, err
}

func TestAnswerHandsOnTheBodyOfAWatch(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	a := Answer{sink: func(p []byte) { got.Write(p) }}
	a.reset(false)
	if _, err := feedInPieces(&a, chunkedAnswer, 3); err != nil {
		t.Fatal(err)
	}
	if got.String() != "hello 0123456789" || len(a.Body) != 0 {
		t.Errorf("handed on %q, kept %q", got.String(), a.Body)
	}
}

func TestAnswerRefusesWhatIsNotHTTP(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{
		"SSH-2.0-x\r\n\r\n",
		"HTTP/1.1 abc\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
		strings.Repeat("x", maxHead+2),
	} {
		var a Answer
		a.reset(true)
		if done, err := a.feed([]byte(wire)); !errors.Is(err, errFraming) {
			t.Errorf("%.40q: complete %v, error %v, want a framing error", wire, done, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(chunkedAnswer, 7)
	f.Add("HTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\nabc", 1)
	f.Fuzz(func(t *testing.T, wire string, size int) {
		if size < 1 {
			t.Skip()
		}
		var whole, pieces Answer
		whole.reset(true)
		pieces.reset(true)
		_, wholeErr := feedInPieces(&whole, wire, len(wire)+1)
		_, piecesErr := feedInPieces(&pieces, wire, size)
		if wholeErr == nil && piecesErr == nil && (whole.Status != pieces.Status || !bytes.Equal(whole.Body, pieces.Body)) {
			t.Errorf("whole: %d %q, in pieces of %d: %d %q", whole.Status, whole.Body, size, pieces.Status, pieces.Body)
		}
	})
}
