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
	Endpoints []Endpoint
}

// Server is an open endpoint.
type Server struct {
	endpoint Endpoint
	listener net.Listener
	http     http.Server
	cut      cuts
	log      *slog.Logger
}

// newServer returns a server with time limits for slow senders and slow readers.
func newServer(e Endpoint, l net.Listener, c Config, cut cuts) *Server {
	s := &Server{endpoint: e, listener: l, log: c.Log, cut: cut, http: http.Server{
		TLSConfig:         e.TLS,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout, // no longer applies once the body is read and net/http waits for the client to leave
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(connectionLog{c.Log.Handler()}, slog.LevelWarn),
	}}
	s.http.Handler = s
	if !e.Streaming {
		s.http.WriteTimeout = writeTimeout
	}
	cut.watchHeaders(&s.http)
	return s
}

// ServeHTTP serves one request with the endpoint's handler. If its answers may be endless, each write has a deadline instead
// of the whole answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, _ := r.Context().Value(connectionKey{}).(*connection)
	if conn != nil {
		conn.begun.Store(false)
	}
	if !s.endpoint.Streaming {
		s.endpoint.Handler.ServeHTTP(w, r)
		return
	}
	t := newTimedWriter(w, r, conn, s.cut.answer)
	defer t.close()
	s.endpoint.Handler.ServeHTTP(t, r)
	t.last()
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
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("open requests were cut off at the end of the stop timeout", "address", s.endpoint.Addr)
		_ = s.http.Close() // its connections are lost either way
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
