// Package admin works on the store as a whole: it backs it up, checks and
// compacts it, exports and imports its events.
//
// [Local] does so in the process that has the files open. While that is the
// service, [Handler] offers it on the management listener, and [Remote] asks
// there. Who may ask is who can read the data directory: the service leaves a
// secret in it at every start (see [NewToken]).
//
// # Exports
//
// An export is what a watch of events.k8s.io/v1 would send, one JSON object a
// line: ADDED for every event there is, and in the end a BOOKMARK with the
// revision that this is the state of. From a revision on it is what has become
// of each event that was written since, one line for each: ADDED or MODIFIED as
// it is now, or DELETED. A BOOKMARK follows every few: wherever such an export
// ends, it can be gone on with from the last.
package admin

import (
	"context"
	"errors"
	"io"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/store/bolt"
)

// Store is a store as a whole, here or in a running service.
type Store interface {
	// Backup writes a backup. Its total is its size.
	Backup(ctx context.Context, begin Begin) error
	// Check reads everything. Problems are in the report and are no error.
	Check(ctx context.Context, progress bolt.Progress) (*bolt.Report, error)
	// Compact brings disk space back.
	Compact(ctx context.Context, progress bolt.Progress) (*Compaction, error)
	// Export writes all events, or with after what has changed behind that
	// revision. Its total is about its lines.
	Export(ctx context.Context, after uint64, begin Begin) error
	// Import stores the events of some lines of an export, and returns what
	// has become of them, with an error as well.
	Import(ctx context.Context, lines []byte) (Imported, error)
}

// Begin is told which revision's state comes, and how much that is, and says
// where it goes.
type Begin func(revision uint64, total int64) io.Writer

// Compaction is what a compaction has come to.
type Compaction struct {
	Before     int64 `json:"bytesBefore"` // of all files
	After      int64 `json:"bytesAfter"`
	bolt.Stats       // afterwards
}

// Local is a store that this process has open.
type Local struct {
	DB    *bolt.DB
	Codec *codec.Codec
}

var _ Store = Local{}

// Backup implements [Store].
func (l Local) Backup(ctx context.Context, begin Begin) error {
	s, err := l.DB.Snapshot(ctx)
	if err != nil {
		return err
	}
	size, err := s.Size()
	if err == nil {
		_, err = s.WriteTo(writerWithContext{ctx, begin(s.Revision, size)})
	}
	return errors.Join(err, s.Close())
}

// Check implements [Store].
func (l Local) Check(ctx context.Context, progress bolt.Progress) (*bolt.Report, error) {
	return l.DB.Check(ctx, progress)
}

// Compact implements [Store].
func (l Local) Compact(ctx context.Context, progress bolt.Progress) (*Compaction, error) {
	before := l.DB.Stats().FileBytes
	if err := l.DB.Compact(ctx, progress); err != nil {
		return nil, err
	}
	after := l.DB.Stats()
	return &Compaction{Before: before, After: after.FileBytes, Stats: after}, nil
}

// writerWithContext ends with its context.
type writerWithContext struct {
	ctx context.Context
	w   io.Writer
}

func (w writerWithContext) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}
