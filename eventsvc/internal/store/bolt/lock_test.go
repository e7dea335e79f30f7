package bolt_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
)

// R21: of users that open, compact and close one directory all the time, one has it at a time, although compaction
// replaces the index. Nothing is lost and nothing is damaged.
func TestManyUsersOfOneDirectory(t *testing.T) {
	t.Parallel()
	o := bolt.Options{Dir: t.TempDir(), MinFree: -1, MaxBytes: -1}
	var users sync.WaitGroup
	var written atomic.Int64
	const rounds = 4
	for user := range 2 {
		users.Go(func() {
			for round := range rounds {
				db, err := bolttest.OpenDB(o)
				for errors.Is(err, store.ErrInUse) {
					db, err = bolttest.OpenDB(o)
				}
				if err != nil {
					t.Errorf("user %d: %v", user, err)
					return
				}
				if _, err := store.Create(t.Context(), db, bolttest.Key(user*rounds+round), store.Draft{Value: []byte("value")}); err != nil {
					t.Error(err)
				}
				if n := written.Add(1); db.Stats().Events != n {
					t.Errorf("user %d finds %d events, want %d", user, db.Stats().Events, n)
				}
				if err := db.Compact(t.Context(), false, nil); err != nil {
					t.Error(err)
				}
				bolttest.Close(t, db)
			}
		})
	}
	users.Wait() // each round waits for the disk and for the other user: there is no bound on its time
}

// R21: a restore keeps its directory from a store that starts there, and the other way round.
func TestRestoreBesideStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	db := bolttest.Open(t, bolt.Options{Dir: dir})
	bolttest.Create(t, db, 3, "value")
	_, backup := backUp(t, db)
	bolttest.Close(t, db)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	r := &openingReader{t: t, data: backup, dir: dir}
	if _, err := bolt.Restore(t.Context(), dir, r, nil); err != nil {
		t.Fatal(err)
	}
	db = bolttest.Open(t, bolt.Options{Dir: dir})
	if s := db.Stats(); s.Events != 3 {
		t.Errorf("%d events were restored, want 3", s.Events)
	}
	bolttest.Close(t, db)
}

// openingReader tries to open the directory that its data are restored into.
type openingReader struct {
	t    *testing.T
	data []byte
	dir  string
}

func (r *openingReader) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		if db, err := bolttest.OpenDB(bolt.Options{Dir: r.dir}); !errors.Is(err, store.ErrInUse) {
			r.t.Errorf("a store is opened where one is being restored: %v", err)
			_ = db.Close()
		}
		return 0, io.EOF
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}
