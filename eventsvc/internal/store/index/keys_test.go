package index_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/index"
	"tidings.example/shared/randtest"
)

func openIndex(t *testing.T, dir string) *index.Index {
	t.Helper()
	x, err := index.Open(dir, func() []byte { return []byte("0123456789abcdef") })
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// pointers is what an index must lead to.
type pointers map[string]index.Pointer

func (m pointers) live() (n int64) {
	for _, p := range m {
		if p.Live() {
			n++
		}
	}
	return n
}

// wantIn fails unless an index has these keys, one by one and in order. Deletions may be there or not.
func (m pointers) wantIn(t *testing.T, x *index.Index, when string, random *rand.Rand) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(m))
	err := x.View(func(v index.View) error {
		for _, key := range keys {
			p, _, err := v.Newest(key)
			if again, _, err2 := x.Newest(key); again != p || err2 != nil {
				t.Fatalf("%s: %s: %v and %v, %v", when, key, p, again, err2)
			}
			if want := m[key]; err != nil || p.Live() != want.Live() || p.Live() && p != want {
				t.Fatalf("%s: %s leads to %v, want %v: %v", when, key, p, want, err)
			}
			if _, ok, err := v.Newest(key + "x"); ok || err != nil {
				t.Fatalf("%s: %sx was found: %v", when, key, err)
			}
		}
		for range 20 {
			prefix := fmt.Sprintf("ns-%d/", random.IntN(4))
			from := prefix
			if random.IntN(2) == 0 {
				from = keys[random.IntN(len(keys))]
				prefix = from[:strings.IndexByte(from, '/')+1]
			}
			var got, want []string
			for it := v.Iterate(from, prefix); it.Valid(); it.Next() {
				if it.Err() != nil {
					return it.Err()
				}
				if it.Pointer().Live() {
					got = append(got, string(it.Key()))
				}
			}
			for _, key := range keys {
				if key >= from && strings.HasPrefix(key, prefix) && m[key].Live() {
					want = append(want, key)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: from %q: %d keys, want %d", when, from, len(got), len(want))
			}
		}
		return nil
	})
	if err := errors.Join(err, x.Check()); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
}

