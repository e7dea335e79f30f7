package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/backup"
	"tidings.example/eventsvc/internal/store/fsck"
	"tidings.example/eventsvc/internal/store/seglog"
)

// Snapshot sets the present state aside, to be copied at leisure: a copy of the head, and
// links to the sealed files, which never change. Everything else goes on meanwhile.
func (db *DB) Snapshot(ctx context.Context) (*backup.Snapshot, error) {
	defer db.maintenance.Pause()()
	at := db.committer.Clock.Now()
	s := backup.NewSnapshot(db.o.Dir)
	var files seglog.Segments
	err := db.committer.Queue.Do(ctx, func() error {
		files = db.log.Segments() // those of the moment of the checkpoint
		return db.committer.Writer.Checkpoint()
	})
	var revision uint64
	for i := 0; i < len(files) && err == nil; i++ {
		file := files[i]
		err = s.Add(filepath.Base(file.Path), func(path string) (err error) {
			if file != files.Head() {
				return os.Link(file.Path, path)
			}
			revision, err = file.CopyTo(path)
			return err
		})
	}
	if err == nil {
		err = s.Finish(revision, at)
	}
	if err != nil {
		return nil, fmt.Errorf("store backup: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

// Restore makes a store out of a backup, in a directory that is empty or not
// there yet (see [backup.Restore]). The error is a [*fsck.DamagedError] where the check
// of the store found something. Progress is that of the check.
//
// The store has the events of the backup, but does not continue at its revision:
// clients may have seen later ones, which must not be given to other writes. It
// continues after the CompactRevision of the report (see [DB.BumpRevision]).
func Restore(ctx context.Context, dir string, r io.Reader, progress store.Progress) (report *fsck.Report, err error) {
	err = backup.Restore(ctx, dir, r, func(dir string, m *backup.Manifest) error {
		report, err = checkRestored(ctx, dir, m, progress)
		return err
	})
	return report, err
}

// checkRestored opens the unpacked store, which makes its index, checks it, and moves it to
// a revision that was never given out.
func checkRestored(ctx context.Context, dir string, m *backup.Manifest, progress store.Progress) (*fsck.Report, error) {
	db, err := Open(Options{Dir: dir, MaxBytes: -1, MinFree: -1})
	if damage := fsck.DamageOf(err); damage != nil {
		return damage.Report, damage
	} else if err != nil {
		return nil, err
	}
	report, err := db.Check(ctx, progress)
	if err == nil && report.Revision != m.Revision {
		report.Problem("the backup is of revision %d, but holds %d", m.Revision, report.Revision)
	}
	if err == nil && len(report.Problems) == 0 {
		report.CompactRevision, err = db.BumpRevision(ctx, m.Revision)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return report, err
	}
	if len(report.Problems) > 0 {
		return report, &fsck.DamagedError{Report: report}
	}
	return report, nil
}
