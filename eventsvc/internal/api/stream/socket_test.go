package stream_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/api/stream"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/shared/bearer"
	"tidings.example/shared/waittest"
)

// direct is streams without a server around them.
type direct struct {
	*stream.Streams
	*prometheus.Registry
}

func newDirect(t *testing.T, changes ...func(*stream.Config)) *direct {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	c := stream.Config{
		IO: httpio.New(log, 0, nil), Guard: access.New(apitest.OpenPolicy, nil, 100, 100, access.Rates{}, time.Now), Log: log, Now: time.Now,
		Max: 100, MaxClient: 100, Bookmarks: time.Hour, Withdrawn: apitest.NotWithdrawn,
	}
	for _, change := range changes {
		change(&c)
	}
	d := &direct{stream.New(c), prometheus.NewRegistry()}
	d.MustRegister(slices.Concat(c.Guard.Collectors(), d.Collectors())...)
	return d
}

// open is how many watches are open.
func (d *direct) open(t *testing.T) float64 {
	t.Helper()
	return apitest.Sum(t, d.Registry, "eventsvc_watches")
}

// unread is how much room is taken.
func (d *direct) unread(t *testing.T) float64 {
	t.Helper()
	return apitest.Sum(t, d.Registry, "eventsvc_answers_unread_bytes")
}

// fill takes all room of a client, and returns it.
func (d *direct) fill(client string) *flow.Room {
	room := d.Guard.Room(apitest.Issuer + "\x00" + client)
	for n := 1 << 30; n > 0; n /= 2 {
		for room.Try(n) == nil {
		}
	}
	return room
}

