package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
)

// R13: one damaged record keeps no others from being indexed again, from
// expiring, or from being forgotten, and what it replaced does not come back.
func TestDamageIsPassedOver(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	o := bolt.Options{Dir: t.TempDir(), Now: clock.now, Retention: time.Hour, History: time.Minute}
	db := open(t, o)
	create(t, db, 20, "first")
	put := func(i int, value string) {
		t.Helper()
		if _, err := db.Update(t.Context(), key(i), func(*store.Record) (store.Decision, error) {
			return store.Decision{Op: store.Put, Draft: store.Draft{Value: []byte(value)}}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	put(5, "needle in the newest version")
	put(6, "needle that was replaced")
	put(6, "last")
	stats := db.Stats()
	closeDB(t, db)
	path := filepath.Join(o.Dir, "log-00000000000000000002.db")
	file := bytes.ReplaceAll(readFile(t, path), []byte("needle"), []byte("NEEDLE"))
	if err := errors.Join(os.WriteFile(path, file, 0o600), os.Remove(filepath.Join(o.Dir, "index.db"))); err != nil {
		t.Fatal(err)
	}
	db = open(t, o)
	defer func() {
		if err := db.Close(); err != nil { // the damage stays
			t.Error(err)
		}
	}()
	if got := db.Stats(); got != stats && (got.Events != stats.Events || got.LiveBytes != stats.LiveBytes) {
		t.Errorf("counted %+v, before %+v", got, stats)
	}
	for i := range 20 {
		r, err := store.Read(t.Context(), db, key(i))
		ce := new(store.CorruptError)
		switch {
		case i == 5 && !errors.As(err, &ce):
			t.Errorf("the damaged version is answered with %q, %v", r.Value, err)
		case i != 5 && err != nil:
			t.Error(err)
		}
	}
	report, err := db.Check(t.Context(), nil)
	if err != nil || !strings.Contains(fmt.Sprint(report.Problems), "checksum mismatch") {
		t.Errorf("the check says %v, %v", report, err)
	}
	clock.add(2 * time.Hour)
	maintain(t, db)
	clock.add(2 * time.Minute)
	maintain(t, db)
	if got := db.Stats(); got.Events != 1 || got.Oldest != got.Revision {
		t.Errorf("after all but the damaged event should be gone and forgotten: %+v", got)
	}
}
