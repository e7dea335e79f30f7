package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
)

const (
	// gzipFrom is the size above which an answer to get or list is
	// compressed for clients that accept it.
	gzipFrom = 128 << 10
	// maxKept is the largest buffer that is kept for another request.
	maxKept = 1 << 20
)

// readBody reads a request body up to the limit into p. It makes room for the
// rest of a large body only after the first byte of it: until then the reader
// makes the request wait, see [flow.Reader].
func (s *Server) readBody(r *http.Request, p *[]byte) ([]byte, error) {
	if r.ContentLength > int64(s.MaxBody) {
		return nil, s.tooBig()
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
			b = append(s.buffers.grow(b, max(whole-len(b), 1)), next[0])
		}
		*p = b
		switch {
		case len(b) > s.MaxBody:
			return nil, s.tooBig()
		case errors.Is(err, io.EOF):
			return b, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, beyond("body-time", apierrors.NewBadRequest("the body did not come in time"))
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // while it waited
			return nil, err
		case err != nil:
			return nil, apierrors.NewBadRequest("the body could not be read: " + err.Error())
		}
	}
}

func (s *Server) tooBig() error {
	return beyond("body", apierrors.NewRequestEntityTooLargeError("limit is "+strconv.Itoa(s.MaxBody)))
}

// object answers with one event.
func (r *resource) object(c echo.Context, code int, f codec.Format, rec *store.Record) error {
	p := r.buffers.get()
	defer r.buffers.put(p)
	b, err := r.codec.AppendObject(*p, f, r.view, rec)
	if err != nil {
		return r.errorFor(err, rec.Name)
	}
	*p = b
	return r.send(c, code, f.ContentType(false), b)
}

// status answers with a Status.
func (s *Server) status(c echo.Context, code int, f codec.Format, st *metav1.Status) error {
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return s.runtime(c, code, f, st)
}

// other answers with an object that is no event, in any format but a Table.
func (s *Server) other(c echo.Context, code int, obj runtime.Object) error {
	f, err := s.codec.Negotiate(c.Request(), codec.ScopeOther)
	if err != nil {
		return err
	}
	return s.runtime(c, code, f, obj)
}

// runtime answers with an object that carries its kind.
func (s *Server) runtime(c echo.Context, code int, f codec.Format, obj runtime.Object) error {
	p := s.buffers.get()
	defer s.buffers.put(p)
	b, err := s.codec.AppendRuntime(*p, f, obj)
	if err != nil {
		return err
	}
	*p = b
	return s.send(c, code, f.ContentType(false), b)
}

// send writes a whole answer.
func (s *Server) send(c echo.Context, code int, contentType string, b []byte) error {
	h := c.Response().Header()
	h["Content-Type"] = []string{contentType}
	if len(b) >= gzipFrom {
		w := s.newBody(c, code)
		w.buf = b
		return w.close()
	}
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	err := flow.FromContext(c.Request().Context()).Write(func() error {
		c.Response().WriteHeader(code)
		_, err := c.Response().Write(b)
		if err == nil && c.Request().ProtoMajor == 1 { // else it would be written after the seat is released
			err = http.NewResponseController(c.Response().Writer).Flush()
		}
		return err
	})
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errClientGone
	}
	return nil
}

// The original's bounds of warnings: of all texts together, and then of each.
const (
	maxWarnings = 4096
	maxWarning  = 256
)

// warn adds Warning headers, each text once. An empty text is none.
func warn(c echo.Context, warnings []string) {
	total := 0
	for _, text := range warnings {
		total += utf8.RuneCountInString(text)
	}
	if total == 0 {
		return
	}
	seen := map[string]bool{"": true}
	written := 0
	for _, text := range warnings {
		if seen[text] {
			continue
		}
		seen[text] = true
		if runes := []rune(text); total > maxWarnings && len(runes) > maxWarning {
			text = string(runes[:maxWarning])
		}
		if written += utf8.RuneCountInString(text); written > maxWarnings {
			return
		}
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			c.Response().Header().Add("Warning", header)
		}
	}
}
