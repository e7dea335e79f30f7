package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"tidings.example/shared/randtest"
)

// TestPrefetchFindsLeaves: the branch pages lead to the leaf that has a key, and no damage
// of the file does more than lead nowhere.
func TestPrefetchFindsLeaves(t *testing.T) {
	t.Parallel()
	const n = 20_000
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	name, keys := []byte("log"), [][]byte{}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(name)
		for i := uint64(0); i < n && err == nil; i++ {
			keys = append(keys, binary.BigEndian.AppendUint64(nil, 3*i))
			err = b.Put(keys[i], bytes.Repeat([]byte{byte(i)}, 100))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bbolt.Tx) error {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		root, size := uint64(tx.Bucket(name).Root()), int64(db.Info().PageSize)
		b := branches{file: file, size: size, pages: map[uint64][]byte{}}
		levels := b.height(root)
		if levels == 0 {
			t.Error("the tree has no branch page")
		}
		for i := 0; i < n; i += 7 {
			id, ok := b.leaf(root, levels, keys[i])
			leaf := make([]byte, size)
			if _, err := file.ReadAt(leaf, int64(id)*size); err != nil || !ok || !bytes.Contains(leaf, keys[i]) {
				t.Errorf("key %d is not on page %d: %t, %v", i, id, ok, err)
			}
		}
		Prefetch(tx, path, name, keys)
		text, err := os.ReadFile(path)
		rnd := randtest.New(t)
		for range 20 {
			for range 2000 {
				text[rnd.IntN(len(text))] ^= 1 << rnd.IntN(8)
			}
			damaged := path + ".damaged"
			if err == nil {
				err = os.WriteFile(damaged, text, 0o600)
			}
			Prefetch(tx, damaged, name, keys[:100])
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPrefetchKeepsNoFile: a bucket that is inline has no pages to read, and leaves no file open either.
func TestPrefetchKeepsNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("log"))
		return errors.Join(err, b.Put([]byte("key"), []byte("value")))
	})
	if err != nil {
		t.Fatal(err)
	}
	opened := func() (n int) {
		links, _ := filepath.Glob("/proc/self/fd/*") // none on other systems than Linux
		for _, link := range links {
			if open, err := os.Readlink(link); err == nil && open == path {
				n++
			}
		}
		return n
	}
	before := opened()
	if err := db.View(func(tx *bbolt.Tx) error { Prefetch(tx, path, []byte("log"), [][]byte{[]byte("key")}); return nil }); err != nil {
		t.Error(err)
	}
	if after := opened(); after != before {
		t.Errorf("%d files are open, before %d were", after, before)
	}
}
