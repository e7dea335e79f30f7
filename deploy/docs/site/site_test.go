package site_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidings.example/deploy/docs/site"
)

// root is the repository.
const root = "../../.."

func read(t *testing.T) *site.Manual {
	t.Helper()
	m, err := site.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestStatic: every link, picture, script and style of the static pages is among them.
func TestStatic(t *testing.T) {
	t.Parallel()
	files, err := read(t).Static()
	if err != nil {
		t.Fatal(err)
	}
	checkLinks(t, files)
	if !bytes.Contains(files["reference/console.html"], []byte(`<img src="../images/console-overview.webp"`)) {
		t.Error("the page of the console has no picture")
	}
}

// TestHelpLinks: every link of the manual in the console leads somewhere, and every link of the console to it.
func TestHelpLinks(t *testing.T) {
	t.Parallel()
	files, err := read(t).Help()
	if err != nil {
		t.Fatal(err)
	}
	static := filepath.Join(root, site.Console, "..")
	served := map[string][]byte{}
	err = fs.WalkDir(os.DirFS(static), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".html") {
			return err
		}
		served[name], err = os.ReadFile(filepath.Join(static, name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		served["help/"+name] = content
	}
	served["index.html"] = nil
	checkLinks(t, served)
	found := 0
	for name, content := range served {
		for _, m := range regexp.MustCompile(`"help/([a-z/-]+\.html)(?:#([a-z-]+))?"`).FindAllSubmatch(content, -1) {
			found++
			checkLink(t, served, name, "help/"+string(m[1]), string(m[2]))
		}
	}
	for _, id := range []string{"overview", "events", "live", "groups", "changes", "one-object"} { // views have a question mark
		checkLink(t, served, "a view", "help/reference/console.html", id)
	}
	if found < 2 {
		t.Errorf("%d links from the console", found)
	}
}

// checkLinks reports every link of a page that leads nowhere.
func checkLinks(t *testing.T, files map[string][]byte) {
	t.Helper()
	checked := 0
	for name, content := range files {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?:href|src)="([^"#]*)(?:#([^"]*))?"`).FindAllSubmatch(content, -1) {
			to, id := string(m[1]), string(m[2])
			if strings.Contains(to, "://") {
				continue
			}
			checked++
			switch {
			case to == "":
				to = name
			case strings.HasSuffix(to, "/"):
				to = filepath.Join(filepath.Dir(name), to, "index.html")
			default:
				to = filepath.Join(filepath.Dir(name), to)
			}
			checkLink(t, files, name, to, id)
		}
	}
	if checked < 300 {
		t.Errorf("only %d links were found", checked)
	}
}

func checkLink(t *testing.T, files map[string][]byte, from, to, id string) {
	t.Helper()
	content, ok := files[to]
	if !ok || id != "" && !bytes.Contains(content, []byte(` id="`+id+`"`)) {
		t.Errorf("%s: there is no %s#%s", from, to, id)
	}
}

// TestIndex: the search finds sections, settings, metrics and alerts, and every entry leads to its place.
func TestIndex(t *testing.T) {
	t.Parallel()
	files, err := read(t).Help()
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct{ Title, Page, URL, Text string }
	if err := json.Unmarshal(files["search.json"], &entries); err != nil {
		t.Fatal(err)
	}
	titles := map[string]bool{}
	for _, e := range entries {
		page, id, _ := strings.Cut(e.URL, "#")
		checkLink(t, files, "search.json", page, id)
		titles[e.Title] = true
	}
	for _, want := range []string{"--max-bytes", "--token-lifetime", "store_full", "StoreFull", "Free a disk that is full"} {
		if !titles[want] {
			t.Errorf("the index lacks %s: %q", want, slices.Sorted(maps.Keys(titles)))
		}
	}
}
