package policy_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// gauge is the value of a metric without labels.
func gauge(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// TestReload: a good file replaces the policy, a bad one or none leaves it and
// says so once.
func TestReload(t *testing.T) {
	t.Parallel()
	const allow = "bindings: [{role: 'events:read', subjects: [{clientID: me}]}]"
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, allow)
	var log bytes.Buffer
	reg, changes := prometheus.NewRegistry(), 0
	l, err := policy.NewLive(policy.Config{
		Path: path, Options: func() policy.Options { return options }, Changed: func() { changes++ }, Registry: reg,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	me := &bearer.Caller{Issuer: first, ClientID: "me"}
	expect := func(step string, allowed bool, good float64, wantChanges int) {
		t.Helper()
		l.Reload()
		if got := l.Current().Decide(me, policy.Get, "a").Allowed; got != allowed {
			t.Errorf("%s: allowed is %v", step, got)
		}
		if got := gauge(t, reg, "eventsvc_policy_file_good"); got != good || changes != wantChanges {
			t.Errorf("%s: good is %v after %d changes", step, got, changes)
		}
	}
	expect("unchanged", true, 1, 0)
	write(t, path, "bindings: [{role: nonsense, subjects: [{clientID: me}]}]")
	expect("bad", true, 0, 0)
	expect("still bad", true, 0, 0)
	if n := strings.Count(log.String(), "stays in force"); n != 1 || !strings.Contains(log.String(), "line 1: bindings.role") {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("gone", true, 0, 0)
	write(t, path, "")
	expect("truncated", true, 0, 0)
	write(t, path, "{}")
	expect("good", false, 1, 1)
	write(t, path, "{")
	expect("bad again", false, 0, 1)
	write(t, path, "{}")
	expect("mended to what is in force", false, 1, 2)
	write(t, path, "roles: [{name: idle, rules: [{verbs: [get], namespaces: [a]}]}]")
	expect("with an unused role", false, 1, 3)
	if n := strings.Count(log.String(), `no binding gives role \"idle\" to anybody`); n != 1 {
		t.Errorf("the unused role is logged %d times:\n%s", n, log.String())
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	l, err := policy.NewLive(policy.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil || !l.Current().Decide(&bearer.Caller{}, policy.Delete, "a").Allowed {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "every authenticated client may do everything") {
		t.Errorf("the log says %q", log.String())
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if _, err := policy.NewLive(policy.Config{Path: path, Options: func() policy.Options { return options }, Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a missing file is accepted at start")
	}
	write(t, path, "roles: 7")
	if _, err := policy.NewLive(policy.Config{Path: path, Options: func() policy.Options { return options }, Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), path+": line 1: roles") {
		t.Errorf("bad file: %v", err)
	}
}
