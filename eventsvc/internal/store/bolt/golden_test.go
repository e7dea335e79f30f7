package bolt_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec/codectest"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/bolttest"
)

var update = flag.Bool("update", false, "write the golden files again")

func goldenTime() time.Time { return time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC) }

// R18: a store of format 2, with and without compressed segments, is kept here for ever and must stay readable and
// writable. It was not closed, so its write-ahead log has records. -update writes it again; that is a new format.
func TestGoldenFormat(t *testing.T) {
	t.Parallel()
	golden := filepath.Join("testdata", "format-2")
	if *update {
		writeGolden(t, golden)
	}
	o := bolt.Options{Dir: t.TempDir(), Now: goldenTime, SegmentBytes: 2 << 10}
	if err := os.CopyFS(o.Dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(golden, "dump.json"))
	var want []string
	if err := errors.Join(err, json.Unmarshal(text, &want)); err != nil {
		t.Fatal(err)
	}
	db := bolttest.Open(t, o)
	bolttest.Check(t, db)
	if diff := cmp.Diff(want, quoted(bolttest.Dump(t, db))); diff != "" {
		t.Error(diff)
	}
	wantObserved(t, golden, db)
	rewriteGolden(t, db)
	rewritten := bolttest.Dump(t, db)
	bolttest.Close(t, db)
	db = bolttest.Open(t, o)
	defer bolttest.Close(t, db)
	bolttest.Check(t, db)
	if diff := cmp.Diff(rewritten, bolttest.Dump(t, db)); diff != "" {
		t.Error(diff)
	}
}

// quoted returns texts in a form that JSON keeps: a stored event is not UTF-8.
func quoted(texts []string) []string {
	for i := range texts {
		texts[i] = strconv.QuoteToASCII(texts[i])
	}
	return texts
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

// goldenDraft has attributes and a value of 630 bytes.
func goldenDraft() store.Draft {
	return store.Draft{
		Attributes: event.NewAttributes([event.NumFields]string{event.Reason: "Pulled"}, map[string]string{"app": "web"}).
			With(event.Occurrence{Time: goldenTime().Add(-time.Hour), Count: 3, New: 3}),
		Value: []byte(strings.Repeat("golden ", 90)),
	}
}

// writeGolden makes a store of several files, some of them compressed.
func writeGolden(t *testing.T, golden string) {
	t.Helper()
	db := bolttest.Open(t, bolt.Options{Dir: t.TempDir(), Now: goldenTime, SegmentBytes: 2 << 10})
	defer bolttest.Close(t, db)
	put := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := store.Create(t.Context(), db, bolttest.Key(i), goldenDraft()); err != nil {
				t.Fatal(err)
			}
		}
	}
	bolttest.Create(t, db, 4, strings.Repeat("v", 200))
	put(4, 8)
	c := codectest.New(t, "k8s.io")
	for i := 14; i < 20; i++ { // real ones, whose records take the smallest form
		ev := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: bolttest.Key(i).Namespace, Name: bolttest.Key(i).Name}, Reason: "BackOff", Type: "Warning",
			Note: "Back-off restarting failed container", EventTime: metav1.NewMicroTime(goldenTime()), ReportingController: "kubelet",
		}
		draft, err := c.Draft(ev)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Create(t.Context(), db, bolttest.Key(i), draft); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Compact(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	for i, decide := range []store.Decide{bolttest.Change, bolttest.Remove} {
		if _, err := db.Update(t.Context(), bolttest.Key(2+i), store.Any, decide); err != nil {
			t.Fatal(err)
		}
	}
	put(8, 14) // more than one segment that is not compressed
	text, err := json.MarshalIndent(quoted(bolttest.Dump(t, db)), "", " ")
	counts, err2 := json.MarshalIndent(occurred(t, db), "", " ")
	err = errors.Join(err, err2, os.RemoveAll(golden), os.CopyFS(golden, os.DirFS(db.Dir())),
		os.WriteFile(filepath.Join(golden, "observed.json"), counts, 0o644), os.WriteFile(filepath.Join(golden, "dump.json"), text, 0o644))
	if err != nil {
		t.Fatal(err)
	}
}

// rewriteGolden changes and deletes events, and moves what is left to other files.
func rewriteGolden(t *testing.T, db *bolt.DB) {
	t.Helper()
	changed := func(*store.Record) (store.Decision, error) {
		return store.Decision{Op: store.Put, Draft: goldenDraft()}, nil
	}
	for i, decide := range []store.Decide{bolttest.Change, changed, changed, changed, bolttest.Change, changed, bolttest.Remove, bolttest.Remove} {
		if _, err := db.Update(t.Context(), bolttest.Key(i), store.Any, decide); err != nil {
			t.Fatal(err)
		}
	}
	bolttest.Check(t, db)
	if err := db.Compact(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	bolttest.Check(t, db)
}
