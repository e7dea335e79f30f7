package boltfile_test

import (
	"errors"
	"fmt"
	"os"
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
