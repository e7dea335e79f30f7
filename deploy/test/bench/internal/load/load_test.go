package load_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
)

// transports are plain HTTP/1.1, and HTTP/2 over TLS.
func transports(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, addr netip.AddrPort, secure *tls.Config)) {
	t.Helper()
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1.1", true: "HTTP/2"}[secure], func(t *testing.T) {
			t.Parallel()
			s := httptest.NewUnstartedServer(handler)
			s.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that leave in the middle
			var config *tls.Config
			if secure {
				s.EnableHTTP2 = true
				s.StartTLS()
				config = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
				config.ServerName, config.NextProtos = "example.com", []string{"h2"}
			} else {
				s.Start()
			}
			t.Cleanup(s.Close)
			test(t, netip.MustParseAddrPort(s.Listener.Addr().String()), config)
		})
	}
}

func newLoop(t *testing.T) *load.Loop {
	t.Helper()
	l, err := load.NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func get(path string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: example.com\r\n\r\n")
}

func post(path string, body []byte) []byte {
	return append(fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: example.com\r\nContent-Length: %d\r\n\r\n", path, len(body)), body...)
}

// finish runs a load to its limit.
func finish(t *testing.T, l *load.Loop, ld *load.Load) {
	t.Helper()
	ld.Start()
	if err := l.Run(time.Minute, ld.Finished); err != nil {
		t.Fatal(err)
	}
	if !ld.Finished() {
		t.Fatalf("%d requests asked, not all answered in a minute", ld.Asked())
	}
}

func TestClosedLoadAsksEverythingOnce(t *testing.T) {
	t.Parallel()
	const requests = 1000
	var seen [requests]atomic.Int32
	transports(t, func(w http.ResponseWriter, r *http.Request) {
		var i int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &i); err != nil {
			t.Error(err)
		}
		seen[i].Add(1)
		fmt.Fprintf(w, "answer %d", i)
	}, func(t *testing.T, addr netip.AddrPort, secure *tls.Config) {
		l := newLoop(t)
		ld, err := l.NewLoad(load.Spec{
			Addr: addr, Secure: secure, Conns: 8, Limit: requests,
			Next: func(dst []byte, i int) []byte { return append(dst, get(fmt.Sprintf("/%d", i))...) },
			Check: func(i int, a *load.Answer) error {
				if want := fmt.Sprintf("answer %d", i); a.Status != 200 || string(a.Body) != want {
					return fmt.Errorf("status %d, body %q, want %q", a.Status, a.Body, want)
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		finish(t, l, ld)
		if ld.Done != requests || ld.Failed != 0 || ld.Latency.Count() != requests {
			t.Errorf("%d done, %d failed (%v), %d measured; want %d", ld.Done, ld.Failed, ld.Failure, ld.Latency.Count(), requests)
		}
	})
	t.Cleanup(func() {
		for i := range seen {
			if n := seen[i].Load(); n != 2 { // once over each transport
				t.Fatalf("request %d was seen %d times", i, n)
			}
		}
	})
}

func TestLargeBodiesBothWays(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("0123456789abcdef"), 60<<10>>4)
	answer := bytes.Repeat([]byte("fedcba9876543210"), 8<<20>>4)
	transports(t, func(w http.ResponseWriter, r *http.Request) {
		if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, body) {
			t.Errorf("got %d bytes of %d, %v", len(got), len(body), err)
		}
		_, _ = w.Write(answer)
	}, func(t *testing.T, addr netip.AddrPort, secure *tls.Config) {
		l := newLoop(t)
		ld, err := l.NewLoad(load.Spec{
			Addr: addr, Secure: secure, Conns: 2, Limit: 6,
			Next: func(dst []byte, _ int) []byte { return append(dst, post("/", body)...) },
			Keep: func(i int) bool { return i%2 == 0 },
			Check: func(i int, a *load.Answer) error {
				if a.Size != len(answer) || i%2 == 0 && !bytes.Equal(a.Body, answer) || i%2 == 1 && len(a.Body) > 0 {
					return fmt.Errorf("%d bytes, %d kept, of %d", a.Size, len(a.Body), len(answer))
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		finish(t, l, ld)
		if ld.Failed > 0 {
			t.Error(ld.Failure)
		}
	})
}

func TestRequestLargerThanTheSocketTakes(t *testing.T) {
	t.Parallel()
	const size = 16 << 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	}))
	t.Cleanup(server.Close)
	l := newLoop(t)
	request := post("/", make([]byte, size))
	ld, err := l.NewLoad(load.Spec{
		Addr: netip.MustParseAddrPort(server.Listener.Addr().String()), Conns: 1, Limit: 2,
		Next: func(dst []byte, _ int) []byte { return append(dst, request...) },
		Check: func(_ int, a *load.Answer) error {
			if want := fmt.Sprint(size, nil); string(a.Body) != want {
				return fmt.Errorf("the server read %s, want %s", a.Body, want)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, l, ld)
	if ld.Failed > 0 {
		t.Error(ld.Failure)
	}
}

func TestOpenLoadCountsTheWait(t *testing.T) {
	t.Parallel()
	const stall = 60 * time.Millisecond
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	l := newLoop(t)
	ld, err := l.NewLoad(load.Spec{
		Addr: netip.MustParseAddrPort(server.Listener.Addr().String()), Conns: 1, Limit: 50, Interval: time.Millisecond,
		Next:  func(dst []byte, _ int) []byte { return append(dst, get("/")...) },
		Check: load.Status(200),
	})
	if err != nil {
		t.Fatal(err)
	}
	ld.Start()
	if err := l.Run(stall, nil); err != nil {
		t.Fatal(err)
	}
	if ld.Asked() != 1 {
		t.Errorf("%d requests on one connection that is not answered", ld.Asked())
	}
	close(release)
	if err := l.Run(time.Minute, ld.Finished); err != nil {
		t.Fatal(err)
	}
	// Request i was due i ms after the start and could not leave before 60 ms:
	// even the last waited for 10 ms, though it was answered at once.
	if least := ld.Latency.Quantile(0); least < 10*time.Millisecond || ld.Latency.Quantile(1) < stall {
		t.Errorf("latencies from %v to %v, want at least 10 ms and %v", least, ld.Latency.Quantile(1), stall)
	}
	if ld.Began(49)-ld.Began(0) != 49*time.Millisecond {
		t.Errorf("intended starts lie %v apart", ld.Began(49)-ld.Began(0))
	}
}

func TestUnexpectedStatusIsCounted(t *testing.T) {
	t.Parallel()
	transports(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "try later", http.StatusTooManyRequests)
	}, func(t *testing.T, addr netip.AddrPort, secure *tls.Config) {
		l := newLoop(t)
		ld, err := l.NewLoad(load.Spec{
			Addr: addr, Secure: secure, Conns: 1, Limit: 3, Check: load.Status(201),
			Next: func(dst []byte, _ int) []byte { return append(dst, get("/")...) },
		})
		if err != nil {
			t.Fatal(err)
		}
		finish(t, l, ld)
		if ld.Failed != 3 || ld.Done != 0 || !strings.Contains(fmt.Sprint(ld.Failure), "status 429, want 201: try later") {
			t.Errorf("%d failed, %d done, first: %v", ld.Failed, ld.Done, ld.Failure)
		}
	})
}

func TestServerThatGoesAwayEndsTheRun(t *testing.T) {
	t.Parallel()
	transports(t, func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}, func(t *testing.T, addr netip.AddrPort, secure *tls.Config) {
		l := newLoop(t)
		ld, err := l.NewLoad(load.Spec{
			Addr: addr, Secure: secure, Conns: 1, Check: load.Status(200),
			Next: func(dst []byte, _ int) []byte { return append(dst, get("/")...) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ld.Start()
		if err := l.Run(time.Minute, nil); err == nil {
			t.Error("a run went on after its answers were cut off")
		}
	})
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	addr := netip.MustParseAddrPort("127.0.0.1:1") // one that was free a moment ago could be somebody's by now
	if _, err := newLoop(t).NewLoad(load.Spec{Addr: addr, Conns: 1}); err == nil || !strings.Contains(err.Error(), addr.String()) {
		t.Errorf("want an error with the address, got %v", err)
	}
}

func TestHTTP1ServerIsNotTakenForHTTP2(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = "example.com"
	_, err := newLoop(t).NewLoad(load.Spec{Addr: netip.MustParseAddrPort(server.Listener.Addr().String()), Secure: config, Conns: 1})
	if err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "HTTP/2") {
		t.Errorf("want an error that names HTTP/2, got %v", err)
	}
}
