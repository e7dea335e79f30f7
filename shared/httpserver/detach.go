package httpserver

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// There may be thousands of watches, which wait nearly all the time. As long as net/http serves a watch, it keeps three
// buffers, the request, and the stack of all handlers. So an HTTP/1 watch is detached from net/http after it has begun. It
// then has only its connection and two goroutines with small stacks: one writes, one detects that the client leaves.

// detached is an answer over HTTP/1 that goes on after its handler has returned.
type detached struct {
	conn    *boundedConn
	rec     *recorder
	of      *detachments
	chunked bool // false in HTTP/1.0, where the answer ends with the connection

	rest    func(io.Writer)
	gone    context.CancelFunc
	body    int64 // bytes of the request's body that have not been read
	left    atomic.Bool
	one     [1]byte // buffer of listen
	listens sync.WaitGroup
}

// MayDetach reports whether [Detach] can detach an answer. If so, it sets the header that closes the connection after the
// answer. It must be called before the header is written.
func MayDetach(ctx context.Context, w http.ResponseWriter) bool {
	t := timed(w)
	if _, ok := ctx.Value(requestKey{}).(*request); !ok || t == nil || t.guard != nil {
		return false
	}
	w.Header()["Connection"] = []string{"close"}
	return true
}

// Detach takes the connection of an answer from net/http. The header of the answer must have been written, and ctx is the
// context of the request, or derived from it. After the handler has returned, rest runs on its own goroutine and writes the
// remaining answer, which ends when rest returns.
//
// gone is called when the client leaves, and when it sends anything after its request; rest must then return soon. Further
// data cannot be a request, because the connection closes after this answer.
//
// rest and gone must not use the request, except values of its context, which has ended by then. For metrics, the log and
// the stop of the service, the request goes on until rest returns.
//
// Detach returns false, and changes nothing, if [MayDetach] was not called or returned false.
func Detach(ctx context.Context, w http.ResponseWriter, gone context.CancelFunc, rest func(io.Writer)) bool {
	t := timed(w)
	req, ok := ctx.Value(requestKey{}).(*request)
	if !ok || t == nil || t.guard != nil || w.Header().Get("Connection") != "close" {
		return false
	}
	if t.FlushError() != nil {
		return false // the handler will find the same
	}
	d := &detached{of: t.detachments, chunked: t.chunked, rest: rest, gone: gone}
	d.of.running.Add(1) // before the server forgets the connection
	conn, buffered, err := t.hijack()
	if err != nil {
		d.of.running.Done()
		return false
	}
	d.conn = conn
	if d.body = t.body - int64(buffered.Reader.Buffered()); d.body < 0 {
		gone() // the client has sent more than its request
	}
	d.of.add(d)
	req.detached = d
	return true
}

// timed returns the timedWriter that w wraps, or nil.
func timed(w http.ResponseWriter) *timedWriter {
	for {
		switch of := w.(type) {
		case *timedWriter:
			return of
		case interface{ Unwrap() http.ResponseWriter }:
			w = of.Unwrap()
		default:
			return nil
		}
	}
}

// run writes the rest of the answer, and returns a panic of rest.
func (d *detached) run() *caughtPanic {
	d.listens.Go(d.listen)
	return catchPanic(func() { d.rest(d) })
}

// listen waits until the client leaves or sends something after its request, and then calls gone. It reads and discards all
// further data: a connection that is closed with unread data is reset, and the client may then lose the end of the answer
// (RFC 9112 section 9.6).
func (d *detached) listen() {
	if d.body > 0 {
		_, _ = io.CopyN(io.Discard, d.conn, d.body) // the next read returns the same error
	}
	if _, err := io.ReadFull(d.conn, d.one[:]); err == nil {
		d.gone()
		_, _ = io.Copy(io.Discard, d.conn)
	}
	d.left.Store(true)
	d.gone()
}

// Write writes each piece as one chunk in one system call.
func (d *detached) Write(p []byte) (int, error) {
	const most = heldBytes - 16 // leaves room for the length and the line ends of a chunk
	written := 0
	for len(p) > 0 {
		piece := p[:min(len(p), most)]
		if err := d.chunk(piece); err != nil {
			return written, err
		}
		written += len(piece)
		d.rec.bytes += int64(len(piece))
		p = p[len(piece):]
	}
	return written, nil
}

// chunk writes a piece as one chunk (RFC 9112 section 7.1) or, without chunks, as it is.
func (d *detached) chunk(p []byte) error {
	if !d.chunked {
		_, err := d.conn.Write(p)
		return err
	}
	held := heldBuffers.Get().(*[]byte)
	b := strconv.AppendInt((*held)[:0], int64(len(p)), 16)
	b = append(append(append(b, "\r\n"...), p...), "\r\n"...)
	_, err := d.conn.Write(b)
	*held = b[:0]
	heldBuffers.Put(held)
	return err
}

// lastWait is how long the connection stays open after the end of the answer, for the client to close it.
const lastWait = 500 * time.Millisecond

// end finishes the answer if whole is true, and otherwise cuts it off. It reports whether the client was sent all of it.
func (d *detached) end(whole bool) bool {
	if whole = whole && d.conn.failed == nil && !d.left.Load(); whole {
		if d.chunked {
			_, err := d.conn.Write([]byte("0\r\n\r\n"))
			whole = err == nil
		}
		_ = closeWrite(d.conn.Conn)
	}
	if whole {
		_ = d.conn.SetReadDeadline(time.Now().Add(lastWait))
		d.listens.Wait()
	}
	_ = d.conn.Close()
	d.listens.Wait()
	return whole
}

// detachments are the detached answers of a server.
type detachments struct {
	running sync.WaitGroup

	mu   sync.Mutex
	open map[*detached]struct{}
}

func (o *detachments) add(d *detached) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[*detached]struct{}{}
	}
	o.open[d] = struct{}{}
}

func (o *detachments) remove(d *detached) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, d)
	o.running.Done()
}

// wait waits until all have ended or ctx ends. No handler may be running when it is called.
func (o *detachments) wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() { o.running.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close cuts off the open answers.
func (o *detachments) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for d := range o.open {
		_ = d.conn.Close() // lost either way
	}
}
