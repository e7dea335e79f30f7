package backup

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/disk"
)

const manifestName = "backup.json"

// Manifest is what an archive says of itself.
type Manifest struct {
	Format   string    `json:"store"`    // of the log files: [boltfile.FormatText]
	Revision uint64    `json:"revision"` // whose state it is
	Time     time.Time `json:"time"`     // when it was taken
	Files    []string  `json:"files"`
}

// Snapshot is the files of one state of a store with its history. The caller must close it.
type Snapshot struct {
	Manifest
	prefix  string
	opened  []*os.File
	entries []entry // of the archive; Finish adds the manifest
}

type entry struct {
	name    string
	size    int64
	content io.ReaderAt
}

// NewSnapshot returns a snapshot without files, of the store in a directory.
func NewSnapshot(dir string) *Snapshot {
	return &Snapshot{Manifest: Manifest{Format: boltfile.FormatText()}, prefix: filepath.Join(dir, "backup-"+rand.Text())}
}

// Add adds a file with a name. take puts it at a path in the directory of the store: a copy
// of a file that changes, or a link to one that does not. The file is gone from there when
// Add returns; if the process is killed, the next start of the store removes it.
func (s *Snapshot) Add(name string, take func(path string) error) error {
	path := s.prefix + "-" + name + ".tmp"
	err := take(path)
	if err == nil {
		err = s.open(name, path)
	}
	return errors.Join(err, disk.Remove(path))
}

func (s *Snapshot) open(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	s.opened = append(s.opened, f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s.Files, s.entries = append(s.Files, name), append(s.entries, entry{name, info.Size(), f})
	return nil
}

// Finish ends the list of files, which are the state of a revision at a time.
func (s *Snapshot) Finish(revision uint64, at time.Time) error {
	s.Revision, s.Time = revision, at.UTC()
	manifest, err := json.Marshal(s.Manifest)
	s.entries = slices.Insert(s.entries, 0, entry{manifestName, int64(len(manifest)), bytes.NewReader(manifest)})
	return err
}

// Size returns how many bytes Write writes.
func (s *Snapshot) Size() int64 {
	const block = 512
	size := int64(2 * block)
	for _, e := range s.entries {
		size += block + (e.size+block-1)/block*block
	}
	return size
}

// Write writes the archive.
func (s *Snapshot) Write(w io.Writer) error {
	out := tar.NewWriter(w)
	for _, e := range s.entries {
		err := out.WriteHeader(&tar.Header{Name: e.name, Mode: 0o600, Size: e.size, ModTime: s.Time.Truncate(time.Second)})
		if err == nil {
			_, err = io.Copy(out, io.NewSectionReader(e.content, 0, e.size))
		}
		if err != nil {
			return fmt.Errorf("store backup: %w", err)
		}
	}
	return out.Close()
}

// Close closes the files.
func (s *Snapshot) Close() error {
	var errs []error
	for _, f := range s.opened {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
