package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/waittest"
)

// TestRulesFile: a bad file of rules is refused at the start, and later the rules before stay. Each change is recorded
// as an event, once, also if it was made while the service was stopped.
func TestRulesFile(t *testing.T) {
	t.Parallel()
	i, dir, file := newIssuer(t), t.TempDir(), filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write("[{name: a, keep: 1h, drop: true}]")
	if text := refused(t, []string{"--issuer=http://127.0.0.1:1", "--listen-http=127.0.0.1:0", "--listen-admin=", "--data-dir=" + dir, "--rules-file=" + file}); !strings.Contains(text, "--rules-file") || !strings.Contains(text, "exactly one of") {
		t.Errorf("a bad file: %s", text)
	}
	told := func(p *process) string {
		code, ev := p.do("GET", "/apis/events.k8s.io/v1/namespaces/kube-system/events/eventsvc.rules", "")
		if code != 200 {
			return ""
		}
		count := any(1.)
		if series, ok := ev["series"].(map[string]any); ok {
			count = series["count"]
		}
		return fmt.Sprintf("%v %v %v", ev["reason"], count, ev["note"])
	}
	tell := func(p *process, count int, summary string) {
		t.Helper()
		want := fmt.Sprintf("RulesChanged %d The rules of what to keep have changed. Now there are: %s", count, summary)
		waittest.Until(t, want, func() bool { return told(p) == want })
	}
	write("[{name: a, where: type=Normal, keep: 1h}]")
	p := start(t, dir, i, "--rules-file="+file)
	tell(p, 1, "a (keep 1h0m0s)")
	write("[{name: a}]")
	waittest.Until(t, "the bad file is noticed", func() bool { return metric(t, p.url("--listen-admin"), "eventsvc_rules_file_good") == "0" })
	tell(p, 1, "a (keep 1h0m0s)")
	write("[{name: b, where: type=Normal, drop: true}, {name: c, keep: 2d}]")
	tell(p, 2, "b (drop), c (keep 48h0m0s)")
	if n := metric(t, p.url("--listen-admin"), "store_retention_seconds"); n != "604800" {
		t.Errorf("the longest retention is %s s", n)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	p = start(t, dir, i, "--rules-file="+file)
	waittest.Until(t, "it serves", func() bool { return told(p) != "" })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	write("[{name: c, keep: 0}]")
	p = start(t, dir, i, "--rules-file="+file)
	tell(p, 3, "c (keep for ever)")
	if diff := cmp.Diff("3.1536e+09", metric(t, p.url("--listen-admin"), "store_retention_seconds")); diff != "" {
		t.Error(diff)
	}
}
