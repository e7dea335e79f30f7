package floor

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/labstack/echo/v4"
)

// Kinds of floor servers. Each runs in a process of its own, as the services
// do, so that its CPU time and its share of the cores compare with theirs.
const (
	Hello  = "hello"  // echo answering "hello"
	Copy   = "copy"   // sends as many bytes as it is asked for
	Fanout = "fanout" // sends what is posted to everybody who has asked
)

// Serve runs a floor server on a loopback address. It ends with the process.
func Serve(kind, addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("floor server: %w", err)
	}
	switch kind {
	case Hello:
		return serveHello(l)
	case Copy:
		return accept(l, sendBytes)
	case Fanout:
		return accept(l, newHub().serve)
	}
	return fmt.Errorf("floor server %q: want %s, %s or %s", kind, Hello, Copy, Fanout)
}

func serveHello(l net.Listener) error {
	e := echo.New()
	e.GET("/hello", func(c echo.Context) error { return c.String(http.StatusOK, "hello") })
	return http.Serve(l, e)
}

// accept serves every connection in a goroutine of its own.
func accept(l net.Listener, serve func(net.Conn) error) error {
	failures := log.New(os.Stderr, "floor: ", 0)
	for {
		c, err := l.Accept()
		if err != nil {
			return fmt.Errorf("floor server: %w", err)
		}
		go func() {
			defer c.Close()
			if err := serve(c); err != nil && !errors.Is(err, io.EOF) {
				failures.Print(err)
			}
		}()
	}
}

// sendBytes answers every number of 8 bytes with as many bytes.
func sendBytes(c net.Conn) error {
	in := bufio.NewReader(c)
	block := make([]byte, 256<<10)
	for {
		var n uint64
		if err := binary.Read(in, binary.BigEndian, &n); err != nil {
			return err
		}
		for n > 0 {
			k, err := c.Write(block[:min(n, uint64(len(block)))])
			if err != nil {
				return err
			}
			n -= uint64(k)
		}
	}
}
