package index_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
)

func open(t *testing.T, dir string) *index.Index {
	t.Helper()
	x, err := index.Open(dir, func() []byte { return []byte("id") })
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// found is what an index finds by a prefix of keys.
func found(t *testing.T, x *index.Index) (keys []string) {
	t.Helper()
	err := x.View(func(v index.View) error {
		keys = nil
		for it := v.Iterate("a/02", "a/"); it.Valid(); it.Next() {
			if it.Err() != nil {
				return it.Err()
			}
			keys = append(keys, fmt.Sprint(string(it.Key()), it.Pointer()))
			if p, ok, err := v.Newest(string(it.Key())); p != it.Pointer() || !ok || err != nil {
				t.Errorf("%s is at %d, %t, %v, the iterator has %d", it.Key(), p, ok, err, it.Pointer())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestMerge: a lookup gives the same result wherever the entry is: in the active memtable, in the frozen one, in the
// file, or in a file that was reopened or rewritten.
func TestMerge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := open(t, dir)
	revision := uint64(1)
	put := func(key string, deletion bool) {
		revision++
		x.Put(key, index.NewPointer(revision, deletion))
	}
	for i := range 50 {
		put(fmt.Sprintf("a/%02d", i), false)
	}
	put("b/00", false)
	put("a/03", true)
	put("a/04", false)
	live := index.Live{Events: 50, Bytes: 5000}
	keys := found(t, x)
	if len(keys) != 48 {
		t.Fatalf("%d keys", len(keys))
	}
	same := func(where string) {
		t.Helper()
		if diff := cmp.Diff(keys, found(t, x)); diff != "" {
			t.Errorf("%s: %s", where, diff)
		}
	}
	if !x.Freeze(live) || x.Freeze(live) || x.Size() != 0 {
		t.Error("it was not frozen once")
	}
	same("frozen")
	if err := x.Merge(1); err != nil || x.Merged() != revision {
		t.Fatalf("merged up to %d, want %d: %v", x.Merged(), revision, err)
	}
	same("merged")
	account := index.Account{Trimmed: 7, Dead: map[uint64]int64{2: 99}}
	if err := errors.Join(x.SaveAccount(account, nil), x.Check(), x.Close()); err != nil {
		t.Fatal(err)
	}
	x = open(t, dir)
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	same("opened again")
	if l, a, err := x.Accounts(); err != nil || l != live || !cmp.Equal(a, account) || x.Merged() != revision {
		t.Errorf("it has %v, %v up to %d, %v", l, a, x.Merged(), err)
	}

	gone := []index.KeyPointer{{Key: "a/03", Pointer: index.NewPointer(revision-1, true)}, {Key: "a/05", Pointer: 1}}
	if err := errors.Join(x.SaveAccount(account, gone), x.Rewrite(t.Context(), 1)); err != nil {
		t.Fatal(err)
	}
	keys = slices.Delete(keys, 1, 2) // a/03, but not a/05, which has another pointer
	same("rewritten")
}

// TestOneUser: the file keeps a second process out of the directory.
func TestOneUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := open(t, dir)
	if _, err := index.Open(dir, nil); !errors.Is(err, store.ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}
