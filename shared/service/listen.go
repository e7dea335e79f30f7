package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"tidings.example/shared/cli"
)

// listener is an open endpoint.
type listener struct {
	Endpoint
	net.Listener
}

// Addr returns the actual address; that of the endpoint may have port 0.
func (l listener) Addr() net.Addr { return l.Listener.Addr() }

// distinct returns an error that names both settings if two endpoints have the same port. Without it, the second one would
// only report that the port is in use.
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

// listenAll opens all endpoints or none.
func listenAll(ctx context.Context, c Config) ([]listener, error) {
	if err := distinct(c.Endpoints); err != nil {
		return nil, err
	}
	var open []listener
	for _, e := range c.Endpoints {
		if e.Addr == "" {
			continue
		}
		l, err := e.listen(ctx, c.Name)
		if err != nil {
			for _, l := range open {
				_ = l.Close() // it has accepted nothing
			}
			return nil, err
		}
		open = append(open, listener{e, l})
	}
	return open, nil
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

// serve accepts connections until the server is shut down.
func (l listener) serve(srv *server) error {
	var err error
	if l.TLS != nil {
		err = srv.ServeTLS(connections{l.Listener}, "", "")
	} else {
		err = srv.Serve(connections{l.Listener})
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("%s: %w", l.Setting, err)
}

// server is an HTTP server with its detached answers.
type server struct {
	http.Server
	detachments detachments
}

// newServer returns a server with time limits for slow senders and slow readers.
func newServer(e Endpoint, c Config) *server {
	limits, cut := c.Limits, newCuts(c.Registry)
	limits.complete()
	srv := &server{Server: http.Server{
		Addr:              e.Addr,
		Handler:           e.Handler,
		TLSConfig:         e.TLS,
		ReadHeaderTimeout: limits.HeaderTimeout,
		ReadTimeout:       limits.BodyTimeout, // no longer applies once the body is read and net/http waits for the client to leave
		IdleTimeout:       limits.IdleTimeout,
		MaxHeaderBytes:    limits.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(connectionLog{c.Log.Handler()}, slog.LevelWarn),
	}}
	if e.Streaming {
		srv.Handler = streaming(e.Handler, limits.WriteTimeout, cut.answer, &srv.detachments)
	} else {
		srv.WriteTimeout = limits.WriteTimeout
	}
	cut.watchHeaders(&srv.Server)
	return srv
}

// connectionLog receives net/http's errors of connections. A failed TLS handshake is logged at the debug level, because any
// port scanner can cause it.
type connectionLog struct{ slog.Handler }

// Handle logs one report.
func (h connectionLog) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "http: TLS handshake error") {
		if r.Level = slog.LevelDebug; !h.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}
