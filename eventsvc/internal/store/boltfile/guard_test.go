package boltfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// TestGuard: a panic of bbolt on damaged pages, and a page that cannot be read,
// become errors for every caller.
func TestGuard(t *testing.T) {
	t.Parallel()
	gone := make([]byte, 0)
	f, err := os.CreateTemp(t.TempDir(), "mapped")
	if err == nil {
		err = f.Truncate(1 << 16)
	}
	if err == nil {
		gone, err = syscall.Mmap(int(f.Fd()), 0, 1<<16, syscall.PROT_READ, syscall.MAP_SHARED)
	}
	if err := errors.Join(err, f.Truncate(0), f.Close()); err != nil { // now there is nothing behind the mapping
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(gone) }()
	for name, f := range map[string]func() error{
		"bbolt":           func() error { new(bbolt.Tx).Bucket([]byte("none")).Cursor().First(); return nil },
		"fault":           func() error { return fmt.Errorf("read %d", gone[4096]) },
		"fault in bbolt":  func() error { return boltfile.Guard(func() error { return fmt.Errorf("read %d", gone[4096]) }) },
		"ordinary errors": func() error { return errors.New("no room") },
	} {
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%s: panicked with %v", name, r)
				}
			}()
			if err := boltfile.Guard(f); err == nil {
				t.Errorf("%s: no error", name)
			}
		}()
	}
}

// TestCloseAfterDamage: a write in which bbolt panics because keys have come out of order gives the lock back, whatever
// else of the file is damaged. bbolt scans no page after it, beside which nobody could close the file.
func TestCloseAfterDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := boltfile.Install(path, 0, []string{"b"}, nil); err != nil {
		t.Fatal(err)
	}
	db, err := boltfile.Open(path, boltfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = boltfile.Update(db, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("b"))
		for i := range 500 {
			if err := b.Put(fmt.Appendf(nil, "key%03d", i), []byte("value")); err != nil {
				return err
			}
		}
		return nil
	})
	file, err2 := os.ReadFile(path)
	f, err3 := os.OpenFile(path, os.O_WRONLY, 0)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("A"), int64(bytes.LastIndex(file, []byte("key250"))))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one takes the lock again
		if err := boltfile.Update(db, func(tx *bbolt.Tx) error { tx.Bucket([]byte("none")).Cursor().First(); return nil }); err == nil {
			t.Error("the damage is not found")
		}
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
