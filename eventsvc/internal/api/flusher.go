package api

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"tidings.example/eventsvc/internal/flow"
)

// flusher writes frames to one client. Between two batches it holds no buffer:
// most watches are idle most of the time.
type flusher struct {
	rest    io.Writer // of an answer that is detached, which res and rc are not for
	res     *echo.Response
	rc      *http.ResponseController
	buffers *buffers
	kept    *[]byte // nil: none is taken
	buf     []byte
}

func (s *Server) newFlusher(c echo.Context, contentType string) *flusher {
	c.Response().Header()["Content-Type"] = []string{contentType}
	return &flusher{res: c.Response(), rc: http.NewResponseController(c.Response().Writer), buffers: &s.frames}
}

// buffer is what frames are appended to.
func (o *flusher) buffer() []byte {
	if o.kept == nil {
		o.kept = o.buffers.get()
		o.buf = *o.kept
	}
	return o.buf
}

// flush writes what has gathered, and the headers if they are still to come. Each
// write has a deadline, which the server of the listener sets. A client that does
// not read in time is cut off, and can resume.
func (o *flusher) flush() error {
	err := o.write()
	if o.kept != nil {
		*o.kept = o.buf
		o.buffers.put(o.kept)
		o.kept, o.buf = nil, nil
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errClientGone
	}
	return nil
}

// next is flush for a stream that goes on computing: the request yields its seat
// if the write is slow, and waits for it again.
func (o *flusher) next(ctx context.Context) error {
	seat := flow.FromContext(ctx)
	if err := seat.Write(o.flush); err != nil {
		return err
	}
	return seat.Acquire(ctx)
}

func (o *flusher) write() error {
	if o.rest != nil {
		_, err := o.rest.Write(o.buf)
		return err
	}
	if !o.res.Committed {
		o.res.WriteHeader(http.StatusOK)
	}
	if len(o.buf) > 0 {
		if _, err := o.res.Writer.Write(o.buf); err != nil {
			return err
		}
	}
	return o.rc.Flush()
}
