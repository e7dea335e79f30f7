package httpserver

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// newTimedWriter returns the writer of an answer over conn, which is nil if it is not known.
func newTimedWriter(w http.ResponseWriter, r *http.Request, conn *connection, cut prometheus.Counter, who *stranger) *timedWriter {
	t := &timedWriter{ResponseWriter: w, rc: http.NewResponseController(w), cut: cut, who: who}
	if r.ProtoMajor >= 2 {
		t.guard = &guard{rc: t.rc}
	} else if r.TLS == nil { // with TLS others write to the connection too, when it is closed
		t.conn = conn
	}
	return t
}

// timedWriter sets a deadline for each write and flush, instead of one for the whole answer, which would end watches.
type timedWriter struct {
	http.ResponseWriter
	rc  *http.ResponseController
	cut prometheus.Counter
	who *stranger

	began time.Time   // when the last write began
	armed time.Time   // when the deadline of the connection was last set
	guard *guard      // HTTP/2
	conn  *connection // HTTP/1 without TLS

	hijacked bool // the connection is no longer the server's
}

// small is the largest write that fits into net/http's buffers and needs one system call.
const small = 2 << 10

// slack is the fraction (1/slack) of the limit by which a write may have less time. Setting the deadline of a
// connection is a considerable part of the cost of a small write, so one deadline serves all writes in that time.
const slack = 32

// limit is how long a write may take.
func (w *timedWriter) limit() time.Duration {
	if w.who.known {
		return writeTimeout
	}
	return shortTimeout
}

// begin sets the deadline of a write.
func (w *timedWriter) begin() {
	w.began = time.Now()
	switch {
	case w.guard != nil:
		w.guard.begin(w.began, w.limit())
	case w.began.Sub(w.armed) >= writeTimeout/slack: // in HTTP/1 a deadline that passes while nothing is written has no effect
		w.armed = w.began
		_ = w.rc.SetWriteDeadline(w.began.Add(w.limit()))
	}
}

func (w *timedWriter) end(err error) {
	if w.guard != nil {
		w.guard.end()
	}
	if limit := w.limit(); err != nil && time.Since(w.began) >= limit-limit/slack {
		w.cut.Inc()
	}
}

// close stops the guard, also after a panic.
func (w *timedWriter) close() {
	if w.guard != nil {
		w.guard.close()
	}
}

// last sets the deadline for the data that net/http writes after the handler has returned.
func (w *timedWriter) last() {
	if w.hijacked {
		return
	}
	if w.guard == nil {
		w.begin()
		if w.conn != nil {
			_ = w.conn.release() // net/http gets the same error when it writes the end
		}
		return
	}
	if !w.who.known { // net/http would send what is left when the request no longer counts
		w.Flush()
	}
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.limit()))
}

// Write writes within the limit.
func (w *timedWriter) Write(p []byte) (int, error) {
	w.begin()
	if w.conn != nil && len(p) > small {
		w.conn.hold()
	}
	n, err := w.ResponseWriter.Write(p)
	w.end(err)
	return n, err
}

// Flush flushes within the limit.
func (w *timedWriter) Flush() { _ = w.FlushError() }

// FlushError flushes within the limit and returns the error.
func (w *timedWriter) FlushError() error {
	w.begin()
	err := w.rc.Flush()
	if w.conn != nil {
		err = errors.Join(err, w.conn.release())
	}
	w.end(err)
	return err
}

// Unwrap lets [http.ResponseController] reach the connection.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack takes the connection from the server, for a WebSocket. Its writes have the same deadlines, and are counted
// when they are cut off.
func (w *timedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.rc.Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.conn, w.hijacked = nil, true
	bounded := &boundedConn{Conn: conn, cut: w.cut}
	buffered.Writer.Reset(bounded)
	return bounded, buffered, nil
}

// boundedConn is a hijacked connection. Each write to it has a deadline. Only one goroutine may write at a time.
type boundedConn struct {
	net.Conn
	cut   prometheus.Counter
	armed time.Time // when the deadline of writes was last set
}

// Write writes within the limit. A write that fails closes the connection.
func (c *boundedConn) Write(p []byte) (n int, err error) {
	began := time.Now()
	if began.Sub(c.armed) >= writeTimeout/slack {
		c.armed = began
		_ = c.SetWriteDeadline(began.Add(writeTimeout))
	}
	if n, err = c.Conn.Write(p); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.cut.Inc()
		}
		_ = c.Close() // lost either way
	}
	return n, err
}

// guard ends an HTTP/2 stream whose write takes too long. A deadline of the stream would have to be set and removed
// around every write, because HTTP/2 resets a stream whose deadline passes, even if nothing is being written; and each
// change wakes the goroutine of the connection. The timer of the guard checks only once per limit.
type guard struct {
	rc *http.ResponseController

	mu     sync.Mutex
	since  time.Time // when the current write began; zero: there is none
	limit  time.Duration
	timer  *time.Timer
	looks  bool // the timer is running
	closed bool
}

func (g *guard) begin(now time.Time, limit time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since, g.limit = now, limit
	switch {
	case g.timer == nil:
		g.timer = time.AfterFunc(limit, g.look)
	case !g.looks:
		g.timer.Reset(limit)
	}
	g.looks = true
}

func (g *guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since = time.Time{}
}

// look resets the stream if its write has taken the whole timeout.
func (g *guard) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.looks = false
	if g.closed || g.since.IsZero() {
		return
	}
	if left := g.limit - time.Since(g.since); left > 0 {
		g.timer.Reset(left)
		g.looks = true
		return
	}
	_ = g.rc.SetWriteDeadline(time.Unix(1, 0)) // a deadline in the past ends the write
}

// close stops the guard, because the stream ends with its handler.
func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.timer != nil {
		g.timer.Stop()
	}
}
