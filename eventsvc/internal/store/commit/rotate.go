package commit

import (
	"errors"
	"fmt"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/shared/safefile"
)

// rotateIfFull rotates a head that has grown to its limit. If that fails the head goes
// on, and it is tried again later.
func (w *Writer) rotateIfFull() {
	head := w.Records.Head()
	if head.Bytes() < max(w.SegmentBytes, w.rotateAt) || w.Health.Failed() != nil {
		return
	}
	if err := w.Rotate(); err != nil && w.Health.Failed() == nil { // a failure was logged
		w.Log.Error("a new log file could not be started; the old one goes on", "error", err)
		w.rotateAt = head.Bytes() + w.SegmentBytes/16
	}
}

// Rotate seals the head and starts the next.
func (w *Writer) Rotate() error { return w.rotate(w.Records.CompactRevision()) }

// Skip leaves out all revisions up to one, which also becomes the compact revision that
// the head has saved. A sealed segment may end behind its last record, so the gap needs no
// record, and is durable together with the compact revision.
func (w *Writer) Skip(revision uint64) error {
	before := w.Last
	w.Last = revision
	err := w.rotate(revision)
	if err != nil {
		w.Last = before
	}
	return err
}

// rotate seals the head and starts the next, which saves a compact revision.
func (w *Writer) rotate(compactRevision uint64) error {
	if err := w.checkpoint(nil); err != nil {
		return err
	}
	head := w.Records.Head()
	if err := w.orFail(head.Seal(w.Last)); err != nil {
		return err
	}
	next, err := w.nextHead(compactRevision)
	if err != nil {
		return err
	}
	w.Records.Add(next)
	// Not before: as long as this is the head, the write-ahead log is needed with it. If the next head is lost, the
	// records of that must not come back from the write-ahead log in part.
	if err := head.NoteWAL(false); err != nil {
		w.Log.Warn("a sealed log file still asks for the write-ahead log", "file", head.Path, "error", err)
	}
	if err := head.Shrink(); err != nil {
		w.Log.Warn("a sealed log file takes more room than it needs", "error", err)
	}
	w.rotateAt = 0
	w.Rotated()
	return nil
}

// nextHead makes and opens the file for the revisions behind Last.
func (w *Writer) nextHead(compactRevision uint64) (*seglog.Segment, error) {
	base := w.Last + 1
	next, err := w.Records.NewHead(base, w.StoreID, compactRevision, w.wal != nil)
	if err == nil {
		return next, nil
	}
	// It must not be the head at the next start: that would hide what is written
	// to the present one from now on.
	if there := errors.Join(disk.Remove(seglog.SegmentPath(w.Dir, base)), safefile.Sync(w.Dir)); there != nil {
		err = errors.Join(err, there)
		_ = w.Health.Fail(seglog.SegmentPath(w.Dir, base), err)
	}
	return nil, err
}

// MoveCompactRevision makes a compact revision durable and then valid for readers. It
// does nothing if there is a greater one.
func (w *Writer) MoveCompactRevision(revision uint64) error {
	if err := w.Health.Failed(); err != nil {
		return err
	}
	if revision <= w.Records.CompactRevision() {
		return nil
	}
	if err := w.orFail(w.Records.Head().SaveCompactRevision(revision)); err != nil {
		return fmt.Errorf("store: moving the compact revision: %w", err)
	}
	w.Records.SetCompactRevision(revision)
	return nil
}
