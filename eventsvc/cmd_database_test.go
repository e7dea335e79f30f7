package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/shared/cli"
	"tidings.example/shared/pgtest"
)

// TestDatabase: the commands make the tables, say their version and find nothing wrong.
func TestDatabase(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(file, []byte(pgtest.Start(t).Database(t)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		command, says, fails string
	}{
		{"version", "version 0", "database migrate"},
		{"check", "database migrate", "not everything is well"},
		{"migrate", "version 1", ""},
		{"version", "version 1", ""},
		{"check", "no problem found", ""},
	} {
		var out bytes.Buffer
		err := run(t.Context(), []string{"database", step.command, "--store-dsn-file", file}, &out, os.Stderr, nil)
		if (err != nil) != (step.fails != "") || err != nil && !strings.Contains(err.Error(), step.fails) {
			t.Errorf("%s: %v", step.command, err)
		}
		if !strings.Contains(out.String(), step.says) {
			t.Errorf("%s says %q", step.command, out.String())
		}
	}
	if err := run(t.Context(), []string{"database", "check"}, &bytes.Buffer{}, os.Stderr, nil); cli.ExitCode(err) != 2 {
		t.Errorf("without a DSN: %v", err)
	}
}
