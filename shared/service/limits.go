package service

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/cli"
)

// ConnectionLimits are the settings that bound what a connection can cost: how long it may take its time, and how large
// a header may be. Zero fields stand for the defaults.
type ConnectionLimits struct {
	HeaderTimeout  time.Duration `default:"10s" help:"Time to send the header of a request."`
	BodyTimeout    time.Duration `default:"30s" help:"Time to send a request, header and body."`
	WriteTimeout   time.Duration `default:"60s" help:"Time for a client to read an answer, or each write of a stream."`
	IdleTimeout    time.Duration `default:"2m" help:"Time that a connection may be idle between requests."`
	MaxHeaderBytes int           `default:"16384" help:"Largest header of a request, in bytes."`
}

// Check finds limits that nobody can mean.
func (l *ConnectionLimits) Check() error {
	if min(l.HeaderTimeout, l.BodyTimeout, l.WriteTimeout, l.IdleTimeout) <= 0 || l.MaxHeaderBytes < 1<<10 {
		return cli.Usagef("--header-timeout, --body-timeout, --write-timeout and --idle-timeout must be positive, --max-header-bytes at least 1024")
	}
	if l.BodyTimeout < l.HeaderTimeout {
		return cli.Usagef("--body-timeout %s is shorter than --header-timeout %s, which is a part of it", l.BodyTimeout, l.HeaderTimeout)
	}
	return nil
}

// complete puts the defaults in.
func (l *ConnectionLimits) complete() {
	for set, fallback := range map[*time.Duration]time.Duration{
		&l.HeaderTimeout: 10 * time.Second, &l.BodyTimeout: 30 * time.Second, &l.WriteTimeout: time.Minute, &l.IdleTimeout: 2 * time.Minute,
	} {
		if *set <= 0 {
			*set = fallback
		}
	}
	if l.MaxHeaderBytes <= 0 {
		l.MaxHeaderBytes = 16 << 10
	}
}

// cuts counts what the limits have cut off. Bodies are read by the handlers, who count those that do not come.
type cuts struct{ header, answer prometheus.Counter }

func newCuts(reg prometheus.Registerer) cuts {
	counters := Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "http_connections_cut_total",
		Help: "Connections cut off: in the header of a request (too slow, too large or malformed) or in an answer (taken too slowly).",
	}, []string{"in"}))
	return cuts{counters.WithLabelValues("header"), counters.WithLabelValues("answer")}
}

// connection knows whether a request has begun on it that has not reached a handler. That is all one can learn about
// headers that are refused: net/http tells nobody.
type connection struct {
	net.Conn
	begun atomic.Bool
	held  *[]byte // what is written waits here; nil: nothing is held back
}

// CloseWrite ends the sending half, so that a refusal arrives although the client is still sending.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// heldBytes is how much a connection holds back: thousands may wait for clients that do not read.
const heldBytes = 16 << 10

var heldBuffers = sync.Pool{New: func() any { return new([]byte) }}

// hold has the writes that follow wait for release, so that one system call carries them all: net/http's buffer is so small
// that it takes two or three for what it writes at once. Only the goroutine that writes may call it.
func (c *connection) hold() {
	if c.held == nil {
		c.held = heldBuffers.Get().(*[]byte)
	}
}

// release writes what was held back.
func (c *connection) release() error {
	held := c.held
	if held == nil {
		return nil
	}
	c.held = nil
	var err error
	if len(*held) > 0 {
		_, err = c.Conn.Write(*held)
	}
	*held = (*held)[:0]
	heldBuffers.Put(held)
	return err
}

// Write writes, or holds back what fits.
func (c *connection) Write(p []byte) (int, error) {
	if c.held != nil {
		if len(*c.held)+len(p) <= heldBytes {
			*c.held = append(*c.held, p...)
			return len(p), nil
		}
		if err := c.release(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// connections are what a listener accepts.
type connections struct{ net.Listener }

// Accept waits for a connection.
func (l connections) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn}, nil
}

func connectionOf(conn net.Conn) *connection {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, _ := conn.(*connection)
	return c
}

type connectionKey struct{}

// watchHeaders counts the connections that end within the header of a request. HTTP/2 has no such state and is left out.
func (c cuts) watchHeaders(srv *http.Server) {
	srv.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, connectionOf(conn))
	}
	srv.ConnState = func(conn net.Conn, state http.ConnState) {
		switch of := connectionOf(conn); {
		case of == nil:
		case state == http.StateActive:
			of.begun.Store(true) // it is set before the handler runs, and also where none does
		case state == http.StateClosed && of.begun.Load():
			c.header.Inc()
		}
	}
	next := srv.Handler
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if of, ok := r.Context().Value(connectionKey{}).(*connection); ok && of != nil {
			of.begun.Store(false)
		}
		next.ServeHTTP(w, r)
	})
}
