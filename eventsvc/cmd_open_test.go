package main

import (
	"bytes"
	"context"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tidings.example/shared/waittest"
)

// showing is a running open command.
type showing struct {
	t    *testing.T
	out  *bytes.Buffer
	said func() string // what it has printed once it serves
	errs string        // the file of its messages
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
	s := &showing{t: t, out: new(bytes.Buffer), errs: errs.Name()}
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
		return waittest.Within(t, code)
	})
	t.Cleanup(func() { s.end() })
	return s
}

// complaints returns the messages so far.
func (s *showing) complaints() string {
	text, err := os.ReadFile(s.errs)
	if err != nil {
		s.t.Error(err)
	}
	return string(text)
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

// TestOpen: one command shows a dump to kubectl and to clients of all APIs, only to be read and only with its token.
// The end leaves nothing.
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
	const newest = "the newest was seen at 2026-02-03 "
	for _, args := range [][]string{
		{"query"}, {"query", "--histogram"}, {"query", "--facets"}, {"query", "--group-by=reason"}, {"query", "--changes"}, {"get", "-A", "--since", "1h"},
	} { // long after the dump
		if said := complaint(t, append(args, access...)); !strings.Contains(said, newest) {
			t.Errorf("%v: %s", args, said)
		}
	}
	for _, args := range [][]string{{"query", "absent", "--since", "5000d"}, {"get", "-A", "absent", "--since", "5000d"}} { // the range has it
		if said := complaint(t, append(args, access...)); strings.Contains(said, newest) {
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

// TestOpenRefuses: what cannot be opened is said together with what to do about it, and leaves nothing.
func TestOpenRefuses(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	const list = "internal/dump/testdata/dumps/list.json"
	for name, tt := range map[string]struct {
		code int
		args []string
		want string
	}{
		"a table":                 {3, []string{"internal/dump/testdata/dumps/table.txt"}, "ask the sender"},
		"a missing file":          {3, []string{"missing.json"}, "missing.json: no such file or directory"},
		"an empty folder":         {3, []string{t.TempDir()}, "there are no events: ask for the output of kubectl get events"},
		"no address":              {2, []string{"x", "--listen-http="}, "set an address"},
		"a label that is none":    {2, []string{"x", "--cluster=a b"}, "--cluster"},
		"a port in use":           {1, []string{list, "--listen-http=" + l.Addr().String()}, "stop the other program or set --listen-http"},
		"another port in use":     {1, []string{list, "--listen-https=" + l.Addr().String()}, "stop the other program or set --listen-https"},
		"a folder that is a file": {1, []string{list, "--keep=" + list}, "--keep"},
	} {
		if said := command(t, tt.code, append([]string{"open"}, tt.args...)...); !strings.Contains(said, tt.want) {
			t.Errorf("%s: %s", name, said)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(temp, "missing"))
	if said := command(t, 1, "open", list); !strings.Contains(said, "set TMPDIR to a directory that this user may write to") {
		t.Error(said)
	}
}

// TestOpenInContainer: with the settings of the image, what comes on standard input is served on all addresses, and the
// printed one is that of the machine around it.
func TestOpenInContainer(t *testing.T) {
	image, err := os.ReadFile("../deploy/Dockerfile")
	if err != nil || !strings.Contains(string(image), "ENV EVENTSVC_LISTEN_HTTP=:8080 ") || !strings.Contains(string(image), " TMPDIR=/data\n") {
		t.Fatalf("the image has other settings: %v", err)
	}
	t.Setenv("EVENTSVC_LISTEN_HTTP", ":0")
	t.Setenv("EVENTSVC_DATA_DIR", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	in, err := os.Open("internal/dump/testdata/dumps/list.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	defer func(stdin *os.File) { os.Stdin = stdin }(os.Stdin)
	os.Stdin = in
	s := openDump(t, "-", "--listen-https=")
	if said := s.said(); !strings.HasPrefix(said, "5 events, ") || strings.Contains(said, "kubectl") {
		t.Error(said)
	}
	resp, err := http.Get(s.found(`Console +(http://localhost:[0-9]+/console/)`))
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestOpenBrowser: the browser gets a page with the token in it, because others see its command line. One that cannot
// be opened is said, and the dump is shown all the same; one that goes on does not keep the command from its end.
func TestOpenBrowser(t *testing.T) {
	bin, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ script, want string }{
		"none":             {"", "open the address of the console yourself"},
		"one that fails":   {"echo no display; exit 3", "exit status 3: no display: open the address of the console yourself"},
		"one that returns": {sleep + " 60 & echo $! >" + bin + "/pid; read -r page <\"$1\"; echo \"$page\" >" + bin + "/page", ""},
		"one that stays":   {"read -r page <\"$1\"; echo \"$page\" >" + bin + "/page; " + "exec " + sleep + " 60", ""},
	} {
		t.Setenv("PATH", t.TempDir())
		if tt.script != "" {
			t.Setenv("PATH", bin)
			if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\n"+tt.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		_ = os.Remove(filepath.Join(bin, "page"))
		s := openDump(t, "internal/dump/testdata/dumps/list.json", "--browser")
		console := s.found(`Console +(\S+)`)
		if tt.want != "" {
			waittest.Until(t, name, func() bool { return strings.Contains(s.complaints(), tt.want) })
		} else {
			waittest.Until(t, name, func() bool {
				page, err := os.ReadFile(filepath.Join(bin, "page"))
				return err == nil && strings.Contains(string(page), "url="+html.EscapeString(console))
			})
		}
		if code := s.end(); code != 0 {
			t.Errorf("%s: exit code %d", name, code)
		}
		if said := s.complaints(); tt.want == "" && said != "" {
			t.Errorf("%s: %s", name, said)
		}
	}
	if text, err := os.ReadFile(filepath.Join(bin, "pid")); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
