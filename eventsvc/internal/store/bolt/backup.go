package bolt

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/disk"
	"tidings.example/eventsvc/internal/store/seglog"
)

// A backup is a tar archive: first manifestName, which says what belongs to
// it, then the log files. Without the first an archive that was cut between two
// files would pass for a whole one.
const manifestName = "backup.json"

// Manifest is what a backup says of itself.
type Manifest struct {
	Format   int       `json:"format"`   // of the log files
	Revision uint64    `json:"revision"` // whose state it is
	Time     time.Time `json:"time"`     // when it was taken
	Files    []string  `json:"files"`
}

// Snapshot is the state of one revision with its history, set aside to be
// copied at leisure: the head is a copy, and the sealed files, which never
// change, are kept by links of their own. Close it.
type Snapshot struct {
	Manifest

	prefix   string
	manifest []byte
	files    []*os.File
}

// Snapshot sets the present state aside. Everything else goes on meanwhile.
func (db *DB) Snapshot(ctx context.Context) (*Snapshot, error) {
	s := &Snapshot{prefix: filepath.Join(db.o.Dir, "backup-"+rand.Text())}
	s.Format, s.Time = boltfile.Version, db.clock.now().UTC()
	err := db.setAside(ctx, s)
	if err == nil {
		s.manifest, err = json.Marshal(s.Manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("store backup: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

// setAside takes the files of one moment.
func (db *DB) setAside(ctx context.Context, b *Snapshot) error {
	db.maintenance.mu.Lock()
	defer db.maintenance.mu.Unlock()
	var ss seglog.Segments
	err := db.control(ctx, func() error {
		ss = db.log.Segments()
		return db.committer.checkpoint(nil)
	})
	if err != nil {
		return err
	}
	for _, s := range ss[:len(ss)-1] {
		if err := b.add(s, func(path string) error { return os.Link(s.Path, path) }); err != nil {
			return err
		}
	}
	head := ss.Head()
	return b.add(head, func(path string) error {
		b.Revision, err = head.CopyTo(path)
		return err
	})
}

// add takes one file, under a name that the next start removes should this
// process be killed, and that is gone once the file is open.
func (b *Snapshot) add(s *seglog.Segment, take func(path string) error) error {
	name := filepath.Base(s.Path)
	path := b.prefix + "-" + name + ".tmp"
	err := take(path)
	if err != nil {
		return errors.Join(err, disk.Remove(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return errors.Join(err, disk.Remove(path))
	}
	b.files, b.Files = append(b.files, f), append(b.Files, name)
	return os.Remove(path)
}

// Size is how many bytes WriteTo writes.
func (b *Snapshot) Size() (int64, error) {
	const block = 512
	padded := func(n int64) int64 { return block + (n+block-1)/block*block }
	size := padded(int64(len(b.manifest))) + 2*block
	for _, f := range b.files {
		info, err := f.Stat()
		if err != nil {
			return 0, fmt.Errorf("store backup: %w", err)
		}
		size += padded(info.Size())
	}
	return size, nil
}

// WriteTo writes the backup.
func (b *Snapshot) WriteTo(w io.Writer) (int64, error) {
	counted := &countingWriter{w: w}
	if err := b.writeTar(tar.NewWriter(counted)); err != nil {
		return counted.n, fmt.Errorf("store backup: %w", err)
	}
	return counted.n, nil
}

func (b *Snapshot) writeTar(out *tar.Writer) error {
	header := func(name string, size int64) error {
		return out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: b.Time.Truncate(time.Second)})
	}
	if err := header(manifestName, int64(len(b.manifest))); err != nil {
		return err
	}
	if _, err := out.Write(b.manifest); err != nil {
		return err
	}
	for i, f := range b.files {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if err := header(b.Files[i], info.Size()); err != nil {
			return err
		}
		if _, err := io.Copy(out, io.NewSectionReader(f, 0, info.Size())); err != nil {
			return err
		}
	}
	return out.Close()
}

// Close gives the files up.
func (b *Snapshot) Close() error {
	var errs []error
	for _, f := range b.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
