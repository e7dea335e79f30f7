package service_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"tidings.example/shared/service"
)

// TestHosts: a listener on a loopback address answers only to addresses, localhost and names that are allowed. On other
// addresses that is so only if names are given.
func TestHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host                           string
		loopback, allowed, all, inside bool // whether a listener answers: on loopback, with a name, on all addresses, on these with a name
	}{
		{"127.0.0.1", true, true, true, true},
		{"127.0.0.1:8081", true, true, true, true},
		{"10.1.2.3:8081", true, true, true, true},
		{"[::1]", true, true, true, true},
		{"[::1]:8081", true, true, true, true},
		{"[fe80::1%25eth0]:8081", true, true, true, true},
		{"localhost", true, true, true, true},
		{"LocalHost:8081", true, true, true, true},
		{"localhost.", true, true, true, true},
		{"metrics.localhost:8081", true, true, true, true},
		{"events.example:8081", false, true, true, true},
		{"EVENTS.example.", false, true, true, true},
		{"evil.example", false, false, true, false},
		{"evil.example:8081", false, false, true, false},
		{"sub.events.example", false, false, true, false},
		{"events.example.evil.example", false, false, true, false},
		{"localhost.evil.example", false, false, true, false},
		{"evillocalhost", false, false, true, false},
		{"127.0.0.1.evil.example", false, false, true, false},
		{"127.1", false, false, true, false},
		{"2130706433", false, false, true, false},
		{".", false, false, true, false},
		{"", false, false, true, false}, // HTTP/1.0 only
	} {
		named := service.Hosts{AllowedHosts: []string{"Events.example"}}
		for _, l := range []struct {
			name  string
			addr  string
			hosts service.Hosts
			want  bool
		}{
			{"on loopback", "127.0.0.1:0", service.Hosts{}, c.loopback},
			{"on loopback, with a name", "localhost:0", named, c.allowed},
			{"on all addresses", ":0", service.Hosts{}, c.all},
			{"on all addresses, with a name", "0.0.0.0:0", named, c.inside},
		} {
			if got := asked(t, l.hosts.Guard(l.addr, slog.New(slog.DiscardHandler), ok), c.host); got != l.want {
				t.Errorf("%s: Host %q is answered: %v, want %v", l.name, c.host, got, l.want)
			}
		}
	}
}

var ok = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// asked reports whether a handler on a loopback address answers a request with a Host.
func asked(t *testing.T, h http.Handler, host string) bool {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	version, header := "1.1", "Host: "+host+"\r\n"
	if host == "" {
		version, header = "1.0", ""
	}
	if _, err := fmt.Fprintf(conn, "GET /metrics HTTP/%s\r\n%s\r\n", version, header); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusForbidden {
		t.Errorf("Host %q: %s", host, res.Status)
	}
	return res.StatusCode == http.StatusOK
}

// TestHostsOfItsOwn: the name in the address of the listener is one of its names.
func TestHostsOfItsOwn(t *testing.T) {
	t.Parallel()
	if !asked(t, service.Hosts{}.Guard("myhost:8081", slog.New(slog.DiscardHandler), ok), "myhost:8081") {
		t.Error("its own name is refused")
	}
}

// TestHostsCheck: what is no name of a host is a mistake in the settings.
func TestHostsCheck(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"events.example": true, "Events.example.": true, "eventsvc": true, "10.0.0.1": true,
		"": false, ".": false, "*": false, "*.example": false, "events.example:8081": false, "http://events.example": false, "a b": false, "events.example/x": false,
	} {
		if err := (service.Hosts{AllowedHosts: []string{name}}).Check(); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}
