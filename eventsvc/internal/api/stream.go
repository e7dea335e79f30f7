package api

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/service"
)

// watched is what a stream is about: which changes, and the state before them.
type watched struct {
	query store.WatchQuery
	// begin reads the first of the state that the stream begins with, and
	// returns its revision. What it cannot do is an ordinary error.
	begin func(context.Context) (uint64, error)
	// initial sends that state.
	initial func(context.Context) error
}

// stream is one watch: its place in the history and what is to be written.
type stream struct {
	*Server
	frames    *codec.Frames
	out       *flusher
	bookmarks bool
	revision  uint64 // everything up to here was sent
	ctx       context.Context
	cancel    context.CancelFunc
	attached  func() bool // that the request ends ends ctx; to be called when that is no longer so
	changed   store.Watcher
	atEnd     []func()

	deliver  func(context.Context, store.Delivery) error
	bookmark func(initialEnd bool) error
}

func (s *Server) newStream(c echo.Context, f codec.Format, frames *codec.Frames, bookmarks bool) *stream {
	return &stream{Server: s, frames: frames, bookmarks: bookmarks, out: s.newFlusher(c, f.ContentType(true))}
}

// open admits the stream and writes what it begins with. It returns an error
// only when nothing was written, and else what writes the rest until the stream
// ends: that is for the handler to call once it holds nothing else. A watch waits
// nearly all the time, and thousands wait on stacks as large as what they hold.
func (s *stream) open(c echo.Context, o metav1.ListOptions, what watched) (follow func() error, err error) {
	defer func() {
		if follow == nil {
			s.close()
		}
	}()
	rv, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if err := s.admit(c, watchTime(o)); err != nil {
		return nil, err
	}
	ctx := s.ctx
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if current := s.store.Revision(); rv > current {
		return nil, s.end(tooLarge(rv, current, 1+rand.IntN(4)))
	}
	switch {
	case initial: // an old version is fine: the state is sent as it is now
		if s.revision, err = what.begin(ctx); err != nil {
			if ctx.Err() != nil { // the watch is over before it has begun
				err = s.end(ctx.Err())
			}
			return nil, err
		}
	case rv == 0:
		s.revision = s.store.Revision()
	default:
		s.revision = rv
	}
	what.query.After = s.revision
	if s.changed, err = s.store.Watch(ctx, what.query); err != nil {
		return nil, s.end(err)
	}
	s.atEnd = append(s.atEnd, s.changed.Close)
	service.MayDetach(ctx, s.out.res.Writer)
	if err := s.out.next(ctx); err != nil { // the headers, before there is any event
		return nil, s.end(err)
	}
	if initial {
		if err := s.initial(ctx, what); err != nil {
			return nil, s.end(err)
		}
	}
	return s.follow, nil
}

// following goes on with a watch that was opened.
func following(follow func() error, err error) error {
	if follow == nil {
		return err
	}
	return follow()
}

// follow writes what happens until the stream ends, or hands that over to who
// does so with less than a handler has.
func (s *stream) follow() error {
	if service.Detach(s.ctx, s.out.res.Writer, s.cancel, s.goOn) {
		s.attached()
		s.out.res, s.out.rc = nil, nil
		return nil
	}
	return s.toEnd()
}

// goOn is follow for an answer that is detached.
func (s *stream) goOn(rest io.Writer) {
	s.out.rest = rest
	_ = s.toEnd() // which was told to the client
}

func (s *stream) toEnd() error {
	defer s.close()
	return s.end(s.changes(s.ctx, s.changed))
}

// close gives back what the stream has, last things first.
func (s *stream) close() {
	for _, end := range slices.Backward(s.atEnd) {
		end()
	}
}

// initial sends the state that the stream begins with, and the bookmark that
// tells informers that this was all of it.
func (s *stream) initial(ctx context.Context, what watched) error {
	if err := what.initial(ctx); err != nil {
		return err
	}
	if s.bookmarks {
		if err := s.bookmark(true); err != nil {
			return err
		}
	}
	return s.out.next(ctx)
}

// changes sends what happens until the context ends or the watcher fails.
// Whatever is waiting is written together.
func (s *stream) changes(ctx context.Context, w store.Watcher) error {
	waiting, cancel := s.untilBookmark(ctx)
	defer func() { cancel() }()
	for {
		batch, err := w.Next(waiting)
		switch {
		case ctx.Err() != nil: // also while changes go on: nothing is sent behind the end
			return ctx.Err()
		case err == nil:
			if err := s.take(ctx, batch); err != nil {
				return err
			}
		case waiting.Err() != nil: // time for a bookmark
			cancel()
			waiting, cancel = s.untilBookmark(ctx)
			if err := s.mark(); err != nil {
				return err
			}
		default:
			return err
		}
		if len(s.out.buf) > 0 {
			if err := s.out.flush(); err != nil {
				return err
			}
		}
	}
}

// take delivers changes.
func (s *stream) take(ctx context.Context, b store.Batch) error {
	for i := range b.Changes {
		if err := s.deliver(ctx, b.Changes[i]); err != nil {
			return err
		}
	}
	s.revision = max(s.revision, b.Revision)
	return nil
}

// untilBookmark is the context in which the watch waits: the next bookmark
// ends it, somewhat at random so that not all watches write at once.
func (s *stream) untilBookmark(ctx context.Context) (context.Context, context.CancelFunc) {
	if !s.bookmarks {
		return ctx, func() {}
	}
	d := s.Bookmarks
	return context.WithTimeout(ctx, d-d/10+rand.N(d/5+1))
}

// mark sends a bookmark to a client that allows them.
func (s *stream) mark() error {
	if !s.bookmarks {
		return nil
	}
	return s.bookmark(false)
}

// streamPiece is what a stream gathers before it writes: more would hardly save
// anything, and every watcher whose client is slow holds that much.
const streamPiece = 16 << 10

// append keeps what a frame was appended to, and writes when that is much.
func (s *stream) append(b []byte, err error) error {
	if err != nil {
		return err
	}
	s.out.buf = b
	if len(b) < streamPiece {
		return nil
	}
	return s.out.next(s.ctx)
}

// end finishes the stream. Where the client asked for the end, or the server
// stops, it is a clean one behind a last bookmark; else an ERROR event says why.
func (s *stream) end(err error) error {
	var expired *store.ExpiredError
	switch {
	case err == nil, errors.Is(err, errClientGone):
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, store.ErrClosed):
		err = s.mark()
	case errors.As(err, &expired):
		err = s.append(s.frames.AppendError(s.out.buffer(), statusOf(apierrors.NewResourceExpired(textExpiredWatch))))
	default:
		st := statusOf(err)
		if st.Code == http.StatusInternalServerError {
			s.log.Error("watch ended", "error", err)
		}
		err = s.append(s.frames.AppendError(s.out.buffer(), st))
	}
	if err == nil {
		_ = s.out.flush() // nobody is left to be told
	}
	return nil
}
