package commit

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
)

// Batches of more records, such as a part of a deleted collection, bypass the write-ahead log. That
// is no slower, because their records have to get to the head anyway.
const maxLogged = 512

// WriterConfig says what a Writer writes.
type WriterConfig struct {
	Dir          string
	StoreID      string
	SegmentBytes int64 // the head is rotated at this size
	Records      *seglog.Log
	Health       *Health
	Rotated      func() // called when files were replaced
	Log          *slog.Logger
}

// A Writer writes the head and the write-ahead log of an open store.
type Writer struct {
	// Last is the last revision that was given to a write, also to one that failed. The
	// user raises it before it appends.
	Last uint64

	WriterConfig
	wal           *wal.Log        // nil if there was no room for one
	rotateAt      int64           // size of the head at which to try again to rotate
	checkpointing bool            // a checkpoint was begun and not ended
	checkpointed  chan Checkpoint // receives each that has ended, for EndCheckpoint
	seconds       prometheus.Histogram
}

// OpenWriter opens the write-ahead log if the head was used with one, and adds its records to the
// pending ones of the log. Last is then the last revision that is there.
func OpenWriter(c WriterConfig) (*Writer, error) {
	w := &Writer{WriterConfig: c, checkpointed: make(chan Checkpoint, 1)}
	w.seconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "store_checkpoint_seconds", Help: "Time of one checkpoint, which copies the records of the write-ahead log into the segments.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	})
	head := c.Records.Head()
	var err error
	if w.Last, err = head.LastRevision(); err != nil {
		return nil, &store.FileError{Path: head.Path, Reason: err.Error(), Fix: boltfile.FixRestore}
	}
	if !head.NeedsWAL {
		return w, nil
	}
	var pending []wal.Record
	if w.wal, pending, err = wal.Open(walPath(w.Dir), w.StoreID, w.Last); err != nil || len(pending) == 0 {
		return w, err
	}
	c.Records.SetPending(pending)
	head.AddBytes(wal.Bytes(pending))
	w.Last = pending[len(pending)-1].Revision
	return w, nil
}

func walPath(dir string) string { return filepath.Join(dir, wal.FileName) }

// Start begins the write-ahead log of a store that has none: a new one, or one from a backup. Without room for one,
// commits go to the head until the next start: the store can then still be read, and
// events be deleted.
func (w *Writer) Start() (err error) {
	if w.wal != nil {
		return nil
	}
	w.wal, err = wal.Begin(walPath(w.Dir), w.StoreID, wal.SizeFor(w.SegmentBytes/16))
	if err == nil {
		err = w.Records.Head().NoteWAL(true)
	}
	if disk.IsFull(err) {
		w.Log.Warn("there is no room for the write-ahead log: commits go without, and take longer, until the next start", "error", err)
		err = w.Close()
	}
	return err
}

// Collectors returns the metrics of the writer.
func (w *Writer) Collectors() []prometheus.Collector {
	return []prometheus.Collector{w.seconds}
}

// Append makes the records of a frame durable: in the write-ahead log or, if there is none
// or they are too many for it, in the head together with all that the log holds. If the
// disk is full, nothing was written ([store.ErrFull]). Any other failure, and every failure
// of the write-ahead log itself, refuses all writes from then on ([store.ErrUnwritable]).
func (w *Writer) Append(frame *wal.Frame) error {
	err := w.append(frame)
	switch failure := w.Health.Failed(); {
	case err == nil:
		return nil
	case failure != nil:
		return failure
	case disk.IsFull(err) && !errors.Is(err, wal.ErrAppend):
		// The transaction that failed was rolled back: it has added nothing to the head.
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	path := w.Records.Head().Path
	if errors.Is(err, wal.ErrAppend) {
		path = walPath(w.Dir)
	}
	return w.Health.Fail(path, err)
}

// orFail returns the error of a commit to the head. Unless the disk is full, the head has failed.
func (w *Writer) orFail(err error) error {
	if err != nil && !disk.IsFull(err) {
		return w.Health.Fail(w.Records.Head().Path, err)
	}
	return err
}

func (w *Writer) append(frame *wal.Frame) error {
	if err := w.Health.Failed(); err != nil {
		return err
	}
	if w.wal == nil || len(frame.Records) > maxLogged || !w.wal.FitsHalf(frame) {
		return w.checkpoint(frame.Records)
	}
	if !w.wal.Fits(frame) {
		if err := w.beginCheckpoint(); err != nil {
			return err
		}
	}
	if err := w.wal.Append(frame, w.Records.Published()); err != nil {
		return err
	}
	w.Records.Head().AddBytes(wal.Bytes(frame.Records))
	w.Records.SetPending(append(w.Records.Pending(), frame.Records...))
	return nil
}

// Finish brings the records of the write-ahead log into the head, so that the next start has
// nothing to replay. If that fails it reads them from the write-ahead log.
func (w *Writer) Finish() {
	if w.wal == nil {
		return
	}
	err := w.AwaitCheckpoint()
	if w.Health.Failed() != nil {
		return
	}
	if err == nil {
		err = w.checkpoint(nil)
	}
	if err != nil {
		w.Log.Warn("the write-ahead log could not be emptied, and will be read at the next start", "error", err)
	}
}

// Close closes the write-ahead log.
func (w *Writer) Close() (err error) {
	if w.wal != nil {
		err = w.wal.Close()
		w.wal = nil
	}
	return err
}
