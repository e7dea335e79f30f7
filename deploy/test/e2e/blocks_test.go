package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// blockForm is a block of a page, with its language. It may be indented, as in a list.
var blockForm = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```")

// blocks returns the blocks of a page by their language.
func blocks(t *testing.T, page string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]string{}
	for _, block := range blockForm.FindAllStringSubmatch(string(text), -1) {
		of[block[1]] = append(of[block[1]], block[2])
	}
	return of
}

// step is a block of commands of a page, with the outputs that the page shows below it.
type step struct {
	commands string
	shown    []string
}

// steps returns the sh blocks of a page in their order. A block of the language output shows what the commands before
// it print.
func steps(t *testing.T, page string) (all []step) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blockForm.FindAllStringSubmatch(string(text), -1) {
		switch {
		case block[1] == "sh":
			all = append(all, step{commands: block[2]})
		case block[1] == "output" && len(all) == 0:
			t.Fatalf("%s shows an output before any command:\n%s", page, block[2])
		case block[1] == "output":
			last := &all[len(all)-1]
			last.shown = append(last.shown, block[2])
		}
	}
	return all
}

// otherBlocks are blocks that these tests do not run, by page and language, and why not.
var otherBlocks = map[string]map[string]struct {
	blocks int
	why    string
}{
	"deploy/docs/how-to/clients-database.md":  {"sql": {2, "TestClientsDatabasePage of tokensvc runs them"}},
	"deploy/docs/how-to/database-password.md": {"sql": {1, "they make and drop roles that services use"}},
	"deploy/docs/how-to/replicas.md":          {"sql": {1, "it makes a database, which no transaction can take back; the tests of the engine make theirs in the same way"}},
	"deploy/docs/reference/clients.md":        {"sql": {1, "it changes a role for good; TestSession of the store of clients sets the same in each session"}},
	"eventsvc/README.md":                      {"sh": {2, "one is the lines of docker, which testDockerRun runs; the other builds the program, as these tests do"}},
}

// TestEveryBlockIsRun: each block of commands in a page is run by a test, or is in the list of the others.
func TestEveryBlockIsRun(t *testing.T) {
	t.Parallel()
	run := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || slices.Contains([]string{"var", "bin", "testdata", "test"}, d.Name())):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		page, of := strings.TrimPrefix(path, root+"/"), blocks(t, path)
		left := map[string]int{"sh": len(of["sh"]), "compose": len(of["compose"]), "sql": len(of["sql"])}
		if slices.Contains(shellPages(t), path) {
			left["sh"] = 0
		}
		if _, ok := composePages[page]; ok {
			left["compose"]--
			left["sql"]--
		}
		for language, n := range left {
			run += len(of[language]) - n
			if other := otherBlocks[page][language]; n != other.blocks {
				t.Errorf("%s: %d blocks of %s are run by no test, want %d: run them, or say why not", page, n, language, other.blocks)
			}
		}
		return nil
	})
	if err != nil || run < 80 {
		t.Errorf("%d blocks are run: %v", run, err)
	}
}
