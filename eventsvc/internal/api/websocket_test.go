package api_test

import (
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tidings.example/eventsvc/internal/api"
)

// TestWebSocketDrain: a stop ends WebSockets too, waits for their close, and
// is not held up by a client that does not answer it.
func TestWebSocketDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *api.Config) { c.Bookmarks = time.Millisecond })
	w.do("POST", eventsPath, newEvent("a")).must(201)
	srv := w.serve()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	token := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte("good"))
	dial := func() (*websocket.Conn, *http.Response, error) {
		return websocket.Dial(ctx, srv.URL+eventsPath+"?watch=true&allowWatchBookmarks=true",
			&websocket.DialOptions{Subprotocols: []string{token, "one", "two"}, HTTPHeader: http.Header{"Origin": {"https://elsewhere.example"}}})
	}
	open := make([]*websocket.Conn, 4)
	for i := range open {
		conn, res, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.CloseNow() }() // closed already, but for the first
		equal(t, res.Header.Get("Sec-WebSocket-Protocol"), "one")
		if _, message, err := conn.Read(ctx); err != nil || !strings.HasPrefix(string(message), `{"type":"ADDED"`) {
			t.Fatalf("%v: %s", err, message)
		}
		open[i] = conn
	}
	ended := make(chan error, len(open))
	for _, conn := range open[1:] { // the first is not read: it does not answer the close
		go func() {
			for {
				if _, _, err := conn.Read(ctx); err != nil {
					ended <- err
					return
				}
			}
		}()
	}
	w.server.Drain(ctx)
	for range open[1:] {
		if err := <-ended; websocket.CloseStatus(err) != websocket.StatusNormalClosure {
			t.Errorf("ended with %v", err)
		}
	}
	if _, res, err := dial(); err == nil || res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("after the stop: %v", err)
	}
}

// TestWebSocketSlowReader: a client that takes nothing is cut off, and no
// longer counts.
func TestWebSocketSlowReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *api.Config) {
		c.MaxClientWatches, c.SocketWriteTimeout = 1, 50*time.Millisecond
	})
	for _, name := range []string{"a", "b", "c", "d"} { // more than anything between the two keeps
		w.do("POST", corePath, `{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"default"},"message":"`+strings.Repeat("x", 60<<10)+`"}`).must(201)
	}
	pipes := make(chan net.Conn)
	srv := httptest.NewUnstartedServer(w.server)
	srv.Listener = pipeListener{srv.Listener, pipes}
	srv.Start()
	t.Cleanup(srv.Close)
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		pipes <- there
		return here, nil
	}}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dial := func() (*websocket.Conn, error) {
		conn, _, err := websocket.Dial(ctx, srv.URL+corePath+"?watch=true",
			&websocket.DialOptions{HTTPClient: client, HTTPHeader: http.Header{"Authorization": {"Bearer good"}}})
		return conn, err
	}
	slow, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.CloseNow() }()
	for {
		next, err := dial() // refused as long as the other is there
		if err == nil {
			_ = next.CloseNow()
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// pipeListener hands out connections that keep nothing between their ends.
type pipeListener struct {
	net.Listener
	pipes <-chan net.Conn
}

func (l pipeListener) Accept() (net.Conn, error) {
	closed := make(chan error, 1)
	go func() { // the real listener says when it is over
		_, err := l.Listener.Accept()
		closed <- err
	}()
	select {
	case conn := <-l.pipes:
		return conn, nil
	case err := <-closed:
		return nil, err
	}
}
