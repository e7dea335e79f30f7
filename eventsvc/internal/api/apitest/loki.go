package apitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"tidings.example/shared/waittest"
)

// Tailed is an open tail.
type Tailed struct {
	T    *testing.T
	Conn *websocket.Conn
}

// Tail opens a tail with a token.
func (w *World) Tail(t *testing.T, srv *Running, token, query string, more ...string) *Tailed {
	t.Helper()
	v := url.Values{"query": {query}, "start": {"2026-01-01T00:00:00Z"}}
	for i := 0; i < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	conn, res, err := websocket.Dial(t.Context(), srv.URL+"/loki/api/v1/tail?"+v.Encode(),
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatalf("%v: %v", err, res)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &Tailed{t, conn}
}

// RefusedTail is the status and Retry-After of a tail that is refused. More are pairs of a parameter and its value.
func (w *World) RefusedTail(t *testing.T, srv *Running, query string, more ...string) string {
	t.Helper()
	v := url.Values{"query": {query}}
	for i := 0; i < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	conn, res, err := websocket.Dial(t.Context(), srv.URL+"/loki/api/v1/tail?"+v.Encode(), //nolint:bodyclose // by the library
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer good"}}})
	if err == nil {
		_ = conn.CloseNow()
		return "opened"
	}
	return strings.TrimSpace(fmt.Sprint(res.StatusCode, " ", res.Header.Get("Retry-After")))
}

// Read waits for the next message, or for the end of the tail.
func (c *Tailed) Read() ([]byte, error) {
	c.T.Helper()
	ctx, cancel := waittest.Context(c.T)
	defer cancel()
	_, message, err := c.Conn.Read(ctx)
	if ctx.Err() != nil {
		waittest.Lost(c.T, "the tail sends nothing and does not end")
	}
	return message, err
}

// Next is the lines of the next message.
func (c *Tailed) Next() string {
	c.T.Helper()
	message, err := c.Read()
	if err != nil {
		c.T.Fatal(err)
	}
	var m struct {
		Streams []struct{ Values [][]any }
		Dropped []any `json:"dropped_entries"`
	}
	if err := json.Unmarshal(message, &m); err != nil || len(m.Dropped) > 0 {
		c.T.Fatalf("%v: %s", err, message)
	}
	var lines []string
	for _, s := range m.Streams {
		for _, v := range s.Values {
			lines = append(lines, v[1].(string))
		}
	}
	return strings.Join(lines, ", ")
}
