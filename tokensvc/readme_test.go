package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the settings table in README.md")

// TestReadme: the table of settings in README.md is the one that `config list` prints.
func TestReadme(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- settings -->\n", "<!-- /settings -->"
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(readme), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("README.md has no place for the settings")
	}
	want := listConfig(t)
	if *update {
		if err := os.WriteFile("README.md", []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("run the test with -update (-want +got):\n%s", diff)
	}
}

func listConfig(t *testing.T) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := run(t.Context(), []string{"config", "list"}, stdio{in: os.Stdin, out: out, err: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(table)
}
