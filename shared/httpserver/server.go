package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Config describes the listeners of a process.
type Config struct {
	Name      string                // of the program; in upper case the prefix of its environment variables
	Log       *slog.Logger          // required
	Registry  prometheus.Registerer // for the metrics of connections; may be nil
	Limits    Limits
	Endpoints []Endpoint
}

// Server is an open endpoint.
type Server struct {
	endpoint Endpoint
	listener net.Listener
	http     http.Server
	open     detachments
	log      *slog.Logger
}

// newServer returns a server with time limits for slow senders and slow readers.
func newServer(e Endpoint, l net.Listener, c Config, cut cuts) *Server {
	limits := c.Limits
	limits.complete()
	s := &Server{endpoint: e, listener: l, log: c.Log, http: http.Server{
		Handler:           e.Handler,
		TLSConfig:         e.TLS,
		ReadHeaderTimeout: limits.HeaderTimeout,
		ReadTimeout:       limits.BodyTimeout, // no longer applies once the body is read and net/http waits for the client to leave
		IdleTimeout:       limits.IdleTimeout,
		MaxHeaderBytes:    limits.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(connectionLog{c.Log.Handler()}, slog.LevelWarn),
	}}
	if e.Streaming {
		s.http.Handler = streaming(e.Handler, limits.WriteTimeout, cut.answer, &s.open)
	} else {
		s.http.WriteTimeout = limits.WriteTimeout
	}
	cut.watchHeaders(&s.http)
	return s
}

// Serve accepts connections until the server is shut down.
func (s *Server) Serve() error {
	var err error
	if s.endpoint.TLS != nil {
		err = s.http.ServeTLS(connections{s.listener}, "", "")
	} else {
		err = s.http.Serve(connections{s.listener})
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("%s: %w", s.endpoint.Setting, err)
}

// Shutdown closes the listener and waits for open requests. Those that have not finished when ctx ends are cut off, which is
// logged.
func (s *Server) Shutdown(ctx context.Context) {
	err := s.http.Shutdown(ctx)
	if err == nil {
		err = s.open.wait(ctx)
	}
	if err != nil {
		s.log.Warn("open requests were cut off at the end of the stop timeout", "address", s.endpoint.Addr)
		_ = s.http.Close() // its connections are lost either way
		s.open.close()
	}
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
