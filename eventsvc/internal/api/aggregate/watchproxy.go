package aggregate

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
)

// errStopping ends watches when this process stops.
var errStopping = errors.New("the server is shutting down")

// watch serves a watch. Its right is reviewed again while it is open.
func (s *Server) watch(ctx context.Context, c echo.Context, q *question) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.draining, func() { end(errStopping) })()
	resp, err := s.open(ctx, c.Request(), q)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errStopping):
		return retryAfter(apierrors.NewServiceUnavailable("the server is shutting down"), 1)
	case err != nil:
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	begin(c, resp)
	if resp.StatusCode != http.StatusOK {
		_, err = s.pass(c, q, resp.Body, func([]byte) {})
		return err
	}
	if err := http.NewResponseController(c.Response().Writer).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return httpio.ErrClientGone
	}
	format, err := codec.Negotiate(c.Request(), codec.ScopeWatch)
	if err != nil {
		return err
	}
	reviewing := make(chan struct{})
	go func() { defer close(reviewing); s.reviewAgain(ctx, q, end) }()
	defer func() { end(nil); <-reviewing }()
	at := &frames{binary: format.Media == codec.Protobuf}
	whole, err := s.pass(c, q, resp.Body, at.pass)
	switch refusal := (*apierrors.StatusError)(nil); {
	case whole, errors.Is(err, httpio.ErrClientGone):
		return nil
	case !at.whole(): // nothing can follow a part of a frame
		panic(http.ErrAbortHandler)
	case errors.As(context.Cause(ctx), &refusal):
		frame, err := s.Codec.NewFrames(format, event.EventsV1).AppendError(nil, &refusal.ErrStatus)
		if err == nil {
			_, _ = c.Response().Writer.Write(frame) // nobody is left to be told
		}
		return err
	}
	return nil // the event server has gone away, or this one stops: the client continues from the last version
}

// reviewAgain ends a watch with the answer to its user when the right is gone, or cannot be reviewed.
func (s *Server) reviewAgain(ctx context.Context, q *question, end context.CancelCauseFunc) {
	tick := time.NewTicker(s.reviewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		d, err := s.Reviewer.review(ctx, q.spec)
		switch {
		case err != nil:
			end(err)
		case !d.allowed:
			end(s.forbidden(q, d))
		}
	}
}

// frames finds the ends of the frames of a watch as they pass: in JSON a newline, in protobuf as many bytes as the four
// before say.
type frames struct {
	binary bool
	part   bool // of a frame in JSON has passed
	head   [4]byte
	heads  int // bytes of head that have passed
	left   int // bytes of the frame
}

func (f *frames) pass(b []byte) {
	if !f.binary {
		f.part = b[len(b)-1] != '\n'
		return
	}
	for len(b) > 0 {
		if f.left == 0 {
			n := copy(f.head[f.heads:], b)
			b = b[n:]
			if f.heads += n; f.heads < len(f.head) {
				return
			}
			f.heads, f.left = 0, int(binary.BigEndian.Uint32(f.head[:]))
		}
		n := min(f.left, len(b))
		f.left -= n
		b = b[n:]
	}
}

// whole reports whether everything that has passed are whole frames.
func (f *frames) whole() bool { return !f.part && f.heads == 0 && f.left == 0 }
