package events

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/store"
)

const (
	// pageBytes is how much of a list is read at a time.
	pageBytes = 512 << 10
	// prefetchBytes is when a prefetch buffer is full.
	prefetchBytes = 1 << 20
	// listRoom is what a list holds: a full buffer, which has grown by parts of itself.
	listRoom = prefetchBytes + prefetchBytes/4
)

// buffers are the buffers of lists. It is safe for concurrent use.
type buffers struct{ pool httpio.Pool }

// prefetched has the first items of a list in buffers. Items are appended to the last
// one. The first buffer belongs to the list; others take room.
type prefetched struct {
	of      *buffers
	room    *flow.Room
	buffers []*[]byte
	over    int // room for the last buffer beyond listRoom
}

// ahead returns an empty buffer. The caller releases it.
func (b *buffers) ahead(room *flow.Room) *prefetched {
	return &prefetched{of: b, room: room, buffers: []*[]byte{b.pool.Get()}}
}

func (p *prefetched) last() *[]byte { return p.buffers[len(p.buffers)-1] }

// more reports whether another item may be appended to the last buffer, which may be a
// new one.
func (p *prefetched) more() bool {
	if len(*p.last()) <= prefetchBytes {
		return true
	}
	if !p.room.Spare(listRoom) {
		return false
	}
	next := p.of.pool.Get()
	*next = slices.Grow(*next, prefetchBytes+httpio.Piece) // an item hardly takes more than a piece
	p.buffers = append(p.buffers, next)
	return true
}

// fits takes more room if the last buffer has become large, because of a large event.
func (p *prefetched) fits() error {
	more := cap(*p.last()) - listRoom - p.over
	if more <= 0 {
		return nil
	}
	p.over += more
	return httpio.Unread(p.room.Try(more))
}

// release gives back all buffers but the last left.
func (p *prefetched) release(left int) {
	for len(p.buffers) > left {
		if len(p.buffers) > 1 {
			_ = p.room.Set(p.room.Bytes() - listRoom) // less is always possible
		}
		p.of.pool.Put(p.buffers[0])
		p.buffers = p.buffers[1:]
	}
}

// reset discards all items.
func (p *prefetched) reset() {
	p.release(1)
	*p.last() = (*p.last())[:0]
}

// read reads what the head of a list depends on, and keeps these items. The pages after
// them are still to be shown.
//
// Most lists are written as they are read, so that one page is enough. But one with a
// limit says in its head where the next page begins, and a protobuf one how long it
// is: these are read to their end first, and once more if there is no room to keep
// their items.
func (p *prefetched) read(ctx context.Context, from *pages, l *codec.List) (meta metav1.ListMeta, err error) {
	p.reset()
	start := *from
	whole := l.NeedsMeasure() || from.left >= 0
	kept := true
	var failed error
	visit := func(v *store.View) bool {
		if l.NeedsMeasure() {
			failed = l.Measure(v)
		}
		if failed != nil || !kept {
			return failed == nil
		}
		buf := p.last()
		*buf, failed = l.AppendItem(*buf, v)
		kept = !whole || p.more()
		return failed == nil && kept && (whole || len(*buf) < pageBytes)
	}
	for read := true; read; read = whole && !from.done {
		if err := errors.Join(from.show(ctx, visit), failed); err != nil {
			return meta, err
		}
		if err := p.fits(); err != nil {
			return meta, err
		}
	}
	meta = from.meta()
	if !kept {
		p.reset()
		start.query.Revision = from.page.Revision // reading again gives the same
		*from = start
		l.Rewind()
	}
	return meta, nil
}

// write writes the head of a list and the items. Items that do not fill a piece stay in
// the last buffer.
func (p *prefetched) write(ctx context.Context, w *httpio.Writer, head []byte) error {
	if items := p.buffers[0]; len(*items) < httpio.Piece { // and these are all
		*items = slices.Insert(*items, 0, head...)
		return nil
	}
	if err := w.Write(ctx, head); err != nil {
		return err
	}
	for {
		if b := p.buffers[0]; len(*b) >= httpio.Piece {
			if err := w.Write(ctx, *b); err != nil {
				return err
			}
			*b = (*b)[:0]
		}
		if len(p.buffers) == 1 {
			return nil
		}
		p.release(len(p.buffers) - 1)
	}
}
