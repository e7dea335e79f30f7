package flow

import (
	"context"
	"errors"
	"io"
	"time"
)

const (
	// LargeBody is the number of bytes that a request may read without waiting.
	// A body that has more is large.
	LargeBody = 64 << 10
	// largeBodies is how many large bodies of a flow are in memory at once.
	largeBodies = 4
	// readCost is what a kilobyte of a large body counts. That is several times
	// what reading takes, because the kernel receives it outside any seat and the
	// memory has to be cleared. Few events need such a body, so a client that
	// sends many of them gets a small part of its share.
	readCost = 2 * time.Microsecond
)

// Reader reads the body of a request. The request holds no seat while it waits
// for the client. Behind LargeBody bytes each piece waits for a seat, and the
// first one until another large body of the flow may be in memory: the caller
// must have no room for them before it has read the first. At the end of the body
// Reader acquires the seat, for the work that follows.
type Reader struct {
	ctx  context.Context
	body io.ReadCloser
	read int
}

// NewReader makes a reader of the body of the request that ctx belongs to.
func NewReader(ctx context.Context, body io.ReadCloser) *Reader {
	return &Reader{ctx: ctx, body: body}
}

// Read reads at most LargeBody bytes. It returns the error of the context if that
// ends while the request waits for its seat.
func (r *Reader) Read(p []byte) (int, error) {
	s := FromContext(r.ctx)
	room := LargeBody
	if r.read < LargeBody {
		room -= r.read // exactly, so that what is more begins a piece
	} else if err := s.piece(r.ctx); err != nil {
		return 0, err
	}
	var n int
	var err error
	s.client(func() { n, err = r.body.Read(p[:min(len(p), room)]) })
	if r.read += n; r.read > LargeBody {
		s.charge(time.Duration(n) * readCost / 1024)
	}
	if errors.Is(err, io.EOF) {
		if failed := s.Acquire(r.ctx); failed != nil {
			return n, failed
		}
	}
	return n, err
}

// Close closes the body.
func (r *Reader) Close() error { return r.body.Close() }
