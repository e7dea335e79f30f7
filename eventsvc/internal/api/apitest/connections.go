package apitest

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"testing"

	"tidings.example/shared/httpserver"
	"tidings.example/shared/service"
	"tidings.example/shared/waittest"
)

// Stream is an open watch over a real connection.
type Stream struct {
	T      testing.TB
	Resp   *http.Response
	Lines  *bufio.Scanner
	cancel context.CancelFunc
}

// Running is a server with real connections.
type Running struct {
	URL    string
	Client *http.Client
	Stop   context.CancelFunc // ends it, and waits until it has
}

// Serve runs the server as the program does.
func (w *World) Serve() *Running {
	w.T.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(w.T.Context()))
	opened, ended := make(chan string, 1), make(chan error, 1)
	c := service.Config{Drain: w.Server.Drain, HTTP: httpserver.Config{
		Name: "eventsvc", Log: w.Config.Log, Registry: w.Config.Registry,
		Endpoints: []httpserver.Endpoint{{
			Setting: "--listen-http", Addr: "127.0.0.1:0", Handler: w.Handler(),
			Streaming: true, OnListen: func(a net.Addr) { opened <- "http://" + a.String() },
		}},
	}}
	go func() { ended <- service.Run(ctx, c) }()
	r := &Running{waittest.Within(w.T, opened), http.DefaultClient, sync.OnceFunc(func() {
		stop()
		if err := waittest.Within(w.T, ended); err != nil {
			w.T.Error(err)
		}
	})}
	w.T.Cleanup(r.Stop)
	return r
}

// Watch opens a watch; path has the query.
func (w *World) Watch(srv *Running, path string, headers ...string) *Stream {
	w.T.Helper()
	ctx, cancel := context.WithCancel(w.T.Context())
	lost, came := waittest.Context(w.T)
	defer came()
	defer context.AfterFunc(lost, cancel)() // not even a header came
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+path, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := srv.Client.Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	s := &Stream{T: w.T, Resp: resp, Lines: bufio.NewScanner(resp.Body), cancel: cancel}
	s.Lines.Buffer(nil, 4<<20)
	w.T.Cleanup(s.Close)
	return s
}

// Close ends it.
func (s *Stream) Close() {
	s.cancel()
	_ = s.Resp.Body.Close()
}

// Change is one event of a watch, as tests compare it: its type, and the name and the note of the event.
type Change [3]string

// Next reads the next event of a JSON watch.
func (s *Stream) Next() (kind string, object map[string]any) {
	s.T.Helper()
	if !s.Scan() {
		s.T.Fatalf("the watch ended: %v", s.Lines.Err())
	}
	var event struct {
		Type   string
		Object map[string]any
	}
	if err := json.Unmarshal(s.Lines.Bytes(), &event); err != nil {
		s.T.Fatalf("%v: %s", err, s.Lines.Bytes())
	}
	return event.Type, event.Object
}

// Scan reads the next line. If nothing comes and the watch does not end, the test fails, and shows
// what all goroutines do.
func (s *Stream) Scan() bool {
	s.T.Helper()
	read := make(chan bool, 1)
	go func() { read <- s.Lines.Scan() }()
	return waittest.Within(s.T, read)
}

// Take reads n events.
func (s *Stream) Take(n int) []Change {
	s.T.Helper()
	var changes []Change
	for range n {
		kind, object := s.Next()
		name, _ := Field(object, "metadata.name").(string)
		note, _ := object["note"].(string)
		changes = append(changes, Change{kind, name, note})
	}
	return changes
}

// Ended fails the test unless the watch ends cleanly now.
func (s *Stream) Ended() {
	s.T.Helper()
	if s.Scan() {
		s.T.Fatalf("another event: %s", s.Lines.Bytes())
	}
	if err := s.Lines.Err(); err != nil {
		s.T.Fatalf("not a clean end: %v", err)
	}
}

// The annotation of the bookmark behind the first state, and the parameters of a watch that begins with it.
const (
	InitialEnd = "k8s.io/initial-events-end"
	WatchList  = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)

// Relabel changes the label app of an event.
func (w *World) Relabel(name, value string) {
	w.T.Helper()
	w.Do("PATCH", EventsPath+"/"+name, `{"metadata":{"labels":{"app":"`+value+`"}}}`,
		"Content-Type", "application/merge-patch+json").Must(200)
}
