package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/cli"
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
	var out bytes.Buffer
	if err := run(t.Context(), []string{"config", "list"}, &out, os.Stderr, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestConfigPrint: config print shows settings that serve would refuse, and
// fails.
func TestConfigPrint(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "eventsvc.yaml")
	if err := os.WriteFile(file, []byte("issuer: http://127.0.0.1:9\nretention: 1w2d\naudience: [a, '*b']\nhistory: 2d\ncompress-after: 1d12h\nmax-bytes: 1GiB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"config", "print", "--config-file", file}, &out, os.Stderr, nil); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"retention: 216h0m0s", "history: 48h0m0s", "compress-after: 36h0m0s", "audience: [a, '*b']", "max-bytes: 1073741824", "issuer: http://127.0.0.1:9"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
	out.Reset()
	err := run(t.Context(), []string{"config", "print", "--config-file", file, "--tls-self-signed"}, &out, os.Stderr, nil)
	if cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "--tls-self-signed") || !strings.Contains(err.Error(), "--listen-https") ||
		!strings.Contains(out.String(), "tls-self-signed: true ") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestWarnings: config print, can-i and the log of serve name the rules that have no effect.
func TestWarnings(t *testing.T) {
	t.Parallel()
	const rule = "--rules-file: dev-warnings never counts, because dev before it fits the same events: put it first, or take it out"
	const role = `line 1: roles: no binding gives role "idle" to anybody: add one, or take the role out`
	file := "--policy-file=" + writeFile(t, "policy.yaml", "roles: [{name: idle, rules: [{verbs: [get], namespaces: [a]}]}]")
	rules := "--rules-file=" + writeFile(t, "rules.yaml", "[{name: dev, namespaces: [dev], keep: 1d}, {name: dev-warnings, namespaces: [dev], where: type=Warning, keep: 30d}]")
	for _, c := range []struct{ args, want []string }{
		{[]string{"config", "print", "--issuer=http://127.0.0.1:9", file, rules}, []string{rule, role}},
		{[]string{"can-i", "get", file, "--scope=events:read"}, []string{role}},
	} {
		stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), c.args, io.Discard, stderr, nil); err != nil {
			t.Fatal(err)
		}
		want := "eventsvc: warning: " + strings.Join(c.want, "\neventsvc: warning: ") + "\n"
		if got, err := os.ReadFile(stderr.Name()); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v; want %s", c.args, got, err, want)
		}
		_ = stderr.Close()
	}
	log, err := os.ReadFile(start(t, t.TempDir(), newIssuer(t), file, rules, "--log-format=json").log)
	for _, want := range []string{rule, strings.ReplaceAll(role, `"`, `\"`)} {
		if err != nil || strings.Count(string(log), want) != 1 {
			t.Errorf("%v\n%s\nhas not one line with %s", err, log, want)
		}
	}
}

// TestConfigPrintRunning: the service says what it was started with, to callers that can read its data directory.
func TestConfigPrintRunning(t *testing.T) {
	t.Parallel()
	dir, i := t.TempDir(), newIssuer(t)
	p := start(t, dir, i, "--retention=30d", "--allowed-hosts=a.example")
	listener := strings.TrimPrefix(p.url("--listen-admin"), "http://")
	out := command(t, 0, "config", "print", "--running", "--data-dir="+dir, "--listen-admin="+listener, "--retention=1h")
	for _, line := range []string{"issuer: " + i.URL, "retention: 720h0m0s", "allowed-hosts: [a.example]", "max-watches: 20000"} {
		origin := "# flag"
		if line == "max-watches: 20000" {
			origin = "# default"
		}
		if want := fmt.Sprintf("%-50s %s\n", line, origin); !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out := command(t, 1, "config", "print", "--running", "--data-dir="+t.TempDir(), "--listen-admin="+listener); !strings.Contains(out, "admin.token") {
		t.Error(out)
	}
}
