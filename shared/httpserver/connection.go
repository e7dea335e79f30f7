package httpserver

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// connection is an accepted connection. It records whether a request has begun that has not reached a handler, because
// net/http does not report headers that it refuses.
type connection struct {
	net.Conn
	begun atomic.Bool
	leave func()  // the connections that nobody has answered for; nil: it is not one of those that are counted
	pace  *pace   // nil: what is read is not bounded
	held  *[]byte // data that waits for release; nil: writes go out directly
}

// Read reads what may be read now.
func (c *connection) Read(p []byte) (int, error) {
	if c.pace == nil {
		return c.Conn.Read(p)
	}
	c.pace.wait()
	n, err := c.Conn.Read(p[:min(len(p), paceRead)])
	c.pace.took(n)
	return n, err
}

// SetDeadline implements [net.Conn].
func (c *connection) SetDeadline(t time.Time) error {
	c.pace.until(t)
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements [net.Conn].
func (c *connection) SetReadDeadline(t time.Time) error {
	c.pace.until(t)
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite closes the sending half, so that a refusal arrives although the client is still sending.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// heldBytes is the most that a connection buffers: the 16 KiB that a watch gathers, and the event that goes beyond
// them. It is small because thousands of connections may wait for slow clients.
const heldBytes = 20 << 10

var heldBuffers = sync.Pool{New: func() any { return new([]byte) }}

// hold buffers further writes until release, so that they are one system call. net/http has a small buffer and would
// use two or three. Only the goroutine that writes may call it.
func (c *connection) hold() {
	if c.held == nil {
		c.held = heldBuffers.Get().(*[]byte)
	}
}

// release writes the buffered data, and ends the buffering.
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

// Write buffers p if hold was called and p fits, and otherwise writes it.
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

// Close closes the connection.
func (c *connection) Close() error {
	if c.leave != nil {
		c.leave()
	}
	c.pace.until(time.Unix(1, 0))
	return c.Conn.Close()
}

// connections is a listener that accepts connections of type connection. It closes those that are too many of their
// source at once: an answer would take a TLS handshake.
type connections struct {
	net.Listener
	strangers *share // nil: there is no limit
	pacer     *pacer // nil: what they send is not bounded
	proxies   []netip.Prefix
	cut       prometheus.Counter
}

// Accept waits for a connection.
func (l connections) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.strangers == nil {
			return &connection{Conn: conn}, nil
		}
		source := sourceOf(conn.RemoteAddr(), l.proxies)
		if leave := l.strangers.enter(source); leave != nil {
			c := &connection{Conn: conn, leave: leave}
			if l.pacer != nil && source != "" {
				c.pace = &pace{of: l.pacer, source: source}
			}
			return c, nil
		}
		l.cut.Inc()
		_ = conn.Close() // nothing was sent
	}
}

func connectionOf(conn net.Conn) *connection {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, _ := conn.(*connection)
	return c
}

type connectionKey struct{}

// watchHeaders counts connections that end within the header of a request: before [Server.ServeHTTP] is called. HTTP/2
// has no such state and is not counted.
func (c cuts) watchHeaders(srv *http.Server) {
	srv.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, connectionOf(conn))
	}
	srv.ConnState = func(conn net.Conn, state http.ConnState) {
		switch of := connectionOf(conn); {
		case of == nil:
		case state == http.StateActive:
			of.begun.Store(true) // set before the handler runs, and also if none runs
		case state == http.StateClosed && of.begun.Load():
			c.header.Inc()
		}
	}
}
