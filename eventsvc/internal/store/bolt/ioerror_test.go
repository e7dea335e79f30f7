package bolt_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/storetest"
)

// failingDisk is an ext4 file system on a block device that cannot keep as much
// as it says: its image lies on a small file system in memory. Once that is full
// the device fails writes that it has taken, as a broken disk or a pool of thin
// volumes does. The kernel calls that an I/O error where it hits the write-ahead log, and
// want of room where it hits the data of a file: which comes first is chance.
type failingDisk struct{ back, image, mount string }

func newFailingDisk(t *testing.T) *failingDisk {
	t.Helper()
	d := &failingDisk{back: t.TempDir(), mount: t.TempDir()}
	d.image = filepath.Join(d.back, "image")
	mountSmall(t, d.back, "48m")
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(512<<20), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", d.image},
		{"mount", "-o", "loop", d.image, d.mount},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			unable(t, "no file system on a loop device can be made here: %v: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if err := unmount(d.mount); err != nil && !errors.Is(err, syscall.EINVAL) {
			t.Error(err)
		}
	})
	return d
}

// repair makes the device as large as it says, and its file system one that
// recovers from what has happened.
func (d *failingDisk) repair(t *testing.T) {
	t.Helper()
	if err := unmount(d.mount); err != nil {
		t.Fatal(err)
	}
	if err := resizeMount(d.back, "600m"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.mount).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// R2, R3: a disk that begins to answer with errors keeps what was acknowledged
// before, and nothing is acknowledged that it has not kept.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	rounds := 1
	if *storetest.Long {
		rounds = 10
	}
	acknowledged := 0
	for range rounds {
		acknowledged += failDisk(t)
	}
	t.Logf("%d writes acknowledged before the disk failed, in %d rounds, none lost", acknowledged, rounds)
}

// failDisk returns how many writes were acknowledged before the disk failed.
func failDisk(t *testing.T) (acknowledged int) {
	d := newFailingDisk(t)
	o := bolt.Options{Dir: filepath.Join(d.mount, "store"), SegmentBytes: 4 << 20, MinFree: -1, MaxBytes: -1, MemtableLimit: 1000}
	db := bolttest.Open(t, o)
	var acked sync.Map // key → value
	var failed atomic.Pointer[error]
	value := make([]byte, 4000)
	storetest.Parallel(t, 100_000, func(i int) {
		if failed.Load() != nil {
			return
		}
		k := store.Key{Namespace: "ns", Name: bolttest.Key(i).Name}
		r, err := store.Create(t.Context(), db, k, store.Draft{Value: append([]byte(k.Name), value...)})
		if err != nil {
			failed.Store(&err)
			return
		}
		acked.Store(k, r.Revision)
	})
	cause := failed.Load()
	if cause == nil {
		t.Fatal("the disk has not failed")
	}
	if !errors.Is(*cause, syscall.EIO) && !errors.Is(*cause, syscall.EROFS) && !errors.Is(*cause, store.ErrFull) { // EROFS: the journal was hit first
		t.Errorf("the writes ended with %v, want an I/O error, or no room", *cause)
	}
	_ = db.Close() // cannot merge what it has in memory
	d.repair(t)
	db = bolttest.Open(t, o)
	defer bolttest.Close(t, db)
	bolttest.Check(t, db)
	acked.Range(func(k, revision any) bool {
		acknowledged++
		if r, err := store.Read(t.Context(), db, k.(store.Key)); err != nil || r.Revision != revision {
			t.Errorf("%s was acknowledged at revision %d, but there is %d, %v", k, revision, r.Revision, err)
		}
		return !t.Failed()
	})
	if _, err := store.Create(t.Context(), db, store.Key{Namespace: "ns", Name: "after"}, store.Draft{Value: value}); err != nil {
		t.Errorf("the disk is whole again, but: %v", err)
	}
	return acknowledged
}