// TestKeys: whatever was merged, trimmed and written again, in any order, an index leads to the newest version of
// each event.
func TestKeys(t *testing.T) {
	t.Parallel()
	random := randtest.New(t)
	dir := t.TempDir()
	x := openIndex(t, dir)
	m := pointers{}
	revision, compact := uint64(1), uint64(1)
	for round := range 30 {
		for range 200 {
			revision++
			key := fmt.Sprintf("ns-%d/pod-%d.%x", random.IntN(4), random.IntN(40), random.IntN(16))
			p := index.NewPointer(revision, m[key].Live() && random.IntN(2) == 0)
			x.Put(key, p)
			m[key] = p
		}
		m.wantIn(t, x, fmt.Sprint("put ", round), random)
		if random.IntN(2) == 0 {
			compact = revision - uint64(random.IntN(100))
		}
		if !x.Freeze(index.Live{Events: m.live()}) {
			t.Fatal("it was not frozen")
		}
		if err := x.Merge(compact); err != nil {
			t.Fatal(err)
		}
		m.wantIn(t, x, fmt.Sprint("merged ", round), random)
		switch random.IntN(4) {
		case 0:
			var gone []index.KeyPointer
			for key, p := range m {
				if p.Deletion() && random.IntN(2) == 0 {
					gone = append(gone, index.KeyPointer{Key: key, Pointer: p})
				}
			}
			if err := x.SaveAccount(index.Account{}, gone); err != nil {
				t.Fatal(err)
			}
		case 1:
			if err := x.Rewrite(t.Context(), compact); err != nil || x.Rewriting() {
				t.Fatal(x.Rewriting(), err)
			}
		case 2:
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x = openIndex(t, dir)
		}
		m.wantIn(t, x, fmt.Sprint("done ", round), random)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// writtenAgain returns the directory of an index whose keys are sorted: those of n events of a few pods.
func writtenAgain(t *testing.T, n int) (dir string, m pointers) {
	t.Helper()
	dir, m = t.TempDir(), pointers{}
	x := openIndex(t, dir)
	random := randtest.New(t)
	for i := range n {
		key := fmt.Sprintf("shop/checkout-%09x-%05x.%015x", i/600, i/6, random.Uint64()>>4)
		m[key] = index.NewPointer(uint64(1<<50+i), false)
		x.Put(key, m[key])
	}
	x.Freeze(index.Live{Events: int64(n)})
	err := x.Merge(1)
	if err == nil {
		err = x.Rewrite(t.Context(), 1)
	}
	m.wantIn(t, x, "written again", random)
	if err := errors.Join(err, x.Close()); err != nil {
		t.Fatal(err)
	}
	return dir, m
}

// TestKeysAreSmall: a key takes a quarter of what it takes alone.
func TestKeysAreSmall(t *testing.T) {
	t.Parallel()
	const n = 20_000
	dir, _ := writtenAgain(t, n)
	db, err := bbolt.Open(filepath.Join(dir, "index.db"), 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bbolt.Tx) error {
		stats := tx.Bucket([]byte("keys")).Stats()
		if size := (stats.LeafAlloc + stats.BranchAlloc) / n; size > 24 {
			t.Errorf("a key takes %d bytes", size)
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedKeys: whichever bit of an entry is wrong, no key of it leads to another record, and neither reads of
// one nor lists are silent about it.
func TestDamagedKeys(t *testing.T) {
	t.Parallel()
	dir, m := writtenAgain(t, 200)
	path := filepath.Join(dir, "index.db")
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var value []byte
	var covered []string
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("keys")).Cursor()
		before, _ := c.First()
		last, v := c.Next()
		value = slices.Clone(v)
		for key := range m {
			if key > string(before) && key <= string(last) {
				covered = append(covered, key)
			}
		}
		return nil
	})
	if err = errors.Join(err, db.Close()); err != nil || len(covered) < 10 {
		t.Fatal(len(covered), err)
	}
	at := strings.Index(string(sound), string(value))
	x := openIndex(t, dir) // what is damaged when it is opened is refused
	defer func() { _ = x.Close() }()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for i := range value {
		for _, bit := range []byte{1, 0x80} {
			if _, err := file.WriteAt([]byte{value[i] ^ bit}, int64(at+i)); err != nil {
				t.Fatal(err)
			}
			for _, key := range covered {
				if _, _, err := x.Newest(key); !errors.As(err, new(*store.CorruptError)) {
					t.Fatalf("byte %d: %s: %v", i, key, err)
				}
			}
			told := 0
			if err := x.View(func(v index.View) error {
				for it := v.Iterate("shop/", "shop/"); it.Valid(); it.Next() {
					if it.Err() != nil {
						told++
					} else if m[string(it.Key())] != it.Pointer() {
						t.Fatalf("byte %d: %s leads elsewhere", i, it.Key())
					}
				}
				return nil
			}); err != nil || told != 1 {
				t.Fatalf("byte %d: told %d times: %v", i, told, err)
			}
		}
		if _, err := file.WriteAt(value[i:i+1], int64(at+i)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeysComeAndGo: the file stays about as small as a new one, however often events come and go.
func TestKeysComeAndGo(t *testing.T) {
	t.Parallel()
	x := openIndex(t, t.TempDir())
	random := randtest.New(t)
	const part, parts, rounds = 3000, 3, 8 // of events; so many parts exist at a time
	m := pointers{}
	revision := uint64(1)
	var begun []uint64 // the revisions at which the rounds began
	for round := range rounds {
		first := uint64(0)
		if begun = append(begun, revision); round >= parts {
			first = begun[round-parts+1]
		}
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if m[key].Revision() < first {
				delete(m, key)
				revision++
				x.Put(key, index.NewPointer(revision, true))
			}
		}
		compact := revision
		for range part {
			revision++
			key := fmt.Sprintf("ns-%d/pod-%d.%014x", random.IntN(4), random.IntN(40), random.Uint64()>>8)
			m[key] = index.NewPointer(revision, false)
			x.Put(key, m[key])
		}
		if !x.Freeze(index.Live{Events: m.live()}) {
			t.Fatal("it was not frozen")
		}
		if err := x.Merge(compact); err != nil {
			t.Fatal(err)
		}
		m.wantIn(t, x, fmt.Sprint("round ", round), random)
	}
	merged := disk.Usage(x.Path())
	if err := x.Rewrite(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	m.wantIn(t, x, "written again", random)
	if again := disk.Usage(x.Path()); merged > 5*again {
		t.Errorf("the file has %d bytes, written again %d", merged, again)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// TestNeedsRewrite: after an import the index is written again.
func TestNeedsRewrite(t *testing.T) {
	t.Parallel()
	x := openIndex(t, t.TempDir())
	const n = 100_000
	for i := range n {
		x.Put(fmt.Sprintf("ns/pod.%08x", i), index.NewPointer(uint64(i+2), false))
	}
	if !x.Freeze(index.Live{Events: n}) {
		t.Fatal("it was not frozen")
	}
	if err := x.Merge(0); err != nil {
		t.Fatal(err)
	}
	if !x.NeedsRewrite(n) || !x.NeedsRewrite(2*n) || x.NeedsRewrite(2*n+2) {
		t.Error("it is not to be written again when half of the keys were merged since")
	}
	if err := x.Rewrite(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if x.NeedsRewrite(n) {
		t.Error("it was written again, and is to be again")
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}
