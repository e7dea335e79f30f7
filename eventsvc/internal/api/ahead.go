package api

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/store"
)

const (
	// pieceBytes is how much of a list is sent at a time.
	pieceBytes = 512 << 10
	// mostAhead is how many buffers of maxKept bytes all lists together may keep
	// beyond one each.
	mostAhead = 16
)

// ahead is what of a list was read before its head could be written: its items,
// in buffers of maxKept bytes. All lists together keep only so many; one that may
// have no more is read twice.
type ahead struct {
	buffers *buffers
	kept    []*[]byte // the last is appended to
}

// more counts the buffers beyond the first of each list.
type more struct{ atomic.Int32 }

func (m *more) take() bool {
	if m.Add(1) <= mostAhead {
		return true
	}
	m.Add(-1)
	return false
}

// ahead makes room for what is read ahead, which has to be given back.
func (b *buffers) ahead() *ahead {
	return &ahead{b, []*[]byte{b.getLarge()}}
}

func (a *ahead) last() *[]byte { return a.kept[len(a.kept)-1] }

// room reports whether another item may be appended to the last buffer, which
// may be a new one.
func (a *ahead) room() bool {
	if len(*a.last()) <= maxKept {
		return true
	}
	if !a.buffers.more.take() {
		return false
	}
	next := a.buffers.getLarge()
	*next = slices.Grow(*next, maxKept+gzipFrom) // more than that an item hardly takes
	a.kept = append(a.kept, next)
	return true
}

// give gives back all buffers but the last so many.
func (a *ahead) give(left int) {
	for len(a.kept) > left {
		if len(a.kept) > 1 {
			a.buffers.more.Add(-1)
		}
		a.buffers.putLarge(a.kept[0])
		a.kept = a.kept[1:]
	}
}

// begin has nothing kept.
func (a *ahead) begin() {
	a.give(1)
	*a.last() = (*a.last())[:0]
}

// read reads what the head of a list depends on, and keeps the items of it; the
// pages behind them are still to be shown.
//
// Most lists are written as they are read, so that a piece is enough. But one
// with a limit says in its head where the next page begins, and a protobuf one
// how long it is: these are read to their end first, and once more if there is no
// room to keep their items.
func (a *ahead) read(ctx context.Context, p *pages, l *codec.List) (meta metav1.ListMeta, err error) {
	a.begin()
	start := *p
	whole := l.NeedsMeasure() || p.left >= 0
	kept := true
	var failed error
	visit := func(rec *store.Record) bool {
		if l.NeedsMeasure() {
			// What is damaged behind the kept items is found when it is read again.
			if err := l.Measure(rec); err != nil && kept {
				failed = err
			}
		}
		if !kept {
			return true
		}
		buf := a.last()
		if failed == nil {
			*buf, failed = l.AppendItem(*buf, rec)
		}
		kept = !whole || a.room()
		return failed == nil && kept && (whole || len(*buf) < pieceBytes)
	}
	for read := true; read; read = whole && !p.done {
		p.query.Unverified = !kept
		if err := errors.Join(p.show(ctx, visit), failed); err != nil {
			return meta, err
		}
	}
	meta = p.meta()
	if !kept {
		a.begin()
		start.query.Revision = p.page.Revision // reading again gives the same
		*p = start
		l.Rewind()
	}
	return meta, nil
}

// write writes what was kept behind the head of a list, but for what makes no
// piece of its own: that is left in the body's buffer, which is the last one here.
func (a *ahead) write(w *body, head []byte) error {
	err := w.begin(head, *a.kept[0])
	for err == nil && len(a.kept) > 1 {
		a.give(len(a.kept) - 1)
		w.buf = *a.kept[0]
		err = w.flush()
	}
	return err
}