// asking is a request of a caller, of nobody if that is nil. Headers are pairs of name and value.
func asking(t *testing.T, caller *bearer.Caller, headers ...string) (c echo.Context, rec *httptest.ResponseRecorder) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	rec = httptest.NewRecorder()
	c = echo.New().NewContext(req, rec)
	if caller != nil {
		if err := bearer.Admit(c, caller, nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	return c, rec
}

// client is a caller.
func client(name string) *bearer.Caller {
	return &bearer.Caller{Issuer: apitest.Issuer, Subject: name, ClientID: name, KeyID: "k1"}
}

// upgrade are the headers that ask for a WebSocket.
var upgrade = []string{"Connection", "keep-alive, Upgrade", "Upgrade", "WebSocket"}

func always() bool { return true }

// TestSocketsAreBounded: sockets are bounded in all, of a client, and apart from other watches. One that is refused
// takes nothing, and one that is closed makes room for another.
func TestSocketsAreBounded(t *testing.T) {
	t.Parallel()
	for limit, c := range map[string]struct{ most, mostOfClient, fit int }{
		"client-tails": {100, 100, 10}, "client-watches": {100, 3, 3}, "watches": {2, 100, 2},
	} {
		synctest.Test(t, func(t *testing.T) { // in which a wait that never ends is a failure
			d := newDirect(t, func(config *stream.Config) { config.Max, config.MaxClient = c.most, c.mostOfClient })
			open := func(name string) (*stream.Socket, error) {
				request, _ := asking(t, client(name), upgrade...)
				return d.Socket(request, always)
			}
			var sockets []*stream.Socket
			for range c.fit {
				s, err := open("a")
				if err != nil {
					t.Fatalf("%s: only %d are open: %v", limit, len(sockets), err)
				}
				sockets = append(sockets, s)
			}
			_, err := open("a")
			if beyond, ok := errors.AsType[*event.LimitError](err); !ok || beyond.Limit != limit || !apierrors.IsTooManyRequests(err) {
				t.Errorf("%s: one more: %v", limit, err)
			}
			if other, err := open("b"); (err == nil) != (limit != "watches") {
				t.Errorf("%s: another client: %v", limit, err)
			} else if err == nil {
				other.Close("")
			}
			sockets[0].Close("")
			if sockets[0], err = open("a"); err != nil {
				t.Errorf("%s: another one instead: %v", limit, err)
			}
			apitest.Equal(t, d.open(t), float64(c.fit))
			for _, s := range sockets {
				s.Close("")
			}
			apitest.Equal(t, d.open(t), 0.0)
			d.Drain(t.Context()) // ends, so none is held
		})
	}
}

// TestSocketsAreRefused: a socket is for a caller that asks for an upgrade while the server does not stop.
func TestSocketsAreRefused(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	refused := func(code int32, retry int32, caller *bearer.Caller, headers ...string) {
		t.Helper()
		c, _ := asking(t, caller, headers...)
		_, err := d.Socket(c, always)
		status, ok := errors.AsType[*apierrors.StatusError](err)
		if !ok || status.Status().Code != code || retry > 0 && status.Status().Details.RetryAfterSeconds != retry {
			t.Errorf("with %q: %v, want %d", headers, err, code)
		}
	}
	refused(401, 0, nil, upgrade...)
	for _, headers := range [][]string{
		{}, {"Upgrade", "websocket"}, {"Connection", "Upgrade"}, {"Connection", "close", "Upgrade", "websocket"}, {"Connection", "upgrade", "Upgrade", "h2c"},
	} {
		refused(400, 0, client("a"), headers...)
	}
	d.Drain(t.Context())
	refused(429, 5, client("a"), upgrade...)
	apitest.Equal(t, d.open(t), 0.0)
}

// TestSocketsEnd: what is over for a socket ends its context at once, and not that of others. Its client is counted
// until the handler closes it.
func TestSocketsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		withdrawn, asked, allowed := map[string]bool{}, 0, map[string]bool{"a": true, "b": true, "c": true}
		d := newDirect(t, func(c *stream.Config) {
			c.AfterExpiry = time.Minute
			c.Withdrawn = func(_ context.Context, caller *bearer.Caller) bool {
				asked++
				return withdrawn[caller.KeyID]
			}
		})
		sockets := map[string]*stream.Socket{}
		for name, caller := range map[string]*bearer.Caller{"a": client("a"), "b": client("b"), "c": client("c"), "short": client("short")} {
			caller.KeyID = map[string]string{"c": "k2"}[name]
			if name == "short" {
				caller.Expires = time.Now().Add(time.Hour)
				allowed[name] = true
			}
			c, _ := asking(t, caller, upgrade...)
			var err error
			if sockets[name], err = d.Socket(c, func() bool { return allowed[name] }); err != nil {
				t.Fatal(err)
			}
		}
		over := func(want ...string) {
			t.Helper()
			var names []string
			for name, s := range sockets {
				if s.Context().Err() != nil {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			apitest.Equal(t, names, want)
		}
		over()
		began := time.Now()
		<-sockets["short"].Context().Done()
		apitest.Equal(t, time.Since(began), time.Hour+time.Minute) // its token and what it may have then
		over("short")
		sockets["short"].Close("")

		d.PolicyChanged()
		over("short")
		allowed["a"] = false
		d.PolicyChanged()
		over("a", "short")
		sockets["a"].Close("")

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		withdrawn["k2"] = true
		began = time.Now()
		go func() { ended <- d.Run(ctx) }()
		<-sockets["c"].Context().Done()
		apitest.Equal(t, time.Since(began), time.Second)
		synctest.Wait()
		over("a", "c", "short")
		apitest.Equal(t, asked, 2) // once for each key
		stop()
		apitest.Equal(t, <-ended, nil)
		apitest.Equal(t, d.open(t), 2.0)
		sockets["c"].Close("")
		sockets["b"].Close("")
		apitest.Equal(t, d.open(t), 0.0)
	})
}

// TestKeysAreLookedUpOnce: however many sockets depend on a key, it is looked up once a second.
func TestKeysAreLookedUpOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan string, 10)
		d := newDirect(t, func(c *stream.Config) {
			c.Withdrawn = func(_ context.Context, caller *bearer.Caller) bool {
				asked <- caller.Issuer + " " + caller.KeyID
				return false
			}
		})
		for range 3 {
			c, _ := asking(t, client("a"), upgrade...)
			s, err := d.Socket(c, always)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close("")
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		began := time.Now()
		go func() { _ = d.Run(ctx) }()
		for second := range 3 {
			apitest.Equal(t, <-asked, apitest.Issuer+" k1")
			apitest.Equal(t, time.Since(began), time.Duration(1+second)*time.Second)
		}
	})
}

// TestDrainWaitsForSockets: it ends each socket, and returns when its handler has closed it, or with its own context.
func TestDrainWaitsForSockets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDirect(t)
		c, _ := asking(t, client("a"), upgrade...)
		s, err := d.Socket(c, always)
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d.Drain(short)
		if short.Err() == nil || s.Context().Err() == nil {
			t.Errorf("it returned before the socket was closed: %v, whose context: %v", short.Err() == nil, s.Context().Err())
		}
		drained := make(chan struct{})
		go func() { d.Drain(t.Context()); close(drained) }()
		synctest.Wait()
		select {
		case <-drained:
			t.Error("it returned before the socket was closed")
		default:
		}
		s.Close("")
		<-drained
	})
}

