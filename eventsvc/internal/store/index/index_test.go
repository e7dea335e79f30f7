package index_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/event"
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

func reason(s string) event.Attributes {
	return event.NewAttributes([event.NumFields]string{event.Reason: s}, nil)
}

// found is what an index finds by a prefix of keys, and by a reason.
func found(t *testing.T, x *index.Index) (keys []string, postings []uint64) {
	t.Helper()
	s := &event.Selector{Fields: []event.FieldRequirement{{Field: event.Reason, Value: "R1"}}}
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
		terms, n, ok := v.Rarest(s)
		if !ok || n < 11 || n > 12 {
			t.Errorf("about %d versions have the terms of the selector, %t", n, ok)
		}
		var err error
		postings, err = v.Postings(terms)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys, postings
}

// TestMerge: a lookup gives the same result wherever the entry is: in the active memtable, in the frozen one, in the
// file, or in a file that was reopened or rewritten.
func TestMerge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := open(t, dir)
	revision := uint64(1)
	put := func(key string, deletion bool, r string) {
		revision++
		x.Put(key, index.NewPointer(revision, deletion), reason(r))
	}
	for i := range 50 {
		put(fmt.Sprintf("a/%02d", i), false, fmt.Sprint("R", i%5))
	}
	put("b/00", false, "R1")
	put("a/03", true, "")
	put("a/04", false, "R1")
	live := index.Live{Events: 50, Bytes: 5000}
	keys, postings := found(t, x)
	if len(keys) != 48 || len(postings) != 12 || !slices.IsSorted(postings) {
		t.Fatalf("%d keys and postings %d", len(keys), postings)
	}
	same := func(where string) {
		t.Helper()
		k, p := found(t, x)
		if diff := cmp.Diff(keys, k) + cmp.Diff(postings, p); diff != "" {
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
	if err := errors.Join(x.SaveAccount(account, nil, 0), x.Check(), x.Close()); err != nil {
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
	held := func(last uint64) (index.Revisions, error) {
		set := index.Revisions{}
		for _, r := range postings {
			if r <= last && r != postings[0] {
				set.Add(r)
			}
		}
		return set, nil
	}
	if err := errors.Join(x.SaveAccount(account, gone, 1), x.Rewrite(t.Context(), held)); err != nil {
		t.Fatal(err)
	}
	keys, postings = slices.Delete(keys, 1, 2), postings[1:] // a/03, but not a/05, which has another pointer
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
