package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// watch streams the changes of a selection (events-api.md 3.4 and 4). What is
// wrong before the first byte is an ordinary error; later, and for a version
// that is gone or to come, an ERROR event ends the stream.
func (r *resource) watch(c echo.Context, o metav1.ListOptions, sel event.Selection, f codec.Format) error {
	rv, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), watchTime(o))
	defer cancel()
	done, err := r.watches.add(client(c.Request()), cancel)
	if err != nil {
		return err
	}
	defer done()

	s := r.newStream(c, f, o.AllowWatchBookmarks)
	return s.run(ctx, rv, sel, o.SendInitialEvents != nil && *o.SendInitialEvents)
}

// stream is one watch: its place in the history and what is to be written.
type stream struct {
	r         *resource
	frames    *codec.Frames
	out       *flusher
	bookmarks bool
	revision  uint64 // everything up to here was sent
}

func (r *resource) newStream(c echo.Context, f codec.Format, bookmarks bool) *stream {
	return &stream{
		r: r, frames: r.codec.NewFrames(f, r.view), bookmarks: bookmarks,
		out: newFlusher(c, f.ContentType(true)),
	}
}

// run writes the stream until it ends. It returns an error only when nothing
// was written.
func (s *stream) run(ctx context.Context, rv uint64, sel event.Selection, initial bool) error {
	if current := s.r.store.Revision(); rv > current && initial {
		return s.end(tooLarge(rv, current, 1+rand.IntN(4)))
	}
	var first *pages
	if initial {
		// An old version is fine: the state is sent as it is now.
		var err error
		if first, err = s.r.pages(ctx, metav1.ListOptions{}, sel); err != nil {
			return err
		}
		s.revision = first.page.Revision
	} else if s.revision = rv; rv == 0 {
		s.revision = s.r.store.Revision()
	}
	w, err := s.r.store.Watch(ctx, store.WatchQuery{
		Namespace: sel.Namespace, Name: sel.Name, After: s.revision, Selector: sel.Selector,
	})
	if err != nil {
		return s.end(err)
	}
	defer w.Close()
	if err := s.out.flush(); err != nil { // the headers, before there is any event
		return nil
	}
	if initial {
		if err := s.initial(ctx, first); err != nil {
			return s.end(err)
		}
	}
	return s.end(s.changes(ctx, w))
}

// initial sends the state that the stream begins with, and the bookmark that
// tells informers that this was all of it.
func (s *stream) initial(ctx context.Context, p *pages) error {
	for {
		for i := range p.page.Records {
			if err := s.append(s.frames.AppendInitial(s.out.buf, &p.page.Records[i])); err != nil {
				return err
			}
		}
		if p.done {
			break
		}
		if err := p.next(ctx); err != nil {
			return err
		}
	}
	if s.bookmarks {
		if err := s.append(s.frames.AppendBookmark(s.out.buf, s.revision, true)); err != nil {
			return err
		}
	}
	return s.out.flush()
}

// changes sends what happens until the context ends or the watcher fails.
// Whatever is waiting is written together.
func (s *stream) changes(ctx context.Context, w store.Watcher) error {
	waiting, cancel := s.untilBookmark(ctx)
	defer func() { cancel() }()
	for {
		batch, err := w.Next(waiting)
		switch {
		case err == nil:
			for _, d := range batch.Changes {
				if err := s.append(s.frames.AppendDelivery(s.out.buf, d)); err != nil {
					return err
				}
			}
			s.revision = max(s.revision, batch.Revision)
			if len(batch.Changes) == 0 {
				continue
			}
		case waiting.Err() != nil && ctx.Err() == nil: // time for a bookmark
			cancel()
			waiting, cancel = s.untilBookmark(ctx)
			if err := s.bookmark(); err != nil {
				return err
			}
		default:
			return err
		}
		if err := s.out.flush(); err != nil {
			return err
		}
	}
}

// untilBookmark is the context in which the watch waits: the next bookmark
// ends it, somewhat at random so that not all watches write at once.
func (s *stream) untilBookmark(ctx context.Context) (context.Context, context.CancelFunc) {
	if !s.bookmarks {
		return ctx, func() {}
	}
	d := s.r.Bookmarks
	return context.WithTimeout(ctx, d-d/10+rand.N(d/5+1))
}

func (s *stream) bookmark() error {
	if !s.bookmarks || s.revision == 0 {
		return nil
	}
	return s.append(s.frames.AppendBookmark(s.out.buf, s.revision, false))
}

// append keeps what a frame was appended to, and writes when that is much.
func (s *stream) append(b []byte, err error) error {
	if err != nil {
		return err
	}
	s.out.buf = b
	if len(b) < gzipFrom {
		return nil
	}
	return s.out.flush()
}

// end finishes the stream. Where the client asked for the end, or the server
// stops, it is a clean one behind a last bookmark; else an ERROR event says why.
func (s *stream) end(err error) error {
	var expired *store.ExpiredError
	switch {
	case err == nil, errors.Is(err, errClientGone):
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, store.ErrClosed):
		err = s.bookmark()
	case errors.As(err, &expired):
		err = s.append(s.frames.AppendError(s.out.buf, statusOf(apierrors.NewResourceExpired(textExpiredWatch))))
	default:
		st := statusOf(s.r.errorFor(err, ""))
		if st.Code >= http.StatusInternalServerError && st.Reason != metav1.StatusReasonTimeout {
			s.r.log.Error("watch ended", "error", err)
		}
		err = s.append(s.frames.AppendError(s.out.buf, st))
	}
	if err == nil {
		_ = s.out.flush() // nobody is left to be told
	}
	return nil
}

// flusher writes frames to one client.
type flusher struct {
	res      *echo.Response
	rc       *http.ResponseController
	buf      []byte
	deadline time.Time
}

func newFlusher(c echo.Context, contentType string) *flusher {
	c.Response().Header()["Content-Type"] = []string{contentType}
	return &flusher{res: c.Response(), rc: http.NewResponseController(c.Response().Writer)}
}

// flush writes what has gathered, and the headers if they are still to come. A
// client that does not read for long is cut off; it can resume.
func (o *flusher) flush() error {
	if !o.res.Committed {
		o.res.WriteHeader(http.StatusOK)
	}
	if now := time.Now(); o.deadline.Sub(now) < slowReader/2 {
		o.deadline = now.Add(slowReader)
		_ = o.rc.SetWriteDeadline(o.deadline) // writers of tests have none
	}
	if len(o.buf) > 0 {
		if _, err := o.res.Writer.Write(o.buf); err != nil {
			return errClientGone
		}
	}
	if cap(o.buf) > maxKept {
		o.buf = nil // a burst has passed
	} else {
		o.buf = o.buf[:0]
	}
	if err := o.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errClientGone
	}
	return nil
}
