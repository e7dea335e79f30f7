package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// pipe is the net.Conn below a TLS connection: blocking on the socket during
// the handshake, and fed by the loop afterwards, when it never blocks.
type pipe struct {
	net.Conn       // nil: nothing but Read and Write is called
	c        *conn // of the loop
	fed      bool
	in       []byte
}

// errAgain says that a record has not arrived whole. It is temporary, which
// makes package tls keep what it has and go on with the next Read.
type errAgain struct{}

func (errAgain) Error() string   { return "not yet" }
func (errAgain) Timeout() bool   { return true }
func (errAgain) Temporary() bool { return true }

func (p *pipe) Read(b []byte) (int, error) {
	if !p.fed {
		n, err := unix.Read(p.c.fd, b)
		if n == 0 && err == nil {
			err = io.EOF
		}
		return max(n, 0), err
	}
	if len(p.in) == 0 {
		return 0, errAgain{}
	}
	n := copy(b, p.in)
	p.in = p.in[n:]
	return n, nil
}

func (p *pipe) Write(b []byte) (int, error) {
	if !p.fed {
		n, err := unix.Write(p.c.fd, b)
		return max(n, 0), err
	}
	return len(b), p.c.push(b)
}

func (p *pipe) SetDeadline(time.Time) error      { return nil }
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }

// secure makes c a TLS connection with HTTP/2, while its socket still blocks.
func (c *conn) secure(config *tls.Config) error {
	c.pipe = &pipe{c: c}
	c.tls = tls.Client(c.pipe, config)
	if err := c.tls.Handshake(); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	if got := c.tls.ConnectionState().NegotiatedProtocol; got != "h2" {
		return fmt.Errorf("the server speaks %q instead of HTTP/2 over TLS", got)
	}
	c.pipe.fed = true
	var err error
	c.session, err = newSession(func(p []byte) error {
		_, err := c.tls.Write(p)
		return err
	})
	return err
}

// open decrypts what arrived and hands it to the owner.
func (c *conn) open(p []byte) error {
	c.pipe.in = p
	for {
		n, err := c.tls.Read(c.plain())
		if n > 0 {
			if err := c.owner.receive(c.loop.clear[:n], c.loop.Now()); err != nil {
				return err
			}
		}
		if errors.Is(err, errAgain{}) {
			return nil
		}
		if err != nil {
			return c.lost(fmt.Errorf("TLS: %w", err))
		}
	}
}

// plain is the loop's buffer for decrypted bytes.
func (c *conn) plain() []byte {
	if c.loop.clear == nil {
		c.loop.clear = make([]byte, readSize)
	}
	return c.loop.clear
}
