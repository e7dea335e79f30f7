package service

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A watch waits nearly all of its time, and there are thousands. In the hands of net/http each keeps three buffers, what
// was asked, and a stack as deep as its handlers are. So it is taken out of them once it has begun: what is left is the
// connection, and two goroutines with small stacks, one that writes and one that notices when the client leaves.

// detached is an answer over HTTP/1 that goes on after its handler has returned.
type detached struct {
	conn    *boundedConn
	rec     *recorder
	of      *detachments
	chunked bool // HTTP/1.0 has no chunks: there the answer ends with the connection

	rest    func(io.Writer)
	gone    context.CancelFunc
	body    int64 // bytes of the request's body that are still to come
	left    atomic.Bool
	one     [1]byte // what is listened for
	listens sync.WaitGroup
}

// MayDetach tells whether [Detach] can take an answer, and if so says in its header that the connection ends with it. It
// may be called until the header is written.
func MayDetach(ctx context.Context, w http.ResponseWriter) bool {
	t := timed(w)
	if _, ok := ctx.Value(requestKey{}).(*request); !ok || t == nil || t.guard != nil {
		return false
	}
	w.Header()["Connection"] = []string{"close"}
	return true
}

// Detach takes an answer whose header is written out of the hands of net/http: rest writes what follows, on a goroutine of
// its own once the handler has returned, and the answer ends when it returns. It has to return soon after gone was called,
// which happens when the client leaves, and also when it sends anything after its request: net/http would read one byte of
// that and then no longer notice that the connection is closed, and no answer but this one follows on the connection. Neither
// of the two functions may use anything of the request but values of its context; and that context has then ended. ctx is
// the request's or one made from it. For metrics, log and the stop of the service the request goes on. It reports false,
// and has done nothing, where [MayDetach] was not called or said so.
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

// timed is the writer below w that bounds each write, nil if there is none.
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

// run writes the rest of the answer. A panic cuts it off.
func (d *detached) run() *caughtPanic {
	d.listens.Go(d.listen)
	return caught(func() { d.rest(d) })
}

// listen waits until the client leaves, or sends something after its request. What it sends is read on to the end, because
// a connection that is closed with unread data is reset, and then the client may lose the end of the answer (RFC 9112
// section 9.6).
func (d *detached) listen() {
	if d.body > 0 {
		_, _ = io.CopyN(io.Discard, d.conn, d.body) // an error comes again with the next read
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
	const most = heldBytes - 16 // what is around it takes less
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

// chunk writes a piece as RFC 9112 section 7.1 has it.
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

// lastWait is how long a client may take to see the end of an answer before the connection is closed.
const lastWait = 500 * time.Millisecond

// end finishes the answer, or cuts it off, and reports whether the client has all of it.
func (d *detached) end(whole bool) bool {
	if whole = whole && d.conn.failed == nil && !d.left.Load(); whole {
		if d.chunked {
			_, err := d.conn.Write([]byte("0\r\n\r\n"))
			whole = err == nil
		}
		_ = d.conn.CloseWrite()
	}
	if whole {
		_ = d.conn.SetReadDeadline(time.Now().Add(lastWait))
		d.listens.Wait()
	}
	_ = d.conn.Close()
	d.listens.Wait()
	return whole
}

// detachments are the answers of a server that are detached.
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

// wait waits until all have ended, or ctx has. No handler may be running any more.
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

// close cuts off those that are open.
func (o *detachments) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for d := range o.open {
		_ = d.conn.Close() // lost either way
	}
}
