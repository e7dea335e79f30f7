package bolt_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/eventsvc/internal/store/wal"
	"tidings.example/shared/randtest"
)

// R2: the power fails in the middle of a write. What was synced before is on the
// disk; of a frame of the write-ahead log there is any part, and of a commit of the head
// data pages in any part and order as long as they are not synced, and after that
// the meta page, whole or torn. The store that is found must be the one before the
// write or the one after it.
func TestPowerCutInACommit(t *testing.T) {
	t.Parallel()
	random := randtest.New(t)
	stores, rounds := 1, 9
	if *storetest.Long {
		stores, rounds = 20, 25
	}
	for range stores {
		cutPower(t, random, rounds)
	}
}

// cutPower makes a store and cuts so many of its writes, and as many commits of
// its head.
func cutPower(t *testing.T, random *rand.Rand, rounds int) {
	t.Helper()
	dir := t.TempDir()
	db := bolttest.Open(t, bolt.Options{Dir: dir, SegmentBytes: 1 << 20})
	defer bolttest.Close(t, db)
	const log = "log-00000000000000000002.db"
	before := readFiles(t, dir, wal.FileName, log)
	for round := range rounds {
		k := bolttest.Key(random.IntN(20))
		op := store.Put
		if _, err := store.Read(t.Context(), db, k); err == nil && round%4 == 3 {
			op = store.Delete
		}
		want := []string{fmt.Sprint(bolttest.Dump(t, db))}
		_, err := db.Update(t.Context(), k, store.Any, func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: op, Draft: store.Draft{Value: fmt.Appendf(nil, "%d %0*d", round, random.IntN(9000), 0)}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		after := readFiles(t, dir, wal.FileName, log)
		want = append(want, fmt.Sprint(bolttest.Dump(t, db)))
		if bytes.Equal(before[wal.FileName], after[wal.FileName]) {
			t.Error("the write-ahead log was not written to")
		}
		for _, torn := range [][]byte{tear(random, before[wal.FileName], after[wal.FileName], 0, len(after[wal.FileName])), before[wal.FileName], after[wal.FileName]} {
			wantOneOf(t, round, want, map[string][]byte{wal.FileName: torn, log: after[log]})
		}
		if round%3 == 0 { // of several writes at a time
			before = checkpointAndCut(t, random, db, dir, after, want[1])
		} else {
			before = after
		}
	}
}

// checkpointAndCut makes a checkpoint and cuts it. It returns the files
// that are there then.
func checkpointAndCut(t *testing.T, random *rand.Rand, db *bolt.DB, dir string, before map[string][]byte, want string) (after map[string][]byte) {
	t.Helper()
	const log = "log-00000000000000000002.db"
	if err := db.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	after = readFiles(t, dir, wal.FileName, log)
	if bytes.Equal(before[log], after[log]) {
		t.Error("nothing was checkpointed")
	}
	long := len(after[log])
	data := append(bytes.Clone(grown(before[log], long)[:metaEnd]), tear(random, before[log], after[log], metaEnd, long)[metaEnd:]...)
	for _, torn := range [][]byte{data, tear(random, before[log], after[log], 0, metaEnd), before[log], after[log]} {
		wantOneOf(t, 0, []string{want}, map[string][]byte{wal.FileName: after[wal.FileName], log: torn})
	}
	return after
}

func wantOneOf(t *testing.T, round int, want []string, files map[string][]byte) {
	t.Helper()
	if found := fmt.Sprint(dumpOf(t, files)); !slices.Contains(want, found) {
		t.Fatalf("round %d: after the cut there is %.300s, want one of %.300s", round, found, want)
	}
}

// The parts of a file that a disk writes whole, and where bbolt's two meta
// pages end.
const (
	sector  = 512
	metaEnd = 2 * 16 << 10
)

// tear returns the file as it is after a write, but for some of the sectors
// between two places: they are as they were before.
func tear(random *rand.Rand, before, after []byte, from, to int) []byte {
	torn, was := bytes.Clone(after), grown(before, len(after))
	for at := from; at < to; at += sector {
		if random.IntN(2) == 0 {
			copy(torn[at:at+sector], was[at:])
		}
	}
	return torn
}

func grown(b []byte, n int) []byte {
	return append(bytes.Clone(b), make([]byte, max(0, n-len(b)))...)
}

// dumpOf opens a copy of a store that has nothing but these files.
func dumpOf(t *testing.T, files map[string][]byte) []string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := bolttest.Open(t, bolt.Options{Dir: dir, SegmentBytes: 1 << 20})
	defer bolttest.Close(t, db)
	bolttest.Check(t, db)
	return bolttest.Dump(t, db)
}

func readFiles(t *testing.T, dir string, names ...string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range names {
		files[name] = readFile(t, filepath.Join(dir, name))
	}
	return files
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
