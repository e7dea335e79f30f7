package stream

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/shared/bearer"
)

// maxTails is how many sockets of one client may be open, as in Loki: each matches every
// change.
const maxTails = 10

// Socket is a WebSocket for a tail of Loki's API. It counts as a watch, has a limit besides, and ends like a watch:
// some time after its token, when it is no longer allowed, and when the server stops.
type Socket struct {
	ctx    context.Context
	cancel context.CancelFunc
	c      echo.Context
	conn   *websocket.Conn
	room   *flow.Room // of messages and of what they are made of
	end    func()     // gives back what the socket has
}

// Socket counts a socket in. Nothing is written before [Socket.Accept], so that an error
// until then is answered as any other. The caller must call [Socket.Close].
func (s *Streams) Socket(c echo.Context, allowed func() bool) (*Socket, error) {
	req := c.Request()
	caller, ok := bearer.FromContext(req.Context())
	if !ok {
		return nil, apierrors.NewUnauthorized("Unauthorized")
	}
	if !wantsWebSocket(req) {
		return nil, apierrors.NewBadRequest("this path is a WebSocket: the request must ask for an upgrade")
	}
	release, err := s.hold()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), s.limit(caller, math.MaxInt64))
	done, err := s.add(access.Client(req), &watch{caller: caller, allowed: allowed, tail: true, end: cancel})
	if err != nil {
		cancel()
		release()
		return nil, err
	}
	room := s.Guard.Room(access.Client(req))
	return &Socket{ctx: ctx, cancel: cancel, c: c, room: room, end: func() { room.Free(); cancel(); done(); release() }}, nil
}

// Room is what the socket takes. [CatchUp] gives it back.
func (s *Socket) Room() *flow.Room { return s.room }

// Context ends when the socket has to end, or its client has left.
func (s *Socket) Context() context.Context { return s.ctx }

// Accept answers the request with the upgrade. After an error, which is answered already,
// nothing can be sent.
func (s *Socket) Accept() error {
	res := s.c.Response()
	conn, err := websocket.Accept(res.Writer, s.c.Request(), &websocket.AcceptOptions{
		InsecureSkipVerify: true, // any page may ask: only the token names the caller, cookies do not count
	})
	res.Committed = true
	if err != nil {
		res.Status = http.StatusBadRequest
		return httpio.ErrClientGone
	}
	res.Status = http.StatusSwitchingProtocols
	s.conn = conn
	left := conn.CloseRead(context.Background()) // what the client sends means nothing; the end of s.ctx must leave time for a close
	context.AfterFunc(left, s.cancel)
	return nil
}

// Send sends a message. Each write has the deadline of every other connection: a client
// that does not read in time is cut off. A large message takes room.
func (s *Socket) Send(message []byte) error {
	if n := cap(message); n > piece {
		if err := s.room.Grow(n); err != nil {
			return err
		}
	}
	return s.conn.Write(context.Background(), websocket.MessageText, message)
}

// Close ends the socket, with a reason for the client.
func (s *Socket) Close(reason string) {
	if s.conn != nil {
		_ = s.conn.Close(websocket.StatusNormalClosure, reason) // a client that is gone needs none
	}
	s.end()
}

// wantsWebSocket reports whether a request asks for an upgrade (RFC 6455 section 4.1).
func wantsWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		slices.ContainsFunc(r.Header["Connection"], func(value string) bool {
			for option := range strings.SplitSeq(value, ",") {
				if strings.EqualFold(strings.TrimSpace(option), "upgrade") {
					return true
				}
			}
			return false
		})
}
