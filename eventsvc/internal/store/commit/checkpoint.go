package commit

import (
	"errors"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/wal"
)

// A Checkpoint is the result of one that ran beside the committer.
type Checkpoint struct {
	Records int // so many of the pending ones
	Err     error
}

// beginCheckpoint continues in the other half of the write-ahead log, and starts a
// checkpoint of the current one. It waits if the other half is not free yet.
func (w *Writer) beginCheckpoint() error {
	if err := w.AwaitCheckpoint(); err != nil {
		return err
	}
	if w.wal.BothInUse() {
		return w.checkpoint(nil)
	}
	w.wal.Rotate()
	head, pending := w.Records.Head(), w.Records.Pending()
	w.checkpointing = true
	go func() { w.checkpointed <- Checkpoint{len(pending), w.write(head, pending)} }()
	return nil
}

// write brings records into the head, and measures the time.
func (w *Writer) write(head *seglog.Segment, records []wal.Record) error {
	start := time.Now()
	defer func() { w.seconds.Observe(time.Since(start).Seconds()) }()
	return w.Records.Checkpoint(head, records)
}

// AwaitCheckpoint waits for a checkpoint that runs beside the committer, and ends it.
func (w *Writer) AwaitCheckpoint() error {
	if !w.checkpointing {
		return nil
	}
	return w.EndCheckpoint(<-w.checkpointed)
}

// EndCheckpoint releases the records that the head has now. If it had no room for
// them they stay in the write-ahead log, to be tried again when their half is needed.
func (w *Writer) EndCheckpoint(c Checkpoint) error {
	w.checkpointing = false
	head, pending := w.Records.Head(), w.Records.Pending()
	switch {
	case c.Err == nil:
		w.Records.SetPending(slices.Clone(pending[c.Records:]))
		w.wal.ReleaseOtherHalf()
		return nil
	case head.Refused(c.Err, pending):
		return nil
	}
	return w.Health.Fail(head.Path, c.Err)
}

// Checkpoint brings all records of the write-ahead log into the head.
func (w *Writer) Checkpoint() error { return w.checkpoint(nil) }

// checkpoint brings all records of the write-ahead log, and more behind them, into
// the head in one commit, and empties the log. An error for another reason than room
// means that the head has failed.
func (w *Writer) checkpoint(more []wal.Record) error {
	if err := errors.Join(w.AwaitCheckpoint(), w.Health.Failed()); err != nil {
		return err
	}
	head, pending := w.Records.Head(), w.Records.Pending()
	all := slices.Concat(pending, more)
	if len(all) == 0 {
		return nil
	}
	if err := w.write(head, all); err != nil && head.Refused(err, all) {
		return err
	} else if err != nil {
		return w.Health.Fail(head.Path, err)
	}
	head.AddBytes(wal.Bytes(more))
	w.Records.SetPending(nil)
	if w.wal != nil {
		w.wal.Reset()
	}
	return nil
}
