package commit

import (
	"errors"
	"fmt"

	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
)

// Failover makes the store writable again after [Writer.Append] has failed, which refuses
// all writes with [store.ErrUnwritable] until then. Maintenance calls it until it succeeds.
// It verifies what was acknowledged, record by record, and copies it to new files, which
// take the place of those that failed. If a record is damaged or missing, it returns an
// error: everything can still be read, and a person has to restore a backup.
func (w *Writer) Failover() error {
	if w.Health.Failed() == nil {
		return nil
	}
	if err := w.replaceFiles(); err != nil {
		return fmt.Errorf("store: the segment cannot be written, and not be copied to another file: %w", err)
	}
	w.Log.Warn("the store is written again, to a new segment")
	return nil
}

// replaceFiles seals a copy of the head with what was acknowledged, and starts the next
// head. The revisions of the commit that failed are in neither.
func (w *Writer) replaceFiles() error {
	_ = w.AwaitCheckpoint() // whether it has failed or not: the copy takes what it has brought to the head
	failed := w.Records.Head()
	w.Last = max(w.Last, failed.Base) // at least one revision, so that the next head has another base
	tmp := failed.Path + ".tmp"
	if err := w.Records.CopyAcknowledged(tmp, w.Last); err != nil {
		return errors.Join(err, disk.Remove(tmp))
	}
	if err := disk.Rename(tmp, failed.Path); err != nil {
		return err
	}
	sealed, err := seglog.OpenSegment(failed.Path, false, 0)
	if err != nil {
		return err
	}
	if err := w.replaceWAL(); err != nil {
		return errors.Join(err, sealed.Close())
	}
	next, err := w.nextHead(w.Records.CompactRevision())
	if err != nil {
		return errors.Join(err, sealed.Close())
	}
	w.Records.ReplaceHead(sealed, next)
	w.Records.SetPending(nil) // after ReplaceHead: at any time a reader finds the records in the segment or among the pending ones
	if err := failed.Close(); err != nil {
		w.Log.Warn("a log file that had failed could not be closed", "file", failed.Path, "error", err)
	}
	w.Health.recovered()
	w.rotateAt = 0
	w.Rotated()
	return nil
}

// replaceWAL replaces a write-ahead log that may have failed. It is not needed until then:
// its records are in the copy of the head.
func (w *Writer) replaceWAL() error {
	if w.wal == nil {
		return nil
	}
	log, err := wal.Create(walPath(w.Dir), w.StoreID, w.wal.Size())
	if err != nil {
		return err
	}
	if err := w.wal.Close(); err != nil {
		w.Log.Warn("a write-ahead log that may have failed could not be closed", "error", err)
	}
	w.wal = log
	return nil
}
