package boltfile_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store/boltfile"
)

// TestEntriesOfInlineBuckets: of a bucket that is so small that it has no page of its own, an
// entry that ends elsewhere is found. bbolt would lend whatever memory is there.
func TestEntriesOfInlineBuckets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "inline.db")
	key := []byte("the key of the last entry")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("small"))
		for _, k := range [][]byte{[]byte("another"), key} {
			if err == nil {
				err = b.Put(k, []byte("value"))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := pages(path); err != nil {
		t.Fatalf("the whole file: %v", err)
	}
	// The last entry's place and lengths are right in front of the first key.
	at := bytes.Index(whole, []byte("another")) - 12
	if got := binary.NativeEndian.Uint32(whole[at+4:]); int(got) != len(key) {
		t.Fatalf("the test looks at the wrong place: %d is not the length of the key", got)
	}
	for name, offset := range map[string]int{"place": 0, "length of the key": 4, "length of the value": 8} {
		for bit := 5; bit < 31; bit++ {
			spoiled := bytes.Clone(whole)
			spoiled[at+offset+bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, spoiled, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := pages(path); err == nil {
				t.Errorf("with bit %d of the %s flipped: nothing was found", bit, name)
			}
		}
	}
}

// pages runs [boltfile.Pages] as for a file that is opened.
func pages(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return boltfile.View(db, func(tx *bbolt.Tx) error { return boltfile.Pages(tx, path, false) })
}
