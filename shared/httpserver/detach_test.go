package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// detaching begins an answer and has rest write what follows. The request's verb tells where that was.
func detaching(log io.Writer, gone context.CancelFunc, rest func(io.Writer)) http.Handler {
	drop := func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case "time", "level", "ms", "remote", "stack", "request_id", "agent", "path", "method":
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: drop}))
	return Access(logger, prometheus.NewRegistry(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		AtEnd(ctx, func(int, time.Duration) { Annotate(ctx, slog.Bool("ended", true)) })
		SetVerb(ctx, "stay")
		if MayDetach(ctx, w) {
			SetVerb(ctx, "leave")
		}
		_, _ = io.WriteString(w, "begin ")
		if !Detach(ctx, w, gone, rest) {
			rest(w)
		}
	}))
}

// TestDetached: what is written once the handler has returned is a part of the answer like any other.
func TestDetached(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", heldBytes)
	rest := func(w io.Writer) {
		for _, piece := range []string{"short ", long, "end"} {
			if n, err := io.WriteString(w, piece); n != len(piece) || err != nil {
				t.Errorf("%d of %d bytes are written: %v", n, len(piece), err)
			}
		}
	}
	want := "begin short " + long + "end"
	for _, proto := range []string{"HTTP/1.0", "HTTP/1.1"} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				conn := client(t, Endpoint{Streaming: true, Handler: detaching(&log, func() {}, rest)})
				if _, err := io.WriteString(conn, "GET / "+proto+"\r\nHost: a\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil || !resp.Close {
					t.Errorf("the connection ends with the answer: %v; error %v", resp.Close, err)
				}
				if diff := cmp.Diff(want, string(body)); diff != "" {
					t.Errorf("body (-want +got):\n%.1000s", diff)
				}
				_ = conn.Close()
				synctest.Wait()
				line := fmt.Sprintf("msg=request code=200 bytes=%d verb=leave ended=true\n", len(want))
				if diff := cmp.Diff(line, log.String()); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestDetachedCutOff: a client that leaves, one that does not read, and a panic end an answer that was detached, and none
// of them makes it look whole.
func TestDetachedCutOff(t *testing.T) {
	t.Parallel()
	limits := Limits{WriteTimeout: 5 * time.Second}
	for name, row := range map[string]struct {
		rest  func(context.Context, io.Writer)
		act   func(net.Conn)
		after time.Duration
		cut   float64
		log   string
	}{
		"the client leaves": {
			rest: func(gone context.Context, _ io.Writer) { <-gone.Done() },
			act:  func(conn net.Conn) { _ = conn.Close() },
			log:  "msg=request code=200 bytes=6 verb=leave aborted=true ended=true\n",
		},
		"the client does not read": {
			rest: func(_ context.Context, w io.Writer) {
				_, err := io.WriteString(w, "more")
				for range 3 { // it stays so
					if err == nil {
						t.Error("nobody has read that")
					}
					_, err = io.WriteString(w, "more")
				}
			},
			act:   func(net.Conn) {},
			after: limits.WriteTimeout, cut: 1,
			log: "msg=request code=200 bytes=6 verb=leave aborted=true ended=true\n",
		},
		"panic": {
			rest: func(context.Context, io.Writer) { panic(errors.New("fault")) },
			act: func(conn net.Conn) {
				if _, err := io.ReadAll(conn); err != nil {
					t.Error(err)
				}
			},
			log: "msg=\"panic while serving a request\" panic=fault\nmsg=request code=200 bytes=6 verb=leave aborted=true ended=true\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				gone, leave := context.WithCancel(t.Context())
				defer leave()
				ended := make(chan time.Time, 1)
				handler := detaching(&log, leave, func(w io.Writer) {
					defer func() { ended <- time.Now() }()
					row.rest(gone, w)
				})
				reg := prometheus.NewRegistry()
				conn := limitedClient(t, Endpoint{Streaming: true, Handler: handler}, Config{Registry: reg, Limits: limits})
				if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				began := make([]byte, len("HTTP/1.1 200 OK"))
				if _, err := io.ReadFull(conn, began); err != nil {
					t.Fatal(err)
				}
				rest := make([]byte, 4<<10) // one read of a pipe takes from one write, and the beginning is one
				if n, err := conn.Read(rest); err != nil || !strings.HasSuffix(string(rest[:n]), "\r\n6\r\nbegin \r\n") {
					t.Fatalf("%q, %v", rest[:n], err)
				}
				start := time.Now()
				row.act(conn)
				if took := (<-ended).Sub(start); took != row.after {
					t.Errorf("ended after %s, want %s", took, row.after)
				}
				left, _ := io.ReadAll(conn)
				synctest.Wait()
				if bytes.Contains(left, []byte("0\r\n")) {
					t.Errorf("the answer has an end: %q", left)
				}
				if n := cutIn(reg, "answer"); n != row.cut {
					t.Errorf("%v cuts are counted", n)
				}
				if diff := cmp.Diff(row.log, log.String()); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestDetachedAnswerIsTalkedInto: a client that sends something after its request ends the answer, which it gets whole if
// it stays. The body of the request is no such thing.
func TestDetachedAnswerIsTalkedInto(t *testing.T) {
	t.Parallel()
	const get, withBody = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"
	for name, row := range map[string]struct {
		ask, later string
		leaves     bool
	}{
		"a byte":                      {ask: get, later: "x"},
		"a byte with the request":     {ask: get + "x"},
		"a byte behind the body":      {ask: withBody + "bo", later: "dyx"},
		"much":                        {ask: get, later: strings.Repeat("x", 1<<20)},
		"a byte, and the client goes": {ask: get, later: "x", leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				gone, leave := context.WithCancel(t.Context())
				defer leave()
				conn := client(t, Endpoint{Streaming: true, Handler: detaching(&log, leave, func(w io.Writer) {
					<-gone.Done()
					_, _ = io.WriteString(w, "end")
				})})
				answered := make(chan struct{})
				go func() {
					_, _ = io.WriteString(conn, row.ask)
					if row.leaves {
						<-answered
					}
					if strings.HasPrefix(row.ask, withBody) {
						_, _ = io.WriteString(conn, row.later[:2])
						synctest.Wait()
						if gone.Err() != nil {
							t.Error("the body of the request has ended its answer")
						}
						row.later = row.later[2:]
					}
					_, _ = io.WriteString(conn, row.later)
					if row.leaves {
						_ = conn.Close()
					}
				}()
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				close(answered)
				body, err := io.ReadAll(resp.Body)
				if whole := err == nil && string(body) == "begin end"; !whole && !row.leaves {
					t.Errorf("got %q, %v", body, err)
				}
				_ = conn.Close()
				synctest.Wait()
				if !strings.Contains(log.String(), "ended=true") {
					t.Errorf("the answer has not ended: %s", log.String())
				}
			})
		})
	}
}

// TestDetachedOverTLS: over HTTP/1.1 with TLS an answer is detached too, over HTTP/2 it stays with its handler.
func TestDetachedOverTLS(t *testing.T) {
	t.Parallel()
	config := anyTLS()
	for proto, verb := range map[string]string{"HTTP/1.1": "leave", "HTTP/2.0": "stay"} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			handler := detaching(&log, func() {}, func(w io.Writer) { _, _ = io.WriteString(w, "end") })
			addr, stop, ended := running(t, time.Minute, func() {}, Endpoint{Streaming: true, TLS: config.Clone(), Handler: handler})
			transport := &http.Transport{
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: proto == "HTTP/2.0",
			}
			defer transport.CloseIdleConnections()
			resp, err := (&http.Client{Transport: transport}).Get("https://" + addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil || string(body) != "begin end" || resp.Proto != proto {
				t.Errorf("got %q over %s, %v", body, resp.Proto, err)
			}
			stop()
			if err := <-ended; err != nil { // and with it the log
				t.Fatal(err)
			}
			if want := "msg=request code=200 bytes=9 verb=" + verb + " ended=true\n"; log.String() != want {
				t.Errorf("log: %q, want %q", log.String(), want)
			}
		})
	}
}

