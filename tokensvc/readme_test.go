package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the settings table in README.md anew")

// TestReadme: the table of settings in README.md is the one in config.go.
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
	want := settingsTable(t)
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

func settingsTable(t *testing.T) string {
	t.Helper()
	parser, err := kong.New(&serve{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| flag | variable | default | |\n|---|---|---|---|\n")
	for _, f := range parser.Model.Flags {
		if f.Name == "help" {
			continue
		}
		value := f.Default
		if value == "" && f.Target.Kind() == reflect.Bool {
			value = "false"
		}
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | `TOKENSVC_%s` | %s | %s |\n", f.Name, strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")), value, f.Help)
	}
	return b.String()
}
