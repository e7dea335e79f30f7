package stream

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/codec/wire"
)

// A watch may go over a WebSocket, which programs in a browser can read. It is the
// same watch, with the same limits, but each event is a message of its own, and the
// stream ends with a close.

const (
	// protocolHeader names the subprotocols that a client offers.
	protocolHeader = "Sec-Websocket-Protocol"
	// tokenProtocol begins the subprotocol that carries a token, because
	// programs in a browser can set no Authorization header.
	tokenProtocol = "base64url.bearer.authorization.k8s.io."
)

// wantsWebSocket reports whether a request asks for an upgrade (RFC 6455 section 4.1).
// Only watches upgrade; other verbs answer it like any request.
func wantsWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		slices.ContainsFunc(elements(r.Header["Connection"]), func(text string) bool { return strings.EqualFold(text, "upgrade") })
}

// elements are the parts of a header that is a list.
func elements(values []string) []string {
	var all []string
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			all = append(all, strings.TrimSpace(part))
		}
	}
	return all
}

// SocketToken is middleware that moves a token from the subprotocols of a WebSocket to
// the Authorization header, so that all rules for tokens apply to it. As in
// kube-apiserver the client must offer another subprotocol too, which the answer selects:
// browsers accept no answer without one.
func SocketToken(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if r := c.Request(); wantsWebSocket(r) {
			takeToken(r.Header)
		}
		return next(c)
	}
}

func takeToken(h http.Header) {
	var tokens, others []string
	for _, protocol := range elements(h[protocolHeader]) {
		if token, ok := strings.CutPrefix(protocol, tokenProtocol); ok {
			tokens = append(tokens, token)
		} else if protocol != "" {
			others = append(others, protocol)
		}
	}
	h[protocolHeader] = others // a token is never sent back
	if len(others) == 0 {
		tokens = nil
	}
	for _, token := range tokens {
		if text, err := base64.RawURLEncoding.DecodeString(token); err == nil {
			h.Add("Authorization", "Bearer "+string(text))
		}
	}
}

// socket is a response that becomes a WebSocket when it begins. Each write to it has
// whole frames of a watch.
type socket struct {
	http.ResponseWriter
	res    *echo.Response
	req    *http.Request
	binary bool               // the frames are protobuf
	gone   context.CancelFunc // the client has left
	conn   *websocket.Conn    // nil: there is none yet
	failed bool               // and there will be none
}

// upgradable lets the watch that follows go over a WebSocket, if the request
// asks for one. The upgrade comes with the first byte, so that an error before it is
// answered as any other. The caller calls end when the watch is over.
func (s *Streams) upgradable(c echo.Context, f codec.Format) (end func()) {
	req := c.Request()
	if !wantsWebSocket(req) {
		return func() {}
	}
	release, err := s.hold()
	if err != nil {
		return func() {} // the watch will be refused
	}
	ctx, gone := context.WithCancel(req.Context())
	c.SetRequest(req.WithContext(ctx))
	w := &socket{
		ResponseWriter: c.Response().Writer, res: c.Response(), req: req, gone: gone, binary: f.Media == wire.Protobuf,
	}
	c.Response().Writer = w
	return func() {
		if w.conn != nil {
			_ = w.conn.Close(websocket.StatusNormalClosure, "") // a client that is gone needs none
		}
		gone()
		release()
	}
}

// WriteHeader upgrades the connection when the watch begins.
func (w *socket) WriteHeader(code int) {
	if code != http.StatusOK {
		w.ResponseWriter.WriteHeader(code)
		return
	}
	w.Header().Del("Content-Type") // messages have none
	conn, err := accept(w.res, w.ResponseWriter, w.req)
	if err != nil {
		w.failed = true
		w.gone()
		return
	}
	w.conn = conn
	go w.listen()
}

// accept answers a request with the upgrade, or with an error, and notes the status.
func accept(res *echo.Response, w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: r.Header[protocolHeader], // the first that is offered
		// Any page may ask: the token shows the caller, and there are no cookies.
		InsecureSkipVerify: true,
	})
	res.Status = http.StatusSwitchingProtocols
	if err != nil {
		res.Status = http.StatusBadRequest
	}
	return conn, err
}

// listen reads what the client sends, which means nothing but for pings and
// the close.
func (w *socket) listen() {
	defer w.gone()
	for {
		_, message, err := w.conn.Reader(context.Background())
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, message); err != nil {
			return // it is longer than anybody needs
		}
	}
}

// Write sends each of the frames as a message. Each write has the deadline of every
// other connection: a client that does not read in time is cut off.
func (w *socket) Write(frames []byte) (int, error) {
	switch {
	case w.failed:
		return 0, httpio.ErrClientGone
	case w.conn == nil: // an error before the watch began
		return w.ResponseWriter.Write(frames)
	}
	kind := websocket.MessageText
	if w.binary {
		kind = websocket.MessageBinary
	}
	for rest := frames; len(rest) > 0; {
		var message []byte
		message, rest = w.cut(rest)
		if err := w.conn.Write(context.Background(), kind, message); err != nil {
			return 0, err
		}
	}
	return len(frames), nil
}

// cut takes the first message from frames: in JSON a line, in protobuf what
// follows its length.
func (w *socket) cut(frames []byte) (message, rest []byte) {
	if w.binary {
		n := 4 + int(binary.BigEndian.Uint32(frames))
		return frames[4:n], frames[n:]
	}
	n := bytes.IndexByte(frames, '\n') + 1
	return frames[:n], frames[n:]
}

// FlushError has nothing to do: messages are sent as they are written.
func (w *socket) FlushError() error { return nil }
