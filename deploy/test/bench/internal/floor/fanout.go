package floor

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"sync"
)

// ringSize is how many frames a reader may be behind before the poster waits.
const ringSize = 1024

// RevisionHole is where the hub numbers a frame, so that its readers are
// checked for order exactly as the service's watchers are.
const RevisionHole = `"resourceVersion":"00000000000000000000"`

// hub does the least that a watch server must do: it has a ring of frames, a
// cursor for every reader, and one write for all frames that wait. It parses
// only as much HTTP as the load generator needs: a client that sends GET
// becomes a reader, and the body of a POST goes to all readers.
type hub struct {
	mu      sync.RWMutex // read-locked to move one's own cursor
	posted  *sync.Cond   // the head has moved
	taken   *sync.Cond   // a cursor has moved away from a full ring
	frames  [ringSize][]byte
	head    uint64 // of the next frame
	cursors map[*uint64]struct{}
}

func newHub() *hub {
	h := &hub{cursors: make(map[*uint64]struct{})}
	h.posted, h.taken = sync.NewCond(h.mu.RLocker()), sync.NewCond(&h.mu)
	return h
}

// serve reads requests from one connection.
func (h *hub) serve(c net.Conn) error {
	in := textproto.NewReader(bufio.NewReaderSize(c, 16<<10))
	for {
		line, err := in.ReadLineBytes()
		if err != nil {
			return err
		}
		head, err := in.ReadMIMEHeader()
		if err != nil {
			return err
		}
		if bytes.HasPrefix(line, []byte("GET ")) {
			return h.send(c)
		}
		n, err := strconv.Atoi(head.Get("Content-Length"))
		if err != nil || n < 0 || n > 1<<20 {
			return fmt.Errorf("a post without a usable length: %q", head.Get("Content-Length"))
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(in.R, frame); err != nil {
			return err
		}
		h.post(frame)
		if _, err := io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return err
		}
	}
}

// post appends a frame. It waits while the slowest reader is a whole ring
// behind, because this hub cuts off nobody.
func (h *hub) post(frame []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.head-h.slowest() >= ringSize {
		h.taken.Wait()
	}
	h.frames[h.head%ringSize] = frame
	h.head++
	if at := bytes.Index(frame, []byte(RevisionHole)); at >= 0 {
		copy(frame[at:], fmt.Appendf(nil, `"resourceVersion":"%020d"`, h.head))
	}
	h.posted.Broadcast()
}

func (h *hub) slowest() uint64 {
	low := h.head
	for cursor := range h.cursors {
		low = min(low, *cursor)
	}
	return low
}

// send writes every frame from now on to c.
func (h *hub) send(c net.Conn) error {
	cursor := new(uint64)
	h.mu.Lock()
	*cursor = h.head
	h.cursors[cursor] = struct{}{}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.cursors, cursor)
		h.mu.Unlock()
		h.taken.Broadcast()
	}()
	batch := []byte("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
	for {
		if _, err := c.Write(batch); err != nil {
			return err
		}
		batch = h.take(batch[:0], cursor)
	}
}

// maxBatch bounds what one write carries.
const maxBatch = 64 << 10

// take appends the frames after the cursor, and waits for the first.
func (h *hub) take(batch []byte, cursor *uint64) []byte {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for *cursor == h.head {
		h.posted.Wait()
	}
	if h.head-*cursor == ringSize {
		defer h.taken.Broadcast() // the poster may be waiting for this reader
	}
	for ; *cursor < h.head && len(batch) < maxBatch; *cursor++ {
		batch = append(batch, h.frames[*cursor%ringSize]...)
	}
	return batch
}
