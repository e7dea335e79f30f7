package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/shared/waittest"
)

// unreadable are requests with long answers: by name, the path with its query and the headers.
var unreadable = map[string][]string{
	"list":             {apitest.EventsPath},
	"list gzip":        {apitest.EventsPath, "Accept-Encoding", "gzip"},
	"list protobuf":    {apitest.EventsPath, "Accept", "application/vnd.kubernetes.protobuf"},
	"list table":       {apitest.EventsPath, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"},
	"page":             {apitest.EventsPath + "?limit=4000"},
	"get":              {apitest.EventsPath + "/large"},
	"query":            {"/query/v1/events?limit=1000&from=2020-01-01T00:00:00Z"},
	"query csv":        {"/query/v1/events?limit=1000&from=2020-01-01T00:00:00Z", "Accept", "text/csv"},
	"loki":             {"/loki/api/v1/query_range?query=%7Btype%3D%22Normal%22%7D%7Cjson&limit=5000&since=20000h"},
	"tail":             {"/loki/api/v1/tail?query=%7Btype%3D%22Normal%22%7D&limit=1000&since=20000h", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
	"watch initial":    {apitest.EventsPath + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"},
	"watch from 0":     {apitest.EventsPath + "?watch=true&resourceVersion=0"},
	"watch of history": {apitest.EventsPath + "?watch=true&resourceVersion=1"},
}

// fillLong makes 4,000 events of 2 kB and a large one.
func fillLong(w *apitest.World) {
	w.T.Helper()
	annotation := func(n int) string { return `,"annotations":{"a":"` + strings.Repeat("x", n) + `"}}` }
	var all sync.WaitGroup
	for from := range 16 {
		all.Go(func() {
			for i := range 250 {
				name := fmt.Sprintf("e-%02d-%03d", from, i)
				w.Do("POST", apitest.EventsPath, apitest.NewEvent(name, `"metadata":{"name":"`+name+`"`+annotation(1500))).Must(201)
			}
		})
	}
	all.Wait()
	w.Do("POST", apitest.EventsPath, apitest.NewEvent("large", `"metadata":{"name":"large"`+annotation(200<<10))).Must(201)
}

// unread sends a request over a connection of its own and reads the status line only.
func unread(r *apitest.Running, t *testing.T, token string, request []string) (status string, header http.Header) {
	t.Helper()
	small := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		if err != nil {
			return err
		}
		return failed
	}}
	conn, err := small.DialContext(t.Context(), "tcp", strings.TrimPrefix(r.URL, "http://"))
	if err != nil {
		t.Error(err)
		return "", nil
	}
	t.Cleanup(func() { _ = conn.Close() })
	text := "GET " + request[0] + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + token + "\r\n"
	for i := 1; i < len(request); i += 2 {
		text += request[i] + ": " + request[i+1] + "\r\n"
	}
	if _, err := io.WriteString(conn, text+"\r\n"); err != nil {
		t.Error(err)
	}
	lost, cancel := waittest.Context(t)
	defer cancel()
	defer context.AfterFunc(lost, func() { _ = conn.Close() })()
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if err != nil {
		t.Errorf("%s: %v", request[0], err)
		return "", nil
	}
	return resp.Status, resp.Header
}

// TestUnreadAnswersAreBounded: what a client does not read of its many answers takes a bounded part
// of the memory, whatever it asks for. Where there is no room, the answer is 429. Another client is
// served meanwhile, and the room is free again when the connections are closed.
func TestUnreadAnswersAreBounded(t *testing.T) {
	const (
		many = 20       // of each kind
		most = 96 << 20 // half of it is the room of a client, see package flow
	)
	w := apitest.New(t, func(c *api.Config) { c.Registry = prometheus.NewRegistry() })
	fillLong(w)
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	srv := w.Serve()
	t.Run("meanwhile", func(t *testing.T) { // its connections are closed when it ends
		before := heap()
		var mu sync.Mutex
		refused := 0
		var answers sync.WaitGroup
		for _, request := range unreadable {
			for range many {
				answers.Go(func() {
					status, header := unread(srv, t, "good", request)
					if !strings.HasPrefix(status, "429") {
						return
					}
					if header.Get("Retry-After") == "" {
						t.Error("429 without Retry-After")
					}
					mu.Lock()
					defer mu.Unlock()
					refused++
				})
			}
		}
		answers.Wait()
		grown := heap() - before
		if t.Logf("%d refused, %d MiB taken", refused, grown>>20); grown > most || refused == 0 {
			t.Errorf("%d are refused, %d MiB are taken", refused, grown>>20)
		}
		counted := 0.0
		for _, limit := range []string{"client-answers", "client-requests", "client-tails"} {
			counted += w.Metric("eventsvc_requests_refused_total", limit)
		}
		if counted < float64(refused) {
			t.Errorf("%v refusals are counted, want %d, and those of watches that have begun", counted, refused)
		}
		for name, request := range unreadable {
			if status, _ := unread(srv, t, "other", request); strings.HasPrefix(status, "4") {
				t.Errorf("%s: another client gets %s", name, status)
			}
		}
	})
	waittest.Until(t, "all room is free when the connections are closed", func() bool { return w.Metric("eventsvc_answers_unread_bytes") == 0 })
}

// TestNoRoom: where the room of a client is taken, each long answer is refused, and short ones
// are not; nor is a write that is done.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.Registry = prometheus.NewRegistry() })
	w.Create("small")
	w.Do("POST", apitest.EventsPath, apitest.NewEvent("large", `"metadata":{"name":"large","annotations":{"a":"`+strings.Repeat("x", 200<<10)+`"}}`)).Must(201)
	room := w.Server.Room(apitest.GoodClient)
	for n := 1 << 30; n > 0; n /= 2 {
		for room.Try(n) == nil {
		}
	}
	before := w.Metric("eventsvc_requests_refused_total", "client-answers")
	var answers sync.WaitGroup
	for name, request := range unreadable {
		if name == "tail" || name == "watch from 0" || name == "watch of history" {
			continue // which need a connection, or wait for what happens
		}
		answers.Go(func() {
			a := w.Do("GET", request[0], "", request[1:]...)
			if a.Code != http.StatusTooManyRequests || a.Header.Get("Retry-After") != "5" {
				t.Errorf("%s: %d, Retry-After %q", name, a.Code, a.Header.Get("Retry-After"))
			}
		})
	}
	answers.Go(func() {
		a := w.Do("PATCH", apitest.EventsPath+"/large", `{"metadata":{"labels":{"changed":"true"}}}`, "Content-Type", "application/merge-patch+json")
		if a.Code != http.StatusTooManyRequests {
			t.Errorf("a patch of a large event: %d", a.Code)
		}
	})
	waittest.Join(t, &answers)
	if n := w.Metric("eventsvc_requests_refused_total", "client-answers") - before; n != float64(len(unreadable)-3+1) {
		t.Errorf("%v refusals are counted", n)
	}
	w.Do("GET", apitest.EventsPath+"/small", "").Must(200)
	w.Create("another")
	w.Do("PATCH", apitest.EventsPath+"/small", `{"metadata":{"labels":{"changed":"true"}}}`, "Content-Type", "application/merge-patch+json").Must(200)
	room.Free()
	if changed := w.Do("GET", apitest.EventsPath+"/large", "").Must(200).At("metadata.labels.changed"); changed != nil {
		t.Error("a patch that was refused is stored")
	}
}
