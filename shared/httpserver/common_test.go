package httpserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/waittest"
)

func TestShare(t *testing.T) {
	t.Parallel()
	s := newShare(always+4, always+2)
	enter := func(source string, n int) (leave []func()) {
		for range n {
			if l := s.enter(source); l != nil {
				leave = append(leave, l)
			}
		}
		return leave
	}
	first := enter("a", 100)
	if len(first) != always+2 {
		t.Errorf("a source has %d", len(first))
	}
	if n := len(enter("b", 100)); n != always {
		t.Errorf("another one has %d although it always gets %d", n, always)
	}
	if n := len(enter("", 100)); n != 0 {
		t.Errorf("a proxy has %d when all are taken", n)
	}
	for _, leave := range first {
		leave()
		leave() // once counts
	}
	if n := len(enter("", 100)); n != 4 || s.all != always+4 || len(s.of) != 2 {
		t.Errorf("a proxy has %d of %d, of %d sources", n, s.all, len(s.of))
	}
}

// publicServer serves handler to strangers, of whom a source may have two of everything, and returns its address.
func publicServer(t *testing.T, secure *tls.Config, reg *prometheus.Registry, proxies []netip.Prefix, handler http.HandlerFunc) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Log: slog.New(slog.DiscardHandler), Registry: reg, Proxies: proxies}
	s := newServer(Endpoint{Handler: handler, Streaming: true, Public: true, TLS: secure}, l, c, newCuts(reg))
	s.strangers, s.unread = newShare(2, 2), newShare(2, 2)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	t.Cleanup(func() {
		_ = s.http.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

// isOpen reports whether a server has kept a new connection.
func isOpen(t *testing.T, address string) (conn net.Conn, open bool) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET /known HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return conn, false
	}
	var first [8]byte
	_, err = io.ReadFull(conn, first[:])
	return conn, err == nil && string(first[:]) == "HTTP/1.1"
}

// TestConnectionsOfStrangers: a source has so many connections that nobody answers for, and is let in again when one of
// them ends, or when a request on it belongs to somebody. The connections of a proxy are those of many.
func TestConnectionsOfStrangers(t *testing.T) {
	t.Parallel()
	for _, proxied := range []bool{false, true} {
		t.Run(fmt.Sprint("by a proxy ", proxied), func(t *testing.T) {
			t.Parallel()
			reg := prometheus.NewRegistry()
			var proxies []netip.Prefix
			if proxied {
				proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
			s, address := publicServer(t, nil, reg, proxies, func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/known" {
					Leave(r.Context())
				}
			})
			if proxied {
				s.strangers.mu.Lock()
				s.strangers.most = 3
				s.strangers.mu.Unlock()
			}
			var idle []net.Conn
			for range 2 {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				idle = append(idle, conn)
			}
			waittest.Until(t, "both connections count", func() bool { return s.count() == 2 })
			if _, open := isOpen(t, address); open != proxied {
				t.Errorf("a third connection is open: %t", open)
			}
			if n := cutIn(reg, "source"); (n == 1) == proxied {
				t.Errorf("%v cuts are counted", n)
			}
			_ = idle[0].Close()
			waittest.Until(t, "its end is seen", func() bool { return s.count() == 1 })
			for range 5 { // each belongs to somebody after its request
				if _, open := isOpen(t, address); !open {
					t.Error("a connection is refused although there is room")
				}
			}
			_ = idle[1].Close()
			waittest.Until(t, "nobody is left", func() bool { return s.count() == 0 })
		})
	}
}

func (s *Server) count() int {
	s.strangers.mu.Lock()
	defer s.strangers.mu.Unlock()
	return s.strangers.all
}

// TestRequestsOfStrangers: over HTTP/2 a source has so many requests whose answer is not read, however many connections
// it has. Requests of somebody are not counted.
func TestRequestsOfStrangers(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	begun, end := make(chan string, 10), make(chan struct{})
	_, address := publicServer(t, anyTLS(), reg, nil, func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/known") {
			Leave(r.Context())
		}
		begun <- r.URL.Path
		<-end
	})
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	done := make(chan error, 10)
	ask := func(path string) {
		go func() {
			resp, err := client.Get("https://" + address + path)
			if err == nil {
				_ = resp.Body.Close()
			}
			done <- err
		}()
	}
	for _, path := range []string{"/known1", "/known2", "/known3", "/a", "/b"} {
		ask(path)
		waittest.Within(t, begun)
	}
	ask("/c")
	if err := waittest.Within(t, done); err == nil {
		t.Error("a third request of a stranger is answered")
	}
	if n := cutIn(reg, "unread"); n != 1 {
		t.Errorf("%v cuts are counted", n)
	}
	close(end)
	for range 5 {
		if err := waittest.Within(t, done); err != nil {
			t.Error(err)
		}
	}
	ask("/d")
	if err := waittest.Within(t, done); err != nil {
		t.Errorf("when the others have ended: %v", err)
	}
}

