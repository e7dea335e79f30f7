package api_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/shared/httpserver"
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

// TestWebSocketSlowReader: a client that does not read is cut off and counted
// like one of any other answer, and its watch no longer counts against the
// limits.
func TestWebSocketSlowReader(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	w := newWorld(t, func(c *api.Config) { c.MaxClientWatches, c.Registry = 1, reg })
	for i := range 128 { // more than the kernel keeps between the two
		w.do("POST", corePath, fmt.Sprintf(`{"metadata":{"name":"e%d"},"involvedObject":{"namespace":"default"},"message":"%s"}`, i, strings.Repeat("x", 60<<10))).must(201)
	}
	srv := w.serve(httpserver.Limits{WriteTimeout: 50 * time.Millisecond})
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return conn, err
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
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	if sum(t, reg, "http_connections_cut_total") == 0 {
		t.Error("no connection is counted as cut off")
	}
}

// sum is what the series of a metric come to.
func sum(t *testing.T, reg *prometheus.Registry, name string) (total float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return total
}
