package stream

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/bearer"
)

// Source says what a stream is about and makes its frames.
type Source interface {
	// Begin reads the first of the state that the stream begins with and returns the
	// revision of that state. Its error is answered as any other.
	Begin(ctx context.Context) (revision uint64, err error)
	// Initial sends that state.
	Initial(ctx context.Context, s *Stream) error
	// Deliver sends what a change of the store means for the stream.
	Deliver(ctx context.Context, s *Stream, d store.Delivery) error
	// Bookmark sends a bookmark at the stream's revision. initialEnd marks the one
	// after the state that the stream begins with.
	Bookmark(s *Stream, initialEnd bool) error
}

// Stream is one watch: its position in the history and what is to be written.
type Stream struct {
	Frames   *codec.Frames
	Revision uint64 // everything up to it was sent

	streams   *Streams
	source    Source
	out       *httpio.Writer
	room      *flow.Room // of frames and of what the store has read for them
	bookmarks bool
	ctx       context.Context // ends when the watch has to
	changes   store.Watcher
	atEnd     []func()
}

// Open counts a watch in and writes what it begins with. It returns an error only
// when nothing was written, and otherwise follow, which writes the rest until the
// stream ends. The handler calls follow when it holds nothing else: a watch waits
// nearly all the time, and thousands wait on stacks as large as what they hold.
func (t *Streams) Open(c echo.Context, may access.Grant, o metav1.ListOptions, q store.WatchQuery, f codec.Format, frames *codec.Frames, source Source) (follow func(), err error) {
	room := t.Guard.Room(access.Client(c.Request()))
	s := &Stream{
		room: room, Frames: frames, streams: t, source: source, bookmarks: o.AllowWatchBookmarks,
		out: t.IO.Writer(c, http.StatusOK, f.ContentType(true)), atEnd: []func(){room.Free},
	}
	defer func() {
		if follow == nil {
			s.close()
		}
	}()
	// 1. The version to begin at, and the limits of watches.
	rv, err := httpio.ParseVersion(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if err := s.admit(c, may, o); err != nil {
		return nil, err
	}
	ctx := s.ctx
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	current := t.Store.Revision()
	if rv > current {
		return nil, s.end(httpio.TooLarge(rv, current, 1+rand.IntN(4)))
	}
	s.Revision = cmp.Or(rv, current)
	if initial { // an old version is fine: the state is sent as it is now
		if err := room.Take(ctx, readRoom); err != nil {
			return nil, httpio.Unread(err)
		}
		if s.Revision, err = source.Begin(ctx); err != nil {
			if ctx.Err() != nil { // the watch is over before it has begun
				err = s.end(ctx.Err())
			}
			return nil, err
		}
	}
	// 2. The changes after it: from here on none is missed.
	q.After = s.Revision
	if s.changes, err = t.Store.Watch(ctx, q); err != nil {
		return nil, s.end(err)
	}
	s.atEnd = append(s.atEnd, s.changes.Close)
	// 3. The headers, before there is any event.
	if err := s.out.Next(ctx); err != nil {
		return nil, s.end(err)
	}
	// 4. The state at the beginning.
	if initial {
		if err := s.initial(ctx); err != nil {
			return nil, s.end(err)
		}
	}
	return s.follow, nil
}

// admit counts a watch in. Its context ends when the watch has to: after a time, some
// time after its token, when it is no longer allowed, or with the request.
func (s *Stream) admit(c echo.Context, may access.Grant, o metav1.ListOptions) error {
	req := c.Request()
	caller, ok := bearer.FromContext(req.Context())
	if !ok {
		return apierrors.NewUnauthorized("Unauthorized")
	}
	ctx, cancel := context.WithTimeout(req.Context(), s.streams.limit(caller, httpio.WatchTime(o)))
	w := &watch{caller: caller, namespace: c.Param("namespace"), may: may, end: cancel}
	done, err := s.streams.add(access.Client(req), w)
	if err != nil {
		cancel()
		return err
	}
	if !s.streams.allowed(w) { // the policy has changed between the decision and the count
		cancel()
	}
	s.ctx = ctx
	s.atEnd = append(s.atEnd, func() { done(); cancel() })
	return nil
}

// follow writes what happens until the stream ends.
func (s *Stream) follow() {
	defer s.close()
	s.out.Leave()
	_ = s.end(s.deliver(s.ctx))
}

// close gives back what the stream has, last things first.
func (s *Stream) close() {
	for _, end := range slices.Backward(s.atEnd) {
		end()
	}
}

// initial sends the state that the stream begins with, and the bookmark that tells
// informers that this was all of it.
func (s *Stream) initial(ctx context.Context) error {
	if err := s.source.Initial(ctx, s); err != nil {
		return err
	}
	if s.bookmarks {
		if err := s.source.Bookmark(s, true); err != nil {
			return err
		}
	}
	return s.out.Next(ctx)
}

// deliver sends what happens until the context ends or the watcher fails. Whatever is
// waiting is written together.
func (s *Stream) deliver(ctx context.Context) error {
	waiting, cancel := s.untilBookmark(ctx)
	defer func() { cancel() }()
	for {
		if err := CatchUp(ctx, s.changes, s.room); err != nil {
			return err
		}
		batch, err := s.changes.Next(waiting)
		switch {
		case ctx.Err() != nil: // also while changes go on: nothing is sent after the end
			return ctx.Err()
		case err == nil:
			for i := range batch.Changes {
				if err := s.Reserve(ctx, len(batch.Changes[i].Object.Value)); err != nil {
					return err
				}
				if err := s.source.Deliver(ctx, s, batch.Changes[i]); err != nil {
					return err
				}
			}
			s.Revision = max(s.Revision, batch.Revision)
		case waiting.Err() != nil: // time for a bookmark
			cancel()
			waiting, cancel = s.untilBookmark(ctx)
			if err := s.mark(); err != nil {
				return err
			}
		default:
			return err
		}
		if err := s.out.Flush(); err != nil {
			return err
		}
	}
}

// untilBookmark is the context in which the watch waits: the next bookmark ends it,
// somewhat at random so that not all watches write at once.
func (s *Stream) untilBookmark(ctx context.Context) (context.Context, context.CancelFunc) {
	if !s.bookmarks {
		return ctx, func() {}
	}
	d := s.streams.Bookmarks
	return context.WithTimeout(ctx, d-d/10+rand.N(d/5+1))
}

// mark sends a bookmark to a client that allows them.
func (s *Stream) mark() error {
	if !s.bookmarks {
		return nil
	}
	return s.source.Bookmark(s, false)
}

const (
	// piece is what a stream gathers before it writes: more would hardly save anything.
	piece = 16 << 10
	// smallPiece is the same without room. Every watch whose client is slow holds that much.
	smallPiece = 4 << 10
	// readRoom is for what the store has read for one stream: the records, and their frames.
	readRoom = 2 * store.ReplayBytes
)

// CatchUp takes room before changes are read that other watches do not share, and gives
// it back when there are none.
func CatchUp(ctx context.Context, changes store.Watcher, room *flow.Room) error {
	room.Free()
	if !changes.Behind() {
		return nil
	}
	return httpio.Unread(room.Take(ctx, readRoom))
}

// Reserve takes room for the frame of an event of some size, if it is large: the frame is
// for this stream alone.
func (s *Stream) Reserve(ctx context.Context, size int) error {
	n := 2 * size
	if n <= piece || n <= s.room.Bytes() {
		return nil
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	s.out.Yield()
	s.room.Free() // nobody waits for what one has who waits
	if err := s.room.Take(ctx, n); err != nil {
		return httpio.Unread(err)
	}
	return s.out.Next(ctx)
}

// Buffer is what the next frame is appended to.
func (s *Stream) Buffer() []byte { return *s.out.Frames() }

// Append takes the buffer to which a frame was appended, or the error of that. It
// writes when enough has gathered.
func (s *Stream) Append(b []byte, err error) error {
	if err != nil {
		return err
	}
	if n := cap(b); n > 2*piece { // a text may take several times the room of what is stored
		if err := s.room.Grow(n); err != nil {
			return httpio.Unread(err) // the frame is left out, so that there is room to say why the watch ends
		}
	}
	*s.out.Frames() = b
	if len(b) < smallPiece || len(b) < piece && (s.room.Bytes() > 0 || s.room.Spare(piece)) {
		return nil
	}
	return s.out.Next(s.ctx)
}

// end finishes the stream. If the client asked for the end, or the server stops, it
// ends after a last bookmark; otherwise an ERROR event says why.
func (s *Stream) end(err error) error {
	switch {
	case err == nil, errors.Is(err, httpio.ErrClientGone):
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, store.ErrClosed):
		err = s.mark()
	default:
		if _, ok := errors.AsType[*store.ExpiredError](err); ok {
			err = apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
		}
		st := httpio.StatusOf(err)
		s.streams.IO.Count(err)
		if st.Code == http.StatusInternalServerError {
			s.streams.Log.Error("watch ended", "error", err)
		}
		err = s.Append(s.Frames.AppendError(s.Buffer(), st))
	}
	if err == nil {
		_ = s.out.Flush() // nobody is left to be told
	}
	return nil
}