// serveSockets serves sockets to the callers of [apitest.ByName], with what a handler does with an accepted one.
func serveSockets(t *testing.T, d *direct, handle func(*stream.Socket)) (url string, accepted <-chan error) {
	t.Helper()
	e, results := echo.New(), make(chan error, 1)
	e.HTTPErrorHandler = d.IO.Fail
	e.GET("/", func(c echo.Context) error {
		s, err := d.Socket(c, always)
		if err != nil {
			return err
		}
		defer s.Close("all is said")
		err = s.Accept()
		if results <- err; err == nil {
			handle(s)
		}
		return nil
	}, bearer.Middleware(apitest.ByName, nil, nil))
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	return srv.URL, results
}

// dial opens a socket.
func dial(t *testing.T, url string) *apitest.Tailed {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer a"}}}) //nolint:bodyclose // by the library
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &apitest.Tailed{T: t, Conn: conn}
}

// TestSocketSends: a client gets each message and the reason of the end. A large message takes room until the end.
func TestSocketSends(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	large := strings.Repeat("x", 100<<10)
	url, _ := serveSockets(t, d, func(s *stream.Socket) {
		for message, room := range map[string]float64{"small": 0, large: float64(len(large))} {
			before := d.unread(t)
			if err := s.Send([]byte(message)); err != nil {
				t.Error(err)
			}
			if grown := d.unread(t) - before; grown < room || room == 0 && grown > 0 {
				t.Errorf("a message of %d bytes takes %v", len(message), grown)
			}
		}
	})
	c := dial(t, url)
	got := map[string]bool{}
	for range 2 {
		message, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		got[string(message)] = true
	}
	if !got["small"] || !got[large] {
		t.Error("a message is missing, or is another")
	}
	_, err := c.Read()
	closed, ok := errors.AsType[websocket.CloseError](err)
	if !ok || closed.Code != websocket.StatusNormalClosure || closed.Reason != "all is said" {
		t.Errorf("the end: %v", err)
	}
	d.Drain(t.Context())
	if open, unread := d.open(t), d.unread(t); open+unread > 0 {
		t.Errorf("at the end %v are open, and take %v", open, unread)
	}
}

// TestSocketWithoutRoom: while a client does not read its other answers, a large message to it is refused, and a small
// one is not.
func TestSocketWithoutRoom(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	d.fill("a")
	url, _ := serveSockets(t, d, func(s *stream.Socket) {
		if err := s.Send(make([]byte, 100<<10)); !errors.Is(err, flow.ErrUnreadOfFlow) {
			t.Errorf("a large message: %v", err)
		}
		if err := s.Send([]byte("small")); err != nil {
			t.Errorf("a small message: %v", err)
		}
	})
	message, err := dial(t, url).Read()
	if err != nil || string(message) != "small" {
		t.Errorf("%q, %v", message, err)
	}
}

// TestSocketOfAClientThatLeaves: its context ends, and then nothing can be sent.
func TestSocketOfAClientThatLeaves(t *testing.T) {
	t.Parallel()
	d, left := newDirect(t), make(chan struct{})
	url, accepted := serveSockets(t, d, func(s *stream.Socket) {
		<-s.Context().Done()
		close(left)
	})
	c := dial(t, url)
	apitest.Equal(t, waittest.Within(t, accepted), nil)
	_ = c.Conn.CloseNow()
	waittest.Within(t, left)
	d.Drain(t.Context())
	apitest.Equal(t, d.open(t), 0.0)
}

// TestHandshakeThatFails: it is answered once, and its handler knows.
func TestHandshakeThatFails(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	c, rec := asking(t, client("a"), append(slices.Clone(upgrade), "Sec-WebSocket-Version", "12")...)
	s, err := d.Socket(c, always)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Accept(); !errors.Is(err, httpio.ErrClientGone) || rec.Code != http.StatusBadRequest || !c.Response().Committed {
		t.Errorf("%d, committed: %v, %v", rec.Code, c.Response().Committed, err)
	}
	s.Close("")
	d.Drain(t.Context())
	apitest.Equal(t, d.open(t), 0.0)
}
