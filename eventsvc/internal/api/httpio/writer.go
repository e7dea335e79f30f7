package httpio

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"tidings.example/eventsvc/internal/flow"
	"tidings.example/shared/httpserver"
)

// Piece is the size from which an answer is compressed for clients that accept
// it, and from which a piece of a long answer is worth a write of its own.
const Piece = 128 << 10

// zipRoom is the memory of a compressor: its hash tables and its window.
const zipRoom = 1280 << 10

// ErrClientGone ends a request whose client has hung up: nobody reads an answer.
var ErrClientGone = errors.New("the client has gone")

// Writer writes the answer to one request: whole ([Writer.Send]), in pieces
// ([Writer.Write], and Send for the last) or as a stream ([Writer.Flush]). The
// headers go with the first bytes. While the client is slow, the request yields
// its seat. The error of every method is [ErrClientGone] or a context's.
type Writer struct {
	io     *IO
	seat   *flow.Seat // nil: the request holds none any more
	res    *echo.Response
	frames *[]byte // what Flush sends; nil: nothing
	zip    *gzip.Writer
	code   int
	opened bool // the headers are written
	mayZip bool // only answers to get and list are compressed, as in kube-apiserver
	http1  bool // without a flush net/http writes the end after the seat is released
}

// Writer begins the answer to a request.
func (s *IO) Writer(c echo.Context, code int, contentType string) *Writer {
	r := c.Request()
	c.Response().Header()["Content-Type"] = []string{contentType}
	return &Writer{
		io: s, seat: flow.FromContext(r.Context()), res: c.Response(), code: code, http1: r.ProtoMajor == 1,
		mayZip: r.Method == http.MethodGet && httpserver.AcceptsGzip(r.Header),
	}
}

// Send writes the answer, or the rest of it. An answer that is made as a whole and is
// large needs room until its client has read it; what was used to make it is given back. A
// write is always answered, because it is done.
func (w *Writer) Send(b []byte) error {
	if !w.opened && w.seat.Reads() {
		n := cap(b)
		if n <= flow.FreeAnswer {
			n = 0
		}
		if err := w.seat.Room().Set(n); err != nil {
			return Unread(err)
		}
	}
	return w.out(func() error {
		if !w.opened && len(b) < Piece {
			w.mayZip = false
		}
		if err := w.write(b, true); err != nil {
			return err
		}
		if w.zip != nil {
			defer w.io.gzip.Put(w.zip)
			return w.zip.Close()
		}
		if w.http1 {
			return http.NewResponseController(w.res.Writer).Flush()
		}
		return nil
	})
}

// Write writes a piece of the answer and waits for a seat to make the next one.
func (w *Writer) Write(ctx context.Context, b []byte) error {
	if err := w.out(func() error { return w.write(b, false) }); err != nil {
		return err
	}
	return w.seat.Acquire(ctx)
}

// Frames is the buffer to which the frames of a stream are appended. A stream has
// none after a flush, because most watches are idle most of the time.
func (w *Writer) Frames() *[]byte {
	if w.frames == nil {
		w.frames = w.io.frames.Get()
	}
	return w.frames
}

// Flush writes the headers of a stream, if they are still to come, and its frames.
// Each write has a deadline, which the server of the listener sets: a client that
// does not read in time is cut off, and can resume.
func (w *Writer) Flush() error {
	if w.opened && w.frames == nil {
		return nil
	}
	err := w.out(w.flush)
	if w.frames != nil {
		w.io.frames.Put(w.frames)
		w.frames = nil
	}
	return err
}

// Line writes a part of a stream at once, from a goroutine that has no seat.
func (w *Writer) Line(b []byte) error {
	if err := w.push(b); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return ErrClientGone
	}
	return nil
}

// Next is Flush for a stream that goes on computing: it waits for a seat again.
func (w *Writer) Next(ctx context.Context) error {
	if err := w.Flush(); err != nil {
		return err
	}
	return w.seat.Acquire(ctx)
}

// Yield gives up the seat until Next, for a stream that waits for something else.
func (w *Writer) Yield() { w.seat.Yield() }

func (w *Writer) flush() error {
	var frames []byte
	if w.frames != nil {
		frames = *w.frames
	}
	return w.push(frames)
}

func (w *Writer) push(frames []byte) error {
	if !w.opened {
		w.opened = true
		w.res.WriteHeader(w.code)
	}
	if len(frames) > 0 {
		if _, err := w.res.Writer.Write(frames); err != nil {
			return err
		}
	}
	return http.NewResponseController(w.res.Writer).Flush()
}

// out runs a write to the client, and tells whether the client is gone.
func (w *Writer) out(write func() error) error {
	if err := w.seat.Write(write); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return ErrClientGone
	}
	return nil
}

// write writes bytes, and before the first ones the headers.
func (w *Writer) write(b []byte, last bool) error {
	if !w.opened {
		w.opened = true
		w.mayZip = w.mayZip && w.seat.Room().Spare(zipRoom)
		h := w.res.Header()
		switch {
		case w.mayZip:
			h.Set("Content-Encoding", "gzip")
			h.Add("Vary", "Accept-Encoding")
			w.zip = w.io.compressor(w.res.Writer)
		case last:
			h["Content-Length"] = []string{strconv.Itoa(len(b))}
		}
		w.res.WriteHeader(w.code)
	}
	if w.zip != nil {
		_, err := w.zip.Write(b)
		return err
	}
	_, err := w.res.Writer.Write(b)
	return err
}

func (s *IO) compressor(w io.Writer) *gzip.Writer {
	if z, ok := s.gzip.Get().(*gzip.Writer); ok {
		z.Reset(w)
		return z
	}
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is a valid one
	return z
}

// Leave is for a stream that goes on without a seat, because its request gives it back.
func (w *Writer) Leave() { w.seat = nil }
