package api

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"tidings.example/eventsvc/internal/flow"
)

// buffers keeps byte slices and compressors for reuse.
type buffers struct {
	bytes  sync.Pool // *[]byte
	large  sync.Pool // *[]byte, for pieces of lists
	bodies sync.Pool // *[]byte, of requests that nearly reach the limit
	gzip   sync.Pool // *gzip.Writer
	more   more      // of the large ones
}

func (b *buffers) get() *[]byte {
	if p, ok := b.bytes.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, 0, 4<<10)
	return &p
}

func (b *buffers) put(p *[]byte) {
	switch *p = (*p)[:0]; {
	case cap(*p) <= maxKept:
		b.bytes.Put(p)
	case cap(*p) <= 4*maxKept:
		b.bodies.Put(p)
	}
}

// grow returns a buffer that begins like p and has room for n bytes more. That
// of a body is large enough to cost more to make than to fill.
func (b *buffers) grow(p []byte, n int) []byte {
	if n > maxKept {
		if q, ok := b.bodies.Get().(*[]byte); ok && cap(*q) >= len(p)+n {
			return append(*q, p...)
		}
	}
	return slices.Grow(p, n)
}

func (b *buffers) getLarge() *[]byte {
	if p, ok := b.large.Get().(*[]byte); ok {
		return p
	}
	return new([]byte)
}

func (b *buffers) putLarge(p *[]byte) {
	if cap(*p) <= 2*maxKept {
		*p = (*p)[:0]
		b.large.Put(p)
	}
}

func (b *buffers) compressor(w io.Writer) *gzip.Writer {
	if z, ok := b.gzip.Get().(*gzip.Writer); ok {
		z.Reset(w)
		return z
	}
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is a valid one
	return z
}

// acceptsGzip tells whether an answer may be compressed: as in the original,
// only those to get and list.
func acceptsGzip(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}

// body writes a long answer in pieces, compressed if the client wants it.
type body struct {
	s      *Server
	c      echo.Context
	code   int
	buf    []byte // what is not sent yet
	large  bool   // there is more than a piece to come
	zip    *gzip.Writer
	opened bool
}

func (s *Server) newBody(c echo.Context, code int) *body {
	return &body{s: s, c: c, code: code}
}

// begin takes the head and the first items of a list, and sends them if they
// make a piece.
func (b *body) begin(head, items []byte) error {
	if len(items) < gzipFrom {
		b.buf = slices.Insert(items, 0, head...)
		return nil
	}
	b.large, b.buf = true, head
	if err := b.write(false); err != nil {
		return err
	}
	b.buf = items
	return b.flush()
}

// flush sends what has gathered once it makes a piece.
func (b *body) flush() error {
	if len(b.buf) < gzipFrom {
		return nil
	}
	if err := b.write(false); err != nil {
		return err
	}
	ctx := b.c.Request().Context()
	return flow.FromContext(ctx).Acquire(ctx)
}

// write sends the buffer; whole tells that it is all of the answer.
func (b *body) write(whole bool) error {
	if !b.opened {
		b.open(whole)
	}
	err := flow.FromContext(b.c.Request().Context()).Write(func() error { return b.send(b.buf) })
	b.buf = b.buf[:0]
	return err
}

func (b *body) send(piece []byte) error {
	var err error
	if b.zip != nil {
		_, err = b.zip.Write(piece)
	} else {
		_, err = b.c.Response().Write(piece)
	}
	if err != nil {
		return errClientGone
	}
	return nil
}

func (b *body) open(whole bool) {
	b.opened = true
	h := b.c.Response().Header()
	switch {
	case (b.large || len(b.buf) >= gzipFrom) && acceptsGzip(b.c.Request()):
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		b.zip = b.s.buffers.compressor(b.c.Response())
	case whole:
		h.Set("Content-Length", strconv.Itoa(len(b.buf)))
	}
	b.c.Response().WriteHeader(b.code)
}

// close sends the rest.
func (b *body) close() error {
	if err := b.write(!b.opened); err != nil || b.zip == nil {
		return err
	}
	err := b.zip.Close()
	b.s.buffers.gzip.Put(b.zip)
	if err != nil {
		return errClientGone
	}
	return nil
}
