package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// showing is a running open command.
type showing struct {
	t    *testing.T
	out  *bytes.Buffer
	said func() string // what it has printed once it serves
	end  func() int
}

// openDump runs open until the test ends it.
func openDump(t *testing.T, args ...string) *showing {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		err := run(ctx, append([]string{"open"}, args...), w, errs, func(string, net.Addr) {})
		_ = w.Close()
		code <- exitCode(err)
	}()
	s := &showing{t: t, out: new(bytes.Buffer)}
	s.said = func() string {
		buf := make([]byte, 4096)
		for !strings.Contains(s.out.String(), "Ctrl-C") {
			n, err := r.Read(buf)
			if s.out.Write(buf[:n]); err != nil {
				said, _ := os.ReadFile(errs.Name())
				t.Fatalf("it ends: %s%s", s.out, said)
			}
		}
		return s.out.String()
	}
	s.end = sync.OnceValue(func() int {
		cancel()
		return <-code
	})
	t.Cleanup(func() { s.end() })
	return s
}

// found returns the part of what was printed that an expression captures.
func (s *showing) found(expression string) string {
	s.t.Helper()
	m := regexp.MustCompile(expression).FindStringSubmatch(s.said())
	if m == nil {
		s.t.Fatalf("no %s in %s", expression, s.said())
	}
	return m[1]
}

// TestOpen: one command shows a dump to kubectl and to clients of all APIs, only to be read and only with its token. The end
// leaves nothing.
func TestOpen(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s := openDump(t, "internal/dump/testdata/dumps/bundle.tgz", "internal/dump/testdata/dumps/lines.ndjson")
	if said := s.said(); !strings.HasPrefix(said, "12 events, from 2026-02-03 05:00:30 to 2026-02-03 07:03:00 UTC\n") {
		t.Error(said)
	}
	base, token := s.found(`Loki +(http\S+),`), s.found(`\?token=(\S+)`)
	ask := func(method, path, token, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for _, c := range []struct {
		method, path, token string
		want                int
	}{
		{"GET", eventsPath, token, 200},
		{"GET", "/api/v1/events", token, 200},
		{"GET", "/loki/api/v1/labels", token, 200},
		{"GET", "/query/v1/histogram?from=2026-02-03T00:00:00Z&to=2026-02-04T00:00:00Z", token, 200},
		{"GET", "/console/", "", 200},
		{"GET", eventsPath, "", 401},
		{"GET", eventsPath, "another", 401},
		{"POST", eventsPath, token, 403},
		{"POST", "/api/v1/namespaces/default/events", token, 403},
		{"DELETE", "/api/v1/namespaces/orchard/events", token, 403},
	} {
		if got := ask(c.method, c.path, c.token, newEvent("new")); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
	config := s.found(`--kubeconfig (\S+)`)
	if kubectl, err := exec.LookPath("kubectl"); err == nil {
		out, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", config, "get", "events", "-A", "-o", "name").CombinedOutput()
		if n := strings.Count(string(out), "event/"); err != nil || n != 11 { // one is in both files
			t.Errorf("kubectl: %v: %d events: %s", err, n, out)
		}
	} else {
		unable(t, "install kubectl to run this test")
	}
	listed := command(t, 0, "get", "-A", "-o", "ndjson", "--server", base, "--token-file", s.found(`--token-file (\S+)`))
	if n := strings.Count(listed, "\n"); n != 11 {
		t.Errorf("get has %d events", n)
	}
	access := []string{"--server", base, "--token-file", s.found(`--token-file (\S+)`)}
	for _, args := range [][]string{{"query", "events"}, {"query", "histogram"}, {"get", "-A", "--since", "1h"}} { // long after the dump
		if said := complaint(t, append(args, access...)); !strings.Contains(said, "the newest was seen at 2026-02-03 ") {
			t.Errorf("%v: %s", args, said)
		}
	}
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// complaint returns what a command writes to standard error.
func complaint(t *testing.T, args []string) string {
	t.Helper()
	errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), args, io.Discard, errs, nil); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(errs.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

// TestOpenKeeps: a dump that is kept can be opened again, without secrets in between.
func TestOpenKeeps(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	for range 2 {
		s := openDump(t, "internal/dump/testdata/dumps/list.json", "--keep", dir, "--listen-https=")
		if said := s.said(); !strings.Contains(said, "The events stay in "+dir) || strings.Contains(said, "kubeconfig") {
			t.Error(said)
		}
		if code := s.end(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(left) != 1 || filepath.Base(left[0]) != "store" {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	if digest := command(t, 0, "digest", "--data-dir="+dir); !strings.HasPrefix(digest, "5 events") {
		t.Error(digest)
	}
}

// TestOpenRefuses: what has no events is not opened.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	if said := command(t, 3, "open", "internal/dump/testdata/dumps/table.txt"); !strings.Contains(said, "ask the sender") {
		t.Error(said)
	}
	command(t, 2, "open", "x", "--listen-http=")
	command(t, 2, "open", "x", "--cluster=a b")
}
