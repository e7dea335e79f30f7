package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
	"tidings.example/eventsvc/internal/store/wal"
	"tidings.example/shared/waittest"
)

const firstLog = "log-00000000000000000002.db"

// killed copies a store as a kill would leave it: nobody writes meanwhile.
func killed(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// What is in the write-ahead log is found after a kill, whichever half it is in, and
// again after another; what was observed is counted once.
func TestWALIsReplayed(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir(), SegmentBytes: 1 << 20, Now: goldenTime}
	db := bolttest.Open(t, o)
	for i := range 60 { // one and a half of the halves, of sixteen blocks each
		if _, err := store.Create(t.Context(), db, bolttest.Key(i), store.Draft{Value: bytes.Repeat([]byte{'x'}, 5000)}); err != nil {
			t.Fatal(err)
		}
		if i%4 > 0 {
			continue
		}
		again := o
		again.Dir = killed(t, o.Dir)
		left := bolttest.Open(t, again)
		again.Dir = killed(t, again.Dir) // before it has done anything
		if i%8 == 0 {
			if _, err := left.Update(t.Context(), bolttest.Key(i), store.Any, bolttest.Change); err != nil {
				t.Fatal(err)
			}
			again.Dir = killed(t, left.Dir())
		}
		want, counts := bolttest.Dump(t, left), counted(t, left)
		bolttest.Close(t, left)
		left = bolttest.Open(t, again)
		if diff := cmp.Diff(want, bolttest.Dump(t, left)); diff != "" {
			t.Errorf("after %d writes: %s", i+1, diff)
		}
		if got := counted(t, left); got != counts || got < int64(i+1) {
			t.Errorf("after %d writes %v are counted, and before the second kill %v were", i+1, got, counts)
		}
		bolttest.Close(t, left)
	}
	bolttest.Close(t, db)
}

// counted is how often something was observed.
func counted(t *testing.T, db *bolt.DB) (n int64) {
	t.Helper()
	in := store.Range{From: goldenTime(), To: goldenTime().Add(time.Second)}
	err := db.Timeline().Count(t.Context(), countAll(in), func(o store.Occurred) { n += o.Count })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// R13: whichever byte of the write-ahead log is flipped, what is served is what was
// written, or an error. Where the name of an event is hit, the start says that a
// record is damaged. Only the last frame may be missing without a word: that
// cannot be told from one that a crash has cut short.
func TestFlippedBytesInTheWAL(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir(), SegmentBytes: 4 << 20} // for a small write-ahead log
	db := bolttest.Open(t, o)
	var values []string
	for i := range 4 {
		values = append(values, strings.Repeat(fmt.Sprint(i), 100+i*3000))
		if _, err := store.Create(t.Context(), db, bolttest.Key(i), store.Draft{Value: []byte(values[i])}); err != nil {
			t.Fatal(err)
		}
	}
	dir := killed(t, o.Dir)
	bolttest.Close(t, db)
	whole := map[string][]byte{firstLog: readFile(t, filepath.Join(dir, firstLog)), wal.FileName: readFile(t, filepath.Join(dir, wal.FileName))}
	if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(whole[wal.FileName], "\x00"))
	step := used/25 | 1
	if *storetest.Long {
		step = used/1500 | 1
	}
	refused, found, last := 0, 0, 0
	lengths := []int{4116, 4130, 4132, 4134} // of the first frame, and of what is in its record
	for i := 0; i*step < used+len(lengths)*step; i++ {
		at := i * step
		if at >= used {
			at = lengths[i%len(lengths)]
		}
		if err := spoil(dir, whole, wal.FileName, at); err != nil {
			t.Fatal(err)
		}
		said := new(bolttest.SyncBuffer)
		o.Dir, o.Log = killed(t, dir), slog.New(slog.NewTextHandler(said, nil))
		db, err := bolttest.OpenDB(o)
		if err != nil {
			refused++
			continue
		}
		told := strings.Contains(said.String(), "a record of the log is damaged")
		for i, value := range values {
			r, err := store.Read(t.Context(), db, bolttest.Key(i))
			switch {
			case err == nil && string(r.Value) != value:
				t.Errorf("byte %d flipped: event %d is served wrong", at, i)
			case err != nil && i == len(values)-1:
				last++
			case errors.As(err, new(*store.CorruptError)), errors.Is(err, store.ErrNotFound) && told:
				found++
			case err != nil:
				t.Errorf("byte %d flipped: event %d: %v", at, i, err)
			}
		}
		_ = db.Close()
	}
	if refused == 0 || found == 0 || last == 0 {
		t.Error("the test looks at the wrong place")
	}
	t.Logf("%d flips of %d bytes: %d found when opening, %d when reading, the last write missing in %d", (used+step-1)/step, used, refused, found, last)
}

// R18: a store that was not closed cannot be opened without its write-ahead log, nor
// with one that is refused. It is left as it is.
func TestWALMustBeThere(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir()}
	db := bolttest.Open(t, o)
	bolttest.Create(t, db, 5, "value")
	dir := killed(t, o.Dir)
	want := bolttest.Dump(t, db)
	bolttest.Close(t, db)
	whole := readFile(t, filepath.Join(dir, wal.FileName))
	// Of five frames the second is not whole any more.
	noFrame := slices.Clone(whole)
	noFrame[2*4096+3] ^= 1
	for name, content := range map[string][]byte{
		"it is missing":  nil,
		"goes on behind": noFrame,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := killed(t, dir)
			path := filepath.Join(dir, wal.FileName)
			err := os.Remove(path)
			if content != nil {
				err = os.WriteFile(path, content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			wantFileError(t, dir, path, name)
			if left, _ := os.ReadFile(path); !bytes.Equal(left, content) {
				t.Error("it was changed")
			}
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			db := bolttest.Open(t, bolt.Options{Dir: dir})
			defer bolttest.Close(t, db)
			if diff := cmp.Diff(want, bolttest.Dump(t, db)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What has changed up to a revision can be read while it changes again.
func TestChangesWhileWritten(t *testing.T) {
	t.Parallel()
	const events = 1000
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), SegmentBytes: 1 << 20})
	defer bolttest.Close(t, db)
	bolttest.Create(t, db, events, "value")
	until := db.Revision()
	var stop atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if _, err := db.Update(t.Context(), bolttest.Key(i%events), store.Any, bolttest.Change); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 30 {
		n := 0
		err := db.Changes(t.Context(), 1, until, func(part []store.Delivery, _ uint64) error { n += len(part); return nil })
		if err != nil || n != events {
			t.Errorf("%d of %d events: %v", n, events, err)
			break
		}
	}
	stop.Store(true)
	waittest.Join(t, &writer)
}
