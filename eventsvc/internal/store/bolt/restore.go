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
	"syscall"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/seglog"
)

// restoring is behind the name of a store that is being restored. What is there
// is removed by the next try.
const restoring = ".restoring"

// Restore makes a store out of a backup, in a directory that is empty or not
// there yet. The store is checked before it appears there, whole: until then
// it is beside it. The error is a [*DamagedError] where the check found
// something. Progress is that of the check.
//
// The store has the events of the backup, but does not continue at its revision:
// clients may have seen later ones, which must not be given to other writes. It
// continues behind the CompactRevision of the report (see [DB.BumpRevision]).
func Restore(ctx context.Context, dir string, r io.Reader, progress Progress) (report *Report, err error) {
	dir = filepath.Clean(dir)
	tmp := dir + restoring
	lock, err := lockRestore(dir, tmp)
	if err != nil {
		return nil, fmt.Errorf("store restore: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	m, err := unpack(ctx, tmp, r)
	if err != nil {
		return nil, fmt.Errorf("store restore: %w", err)
	}
	if report, err = checkRestored(ctx, tmp, m, progress); err != nil {
		return report, err
	}
	if err := errors.Join(disk.SyncDir(tmp), disk.Remove(dir), os.Rename(tmp, dir)); err != nil {
		return nil, fmt.Errorf("store restore: %w", err)
	}
	return report, disk.SyncDir(filepath.Dir(dir))
}

// lockRestore makes the directory beside dir an empty one that no other process
// restores into, as long as the file is open.
func lockRestore(dir, tmp string) (lock *os.File, err error) {
	if err := disk.MkdirAll(tmp); err != nil {
		return nil, err
	}
	if lock, err = os.Open(tmp); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &store.FileError{Path: dir, Reason: "another process is restoring into it", Fix: boltfile.FixLocked, Err: store.ErrInUse}
	} else if err != nil {
		return nil, err
	}
	// What was locked may be the store by now, if the other one was done just then.
	mine, err := lock.Stat()
	there, gone := os.Stat(tmp)
	if err = errors.Join(err, gone); err != nil || !os.SameFile(mine, there) {
		return nil, errors.Join(&store.FileError{Path: dir, Reason: "another process was restoring into it", Fix: boltfile.FixLocked, Err: store.ErrInUse}, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty; move it away or choose another data directory", dir)
	}
	left, err := os.ReadDir(tmp)
	for _, e := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(tmp, e.Name())))
	}
	return lock, err
}

// DamagedError says that a check has found problems.
type DamagedError struct{ Report *Report }

func (e *DamagedError) Error() string {
	if n := len(e.Report.Problems); n > 1 {
		return fmt.Sprintf("store: %d problems, the first: %s", n, e.Report.Problems[0])
	}
	return "store: " + e.Report.Problems[0]
}

// DamageOf turns an error of [Open] that is about what is in the files, and not
// about who may open them, into what a check would have found; nil if it is none.
func DamageOf(err error) *DamagedError {
	file, version := new(store.FileError), new(store.CorruptError)
	if !errors.As(err, &version) && !errors.As(err, &file) || errors.Is(err, store.ErrInUse) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	return &DamagedError{&Report{Problems: []string{err.Error()}}}
}

// checkRestored opens what was unpacked, which makes its index, checks it, and
// moves its revision to where nobody has been.
func checkRestored(ctx context.Context, dir string, m *Manifest, progress Progress) (*Report, error) {
	db, err := Open(Options{Dir: dir, MaxBytes: -1, MinFree: -1})
	if damage := DamageOf(err); damage != nil {
		return damage.Report, damage
	} else if err != nil {
		return nil, err
	}
	report, err := db.Check(ctx, progress)
	if err == nil && report.Revision != m.Revision {
		report.problem("the backup is of revision %d, but holds %d", m.Revision, report.Revision)
	}
	if err == nil && len(report.Problems) == 0 {
		report.CompactRevision, err = db.BumpRevision(ctx, m.Revision)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return report, err
	}
	if len(report.Problems) > 0 {
		return report, &DamagedError{report}
	}
	return report, nil
}

// unpack writes the files of a backup into a directory.
func unpack(ctx context.Context, dir string, r io.Reader) (*Manifest, error) {
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

func readManifest(in *tar.Reader) (*Manifest, error) {
	h, err := in.Next()
	if err != nil || h.Name != manifestName {
		return nil, errors.Join(errors.New("this is not a backup of the event store: it does not begin with "+manifestName), err)
	}
	m := new(Manifest)
	if err := json.NewDecoder(io.LimitReader(in, 16<<20)).Decode(m); err != nil {
		return nil, fmt.Errorf("this is not a whole backup: %s: %w", manifestName, err)
	}
	if m.Format != boltfile.Version {
		return nil, fmt.Errorf("the backup has format version %d, this program reads version %d; %s", m.Format, boltfile.Version, boltfile.FixVersion)
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
