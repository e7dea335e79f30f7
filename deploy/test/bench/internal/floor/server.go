package floor

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// Kinds of floor servers. Each runs in a process of its own, as the services
// do, so that its CPU time and its share of the cores compare with theirs.
const (
	Hello  = "hello"  // echo answering "hello"
	Answer = "answer" // echo answering what the event service would
	Store  = "store"  // the same, after a put into bbolt
	Copy   = "copy"   // sends as many bytes as it is asked for
	Fanout = "fanout" // sends what is posted to everybody who has asked
)

// Serve runs a floor server on a loopback address; one that stores does so in a
// directory. It ends with the process.
func Serve(kind, addr, dir string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("floor server: %w", err)
	}
	switch kind {
	case Hello:
		return serveHello(l)
	case Answer:
		return serveAnswer(l, nil)
	case Store:
		return serveStore(l, dir)
	case Copy:
		return accept(l, sendBytes)
	case Fanout:
		return accept(l, newHub().serve)
	}
	return fmt.Errorf("floor server %q: want %s, %s, %s, %s or %s", kind, Hello, Answer, Store, Copy, Fanout)
}

func serveHello(l net.Listener) error {
	e := echo.New()
	e.GET("/hello", func(c echo.Context) error { return c.String(http.StatusOK, "hello") })
	return http.Serve(l, e)
}

// answerSize is the length of an event as the answer to a get.
const answerSize = 1530

// serveAnswer answers everything as the event service answers a get: with the
// same headers, the same number of bytes and the same timeouts. This is the
// cost of HTTP without lookup, authentication, metrics and logs. If work is
// given, the body of the request is read and work is called before the answer.
func serveAnswer(l net.Listener, work func() error) error {
	body := bytes.Repeat([]byte("x"), answerSize)
	header := http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(answerSize)},
		"Cache-Control": {"no-cache, private"}, "X-Content-Type-Options": {"nosniff"},
		"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'"},
		"X-Request-Id":            {"6f6c5a0e-7f0f-4c3a-9a44-2f3f0a2b9f11"}, "Audit-Id": {"6f6c5a0e-7f0f-4c3a-9a44-2f3f0a2b9f11"},
	}
	e := echo.New()
	e.Any("/*", func(c echo.Context) error {
		if work != nil {
			if _, err := io.Copy(io.Discard, c.Request().Body); err != nil {
				return err
			}
			if err := work(); err != nil {
				return err
			}
		}
		maps.Copy(c.Response().Header(), header)
		c.Response().WriteHeader(http.StatusOK)
		_, err := c.Response().Write(body)
		return err
	})
	srv := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	return srv.Serve(l)
}

// recordSize is the length of a stored version of an event: its JSON, its
// protobuf, and what is kept beside them.
const recordSize = 2750

// The file that records are put into, and the page size that suits their length.
const (
	storeFile = "floor-store.db"
	storePage = 16 << 10
)

// serveStore answers when a record as long as an event's is on the disk. All
// records that wait share one commit. This is a durable write over HTTP without
// parsing and checking.
func serveStore(l net.Listener, dir string) error {
	path := filepath.Join(dir, storeFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // an attempt before
		return fmt.Errorf("floor server: %w", err)
	}
	db, err := openBolt(path, storePage)
	if err != nil {
		return err
	}
	defer db.Close()
	waiting := make(chan chan error, 1024)
	defer close(waiting)
	go commit(db, waiting, make([]byte, recordSize))
	return serveAnswer(l, func() error {
		done := make(chan error, 1)
		waiting <- done
		return <-done
	})
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
