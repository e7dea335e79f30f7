// Package httpio reads the bodies and the query parameters of requests and writes their answers.
//
// # Contract
//
// Query parameters, and the options in the bodies of deletes, are read and checked as
// kube-apiserver does: a 400 for what cannot be parsed, and a 422 for options that
// contradict each other.
//
// An [IO] answers with objects in the format that the client accepts, with
// errors as a Status, and with long answers in pieces. Every byte of an answer
// goes through a [Writer], which is the one place where a request waits for its
// client, and so the one that yields the request's seat. [IO.Fail] answers with
// an error: handlers return errors and never write them.
//
// # Errors
//
// Errors that a client is to see are API errors of apimachinery, errors of the
// store, or made by [Beyond]. Anything else becomes a 500 whose reason is only
// in the log. [ErrClientGone] ends a request without an answer.
//
// # Concurrency
//
// An IO is safe for concurrent use, a Writer is for one goroutine.
//
// # What it does not know
//
// Routes and rights.
package httpio

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/flow"
)

// IO reads bodies and writes answers.
type IO struct {
	Buffers Pool // for bodies and answers

	log     *slog.Logger
	maxBody int
	folders []string
	bodies  Pool      // for bodies that nearly reach the limit
	frames  Pool      // for streams, whose buffers stay small
	gzip    sync.Pool // *gzip.Writer
	refused *prometheus.CounterVec
}

// New returns an IO for bodies of at most maxBody bytes. Below the paths in
// folders a path that is not served is answered with a Status, elsewhere with
// plain text as any web server does.
func New(log *slog.Logger, maxBody int, folders []string) *IO {
	return &IO{
		log: log, maxBody: maxBody, folders: folders, refused: newRefusals(),
		Buffers: Pool{Max: flow.FreeAnswer}, bodies: Pool{Max: 4 << 20}, frames: Pool{Max: flow.FreeAnswer},
	}
}

// Collectors returns the metrics of refused requests.
func (s *IO) Collectors() []prometheus.Collector { return []prometheus.Collector{s.refused} }

// Pool keeps byte slices for reuse. It is safe for concurrent use.
type Pool struct {
	Max  int // capacity of the largest slice that is kept
	pool sync.Pool
}

// Get returns an empty slice.
func (p *Pool) Get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	return new(make([]byte, 0, 4<<10))
}

// Put gives a slice back. The caller must not use it any more.
func (p *Pool) Put(b *[]byte) {
	if cap(*b) <= p.Max {
		*b = (*b)[:0]
		p.pool.Put(b)
	}
}

// put gives back the buffer of a body or an answer.
func (s *IO) put(p *[]byte) {
	if cap(*p) > s.Buffers.Max {
		s.bodies.Put(p)
		return
	}
	s.Buffers.Put(p)
}

// grow returns a buffer that begins like p and has room for n bytes more. A
// buffer for a large body takes longer to make than to fill, so it is reused.
func (s *IO) grow(p []byte, n int) []byte {
	if n > s.Buffers.Max {
		if q := s.bodies.Get(); cap(*q) >= len(p)+n {
			return append(*q, p...)
		}
	}
	return slices.Grow(p, n)
}

// Body reads the body of a request up to the limit. Call free when the bytes are
// no longer used.
func (s *IO) Body(r *http.Request) (body []byte, free func(), err error) {
	return s.BodyUpTo(r, s.maxBody)
}

// BodyUpTo is Body with another limit.
//
// Room for the rest of a large body is made only after the first byte of it:
// until then the reader makes the request wait, see [flow.Reader].
func (s *IO) BodyUpTo(r *http.Request, limit int) (body []byte, free func(), err error) {
	p := s.Buffers.Get()
	free = func() { s.put(p) }
	if err = s.read(r, p, limit); err != nil {
		free()
		return nil, nil, err
	}
	return *p, free, nil
}

func (s *IO) read(r *http.Request, p *[]byte, limit int) error {
	tooBig := func() error {
		return Beyond("body", apierrors.NewRequestEntityTooLargeError("limit is "+strconv.Itoa(limit)))
	}
	if r.ContentLength > int64(limit) {
		return tooBig()
	}
	whole := int(max(r.ContentLength, 0)) + 1 // one more, so that the end is seen without growing
	b := slices.Grow((*p)[:0], min(whole, flow.LargeBody))
	var next [1]byte
	for {
		var n int
		var err error
		if len(b) < cap(b) {
			n, err = r.Body.Read(b[len(b):cap(b)])
			b = b[:len(b)+n]
		} else if n, err = r.Body.Read(next[:]); n > 0 {
			b = append(s.grow(b, max(whole-len(b), 1)), next[0])
		}
		*p = b
		switch {
		case len(b) > limit:
			return tooBig()
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return Beyond("body-time", errBodyTime())
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // while it waited for a seat
			return err
		case err != nil:
			return apierrors.NewBadRequest("the body could not be read: " + err.Error())
		}
	}
}

// errBodyTime is the 408 for a body that did not come in time. It is no fault of what is in it: the network was slow,
// or this server was too busy to read on.
func errBodyTime() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonTimeout, Code: http.StatusRequestTimeout,
		Message: "the body did not come in time, please try again",
	}}
}

// Append answers with the bytes that add appends to a buffer.
func (s *IO) Append(c echo.Context, code int, f codec.Format, add func([]byte) ([]byte, error)) error {
	p := s.Buffers.Get()
	defer s.put(p)
	b, err := add(*p)
	if err != nil {
		return err
	}
	*p = b
	return s.Writer(c, code, f.ContentType(false)).Send(b)
}

// Object answers with an object that carries its kind.
func (s *IO) Object(c echo.Context, code int, f codec.Format, obj runtime.Object) error {
	return s.Append(c, code, f, func(b []byte) ([]byte, error) { return codec.AppendRuntime(b, f, obj) })
}

// Negotiated answers with an object that carries its kind, in the format that the
// client accepts.
func (s *IO) Negotiated(c echo.Context, code int, obj runtime.Object) error {
	f, err := codec.Negotiate(c.Request(), codec.ScopeOther)
	if err != nil {
		return err
	}
	return s.Object(c, code, f, obj)
}

// Status answers with a Status.
func (s *IO) Status(c echo.Context, code int, f codec.Format, st *metav1.Status) error {
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return s.Object(c, code, f, st)
}