// TestStopWaitsForDetached: a stop waits for answers that are detached, and cuts them off when its time is over.
func TestStopWaitsForDetached(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		timeout time.Duration
		whole   bool
	}{"in time": {time.Minute, true}, "too late": {50 * time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gone, leave := context.WithCancel(t.Context())
			drained := make(chan struct{})
			handler := detaching(io.Discard, leave, func(w io.Writer) {
				if row.whole {
					<-drained
					_, _ = io.WriteString(w, "end")
					return
				}
				<-gone.Done()
			})
			addr, stop, ended := running(t, row.timeout, func() { close(drained) },
				Endpoint{Streaming: true, Handler: handler})
			resp, err := http.Get("http://" + addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			stop()
			body, err := io.ReadAll(resp.Body)
			if whole := err == nil && string(body) == "begin end"; whole != row.whole {
				t.Errorf("got %q, %v", body, err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// running serves an endpoint, and returns its address and a function that stops it and calls drain meanwhile. The stop may take
// that long. ended is closed when it has stopped.
func running(t *testing.T, timeout time.Duration, drain func(), e Endpoint) (addr string, stop func(), ended <-chan error) {
	t.Helper()
	e.Setting, e.Addr, e.OnListen = "--listen", "127.0.0.1:0", func(a net.Addr) { addr = a.String() }
	servers, err := Listen(t.Context(), Config{Name: "demosvc", Log: slog.New(slog.DiscardHandler), Endpoints: []Endpoint{e}})
	if err != nil {
		t.Fatal(err)
	}
	served, end := make(chan error, 1), make(chan error, 1)
	go func() { served <- servers[0].Serve() }()
	return addr, func() {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			drain()
			servers[0].Shutdown(ctx)
			end <- <-served
		}()
	}, end
}
