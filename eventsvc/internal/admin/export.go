package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// exporter writes the lines of one export, up to a revision.
type exporter struct {
	Local
	w        io.Writer
	frames   *codec.Frames
	buf      []byte
	revision uint64
}

// Export implements [Store].
func (l Local) Export(ctx context.Context, after uint64, open Open) error {
	if _, err := l.DB.Fresh(ctx); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	x := &exporter{Local: l, frames: l.Codec.NewFrames(codec.Format{}, event.EventsV1), revision: l.DB.Revision()}
	var err error
	if after == 0 {
		err = x.everything(ctx, open)
	} else {
		err = x.changes(ctx, after, open)
	}
	if errors.As(err, new(*store.ExpiredError)) {
		return fmt.Errorf("export: %w; export everything, without --after", err)
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// exportBytes is what an export gathers before it writes. It is small because nobody may
// be reading.
const exportBytes = 256 << 10

// everything writes the state of the revision.
func (x *exporter) everything(ctx context.Context, open Open) error {
	total := x.DB.Stats().Events
	var failed error
	visit := func(v *store.View) bool {
		x.buf, failed = x.frames.AppendInitial(x.buf, v)
		x.annotate(v.Attributes)
		return failed == nil && len(x.buf) < exportBytes
	}
	for q := (store.Query{Revision: x.revision}); ; {
		page, err := x.DB.List(ctx, q, visit)
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		if x.w == nil {
			x.w = open(x.revision, total)
		}
		if !page.More {
			return x.end(x.revision)
		}
		if err := x.flush(); err != nil {
			return err
		}
		q.After = page.Last
	}
}

// changes writes the newest version, or the deletion, of each event that was written
// after a revision.
func (x *exporter) changes(ctx context.Context, after uint64, open Open) error {
	switch oldest := x.DB.Stats().Oldest; {
	case after > x.revision:
		return &store.FutureError{Revision: after, Current: x.revision}
	case after < oldest:
		return &store.ExpiredError{Revision: after, Oldest: oldest}
	}
	x.w = open(x.revision, int64(x.revision-after))
	if after == x.revision { // nothing has changed: only a bookmark
		return x.end(after)
	}
	return x.DB.Changes(ctx, after, x.revision, func(part []store.Delivery, revision uint64) (err error) {
		for _, d := range part {
			if x.buf, err = x.frames.AppendDelivery(x.buf, d); err != nil {
				return err
			}
			x.annotate(d.Object.Attributes)
		}
		return x.end(revision)
	})
}

// annotate adds two members to the last line of the export: "believed": false if the server does not believe the event
// as the report of a mirror, and as "source" the version that the event had at another store.
func (x *exporter) annotate(a event.Attributes) {
	if a.ClaimsReport() && !a.Believed() {
		x.buf = append(bytes.TrimSuffix(x.buf, []byte("}\n")), `,"believed":false}`+"\n"...)
	}
	if version := a.Version(); version > 0 {
		x.buf = fmt.Appendf(bytes.TrimSuffix(x.buf, []byte("}\n")), `,"source":%d}`+"\n", version)
	}
}

// end writes the collected lines and a bookmark.
func (x *exporter) end(revision uint64) (err error) {
	if x.buf, err = x.frames.AppendBookmark(x.buf, revision, false); err != nil {
		return err
	}
	return x.flush()
}

func (x *exporter) flush() error {
	_, err := x.w.Write(x.buf)
	x.buf = x.buf[:0]
	return err
}
