package bolt

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// Backup writes the state of one revision, with its history, as a tar archive
// of log files, and returns that revision. Everything else goes on meanwhile,
// however slow w is: the head is copied aside first, and the sealed files,
// which never change, are kept by links of their own.
func (db *DB) Backup(ctx context.Context, w io.Writer) (uint64, error) {
	b := &backup{prefix: filepath.Join(db.o.Dir, "backup-"+rand.Text())}
	defer b.remove()
	if err := db.setAside(ctx, b); err != nil {
		return 0, fmt.Errorf("store backup: %w", err)
	}
	out := tar.NewWriter(w)
	for _, f := range b.files {
		if err := addFile(ctx, out, f.name, f.path); err != nil {
			return 0, fmt.Errorf("store backup: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return 0, fmt.Errorf("store backup: %w", err)
	}
	return b.revision, nil
}

// A backup in the making: files that nobody else knows.
type backup struct {
	prefix   string
	files    []struct{ name, path string }
	revision uint64
}

func (b *backup) add(s *segment, take func(path string) error) error {
	name := filepath.Base(s.path)
	path := b.prefix + "-" + name + ".tmp" // if it is left behind, the next start removes it
	b.files = append(b.files, struct{ name, path string }{name, path})
	return take(path)
}

func (b *backup) remove() {
	for _, f := range b.files {
		_ = os.Remove(f.path)
	}
}

// setAside takes the files of one moment.
func (db *DB) setAside(ctx context.Context, b *backup) error {
	db.maintaining.Lock()
	defer db.maintaining.Unlock()
	var ss segments
	if err := db.control(ctx, func() error { ss = *db.segments.Load(); return nil }); err != nil {
		return err
	}
	for _, s := range ss[:len(ss)-1] {
		if err := b.add(s, func(path string) error { return os.Link(s.path, path) }); err != nil {
			return err
		}
	}
	head := ss.head()
	return b.add(head, func(path string) error {
		return head.view(func(tx *bbolt.Tx) error {
			b.revision = head.base - 1
			if k, _ := tx.Bucket([]byte(bucketLog)).Cursor().Last(); len(k) == 8 {
				b.revision = be.Uint64(k)
			}
			return tx.CopyFile(path, 0o600)
		})
	})
}

func addFile(ctx context.Context, out *tar.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime().Truncate(time.Second)})
	if err != nil {
		return err
	}
	_, err = io.Copy(out, readerWithContext{ctx, io.LimitReader(f, info.Size())})
	return err
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

// Restore fills a directory that holds no store yet from a backup. The index
// is made when the store is opened.
func Restore(ctx context.Context, dir string, r io.Reader) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("store restore: %w", err)
	}
	there, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil || len(there) > 0 {
		return errors.Join(err, fmt.Errorf("store restore: %s holds a store already; choose an empty directory", dir))
	}
	in := tar.NewReader(r)
	for files := 0; ; files++ {
		h, err := in.Next()
		if err == io.EOF && files > 0 { //nolint:errorlint // tar returns it as it is
			return syncDir(dir)
		}
		if err != nil {
			return fmt.Errorf("store restore: this is not a whole backup: %w", err)
		}
		if ok, _ := filepath.Match(segmentPattern, h.Name); !ok || filepath.Base(h.Name) != h.Name {
			return fmt.Errorf("store restore: this is not a backup of the event store: it holds %q", h.Name)
		}
		if err := restoreFile(ctx, filepath.Join(dir, h.Name), in); err != nil {
			return fmt.Errorf("store restore: %w", err)
		}
	}
}

func restoreFile(ctx context.Context, path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, readerWithContext{ctx, r})
	return errors.Join(err, f.Sync(), f.Close())
}

// Compact clears away what is past its time and brings back all disk space that
// can be had, whether it is much or not.
func (db *DB) Compact(ctx context.Context) error {
	if err := db.Maintain(ctx); err != nil {
		return err
	}
	db.maintaining.Lock()
	defer db.maintaining.Unlock()
	clean := true
	ss := *db.segments.Load()
	for _, s := range ss[:len(ss)-1] {
		if db.dead.of(s.base) > 0 {
			if err := db.rewrite(ctx, s, clean); err != nil {
				return fmt.Errorf("store: compacting %s: %w", s.path, err)
			}
		}
		clean = clean && db.dead.of(s.base) == 0
	}
	return db.rewriteIndex(ctx)
}
