// Package admin works on the store as a whole: it backs it up, checks and compacts it,
// and exports and imports its events.
//
// [Local] works in the process that has the files open. While that is the service,
// [Handler] offers the same on the management listener, and [Remote] calls it. Anyone
// who can read the data directory may call it, because the service writes a new secret
// there at every start (see [NewToken]).
//
// [TokenChecker] says by which rule the service refuses a token, for
// `eventsvc token check`. [RulesRecorder] records the event eventsvc.rules when the
// rules of what to keep have changed.
//
// The files: admin.go has the store as a whole and backups, export.go, import.go and digest.go their commands,
// written.go counts what they have written; handler.go and remote.go are the two ends on the management listener.
// import.go also undeletes: the answer of `eventsvc query --deleted` is a file for it.
//
// # Exports
//
// An export has the frames that a watch of events.k8s.io/v1 sends, one JSON object a
// line. A full export has ADDED for every event, and at the end a BOOKMARK with the
// revision of this state. An export after a revision has one line for each event that
// was written since: ADDED or MODIFIED with its newest version, or DELETED. It has a
// BOOKMARK after every few lines, so that an export that was cut off can be continued
// after the last one. A line whose event seems to be the report of a mirror that the server
// does not believe says so, with "believed": false. An import believes all others. The line of
// an event that was imported has the version that it had at its source, as "source".
package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/shared/safefile"
	"tidings.example/shared/service"
)

// Store is a whole store, in this process or in a running service.
type Store interface {
	// Backup writes a backup. Its total is the size in bytes.
	Backup(ctx context.Context, open Open) error
	// Check reads everything. Problems are in the report, and not an error.
	Check(ctx context.Context, progress store.Progress) (*store.Report, error)
	// Compact frees disk space, and gives the files of the log a form.
	Compact(ctx context.Context, compress bool, progress store.Progress) (*Compaction, error)
	// Usage says who takes the room. MaxBytes replaces the limit, unless it is 0.
	Usage(ctx context.Context, maxBytes int64, rulesFile []byte) (*usage.Breakdown, error)
	// Export writes all events of the present or, unless that is 0, the changes after a revision. Its total is about
	// the number of lines.
	Export(ctx context.Context, after uint64, open Open) error
	// Import stores events of other stores, some at a time. Its result is valid with an error too.
	Import(ctx context.Context, arrivals []Arrival) (Imported, error)
}

// Open is called before the first byte, with the revision of the state and the total
// of the work. It returns where to write.
type Open func(revision uint64, total int64) io.Writer

// Compaction is the result of a compaction.
type Compaction struct {
	Before      int64 `json:"bytesBefore"` // of all files
	After       int64 `json:"bytesAfter"`
	usage.Stats       // afterwards
}

// Engine is an engine of package store with what operators need of it.
type Engine interface {
	store.Store
	Timeline() store.Timeline
	// Fresh makes the engine show every write that was acknowledged before the call, wherever it was made.
	Fresh(ctx context.Context) (age time.Duration, err error)
	// Snapshot sets the present state aside.
	Snapshot(ctx context.Context) (store.Snapshot, error)
	Check(ctx context.Context, progress store.Progress) (*store.Report, error)
	// Compact brings back disk space, and gives sealed files of the log a form.
	Compact(ctx context.Context, compress bool, progress store.Progress) error
	Stats() usage.Stats
	// Changes calls visit with the last change of each event that was written between two revisions.
	Changes(ctx context.Context, after, until uint64, visit func(part []store.Delivery, revision uint64) error) error
	// BumpRevision continues with revisions that no client can know: see the one of package bolt.
	BumpRevision(ctx context.Context, known uint64) (revision uint64, err error)
}

// Local is a [Store] that this process has open.
type Local struct {
	DB    Engine
	Codec *codec.Codec

	Backed func() // called after each backup that was written whole; may be nil
}

var _ Store = Local{}

// Backup implements [Store].
func (l Local) Backup(ctx context.Context, open Open) error {
	s, err := l.DB.Snapshot(ctx)
	if err != nil {
		return err
	}
	err = s.Write(writerWithContext{ctx, open(s.Revision(), s.Size())})
	if err = errors.Join(err, s.Close()); err == nil && l.Backed != nil {
		l.Backed()
	}
	return err
}

// backupName is the file in the data directory that has the time of the newest backup.
const backupName = "last-backup"

// NoteBackup writes the time of a backup to the data directory, where a start finds it.
func NoteBackup(dataDir string, at time.Time, log *slog.Logger) {
	if err := safefile.Write(filepath.Join(dataDir, backupName), []byte(at.UTC().Format(time.RFC3339)+"\n")); err != nil {
		log.Warn("the time of a backup could not be noted", "error", err)
	}
}

// RegisterBackups registers the metric of the newest backup.
func RegisterBackups(registry prometheus.Registerer, dataDir string) {
	service.Register(registry, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "store_last_backup_timestamp_seconds", Help: "When this service last made a backup that was sent whole, also before the start; 0: never.",
	}, func() float64 {
		if at := LastBackup(dataDir); !at.IsZero() {
			return float64(at.Unix())
		}
		return 0
	}))
}

// LastBackup returns the time of the newest backup that was noted in a data directory, or zero if there is none.
func LastBackup(dataDir string) time.Time {
	text, err := os.ReadFile(filepath.Join(dataDir, backupName))
	if err != nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	if err != nil {
		return time.Time{}
	}
	return at
}

// Check implements [Store].
func (l Local) Check(ctx context.Context, progress store.Progress) (*store.Report, error) {
	return l.DB.Check(ctx, progress)
}

// Compact implements [Store].
func (l Local) Compact(ctx context.Context, compress bool, progress store.Progress) (*Compaction, error) {
	before := l.DB.Stats().FileBytes
	if err := l.DB.Compact(ctx, compress, progress); err != nil {
		return nil, err
	}
	after := l.DB.Stats()
	return &Compaction{Before: before, After: after.FileBytes, Stats: after}, nil
}

// Usage implements [Store].
func (l Local) Usage(ctx context.Context, maxBytes int64, rulesFile []byte) (*usage.Breakdown, error) {
	by, err := rules.Parse(rulesFile)
	if err != nil {
		return nil, fmt.Errorf("--rules-file: %w", err)
	}
	return usage.BreakdownOf(ctx, l.DB, maxBytes, by, time.Now())
}

// writerWithContext fails when its context has ended.
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
