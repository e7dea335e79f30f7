package bolt

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"tidings.example/eventsvc/internal/store"
)

// TestUnreadableIndexFailsNoFile: a write that cannot be decided, because the index cannot
// be read, is refused. The log files are not the reason, so they are not replaced.
func TestUnreadableIndexFailsNoFile(t *testing.T) {
	t.Parallel()
	db := openQuiet(t, nil)
	var seen []store.Seen
	for i := range 200 {
		r, err := store.Create(t.Context(), db, store.Key{Namespace: "default", Name: fmt.Sprint("e", i)}, store.Draft{Value: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, r.View().Seen())
	}
	if err := db.committer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := db.Revision()
	f, err := os.OpenFile(db.index.Path(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	page := int64(os.Getpagesize())
	whole := make([]byte, info.Size()-2*page) // all behind the meta pages
	if _, err := f.ReadAt(whole, 2*page); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, len(whole)), 2*page); err != nil {
		t.Fatal(err)
	}
	_, _, err = db.DeleteMany(t.Context(), seen[:3], nil)
	if !errors.As(err, new(*store.CorruptError)) {
		t.Errorf("deletions are answered with %v, want a CorruptError", err)
	}
	if err := db.committer.Writer.Health.Failed(); err != nil {
		t.Errorf("a log file is taken for unwritable: %v", err)
	}
	if _, err := f.WriteAt(whole, 2*page); err != nil {
		t.Fatal(err)
	}
	n, changed, err := db.DeleteMany(t.Context(), seen[:3], nil)
	if n != 3 || len(changed) > 0 || err != nil {
		t.Errorf("with the index back, %d are deleted, %v have changed: %v", n, changed, err)
	}
	if got := db.Revision(); got != before+3 {
		t.Errorf("the revision is %d, want %d", got, before+3)
	}
}
