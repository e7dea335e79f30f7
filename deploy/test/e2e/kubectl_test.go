package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tidings.example/deploy/test/internal/testenv"
)

// kubectl is one version of the client with the generated kubeconfig.
type kubectl struct {
	path string
	env  []string
}

func (k *kubectl) command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), k.path, args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), k.env...)
	return cmd
}

func (k *kubectl) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := k.command(t, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// testKubectl does what a person does with kubectl, with the version that this
// module pins and with the one that is installed.
func testKubectl(t *testing.T, w *world) {
	for name, find := range map[string]func(*testing.T) string{
		"Pinned":    func(*testing.T) string { return filepath.Join(bin, "kubectl") },
		"Installed": func(t *testing.T) string { return testenv.Tool(t, "kubectl") },
	} {
		t.Run(name, func(t *testing.T) {
			k := &kubectl{find(t), []string{"KUBECONFIG=" + w.kubeconfig(t), "HOME=" + t.TempDir()}}
			useKubectl(t, k, "kubectl-"+strings.ToLower(name))
		})
	}
}

func useKubectl(t *testing.T, k *kubectl, namespace string) {
	const events = "events.events.k8s.io"
	in := func(args ...string) string { t.Helper(); return k.run(t, append(args, "--namespace", namespace)...) }

	file := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(file, encode(newEvent("by-hand", "Typed")), 0o600); err != nil {
		t.Fatal(err)
	}
	var watched testenv.Output
	watch := k.command(t, "get", events, "--watch", "--output-watch-events", "--namespace", namespace)
	watch.Stdout, watch.Stderr = &watched, &watched
	watch.Cancel = func() error { return watch.Process.Signal(syscall.SIGINT) }
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watch.Wait() })

	expect(t, in("create", "-f", file), "event.events.k8s.io/by-hand created")
	shown := func(change string) {
		t.Helper()
		testenv.Eventually(t, "kubectl get --watch shows it", deadline, func() error {
			if !strings.Contains(watched.String(), change) {
				return fmt.Errorf("no %s in:\n%s", change, watched.String())
			}
			return nil
		})
	}
	shown("ADDED") // before anything else happens, for a watch that begins late shows only what there is then
	expect(t, in("get", events), "LAST SEEN", "TYPE", "REASON", "OBJECT", "Typed", "pod/web-0")
	expect(t, in("get", events, "by-hand", "-o", "yaml"), "reason: Typed", "namespace: "+namespace)
	expect(t, in("describe", events, "by-hand"), "by-hand", "Typed")
	expect(t, in("label", events, "by-hand", "team=a"), "labeled")
	expect(t, in("get", events, "-l", "team=a", "-o", "name"), "event.events.k8s.io/by-hand")
	expect(t, in("patch", events, "by-hand", "--type=merge", "-p", `{"metadata":{"annotations":{"seen":"yes"}}}`), "patched")
	expect(t, in("patch", events, "by-hand", "-p", `{"series":{"count":2,"lastObservedTime":"2026-01-05T12:00:00.000000Z"}}`), "patched")
	expect(t, in("delete", events, "by-hand"), `event.events.k8s.io "by-hand" deleted`)
	if out, err := k.command(t, "get", events, "by-hand", "--namespace", namespace).CombinedOutput(); err == nil || !strings.Contains(string(out), "(NotFound)") {
		t.Errorf("get after delete: %v\n%s", err, out)
	}
	shown("MODIFIED")
	shown("DELETED")
}

func expect(t *testing.T, out string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in:\n%s", part, out)
		}
	}
}

// testExamples runs the programs of deploy/examples.
func testExamples(t *testing.T, w *world) {
	args := []string{w.tokens + "/oauth2/token", w.events, clientID, clientSecret}
	t.Run("Go", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "record"), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		expect(t, string(out), "Normal Started backup of orders started\n", "Warning Slow backup of orders took 42 minutes\n")
	})
	t.Run("Shell", func(t *testing.T) {
		testenv.Tool(t, "curl")
		out, err := exec.CommandContext(t.Context(), filepath.Join(root, "deploy/examples/record.sh"), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		expect(t, string(out), `"kind": "EventList"`, `"reason": "Finished"`)
	})
}
