package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kubectl is one of the two versions of kubectl with a configuration that
// leads to a server, to its namespace team.
type kubectl struct {
	bin, home string
	env       []string
}

// overKubectls runs a test with the kubectl that is built here and with the
// one on PATH, each against a server of its own.
func overKubectls(t *testing.T, test func(t *testing.T, s *server, k *kubectl)) {
	t.Helper()
	t.Run("built", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		test(t, s, s.kubectl(t, must(run.kubectl()).or(t)))
	})
	t.Run("installed", func(t *testing.T) {
		t.Parallel()
		bin, err := exec.LookPath("kubectl")
		if err != nil {
			missing(t, "kubectl", "install any recent one on PATH; the newest is tested without it")
		}
		s := start(t)
		test(t, s, s.kubectl(t, bin))
	})
}

// kubectl writes the configuration.
func (s *server) kubectl(t *testing.T, bin string) *kubectl {
	t.Helper()
	home := t.TempDir()
	ca := must(os.ReadFile(s.caFile())).or(t)
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u, namespace: team}}]
clusters: [{name: c, cluster: {server: "https://%s", certificate-authority-data: %s}}]
users: [{name: u, user: {token: %s}}]
`, s.turn.address(s.httpsAddr), base64.StdEncoding.EncodeToString(ca), s.token)
	file := filepath.Join(home, "config")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return &kubectl{bin: bin, home: home, env: append(os.Environ(), "KUBECONFIG="+file, "HOME="+home)}
}

func (k *kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.bin, args...)
	cmd.Env, cmd.Dir = k.env, k.home
	return cmd
}

// run runs a command that must succeed and returns what it prints.
func (k *kubectl) run(t *testing.T, args ...string) string {
	t.Helper()
	out, stderr, code := k.try(t, args...)
	if code != 0 {
		t.Errorf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, stderr)
	}
	return out
}

// try runs a command and returns what it prints and its exit code.
func (k *kubectl) try(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := k.command(within(t), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// want runs a command and looks for texts in what it prints.
func (k *kubectl) want(t *testing.T, args []string, texts ...string) string {
	t.Helper()
	out := k.run(t, args...)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("kubectl %s: no %q in\n%s", strings.Join(args, " "), text, out)
		}
	}
	return out
}

// file writes a manifest and returns its path.
func (k *kubectl) file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(k.home, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// args splits a command line at its spaces.
func args(line string, more ...string) []string { return append(strings.Fields(line), more...) }

const group = "events.events.k8s.io" // the full name of the resource

func manifest(name string, patches ...string) string {
	return newEvent("team", name, append([]string{`{"kind":"Event","apiVersion":"events.k8s.io/v1"}`}, patches...)...)
}

// untilWatched waits until so many watches are open at the server. Where
// nothing is seen of a watch yet, there is no other way to know.
func (s *server) untilWatched(t *testing.T, n int) {
	t.Helper()
	want := fmt.Sprintf("\neventsvc_watches %d\n", n)
	eventually(t, fmt.Sprintf("%d open watches", n), func() error {
		res, err := s.plain.Get("http://" + s.adminAddr + "/metrics")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err == nil && !strings.Contains(string(body), want) {
			err = fmt.Errorf("no %q in the metrics", want)
		}
		return err
	})
}

// follower is a command that goes on printing.
type follower struct {
	lines chan string
	seen  []string
}

// follow starts a command that is stopped with the test, and its watch too.
func (k *kubectl) follow(t *testing.T, s *server, args ...string) *follower {
	t.Helper()
	cmd := k.command(t.Context(), args...)
	cmd.WaitDelay = 10 * time.Second
	stdout := must(cmd.StdoutPipe()).or(t)
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f := &follower{lines: make(chan string)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(f.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			select {
			case f.lines <- lines.Text():
			case <-t.Context().Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		<-ended
		_ = cmd.Wait()
		s.untilWatched(t, 0)
	})
	return f
}

// want waits for lines with these texts, one after the other.
func (f *follower) want(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for found := false; !found; {
			select {
			case line, ok := <-f.lines:
				if !ok {
					t.Fatalf("kubectl ended without %q: %q", text, f.seen)
				}
				f.seen = append(f.seen, line)
				found = strings.Contains(line, text)
			case <-within(t).Done():
				t.Fatalf("waited in vain for %q: %q", text, f.seen)
			}
		}
	}
}
