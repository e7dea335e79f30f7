package boltfile

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
)

// TestBranchKeysOutOfOrder: a branch page with keys out of order is found
// before bbolt follows it. It would mislead a search, and make bbolt panic in a
// goroutine of its own when it looks for free pages.
func TestBranchKeysOutOfOrder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "branches.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucket([]byte(Meta))
		if err != nil {
			return err
		}
		if err := meta.Put([]byte(Format), []byte(FormatText())); err != nil {
			return err
		}
		log, err := tx.CreateBucket([]byte("log"))
		for i := uint64(1); err == nil && i < 5000; i++ {
			err = log.Put(binary.BigEndian.AppendUint64(nil, i), []byte("a value"))
		}
		return err
	})
	size := db.Info().PageSize
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if db, err = Open(path, Options{}); err != nil {
		t.Fatalf("the whole file: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	branches := 0
	for at := 2 * size; at+size <= len(whole); at += size {
		page := whole[at : at+size]
		if kind, elements := binary.NativeEndian.Uint16(page[8:]), binary.NativeEndian.Uint16(page[10:]); kind != 1 || elements < 3 {
			continue
		}
		branches++
		for i, name := range []string{"the first", "another"} {
			spoiled := append([]byte(nil), whole...)
			element := 16 * (i + 1) // behind the page's head; it begins with the offset of its key
			spoiled[at+element+int(binary.NativeEndian.Uint32(page[element:]))] ^= 0x80
			if err := os.WriteFile(path, spoiled, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, readOnly := range []bool{false, true} {
				_, err := Open(path, Options{ReadOnly: readOnly})
				if fe := new(store.FileError); !errors.As(err, &fe) || !strings.Contains(err.Error(), "out of order") {
					t.Errorf("%s key of a branch, read only %v: %v", name, readOnly, err)
				}
			}
		}
	}
	if branches == 0 {
		t.Error("the file has no branches: the test looks at nothing")
	}
}
