package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"tidings.example/eventsvc/internal/store"
)

// TestMergeOverDamagedKeys: a merge that meets damaged keys fails, and nothing is written any more: the index would
// lack what was acknowledged. The index that is made again from the log has all of it.
func TestMergeOverDamagedKeys(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir()}
	db := openInside(t, o)
	const events = 1000
	name := func(i int) string { return fmt.Sprintf("e%04d", i) }
	for i := range events {
		putInside(t, db, name(i), []byte("before"))
	}
	if err := db.committer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	putInside(t, db, "e0500a", []byte("behind")) // which is merged between the others
	path := db.index.Path()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	for at, rest := 0, content; err == nil; {
		key := bytes.Index(rest, []byte("ns/e0")) // which is before the entry of which it is the last key
		if key < 0 {
			break
		}
		at += key + len("ns/e0000")
		_, err = file.WriteAt([]byte{content[at+8] ^ 4}, int64(at+8))
		rest = content[at:]
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	if err := db.committer.Flush(t.Context()); err == nil {
		t.Error("damaged keys were merged")
	}
	if _, err := store.Create(t.Context(), db, store.Key{Namespace: "ns", Name: "next"}, store.Draft{Value: []byte("next")}); !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("the next write ends with %v", err)
	}
	_ = db.Close() // the failure
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	db = openInside(t, o)
	if n := db.Stats().Events; n != events+1 {
		t.Errorf("%d events are left of %d", n, events+1)
	}
	for _, n := range []string{name(0), name(events - 1), "e0500a"} {
		if _, err := store.Read(t.Context(), db, store.Key{Namespace: "ns", Name: n}); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	closeInside(t, db)
}
