package bolt_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// R2: the power fails in the middle of a commit. What was synced before is on
// the disk; of the commit, data pages are there in any part and order as long
// as they are not synced, and after that the meta page, whole or torn. The
// store that is found must be the one before the commit or the one after it.
func TestPowerCutInACommit(t *testing.T) {
	t.Parallel()
	stores := 1
	if *long {
		stores = 20
	}
	for range stores {
		cutPower(t, 25)
	}
}

// cutPower makes a store and cuts so many of its commits.
func cutPower(t *testing.T, rounds int) {
	t.Helper()
	dir := t.TempDir()
	db := open(t, bolt.Options{Dir: dir})
	defer closeDB(t, db)
	path := filepath.Join(dir, "log-00000000000000000002.db")
	before := readFile(t, path)
	for round := range rounds {
		k := key(rand.IntN(20))
		op := store.Put
		if _, err := db.Get(t.Context(), k); err == nil && round%4 == 3 {
			op = store.Delete
		}
		want := []string{fmt.Sprint(dump(t, db))}
		_, err := db.Update(t.Context(), k, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: op, Draft: store.Draft{Value: fmt.Appendf(nil, "%d %0*d", round, rand.IntN(9000), 0)}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		after := readFile(t, path)
		want = append(want, fmt.Sprint(dump(t, db)))
		for _, torn := range [][]byte{tearData(before, after), tearMeta(before, after), before, after} {
			found := fmt.Sprint(dumpOf(t, torn, filepath.Base(path)))
			if found != want[0] && found != want[1] {
				t.Fatalf("round %d: after the cut there is %.300s, want %.300s or %.300s", round, found, want[0], want[1])
			}
		}
		before = after
	}
}

// The parts of a file that a disk writes whole, and where bbolt's two meta
// pages end.
const (
	sector  = 512
	metaEnd = 2 * 16 << 10
)

// tearData returns the file with some of the sectors that a commit has changed,
// and the old meta pages.
func tearData(before, after []byte) []byte {
	torn := grown(before, len(after))
	for at := metaEnd; at < len(after); at += sector {
		if rand.IntN(2) == 0 {
			copy(torn[at:at+sector], after[at:])
		}
	}
	return torn
}

// tearMeta returns the file with all data and some sectors of the meta pages.
func tearMeta(before, after []byte) []byte {
	torn := bytes.Clone(after)
	for at := 0; at < metaEnd; at += sector {
		if rand.IntN(2) == 0 {
			copy(torn[at:at+sector], before[at:])
		}
	}
	return torn
}

func grown(b []byte, n int) []byte {
	return append(bytes.Clone(b), make([]byte, max(0, n-len(b)))...)
}

// dumpOf opens a copy of a store that has nothing but this log file.
func dumpOf(t *testing.T, file []byte, name string) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), file, 0o600); err != nil {
		t.Fatal(err)
	}
	db := open(t, bolt.Options{Dir: dir})
	defer closeDB(t, db)
	check(t, db)
	return dump(t, db)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
