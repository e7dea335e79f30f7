package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Config describes the listeners of a process.
type Config struct {
	Name      string                // of the program; in upper case the prefix of its environment variables
	Log       *slog.Logger          // required
	Registry  prometheus.Registerer // for the metrics of connections; may be nil
	Proxies   []netip.Prefix        // their X-Forwarded-For is believed, and they have no limit of their own
	Endpoints []Endpoint
}

// Server is an open endpoint.
type Server struct {
	endpoint Endpoint
	listener net.Listener
	http     http.Server
	cut      cuts
	log      *slog.Logger
	proxies  []netip.Prefix
	source   func(*http.Request) string
	// Nil: the endpoint is not public.
	strangers *share // connections
	unread    *share // requests over HTTP/2
	pacer     *pacer // bytes
}

// newServer returns a server with time limits for slow senders and slow readers.
func newServer(e Endpoint, l net.Listener, c Config, cut cuts) *Server {
	s := &Server{endpoint: e, listener: l, log: c.Log, cut: cut, proxies: c.Proxies, source: Source(c.Proxies), http: http.Server{
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		TLSConfig:         e.TLS,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout, // no longer applies once the body is read and net/http waits for the client to leave
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(connectionLog{c.Log.Handler()}, slog.LevelWarn),
	}}
	s.http.Handler = s
	if e.Public {
		s.strangers, s.unread = newShare(strangers, strangersSource), newShare(unread, unreadSource)
		s.pacer = newPacer()
	}
	if !e.Streaming {
		s.http.WriteTimeout = writeTimeout
	}
	cut.watchHeaders(&s.http)
	return s
}

// ServeHTTP serves one request with the endpoint's handler. If its answers may be endless, each write has a deadline
// instead of the whole answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, _ := r.Context().Value(connectionKey{}).(*connection)
	if conn != nil {
		conn.begun.Store(false)
	}
	who := &stranger{conn: conn, known: !s.endpoint.Public}
	if s.endpoint.Public {
		if r.ProtoMajor >= 2 { // each request of HTTP/1 has a connection, which is counted
			if who.leave = s.unread.enter(s.subscriber(r)); who.leave == nil {
				s.cut.unread.Inc()
				panic(http.ErrAbortHandler) // resets the stream: an answer could wait like those before
			}
			defer func() { who.leave() }()
		}
		if conn != nil {
			defer func() {
				if r.Context().Err() == nil { // it was neither reset nor left
					conn.pace.give(paceAnswer)
				}
			}()
		}
		r = WithValue(r, strangerKey{}, who)
	}
	if !s.endpoint.Streaming {
		s.endpoint.Handler.ServeHTTP(w, r)
		return
	}
	t := newTimedWriter(w, r, conn, s.cut.answer, who)
	defer t.close()
	s.endpoint.Handler.ServeHTTP(t, r)
	t.last()
}

// subscriber returns whom the requests of a source are counted for: nobody, if it is a proxy that does not tell.
func (s *Server) subscriber(r *http.Request) string {
	source := s.source(r)
	if addr, err := netip.ParseAddr(source); err == nil && slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) }) {
		return ""
	}
	return Subscriber(source)
}

// Serve accepts connections until the server is shut down.
func (s *Server) Serve() error {
	var err error
	l := connections{Listener: s.listener, strangers: s.strangers, pacer: s.pacer, proxies: s.proxies, cut: s.cut.source}
	if s.endpoint.TLS != nil {
		err = s.http.ServeTLS(l, "", "")
	} else {
		err = s.http.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("%s: %w", s.endpoint.Setting, err)
}

// Shutdown closes the listener and waits for open requests. Those that have not finished when ctx ends are cut off,
// which is logged.
func (s *Server) Shutdown(ctx context.Context) {
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("open requests were cut off at the end of the stop timeout", "address", s.endpoint.Addr)
		_ = s.http.Close() // its connections are lost either way
	}
}

// connectionLog receives net/http's errors of connections. A failed TLS handshake is logged at the debug level, because
// any port scanner can cause it.
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
