package bolt_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/boltfile"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/usage"
	"tidings.example/eventsvc/internal/store/wal"
)

// TestFilesPage: the page of files has each file of a store, with all formats that this release can read, and no file
// of the store that there is not.
func TestFilesPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../deploy/docs/reference/files.md")
	if err != nil {
		t.Fatal(err)
	}
	formats := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `store/([^`]+)` \\| ([0-9, –]+) \\|").FindAllStringSubmatch(string(text), -1) {
		formats[row[1]] = row[2]
	}
	dir := t.TempDir()
	db := bolttest.Open(t, bolt.Options{Dir: dir})
	bolttest.Create(t, db, 10, "x")
	bolttest.Maintain(t, db) // which makes the spare file
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{"index.db": strconv.Itoa(boltfile.Version), "log-N.db": strconv.Itoa(boltfile.Version), wal.FileName: strconv.Itoa(wal.Version), usage.SpareName: "–"}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, file := range files {
		there = append(there, regexp.MustCompile(`[0-9]{20}`).ReplaceAllString(file.Name(), "N"))
	}
	slices.Sort(there)
	there = slices.Compact(there)
	for _, name := range there {
		if formats[name] == "" {
			t.Errorf("the page lacks %s", filepath.Join("store", name))
		}
	}
	for name, is := range formats {
		if !slices.Contains(there, name) {
			t.Errorf("the page has store/%s, which a store has not: %v", name, there)
		}
		if is != versions[name] {
			t.Errorf("store/%s: the page says format %s, the code %s", name, is, versions[name])
		}
	}
}
