package livefile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/livefile"
	"tidings.example/shared/waittest"
)

// followed is a file that is good if it does not begin with "bad" and forbidden is false.
type followed struct {
	*livefile.File
	path, inForce  string
	log            bytes.Buffer
	changes, tries int
	forbidden      bool
	registry       *prometheus.Registry
	changed        chan struct{}
}

func open(t *testing.T, content string) (*followed, error) {
	t.Helper()
	f := &followed{
		path:     filepath.Join(t.TempDir(), "file"),
		registry: prometheus.NewRegistry(),
		changed:  make(chan struct{}, 1),
	}
	f.write(t, content)
	var err error
	f.File, err = livefile.Open(livefile.Config{
		Path: f.path, MaxBytes: 20, Metric: "test", What: "test", Registry: f.registry,
		Apply: func(data []byte) error {
			f.tries++
			if strings.HasPrefix(string(data), "bad") || f.forbidden {
				return errors.New("it is " + string(data))
			}
			f.inForce = string(data)
			return nil
		},
		Changed: func() {
			f.changes++
			select {
			case f.changed <- struct{}{}:
			default:
			}
		},
		Log: slog.New(slog.NewJSONHandler(&f.log, nil)),
	})
	return f, err
}

func (f *followed) write(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(f.path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// value returns the number of reloads with a result, or the gauge for an empty one.
func (f *followed) value(t *testing.T, result string) float64 {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			switch {
			case result == "" && m.GetGauge() != nil:
				return m.GetGauge().GetValue()
			case result != "" && len(m.GetLabel()) > 0 && m.GetLabel()[0].GetValue() == result:
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// failures returns the errors that were logged since the last call.
func (f *followed) failures(t *testing.T) (all []string) {
	t.Helper()
	for line := range strings.Lines(f.log.String()) {
		var said struct{ Level, Msg, File, Error string }
		if err := json.Unmarshal([]byte(line), &said); err != nil || said.File != f.path {
			t.Fatalf("%v: %s", err, line)
		}
		if said.Level == "ERROR" && said.Msg == "a file is bad, the version before stays in force" {
			all = append(all, said.Error)
		}
	}
	f.log.Reset()
	return all
}

func TestReload(t *testing.T) {
	t.Parallel()
	f, err := open(t, "one")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name, content, inForce string
		recheck, forbidden     bool
		changes                int
		failures               []string
	}{
		{name: "the same", content: "one", inForce: "one"},
		{name: "a new one", content: "two", inForce: "two", changes: 1},
		{name: "a mistake", content: "bad", inForce: "two", failures: []string{"it is bad"}},
		{name: "the same mistake", content: "bad", inForce: "two"},
		{name: "another mistake", content: "bad too", inForce: "two", failures: []string{"it is bad too"}},
		{name: "what is in force", content: "two", inForce: "two", changes: 1},
		{name: "too long", content: strings.Repeat("x", 21), inForce: "two", failures: []string{"the file has more than 20 bytes"}},
		{name: "mended", content: "three", inForce: "three", changes: 1},
		{name: "the same, checked again", content: "three", inForce: "three", recheck: true, changes: 1},
		{name: "no longer allowed, and not checked", content: "three", inForce: "three", forbidden: true},
		{name: "no longer allowed", content: "three", inForce: "three", recheck: true, forbidden: true, failures: []string{"it is three"}},
		{name: "allowed again, and not checked", content: "three", inForce: "three"},
		{name: "allowed again", content: "three", inForce: "three", recheck: true, changes: 1},
	} {
		f.write(t, step.content)
		f.changes, f.forbidden = 0, step.forbidden
		if step.recheck {
			f.Recheck()
		} else {
			f.Reload()
		}
		if failures := f.failures(t); f.inForce != step.inForce || f.changes != step.changes || !slices.Equal(failures, step.failures) {
			t.Errorf("%s: %q is in force after %d changes and failures %q", step.name, f.inForce, f.changes, failures)
		}
	}
	if ok, bad, good := f.value(t, "ok"), f.value(t, "error"), f.value(t, ""); ok != 5 || bad != 4 || good != 1 {
		t.Errorf("%v reloads, %v failures, good is %v", ok, bad, good)
	}
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	f.Reload()
	f.Reload()
	if failures := f.failures(t); len(failures) != 1 || !strings.Contains(failures[0], f.path) || f.value(t, "") != 0 {
		t.Errorf("without the file: %q", failures)
	}
	if err := os.WriteFile(f.path, nil, 0o600); err != nil { // not the same as no file
		t.Fatal(err)
	}
	if f.Reload(); f.inForce != "" || f.value(t, "") != 1 {
		t.Error("a file that is there again is not tried")
	}
}

// TestOpen: a mistake at first is an error with the name of the file.
func TestOpen(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{"bad": "/file: it is bad", strings.Repeat("x", 21): "/file: the file has more than 20 bytes"} {
		if _, err := open(t, content); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
	if _, err := livefile.Open(livefile.Config{Path: "/nowhere"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestRun: a change is noticed, and a SIGHUP does not end the process.
func TestRun(t *testing.T) {
	t.Parallel()
	f, err := open(t, "one")
	if err != nil {
		t.Fatal(err)
	}
	none, err := livefile.Open(livefile.Config{})
	if err != nil {
		t.Fatal(err)
	}
	none.Recheck()
	ended := make(chan error, 2)
	go func() { ended <- f.Run(t.Context()) }()
	go func() { ended <- none.Run(t.Context()) }()
	f.write(t, "two")
	waittest.Within(t, f.changed)
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	f.write(t, "three")
	waittest.Within(t, f.changed)
}