// TestStrangersReadFast: an answer to a stranger has less time than one to somebody.
func TestStrangersReadFast(t *testing.T) {
	t.Parallel()
	secure := anyTLS()
	for known, limit := range map[bool]time.Duration{false: shortTimeout, true: writeTimeout} {
		for _, encrypted := range []bool{false, true} {
			t.Run(fmt.Sprintf("known %t, TLS %t", known, encrypted), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					failed := make(chan time.Duration, 1)
					e := Endpoint{Streaming: true, Public: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if known {
							Leave(r.Context())
						}
						for {
							start := time.Now()
							if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
								failed <- time.Since(start)
								return
							}
						}
					})}
					scheme := "http"
					if encrypted {
						e.TLS, scheme = secure.Clone(), "https"
					}
					conn := limitedClient(t, e, Config{Registry: prometheus.NewRegistry()})
					resp, err := httpClient(t, conn).Get(scheme + "://a/")
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = resp.Body.Close() }()
					if took := <-failed; took < limit-limit/slack || took > limit {
						t.Errorf("the write failed after %s, want %s", took, limit)
					}
				})
			})
		}
	}
}

// TestLeaveElsewhere: a context of no request has nothing to leave.
func TestLeaveElsewhere(*testing.T) { Leave(context.Background()) }

// TestPace: what strangers send that is no request is read slowly, from each source and in all. What was answered, and
// a connection that somebody answers for, cost nothing.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pacer := newPacer()
		read := func(c *connection, n int) time.Duration {
			began := time.Now()
			if _, err := io.ReadFull(c, make([]byte, n)); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		open := func(source string) *connection {
			near, far := net.Pipe()
			go func() {
				for {
					if _, err := far.Write(make([]byte, 1000)); err != nil {
						return
					}
				}
			}()
			t.Cleanup(func() { _ = near.Close() })
			return &connection{Conn: near, pace: &pace{of: pacer, source: source}}
		}
		const burst = paceSeconds * paceSource
		flood := open("a")
		if took := read(flood, burst); took > 0 {
			t.Errorf("the first bytes took %s", took)
		}
		if took := read(flood, 10*paceSource); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("bytes of ten seconds took %s", took)
		}
		if took := read(open("b"), burst/2); took > 0 {
			t.Errorf("another source has waited %s", took)
		}
		again := open("a") // a new connection of the source has nothing of its own
		if took := read(again, paceSource); took < time.Second/2 {
			t.Errorf("a new connection took %s", took)
		}
		good := open("c")
		for range 200 { // answered requests
			if took := read(good, paceAnswer); took > 0 {
				t.Fatalf("answered requests have waited %s", took)
			}
			good.pace.give(paceAnswer)
		}
		_ = read(again, paceSource)
		again.pace.leave()
		if took := read(again, 10*burst); took > 0 {
			t.Errorf("a connection that is answered for took %s", took)
		}
		if took := read(flood, paceSource/2); took > time.Second { // what the other one has taken was given back
			t.Errorf("its source took %s", took)
		}
		began := time.Now()
		for i := range 2 * paceAll / paceSource { // many sources, each with its share, are bounded in all
			read(open(fmt.Sprint("many", i)), burst)
		}
		if took := time.Since(began); took < paceSeconds*time.Second/2 {
			t.Errorf("many sources took %s", took)
		}
		waits := open("a")
		_ = read(waits, 2*burst)
		go func() { time.Sleep(paceLook); _ = waits.SetReadDeadline(time.Unix(1, 0)) }()
		began = time.Now()
		if n, err := io.ReadFull(waits, make([]byte, burst)); err == nil || time.Since(began) > time.Second {
			t.Errorf("a read that was interrupted has %d bytes after %s, %v", n, time.Since(began), err)
		}
	})
}
