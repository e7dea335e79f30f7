package bolt

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/shared/randtest"
)

// everything has a store do all that it writes for: commits, checkpoints, new log files, merges, rounds of maintenance
// with expiry, trims and removed files, compaction. It prints each write before it tries it, and once it is
// acknowledged, and goes on after errors.
func everything(t *testing.T, o Options) {
	o.SegmentBytes, o.MemtableLimit, o.MinFree, o.MaxBytes, o.History = 64<<10, 30, 1<<20, -1, time.Nanosecond
	db, err := OpenTest(o)
	if err != nil {
		fmt.Println("not opened:", err)
		return
	}
	for i := range 200 {
		name, value := fmt.Sprintf("e%02d", i%40), fmt.Sprint(i)
		if i%7 == 6 {
			value = "none"
		}
		fmt.Println("try", name, value)
		_, err := db.Update(t.Context(), store.Key{Namespace: "ns", Name: name}, store.Any, func(*store.Record) (store.Decision, error) {
			if value == "none" {
				return store.Decision{Op: store.Delete}, nil
			}
			return store.Decision{Op: store.Put, Draft: store.Draft{Value: []byte(value + " " + strings.Repeat("x", 1000))}}, nil
		})
		if err == nil {
			fmt.Println("acknowledged", name, value)
		}
		switch i {
		case 90, 150:
			_ = db.Maintain(t.Context())
		case 120, 199:
			_ = db.Compact(t.Context(), i == 199, nil)
		}
	}
	_ = db.Close()
}

// R2, R3, R12: a disk fails at any one call of those that write, sync, rename or remove, or at all calls from one on.
// Nothing that was acknowledged is lost, the files are whole, and the store takes writes after the next start.
func TestDiskFailsAtEveryCall(t *testing.T) {
	t.Parallel()
	const calls = "pwrite64,fsync,fdatasync,ftruncate,fallocate,renameat,renameat2,unlinkat"
	rounds, stride := 4, 20 // of the short form, spread over all calls
	step := 1 + randtest.New(t).IntN(stride)
	if *storetest.Long {
		rounds, step, stride = 1<<20, 1, 1
	}
	failures := 0
	for n := step; rounds > 0; n += stride {
		rounds--
		failed := 0
		for _, fault := range []string{fmt.Sprintf("error=EIO:when=%d", n), fmt.Sprintf("error=ENOSPC:when=%d", n), fmt.Sprintf("error=ENOSPC:when=%d+", n), fmt.Sprintf("error=EIO:when=%d+", n)} {
			dir := filepath.Join(t.TempDir(), "store")
			lines, printed := trace(t, "everything", dir, "-e", "trace="+calls, "-e", "inject="+calls+":"+fault)
			for _, line := range lines {
				if strings.Contains(line, "(INJECTED)") {
					failed++
				}
			}
			wantAcknowledged(t, dir, printed, fault)
			if t.Failed() {
				t.Fatalf("%s:\n%s", fault, printed)
			}
		}
		if failures += failed; failed == 0 { // there are fewer calls
			break
		}
	}
	t.Logf("%d calls have failed", failures)
	if failures == 0 {
		t.Error("nothing has failed")
	}
}

// wantAcknowledged opens a store, in which each event must be as the last acknowledged write has it, or one that was
// tried after it.
func wantAcknowledged(t *testing.T, dir, printed, fault string) {
	t.Helper()
	possible := map[string][]string{} // values by name
	for lines := bufio.NewScanner(strings.NewReader(printed)); lines.Scan(); {
		var word, name, value string
		switch _, _ = fmt.Sscan(lines.Text(), &word, &name, &value); word {
		case "try":
			if possible[name] == nil {
				possible[name] = []string{"none"}
			}
			possible[name] = append(possible[name], value)
		case "acknowledged":
			possible[name] = []string{value}
		}
	}
	db := openInside(t, Options{Dir: dir})
	for name, values := range possible {
		r, err := store.Read(t.Context(), db, store.Key{Namespace: "ns", Name: name})
		value, _, _ := strings.Cut(string(r.Value), " ")
		if errors.Is(err, store.ErrNotFound) {
			value, err = "none", nil
		}
		found := false
		for _, v := range values {
			found = found || v == value
		}
		if err != nil || !found {
			t.Errorf("%s: %s is %q, %v; want one of %q", fault, name, value, err, values)
		}
	}
	putInside(t, db, "after", []byte("v"))
	closeInside(t, db)
}
