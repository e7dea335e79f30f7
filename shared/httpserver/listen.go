package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"tidings.example/shared/cli"
)

// Endpoint is one listener and what it serves.
type Endpoint struct {
	Setting string       // the flag that holds Addr, such as --listen-http; named in errors
	Addr    string       // host:port; empty: not opened; port 0: any free one
	Handler http.Handler // required
	TLS     *tls.Config  // nil: plain HTTP/1.1; otherwise HTTP/2 is offered too
	// Streaming is set if answers may be endless (watches). Then each write has a deadline, instead of the whole
	// answer.
	Streaming bool
	// Public is set if strangers reach the endpoint: what has no limit of its own is bounded for each source and in
	// all, see [Leave].
	Public   bool
	OnListen func(net.Addr) // called with the actual address before anything is served; may be nil
}

// URL is how this machine reaches a listener. One of all addresses, as in a container, is reached at localhost.
func URL(scheme string, a net.Addr) string {
	host, port, _ := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// Listen opens all endpoints or none. An error says what is wrong with an address and which setting to change.
func Listen(ctx context.Context, c Config) ([]*Server, error) {
	if err := distinct(c.Endpoints); err != nil {
		return nil, err
	}
	cut := newCuts(c.Registry)
	var open []*Server
	for _, e := range c.Endpoints {
		if e.Addr == "" {
			continue
		}
		l, err := e.listen(ctx, c.Name)
		if err != nil {
			for _, s := range open {
				_ = s.listener.Close() // it has accepted nothing
			}
			return nil, err
		}
		open = append(open, newServer(e, l, c, cut))
	}
	for _, s := range open {
		e, addr := s.endpoint, s.listener.Addr() // the endpoint's address may have port 0
		c.Log.Info("listening", "setting", e.Setting, "address", addr.String(), "tls", e.TLS != nil)
		if e.OnListen != nil {
			e.OnListen(addr)
		}
	}
	return open, nil
}

// distinct returns an error that names both settings if two endpoints have the same port. Without it, the second one
// would only report that the port is in use.
func distinct(endpoints []Endpoint) error {
	for i, a := range endpoints {
		hostA, portA, _ := net.SplitHostPort(a.Addr)
		for _, b := range endpoints[:i] {
			hostB, portB, _ := net.SplitHostPort(b.Addr)
			if portA != "" && portA != "0" && portA == portB && (hostA == hostB || everywhere(hostA) || everywhere(hostB)) {
				return cli.Usagef("%s %s and %s %s want the same port: give one of them another", b.Setting, b.Addr, a.Setting, a.Addr)
			}
		}
	}
	return nil
}

// everywhere reports whether a host means all addresses of this machine.
func everywhere(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// listen opens the endpoint. An error says what is wrong with the address and which setting to change.
func (e Endpoint) listen(ctx context.Context, name string) (net.Listener, error) {
	setting := fmt.Sprintf("%s / %s", e.Setting, cli.Variable(strings.ToUpper(name), strings.TrimLeft(e.Setting, "-")))
	host, port, splitErr := net.SplitHostPort(e.Addr)
	number, portErr := strconv.ParseUint(port, 10, 16)
	if splitErr != nil || portErr != nil {
		return nil, cli.Usagef("%s: %q is no listen address: set %s to host:port, for example 127.0.0.1:8080", e.Setting, e.Addr, setting)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", e.Addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		other := net.JoinHostPort(host, strconv.FormatUint(min(number+1000, 65535), 10))
		return nil, fmt.Errorf("%s: port %s is in use (%s): stop the other program or set %s to a free address, for example %s",
			e.Setting, port, e.Addr, setting, other)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: this user may not listen on port %s (%s): set %s to a port above 1023", e.Setting, port, e.Addr, setting)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s: this machine has no address %s: set %s to one it has, 127.0.0.1 for this machine only or 0.0.0.0 for all",
			e.Setting, host, setting)
	default:
		return nil, fmt.Errorf("%s: cannot listen on %s: %w: set %s to an address of this machine", e.Setting, e.Addr, err, setting)
	}
}
