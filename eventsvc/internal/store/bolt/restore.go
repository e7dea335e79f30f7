package bolt

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/shared/safefile"
)

// restoring is appended to the name of a directory that is being restored.
const restoring = ".restoring"

// Restore makes a store out of a backup, in a directory that is empty or not there yet. It unpacks
// the archive beside the directory, checks the store there, and then renames it: the directory is
// whole or absent, also after a crash. The next Restore removes what one before has left; of
// several at a time one succeeds. The error is a [*store.DamagedError] where the check of the store
// found something. Progress is reported for the check.
//
// The store has the events of the backup, but does not continue at its revision:
// clients may have seen later ones, which must not be given to other writes. It
// continues after the CompactRevision of the report (see [DB.BumpRevision]).
func Restore(ctx context.Context, dir string, r io.Reader, progress store.Progress) (report *store.Report, err error) {
	dir = filepath.Clean(dir)
	tmp := dir + restoring
	unlock, err := lockRestore(dir, tmp)
	if err != nil {
		return nil, fmt.Errorf("store restore: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
		err = errors.Join(err, unlock(err != nil))
	}()
	m, err := unpack(ctx, tmp, r)
	if err != nil {
		return nil, fmt.Errorf("store restore: %w", err)
	}
	if report, err = checkRestored(ctx, tmp, m, progress); err != nil {
		return report, err
	}
	if err = safefile.Sync(tmp); err == nil {
		err = disk.Remove(dir)
	}
	if err == nil {
		err = disk.Rename(tmp, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("store restore: %w", err)
	}
	return report, nil
}

// checkRestored opens the unpacked store, which makes its index, checks it, and moves it to
// a revision that was never given out.
func checkRestored(ctx context.Context, dir string, m *manifest, progress store.Progress) (*store.Report, error) {
	db, err := open(Options{Dir: dir, MaxBytes: -1, MinFree: -1}, nil) // locked by Restore
	if damage := store.DamageOf(err); damage != nil {
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
		return report, &store.DamagedError{Report: report}
	}
	return report, nil
}

// lockRestore locks dir and the directory beside it, and makes both empty ones. It refuses a dir that has files. If the
// restore has failed, unlock removes a dir that was not there.
func lockRestore(dir, tmp string) (unlock func(failed bool) error, err error) {
	var locks []*os.File
	_, unknown := os.Stat(dir)
	unlock = func(failed bool) (err error) {
		if failed && errors.Is(unknown, os.ErrNotExist) {
			err = disk.Remove(dir)
		}
		for _, lock := range locks {
			err = errors.Join(err, lock.Close())
		}
		return err
	}
	for _, path := range []string{dir, tmp} {
		var lock *os.File
		if err = safefile.MkdirAll(path); err == nil {
			lock, err = lockDir(path)
		}
		if err != nil {
			return nil, errors.Join(err, unlock(true))
		}
		locks = append(locks, lock)
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty; move it away or choose another data directory", dir)
	}
	left, unread := os.ReadDir(tmp) // by a restore that was killed
	for _, e := range left {
		unread = errors.Join(unread, os.RemoveAll(filepath.Join(tmp, e.Name())))
	}
	if err = errors.Join(err, unread); err != nil {
		return nil, errors.Join(err, os.Remove(tmp), unlock(true))
	}
	return unlock, nil
}

// unpack writes the files of a backup into a directory.
func unpack(ctx context.Context, dir string, r io.Reader) (*manifest, error) {
	in := tar.NewReader(r)
	m, err := readManifest(in)
	if err != nil {
		return nil, err
	}
	for i := 0; ; i++ {
		h, err := in.Next()
		if errors.Is(err, io.EOF) && i == len(m.Files) {
			return m, nil
		}
		if err != nil {
			return nil, fmt.Errorf("this is not a whole backup: %d of %d files: %w", i, len(m.Files), err)
		}
		if i >= len(m.Files) || h.Name != m.Files[i] {
			return nil, fmt.Errorf("this is not a backup of the event store: it holds %q", h.Name)
		}
		if err := unpackFile(ctx, filepath.Join(dir, h.Name), in); err != nil {
			return nil, fmt.Errorf("this is not a whole backup: %s: %w", h.Name, err)
		}
	}
}

func readManifest(in *tar.Reader) (*manifest, error) {
	h, err := in.Next()
	if err == nil && h.Name != manifestName {
		err = errors.New("it begins with " + h.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("this is not a backup of the event store, which begins with %s: %w; name a file that eventsvc backup has written", manifestName, err)
	}
	m := new(manifest)
	if err := json.NewDecoder(io.LimitReader(in, 16<<20)).Decode(m); err != nil {
		return nil, fmt.Errorf("this is not a whole backup: %s: %w", manifestName, err)
	}
	if m.Format != boltfile.FormatText() {
		return nil, fmt.Errorf("the backup has files of the format %q, this program reads %q; %s", m.Format, boltfile.FormatText(), boltfile.FixVersion)
	}
	foreign := slices.ContainsFunc(m.Files, func(name string) bool {
		ok, err := filepath.Match(seglog.SegmentPattern, name)
		return err != nil || !ok || filepath.Base(name) != name
	})
	if foreign || len(m.Files) == 0 {
		return nil, fmt.Errorf("this is not a backup of the event store: it holds %q", m.Files)
	}
	return m, nil
}

func unpackFile(ctx context.Context, path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, readerWithContext{ctx, r})
	return errors.Join(err, f.Sync(), f.Close())
}

// readerWithContext ends with its context.
type readerWithContext struct {
	ctx context.Context
	r   io.Reader
}

func (r readerWithContext) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
