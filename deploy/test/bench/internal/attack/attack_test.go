package attack

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/shared/waittest"
)

// TestAttacksAreRequests: what eventsvc has to refuse is what a request asks for, not how
// the request is written.
func TestAttacksAreRequests(t *testing.T) {
	t.Parallel()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"access_token":"a-token"}`))
	}))
	t.Cleanup(tokens.Close)
	addr := netip.MustParseAddrPort(tokens.Listener.Addr().String())
	s := &Source{Services: &target.Services{TokenAddr: addr, EventsAddr: addr}, Client: 4, Namespace: "all", Own: "own"}
	for name, makes := range map[string]Make{"keys": UnknownKeys, "flood": Flood, "bodies": LargeBodies, "bombs": Bombs, "backdated": Backdated} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, err := makes(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(spec.Next(nil, i))))
				if err != nil {
					t.Fatal(err)
				}
				good := r.Header.Get("Authorization") == "Bearer a-token"
				if good == (name == "keys") || !strings.HasPrefix(r.URL.Path, "/apis/") && !strings.HasPrefix(r.URL.Path, "/query/v1/") {
					t.Errorf("%d: %s %s with %s", i, r.Method, r.URL.Path, r.Header.Get("Authorization"))
				}
				n, err := new(bytes.Buffer).ReadFrom(r.Body)
				if err != nil || n != max(r.ContentLength, 0) {
					t.Errorf("%d: a body of %d bytes, %v, want %d", i, n, err, r.ContentLength)
				}
			}
		})
	}
}

// TestFloodsReachTheServer: each flood comes to a server, and ends when it is stopped, whatever the server does.
func TestFloodsReachTheServer(t *testing.T) {
	t.Parallel()
	for _, flood := range append(Floods, Starts) {
		t.Run(flood.Name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{}, 1<<20) // connections
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.EnableHTTP2 = true
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateClosed {
					ended <- struct{}{}
				}
			}
			if flood.plain {
				server.Start()
			} else {
				server.StartTLS()
			}
			t.Cleanup(server.Close)
			reached := make(chan struct{})
			begin := flood
			begin.send = func(conn net.Conn, request string) (int, error) {
				select {
				case reached <- struct{}{}:
				default:
				}
				return flood.send(conn, request)
			}
			stop := begin.begin(t.Context(), netip.MustParseAddrPort(server.Listener.Addr().String()), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			waittest.Within(t, reached)
			stop()
			waittest.Within(t, ended)
		})
	}
}

// TestAttackedService: an attack goes to the service that it is on, over HTTPS or plain HTTP.
func TestAttackedService(t *testing.T) {
	t.Parallel()
	services := &target.Services{TokenAddr: netip.MustParseAddrPort("127.0.0.1:1"), EventsAddr: netip.MustParseAddrPort("127.0.0.1:2")}
	for _, c := range []struct {
		tokens, plain bool
		want          netip.AddrPort
	}{
		{false, true, services.EventsAddr}, {false, false, services.API()}, {true, true, services.TokenAddr}, {true, false, services.TokenAPI()},
	} {
		if got := (&Source{Services: services, Tokens: c.tokens}).addr(c.plain); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
