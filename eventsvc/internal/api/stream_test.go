package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"tidings.example/shared/httpserver"
	"tidings.example/shared/service"
	"tidings.example/shared/waittest"
)

// stream is an open watch over a real connection.
type stream struct {
	t      testing.TB
	resp   *http.Response
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

// running is a server with real connections.
type running struct {
	URL    string
	client *http.Client
	stop   context.CancelFunc // ends it, and waits until it has
}

// serve runs the server as the program does.
func (w *world) serve() *running {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	opened, ended := make(chan string, 1), make(chan error, 1)
	c := service.Config{Drain: w.server.Drain, HTTP: httpserver.Config{
		Name: "eventsvc", Log: w.config.Log, Registry: w.config.Registry,
		Endpoints: []httpserver.Endpoint{{
			Setting: "--listen-http", Addr: "127.0.0.1:0", Handler: w.handler(),
			Streaming: true, OnListen: func(a net.Addr) { opened <- "http://" + a.String() },
		}},
	}}
	go func() { ended <- service.Run(ctx, c) }()
	r := &running{<-opened, http.DefaultClient, sync.OnceFunc(func() {
		stop()
		if err := waittest.Within(w.t, ended); err != nil {
			w.t.Error(err)
		}
	})}
	w.t.Cleanup(r.stop)
	return r
}

// watch opens a watch; path has the query.
func (w *world) watch(srv *running, path string, headers ...string) *stream {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	lost := time.AfterFunc(waittest.Most, cancel) // not even a header came
	defer lost.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := srv.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &stream{t: w.t, resp: resp, lines: bufio.NewScanner(resp.Body), cancel: cancel}
	s.lines.Buffer(nil, 4<<20)
	w.t.Cleanup(s.close)
	return s
}

func (s *stream) close() {
	s.cancel()
	_ = s.resp.Body.Close()
}

// change is one event of a watch, as tests compare it.
type change struct{ Type, Name, Note string }

// next reads the next event of a JSON watch.
func (s *stream) next() (kind string, object map[string]any) {
	s.t.Helper()
	if !s.scan() {
		s.t.Fatalf("the watch ended: %v", s.lines.Err())
	}
	var event struct {
		Type   string
		Object map[string]any
	}
	if err := json.Unmarshal(s.lines.Bytes(), &event); err != nil {
		s.t.Fatalf("%v: %s", err, s.lines.Bytes())
	}
	return event.Type, event.Object
}

// scan reads the next line. If nothing comes and the watch does not end, the test fails, and shows
// what all goroutines do.
func (s *stream) scan() bool {
	s.t.Helper()
	read := make(chan bool, 1)
	go func() { read <- s.lines.Scan() }()
	return waittest.Within(s.t, read)
}

// take reads n events.
func (s *stream) take(n int) []change {
	s.t.Helper()
	var changes []change
	for range n {
		kind, object := s.next()
		c := change{Type: kind}
		c.Name, _ = field(object, "metadata.name").(string)
		c.Note, _ = object["note"].(string)
		changes = append(changes, c)
	}
	return changes
}

// ended fails the test unless the watch ends cleanly now.
func (s *stream) ended() {
	s.t.Helper()
	if s.scan() {
		s.t.Fatalf("another event: %s", s.lines.Bytes())
	}
	if err := s.lines.Err(); err != nil {
		s.t.Fatalf("not a clean end: %v", err)
	}
}
