package service

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of in-memory connections, whose deadlines follow the fake time of a bubble.
type pipes struct{ accepted chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p.accepted; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p.accepted); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// client serves e to one in-memory connection and returns its other end.
func client(t *testing.T, e Endpoint) net.Conn {
	t.Helper()
	connections := pipes{make(chan net.Conn, 1)}
	srv := newServer(e, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- listener{e, connections}.serve(srv) }()
	here, there := net.Pipe()
	connections.accepted <- there
	t.Cleanup(func() {
		_ = here.Close()
		_ = srv.Close()
		<-ended
	})
	return here
}

// cutAfter reads until the server cuts the connection and says how long that took.
func cutAfter(conn net.Conn) time.Duration {
	start := time.Now()
	_, _ = io.Copy(io.Discard, conn)
	return time.Since(start)
}

func TestSlowSenders(t *testing.T) {
	t.Parallel()
	readBody := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})
	for _, streaming := range []bool{false, true} {
		for sent, limit := range map[string]time.Duration{
			"":                                    readHeaderTimeout,
			"GET / HTTP/1.1\r\nHost: a\r\nX-Slow": readHeaderTimeout,
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf": bodyTimeout,
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n":                            idleTimeout,
		} {
			t.Run(fmt.Sprintf("streaming %v, sent %q", streaming, sent), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					conn := client(t, Endpoint{Handler: readBody, Streaming: streaming})
					if _, err := io.WriteString(conn, sent); err != nil {
						t.Fatal(err)
					}
					if took := cutAfter(conn); took < limit || took > limit+5*time.Second {
						t.Errorf("cut after %s, want %s", took, limit)
					}
				})
			})
		}
	}
}

func TestSlowReaders(t *testing.T) {
	t.Parallel()
	for _, streaming := range []bool{false, true} {
		t.Run(fmt.Sprint("streaming ", streaming), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				failed := make(chan time.Duration, 1)
				conn := client(t, Endpoint{Streaming: streaming, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					start := time.Now()
					for {
						if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
							failed <- time.Since(start)
							return
						}
					}
				})})
				if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				if took := <-failed; took != writeTimeout { // nobody reads
					t.Errorf("the write failed after %s, want %s", took, writeTimeout)
				}
			})
		})
	}
}

// watch sends three events with an hour between them, and an end that is not flushed for another hour.
func watch(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	for i := range 3 {
		_, _ = fmt.Fprintf(w, "event %d\n", i)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(time.Hour):
		case <-r.Context().Done():
			return
		}
	}
	_, _ = io.WriteString(w, "end\n")
	time.Sleep(time.Hour)
}

// TestWatchesLast: an answer that streams outlives every timeout, in HTTP/1.1 and HTTP/2, with and without a body in its
// request.
func TestWatchesLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, encrypted := range []bool{false, true} {
		for _, body := range []string{"", "hi"} {
			t.Run(fmt.Sprintf("TLS %v, body %q", encrypted, body), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					e := Endpoint{Streaming: true, Handler: http.HandlerFunc(watch)}
					if encrypted {
						var err error
						if e.TLS, _, err = SelfSigned(filepath.Join(dir, body), []string{"a"}, time.Now()); err != nil {
							t.Fatal(err)
						}
					}
					conn := client(t, e)
					transport := &http.Transport{
						DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
						TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is tested elsewhere
						ForceAttemptHTTP2: true,
					}
					defer transport.CloseIdleConnections()
					scheme, proto := "http", "HTTP/1.1"
					if encrypted {
						scheme, proto = "https", "HTTP/2.0"
					}
					resp, err := (&http.Client{Transport: transport}).Post(scheme+"://a/", "text/plain", strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = resp.Body.Close() }()
					got, err := io.ReadAll(resp.Body)
					if err != nil || string(got) != "event 0\nevent 1\nevent 2\nend\n" || resp.Proto != proto {
						t.Errorf("%s: read %q, %v", resp.Proto, got, err)
					}
				})
			})
		}
	}
}
