package backup

import (
	"archive/tar"
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
)

const manifestName = "backup.json"

// Manifest is what an archive says of itself.
type Manifest struct {
	Format   int       `json:"format"`   // of the log files
	Revision uint64    `json:"revision"` // whose state it is
	Time     time.Time `json:"time"`     // when it was taken
	Files    []string  `json:"files"`
}

// Snapshot is the files of one state of a store with its history. It is to be closed.
type Snapshot struct {
	Manifest

	prefix   string
	manifest []byte // set by Finish
	files    []*os.File
}

// NewSnapshot returns a snapshot without files, of the store in a directory.
func NewSnapshot(dir string) *Snapshot {
	return &Snapshot{Manifest: Manifest{Format: boltfile.Version}, prefix: filepath.Join(dir, "backup-"+rand.Text())}
}

// Add adds a file with a name. take puts it at a path in the directory of the store: a copy
// of a file that changes, or a link to one that does not. The file is gone from there when
// Add returns; if the process is killed, the next start of the store removes it.
func (s *Snapshot) Add(name string, take func(path string) error) error {
	path := s.prefix + "-" + name + ".tmp"
	err := take(path)
	if err == nil {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			s.files, s.Files = append(s.files, f), append(s.Files, name)
		}
	}
	return errors.Join(err, disk.Remove(path))
}

// Finish ends the list of files, which are the state of a revision at a time.
func (s *Snapshot) Finish(revision uint64, at time.Time) (err error) {
	s.Revision, s.Time = revision, at.UTC()
	s.manifest, err = json.Marshal(s.Manifest)
	return err
}

// Size returns how many bytes Write writes.
func (s *Snapshot) Size() (int64, error) {
	const block = 512
	padded := func(n int64) int64 { return block + (n+block-1)/block*block }
	size := padded(int64(len(s.manifest))) + 2*block
	for _, f := range s.files {
		info, err := f.Stat()
		if err != nil {
			return 0, fmt.Errorf("store backup: %w", err)
		}
		size += padded(info.Size())
	}
	return size, nil
}

// Write writes the archive.
func (s *Snapshot) Write(w io.Writer) error {
	if err := s.writeTar(tar.NewWriter(w)); err != nil {
		return fmt.Errorf("store backup: %w", err)
	}
	return nil
}

func (s *Snapshot) writeTar(out *tar.Writer) error {
	header := func(name string, size int64) error {
		return out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: s.Time.Truncate(time.Second)})
	}
	if err := header(manifestName, int64(len(s.manifest))); err != nil {
		return err
	}
	if _, err := out.Write(s.manifest); err != nil {
		return err
	}
	for i, f := range s.files {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if err := header(s.Files[i], info.Size()); err != nil {
			return err
		}
		if _, err := io.Copy(out, io.NewSectionReader(f, 0, info.Size())); err != nil {
			return err
		}
	}
	return out.Close()
}

// Close closes the files.
func (s *Snapshot) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
