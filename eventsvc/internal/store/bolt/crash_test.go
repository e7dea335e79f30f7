package bolt_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/randtest"
	"tidings.example/shared/waittest"
)

// The tests wait for the disk more than they compute, so more of them run at a time than there are processors. They
// open many stores, and to collect the garbage of these often would take a fifth of the processor time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // -parallel goes before
		panic(err)
	}
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// crashDir tells the test binary that it is the child that will be killed.
const crashDir = "TIDINGS_TEST_CRASH_DIR"

const crashWriters = 16

// R1, R3, R4: a process that is killed at a random moment under load has lost
// nothing it has acknowledged, has left nothing in halves, and gives no
// revision away twice.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(crashDir); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	random := randtest.New(t)
	rounds := 2
	if *storetest.Long {
		rounds = 300
	}
	dir := t.TempDir()
	acked := map[string]ack{}
	acks := 0
	for round := range rounds {
		more := runAndKill(t, dir, time.Duration(50+random.IntN(300))*time.Millisecond)
		acks += len(more)
		last := uint64(0)
		for _, a := range acked {
			last = max(last, a.revision)
		}
		for _, a := range more {
			if a.revision <= last && acked[a.key].revision == 0 {
				t.Fatalf("round %d: revision %d was given away again", round, a.revision)
			}
			if a.revision > acked[a.key].revision {
				acked[a.key] = a
			}
		}
		if round%2 == 1 { // or the next child finds what this one has left
			checkAfterCrash(t, dir, acked)
		}
	}
	t.Logf("%d kills, %d acknowledged writes, none lost", rounds, acks)
}

// ack is one acknowledged write, as the child printed it.
type ack struct {
	key      string
	count    int // how often the event was written
	revision uint64
}

// runAndKill lets a child write for a while and returns what it acknowledged.
func runAndKill(t *testing.T, dir string, after time.Duration) (acks []ack) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledProcessLosesNothing$", "-test.timeout=10m", fmt.Sprint("-compress=", *storetest.Compress))
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lost, heard := waittest.Context(t)
	defer heard()
	silent := context.AfterFunc(lost, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }) // which has it print its stacks
	defer silent()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 4 || fields[3] != "." {
			continue // the line that the kill cut off
		}
		if len(acks) == 0 {
			silent()
			time.AfterFunc(after, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		}
		count, _ := strconv.Atoi(fields[1])
		revision, _ := strconv.ParseUint(fields[2], 10, 64)
		acks = append(acks, ack{fields[0], count, revision})
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return acks
}

// writeUntilKilled is the child.
func writeUntilKilled(t *testing.T, dir string) {
	db, err := bolttest.OpenDB(bolt.Options{Dir: dir, SegmentBytes: 1 << 20, MemtableLimit: 100, History: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { // merges, rolls and compactions are to be cut as well
		for {
			if err := db.Maintain(t.Context()); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for n := range crashWriters {
		wg.Go(func() {
			for {
				k := store.Key{Namespace: "ns", Name: fmt.Sprintf("%d-%d", n, rand.IntN(100))}
				r, err := db.Update(t.Context(), k, store.Any, count)
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Printf("%s %d %d .\n", k.Name, countOf(r.Record.Value), r.Record.Revision)
			}
		})
	}
	wg.Wait()
}

// count is an update that counts how often the event was written.
func count(current *store.Record) (store.Decision, error) {
	n := 0
	if current != nil {
		n = countOf(current.Value)
	}
	return store.Decision{Op: store.Put, Draft: store.Draft{Value: fmt.Appendf(nil, "%d %0500d", n+1, 0)}}, nil
}

func countOf(value []byte) int {
	n, _ := strconv.Atoi(strings.Fields(string(value))[0])
	return n
}

func checkAfterCrash(t *testing.T, dir string, acked map[string]ack) {
	t.Helper()
	db, err := bolttest.OpenDB(bolt.Options{Dir: dir, SegmentBytes: 1 << 20, MemtableLimit: 100, History: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	bolttest.Check(t, db)
	for name, a := range acked {
		r, err := store.Read(context.Background(), db, store.Key{Namespace: "ns", Name: name})
		if err != nil {
			t.Errorf("%s was acknowledged: %v", name, err)
			continue
		}
		if n := countOf(r.Value); n < a.count || r.Revision < a.revision {
			t.Errorf("%s: count %d at revision %d, acknowledged was %d at %d", name, n, r.Revision, a.count, a.revision)
		}
		if r.Revision > db.Revision() {
			t.Errorf("%s has revision %d, the store is at %d", name, r.Revision, db.Revision())
		}
	}
}

// TestMergeCutShortThenShorter: a merge has written all of its keys and not that it ended. The next one brings only the
// first hundred of them, and ends. Its count of events is not the number of keys then, which is no damage.
func TestMergeCutShortThenShorter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := bolttest.Open(t, bolt.Options{Dir: dir})
	bolttest.Fill(t, db, 950, func(i int) (store.Key, store.Draft) { return bolttest.Key(i), store.Draft{Value: []byte("v")} })
	bolttest.Close(t, db)
	file, err := bbolt.Open(filepath.Join(dir, "index.db"), 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = file.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte("meta"))
		return errors.Join(meta.Put([]byte("merged"), make([]byte, 8)), meta.Put([]byte("live"), make([]byte, 16)), meta.Put([]byte("merging"), []byte{1}))
	})
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	db = bolttest.Open(t, bolt.Options{Dir: dir, MemtableLimit: 100})
	bolttest.Check(t, db)
	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	bolttest.Close(t, db)
	db = bolttest.Open(t, bolt.Options{Dir: killed, MemtableLimit: 100})
	bolttest.Check(t, db)
	bolttest.Close(t, db)
}
