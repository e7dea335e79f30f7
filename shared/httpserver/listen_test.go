package httpserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// pipes is a listener of in-memory connections, whose deadlines follow fake time.
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
	return limitedClient(t, e, Config{})
}

// limitedClient is client with limits and a metrics registry.
func limitedClient(t *testing.T, e Endpoint, c Config) net.Conn {
	t.Helper()
	accepting := pipes{make(chan net.Conn, 1)}
	c.Log = slog.New(slog.DiscardHandler)
	srv := newServer(e, accepting, c, newCuts(c.Registry))
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve() }()
	here, there := net.Pipe()
	accepting.accepted <- there
	t.Cleanup(func() {
		_ = here.Close()
		_ = srv.http.Close()
		<-ended
	})
	return here
}

// cutAfter reads until the server cuts the connection, and returns how long that took.
func cutAfter(conn net.Conn) time.Duration {
	start := time.Now()
	_, _ = io.Copy(io.Discard, conn)
	return time.Since(start)
}

// cutIn returns how many connections were cut off in a part of a request; -1: there is no such metric.
func cutIn(reg *prometheus.Registry, part string) float64 {
	families, _ := reg.Gather()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "http_connections_cut_total" && m.GetLabel()[0].GetValue() == part {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

func TestSlowSenders(t *testing.T) {
	t.Parallel()
	readBody := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})
	for _, row := range []struct {
		sent    string
		limit   time.Duration
		counted float64
	}{
		{"", headerTimeout, 0}, // nothing has begun
		{"GET / HTTP/1.1\r\nHost: a\r\nX-Slow", headerTimeout, 1},
		{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf", bodyTimeout, 0},
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", idleTimeout, 0},
	} {
		for _, streaming := range []bool{false, true} {
			t.Run(fmt.Sprintf("streaming %v, sent %q", streaming, row.sent), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					reg := prometheus.NewRegistry()
					conn := limitedClient(t, Endpoint{Handler: readBody, Streaming: streaming}, Config{Registry: reg})
					if _, err := io.WriteString(conn, row.sent); err != nil {
						t.Fatal(err)
					}
					if took := cutAfter(conn); took < row.limit || took > row.limit+5*time.Second {
						t.Errorf("cut after %s, want %s", took, row.limit)
					}
					synctest.Wait()
					if n := cutIn(reg, "header"); n != row.counted {
						t.Errorf("%v cuts in headers are counted", n)
					}
				})
			})
		}
	}
}

// TestHeadersAreBounded: net/http allows 4 KiB more than the limit.
func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	for extra, want := range map[int]string{-200: "200", 8 << 10: "431"} {
		t.Run(fmt.Sprint(extra), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reg := prometheus.NewRegistry()
				conn := limitedClient(t, Endpoint{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, Config{Registry: reg})
				go func() {
					_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: "+strings.Repeat("x", maxHeaderBytes+extra)+"\r\n\r\n")
				}()
				got, _ := io.ReadAll(conn)
				if !strings.HasPrefix(string(got), "HTTP/1.1 "+want) {
					t.Errorf("%.40q, want %s", got, want)
				}
				synctest.Wait()
				if n := cutIn(reg, "header"); (n == 1) != (want == "431") {
					t.Errorf("%v cuts in headers are counted", n)
				}
			})
		})
	}
}

func TestSlowReaders(t *testing.T) {
	t.Parallel()
	for _, streaming := range []bool{false, true} {
		t.Run(fmt.Sprint("streaming ", streaming), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				failed, reg := make(chan time.Duration, 1), prometheus.NewRegistry()
				conn := limitedClient(t, Endpoint{Streaming: streaming, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					start := time.Now()
					for {
						if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
							failed <- time.Since(start)
							return
						}
					}
				})}, Config{Registry: reg})
				if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				if took := <-failed; took != writeTimeout { // nobody reads
					t.Errorf("the write failed after %s, want %s", took, writeTimeout)
				}
				if n := cutIn(reg, "answer"); streaming && n != 1 {
					t.Errorf("%v cuts in answers are counted", n)
				}
			})
		})
	}
}

// TestSlowReadersOfStreams: a client that reads its connection but not one stream on it loses that stream, also when
// the stream was idle before.
func TestSlowReadersOfStreams(t *testing.T) {
	t.Parallel()
	secure := anyTLS()
	synctest.Test(t, func(t *testing.T) {
		failed, registry := make(chan time.Duration, 1), prometheus.NewRegistry()
		e := Endpoint{Streaming: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			time.Sleep(writeTimeout * 5 / 2)
			for {
				start := time.Now()
				if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
					failed <- time.Since(start)
					return
				}
			}
		})}
		e.TLS = secure.Clone()
		resp, err := httpClient(t, limitedClient(t, e, Config{Registry: registry})).Get("https://a/")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if took := <-failed; took != writeTimeout { // nobody reads the body
			t.Errorf("the write failed after %s, want %s", took, writeTimeout)
		}
		if n := cutIn(registry, "answer"); n != 1 {
			t.Errorf("%v cuts in answers are counted", n)
		}
	})
}

// httpClient is a client that uses one connection.
func httpClient(t *testing.T, conn net.Conn) *http.Client {
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is tested elsewhere
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// watch sends three events, one an hour, and then an end that is not flushed for another hour.
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

// TestWatchesLast: an answer that streams outlives every timeout, in HTTP/1.1 and HTTP/2, with and without a body in
// its request.
func TestWatchesLast(t *testing.T) {
	t.Parallel()
	secure := anyTLS()
	for _, encrypted := range []bool{false, true} {
		for _, body := range []string{"", "hi"} {
			t.Run(fmt.Sprintf("TLS %v, body %q", encrypted, body), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					e := Endpoint{Streaming: true, Handler: http.HandlerFunc(watch)}
					if encrypted {
						e.TLS = secure.Clone()
					}
					conn := client(t, e)
					scheme, proto := "http", "HTTP/1.1"
					if encrypted {
						scheme, proto = "https", "HTTP/2.0"
					}
					resp, err := httpClient(t, conn).Post(scheme+"://a/", "text/plain", strings.NewReader(body))
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

// TestHijackedConnectionIsBounded: writes to a hijacked connection, such as that of a WebSocket, have the limit of all
// writes. A client that does not read is cut off and counted once.
func TestHijackedConnectionIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		failed := make(chan time.Duration, 1)
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			start := time.Now()
			_, err = io.WriteString(buffered, strings.Repeat("x", 64<<10))
			for range 3 { // all further writes fail too
				if err == nil {
					t.Error("nobody has read that")
				}
				_, err = io.WriteString(conn, "x")
			}
			failed <- time.Since(start)
		})
		conn := limitedClient(t, Endpoint{Streaming: true, Handler: Access(slog.New(slog.DiscardHandler), reg, handler)}, Config{Registry: reg})
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if took := <-failed; took != writeTimeout {
			t.Errorf("cut off after %s", took)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("the connection is still open")
		}
		if n := cutIn(reg, "answer"); n != 1 {
			t.Errorf("%v cuts are counted", n)
		}
	})
}
