package bolt

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/seglog"
)

const manifestName = "backup.json"

// manifest is what an archive says of itself.
type manifest struct {
	Format   string    `json:"store"`    // of the log files: [boltfile.FormatText]
	Revision uint64    `json:"revision"` // whose state it is
	Time     time.Time `json:"time"`     // when it was taken
	Files    []string  `json:"files"`
}

// Snapshot sets the present state aside, to be copied at leisure: a copy of the head, and
// links to the sealed files, which never change. Everything else goes on meanwhile.
func (db *DB) Snapshot(ctx context.Context) (store.Snapshot, error) {
	defer db.maintenance.Pause()()
	at := db.committer.Clock.Now()
	s := newSnapshot(db.o.Dir)
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

// snapshot is the files of one state of a store with its history. The caller must close it.
type snapshot struct {
	manifest manifest
	prefix   string
	opened   []*os.File
	entries  []archived // of the archive; Finish adds the manifest
}

type archived struct {
	name    string
	size    int64
	content io.ReaderAt
}

// newSnapshot returns a snapshot without files, of the store in a directory.
func newSnapshot(dir string) *snapshot {
	return &snapshot{manifest: manifest{Format: boltfile.FormatText()}, prefix: filepath.Join(dir, "backup-"+rand.Text())}
}

// Add adds a file with a name. take puts it at a path in the directory of the store: a copy
// of a file that changes, or a link to one that does not. The file is gone from there when
// Add returns; if the process is killed, the next start of the store removes it.
func (s *snapshot) Add(name string, take func(path string) error) error {
	path := s.prefix + "-" + name + ".tmp"
	err := take(path)
	if err == nil {
		err = s.open(name, path)
	}
	return errors.Join(err, disk.Remove(path))
}

func (s *snapshot) open(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	s.opened = append(s.opened, f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s.manifest.Files, s.entries = append(s.manifest.Files, name), append(s.entries, archived{name, info.Size(), f})
	return nil
}

// Finish ends the list of files, which are the state of a revision at a time.
func (s *snapshot) Finish(revision uint64, at time.Time) error {
	s.manifest.Revision, s.manifest.Time = revision, at.UTC()
	manifest, err := json.Marshal(s.manifest)
	s.entries = slices.Insert(s.entries, 0, archived{manifestName, int64(len(manifest)), bytes.NewReader(manifest)})
	return err
}

// Revision returns the revision of the state.
func (s *snapshot) Revision() uint64 { return s.manifest.Revision }

// Size returns how many bytes Write writes.
func (s *snapshot) Size() int64 {
	const block = 512
	size := int64(2 * block)
	for _, e := range s.entries {
		size += block + (e.size+block-1)/block*block
	}
	return size
}

// Write writes the archive.
func (s *snapshot) Write(w io.Writer) error {
	out := tar.NewWriter(w)
	for _, e := range s.entries {
		err := out.WriteHeader(&tar.Header{Name: e.name, Mode: 0o600, Size: e.size, ModTime: s.manifest.Time.Truncate(time.Second)})
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
func (s *snapshot) Close() error {
	var errs []error
	for _, f := range s.opened {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
