package bolt_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/maintenance"
)

var update = flag.Bool("update", false, "write the golden files again")

func goldenTime() time.Time { return time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC) }

// R18: files of every format version, and with every form of a record, are kept
// here and must stay readable and writable. With -update those of the newest ones,
// stores that were not closed, are written again.
func TestGoldenFormat(t *testing.T) {
	t.Parallel()
	if *update {
		writeGolden(t, filepath.Join("testdata", "format-2-observed"), maintenance.AsItIs)
		writeGolden(t, filepath.Join("testdata", "format-3-compressed"), maintenance.Compressed)
		writeGolden(t, filepath.Join("testdata", "format-4-packed"), maintenance.Compressed)
	}
	goldens, err := filepath.Glob(filepath.Join("testdata", "format-*"))
	if err != nil || len(goldens) < 2 {
		t.Fatalf("%d golden stores, %v", len(goldens), err)
	}
	for _, golden := range goldens {
		t.Run(filepath.Base(golden), func(t *testing.T) {
			t.Parallel()
			o := bolt.Options{Dir: t.TempDir(), Now: goldenTime, SegmentBytes: 2 << 10}
			if err := os.CopyFS(o.Dir, os.DirFS(golden)); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(golden, "dump.json"))
			var want []string
			if err := errors.Join(err, json.Unmarshal(text, &want)); err != nil {
				t.Fatal(err)
			}
			db := open(t, o)
			check(t, db)
			if diff := cmp.Diff(want, dump(t, db)); diff != "" {
				t.Error(diff)
			}
			if done, all := db.Timeline().Indexed(); done == all {
				wantObserved(t, golden, db)
			} else if name := filepath.Base(golden); name == "format-2-observed" || name == "format-3-compressed" || name == "format-4-packed" {
				t.Errorf("%d of %d segments are indexed by time", done, all)
			}
			rewriteGolden(t, db)
			if done, all := db.Timeline().Indexed(); done < all {
				t.Errorf("%d of %d segments are indexed by time after a compaction", done, all)
			}
			rewritten := dump(t, db)
			closeDB(t, db)
			db = open(t, o)
			defer closeDB(t, db)
			check(t, db)
			if diff := cmp.Diff(rewritten, dump(t, db)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// wantObserved wants counted what a golden store says was observed.
func wantObserved(t *testing.T, golden string, db *bolt.DB) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(golden, "observed.json"))
	var want map[string]int64
	if err := errors.Join(err, json.Unmarshal(text, &want)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, occurred(t, db)); diff != "" {
		t.Error(diff)
	}
}

// goldenDraft has attributes and a value of several lines.
func goldenDraft() store.Draft {
	return store.Draft{
		Attributes: event.NewAttributes([event.NumFields]string{event.Reason: "Pulled"}, map[string]string{"app": "web"}).
			With(event.Occurrence{Time: goldenTime().Add(-time.Hour), Count: 3, New: 3}),
		Value: []byte(strings.Repeat("golden ", 90)),
	}
}

// writeGolden makes a store of several files.
func writeGolden(t *testing.T, golden string, form maintenance.Form) {
	t.Helper()
	db := open(t, bolt.Options{Dir: t.TempDir(), Now: goldenTime, SegmentBytes: 2 << 10})
	defer closeDB(t, db)
	create(t, db, 4, strings.Repeat("v", 200))
	for i := 4; i < 8; i++ {
		if _, err := store.Create(t.Context(), db, key(i), goldenDraft()); err != nil {
			t.Fatal(err)
		}
	}
	for i, decide := range []store.Decide{count0, remove} {
		if _, err := db.Update(t.Context(), key(2+i), store.Any, decide); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Compact(t.Context(), form, nil); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(dump(t, db), "", " ")
	counts, err2 := json.MarshalIndent(occurred(t, db), "", " ")
	err = errors.Join(err, err2, os.RemoveAll(golden), os.CopyFS(golden, os.DirFS(db.Dir())))
	if filepath.Base(golden) != "format-4-packed" { // of the index; those of the others are made again
		err = errors.Join(err, os.Remove(filepath.Join(golden, "index.db")))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(golden, "observed.json"), counts, 0o644))
	if err := errors.Join(err, os.WriteFile(filepath.Join(golden, "dump.json"), text, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// rewriteGolden changes and deletes events, and moves what is left to other files.
func rewriteGolden(t *testing.T, db *bolt.DB) {
	t.Helper()
	changed := func(*store.Record) (store.Decision, error) {
		return store.Decision{Op: store.Put, Draft: goldenDraft()}, nil
	}
	for i, decide := range []store.Decide{count0, changed, changed, changed, count0, changed, remove, remove} {
		if _, err := db.Update(t.Context(), key(i), store.Any, decide); err != nil {
			t.Fatal(err)
		}
	}
	check(t, db)
	if err := db.Compact(t.Context(), "", nil); err != nil {
		t.Fatal(err)
	}
	check(t, db)
}
