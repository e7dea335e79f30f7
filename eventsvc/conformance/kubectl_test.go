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
`, s.httpsAddr, base64.StdEncoding.EncodeToString(ca), s.token)
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

// TestKubectlGet is everything that reads.
func TestKubectlGet(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			s.create(t, "team", name, `{"metadata":{"labels":{"app":"`+name+`"}},"note":"the note of `+name+`"}`)
		}
		s.create(t, "other", "f", `{"type":"Warning"}`)

		t.Run("table", func(t *testing.T) {
			out := k.want(t, args("get events"), "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE", "pod/p1", "the note of a")
			if n := strings.Count(out, "\n"); n != 6 {
				t.Errorf("%d lines:\n%s", n, out)
			}
			k.want(t, args("get "+group), "LAST SEEN", "the note of e")
			k.want(t, args("get ev a"), "the note of a")
			k.want(t, args("get events -o wide"), "SUBOBJECT", "SOURCE", "FIRST SEEN", "COUNT", "NAME", "example.com/ctl, ctl-1")
			k.want(t, args("get events -A"), "NAMESPACE", "team ", "other ")
			k.want(t, args("get events --show-labels"), "LABELS", "app=a")
			k.want(t, args("get events -L app"), "APP")
			if out := k.run(t, args("get events --no-headers")...); strings.Contains(out, "LAST SEEN") {
				t.Errorf("headers in\n%s", out)
			}
			k.want(t, args("get events --sort-by=.metadata.name"), "the note of a")
		})
		t.Run("other forms", func(t *testing.T) {
			k.want(t, args("get "+group+" a -o json"), `"apiVersion": "events.k8s.io/v1"`, `"note": "the note of a"`)
			k.want(t, args("get "+group+" a -o yaml"), "apiVersion: events.k8s.io/v1", "note: the note of a")
			k.want(t, args("get event a -o yaml"), "apiVersion: v1", "message: the note of a")
			k.want(t, args("get events -o name"), "event/a\nevent/b\n")
			k.want(t, args("get "+group+" -o name"), "event.events.k8s.io/a\n")
			k.want(t, args("get events -o jsonpath={.items[*].metadata.name}"), "a b c d e")
			k.want(t, args("get events -o custom-columns=N:.metadata.name,R:.reason"), "N ", "a ", "Because")
			k.want(t, []string{"get", "events", "-o", "go-template={{range .items}}{{.message}};{{end}}"}, "the note of a;the note of b;")
			k.want(t, args("get events -o json"), `"kind": "List"`)
			k.want(t, args("get "+group+" a -o yaml --show-managed-fields"), "managedFields:", "manager: wire")
			k.want(t, args("get --raw /apis/events.k8s.io/v1/namespaces/team/events/a"), `"kind":"Event"`)
		})
		t.Run("chunks and selectors", func(t *testing.T) {
			k.want(t, args("get events --chunk-size=2 -o name"), "event/a\nevent/b\nevent/c\nevent/d\nevent/e\n")
			k.want(t, args("get events --chunk-size=2"), "the note of e")
			k.want(t, []string{"get", "events", "-l", "app in (a,b)", "-o", "name"}, "event/a\nevent/b\n")
			k.want(t, args("get events --field-selector metadata.name=c -o name"), "event/c\n")
			k.want(t, args("get "+group+" --field-selector regarding.name=p1,type!=Warning -A -o name"), "event.events.k8s.io/e\n")
			k.want(t, args("get events -A --field-selector involvedObject.kind=Pod,type=Warning -o name"), "event/f\n")
		})
		t.Run("describe", func(t *testing.T) {
			k.want(t, args("describe event a"), "Name:", "the note of a", "Involved Object:")
			k.want(t, args("describe "+group+" a"), "Name:", "the note of a", "Regarding:")
		})
		t.Run("events", func(t *testing.T) {
			k.want(t, args("events"), "LAST SEEN", "Pod/p1", "the note of a")
			k.want(t, args("events -A"), "NAMESPACE", "other")
			// What --for names must be a resource of the server; events and
			// namespaces are.
			uid := s.get(t, in(coreV1, "team", "a")).object().text("metadata.uid")
			s.create(t, "team", "about", `{"regarding":{"kind":"Event","name":"a","uid":"`+uid+`"},"note":"about an event"}`)
			if out := k.want(t, args("events --for event/a"), "about an event"); strings.Contains(out, "the note of") {
				t.Errorf("events of event a:\n%s", out)
			}
			k.want(t, args("describe event a"), "Events:", "about an event")
			s.delete(t, in(eventsV1, "team", "about"), "").expect(200)
			k.want(t, args("events -A --types=Warning"), "other")
			k.want(t, args("events -o json"), `"kind": "EventList"`)
			k.want(t, args("events --for event/none"))
		})
		t.Run("documents", func(t *testing.T) {
			k.want(t, args("explain events"), "KIND:", "involvedObject", "VERSION:")
			k.want(t, args("explain events --api-version=events.k8s.io/v1"), "GROUP:", "events.k8s.io", "regarding", "reportingController")
			k.want(t, args("explain event.regarding --api-version=events.k8s.io/v1 --recursive"), "fieldPath")
			k.want(t, args("api-resources"), "events", "ev", "events.k8s.io/v1")
			k.want(t, args("api-resources --api-group=events.k8s.io -o wide"), "deletecollection")
			k.want(t, args("api-versions"), "events.k8s.io/v1\n", "v1\n")
			k.want(t, args("version"), "Server Version: v1.37")
		})
		t.Run("errors", func(t *testing.T) {
			if _, stderr, code := k.try(t, args("get event none")...); code != 1 || !strings.Contains(stderr, `Error from server (NotFound): events "none" not found`) {
				t.Errorf("code %d: %s", code, stderr)
			}
			if _, stderr, code := k.try(t, args("get events --field-selector foo=bar")...); code != 1 || !strings.Contains(stderr, `field label not supported: foo`) {
				t.Errorf("code %d: %s", code, stderr)
			}
		})
	})
}

// TestKubectlWrite is everything that changes events.
func TestKubectlWrite(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		labels := func(t *testing.T, name, want string) {
			t.Helper()
			equalJSON(t, "labels of "+name, s.get(t, in(eventsV1, "team", name)).object().at("metadata.labels"), want)
		}
		t.Run("create", func(t *testing.T) {
			k.want(t, args("create -f", k.file(t, "c.json", manifest("c"))), "event.events.k8s.io/c created")
			core := oldEvent("team", "cc", `{"kind":"Event","apiVersion":"v1"}`)
			k.want(t, args("create -f", k.file(t, "cc.json", core)), "event/cc created")
			k.want(t, args("create --dry-run=server -f", k.file(t, "dry.json", manifest("dry"))), "event.events.k8s.io/dry created (server dry run)")
			s.get(t, in(eventsV1, "team", "dry")).expect(404)
			if _, stderr, code := k.try(t, args("create -f", k.file(t, "c.json", manifest("c")))...); code != 1 || !strings.Contains(stderr, "Error from server (AlreadyExists)") {
				t.Errorf("code %d: %s", code, stderr)
			}
			if _, stderr, code := k.try(t, args("create -f", k.file(t, "bad.json", manifest("bad", `{"type":"Odd"}`)))...); code != 1 || !strings.Contains(stderr, `The Event "bad" is invalid: type: Invalid value: "": has invalid value: Odd`) {
				t.Errorf("code %d: %s", code, stderr)
			}
			if _, stderr, code := k.try(t, args("create -f", k.file(t, "bad.json", manifest("bad", `{"bogus":1}`)))...); code != 1 || !strings.Contains(stderr, `unknown field "bogus"`) {
				t.Errorf("code %d: %s", code, stderr)
			}
		})
		t.Run("apply", func(t *testing.T) {
			file := k.file(t, "a.json", manifest("a"))
			k.want(t, args("apply -f", file), "event.events.k8s.io/a created")
			k.want(t, args("apply -f", file), "event.events.k8s.io/a unchanged")
			k.file(t, "a.json", manifest("a", `{"metadata":{"labels":{"x":"1"}}}`))
			if out, _, code := k.try(t, args("diff -f", file)...); code != 1 || !strings.Contains(out, "+    x: \"1\"") {
				t.Errorf("diff: code %d:\n%s", code, out)
			}
			k.want(t, args("apply --dry-run=server -f", file), "configured (server dry run)")
			labels(t, "a", `null`)
			k.want(t, args("apply -f", file), "event.events.k8s.io/a configured")
			labels(t, "a", `{"x":"1"}`)
			if out, stderr, code := k.try(t, args("diff -f", file)...); code != 0 {
				t.Errorf("diff of nothing: code %d:\n%s%s", code, out, stderr)
			}
		})
		t.Run("apply on the server", func(t *testing.T) {
			file := k.file(t, "s.json", manifest("s", `{"metadata":{"labels":{"x":"1"}}}`))
			k.want(t, args("apply --server-side -f", file), "event.events.k8s.io/s serverside-applied")
			k.want(t, args("apply --server-side -f", file), "event.events.k8s.io/s serverside-applied")
			next := k.file(t, "s1.json", manifest("s", `{"metadata":{"labels":{"x":"9"}}}`))
			if out, _, code := k.try(t, args("diff --server-side -f", next)...); code != 1 || !strings.Contains(out, "+    x: \"9\"") {
				t.Errorf("diff: code %d:\n%s", code, out)
			}
			mine := k.file(t, "s2.json", `{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"s","labels":{"x":"2"}}}`)
			if _, stderr, code := k.try(t, args("apply --server-side --field-manager=other -f", mine)...); code != 1 || !strings.Contains(stderr, `conflict with "kubectl": .metadata.labels.x`) {
				t.Errorf("code %d: %s", code, stderr)
			}
			k.want(t, args("apply --server-side --field-manager=other --force-conflicts -f", mine), "serverside-applied")
			labels(t, "s", `{"x":"2"}`)
			// One that was applied by the client first is taken over.
			k.want(t, args("apply --server-side -f", k.file(t, "a.json", manifest("a", `{"metadata":{"labels":{"x":"3"}}}`))), "serverside-applied")
			labels(t, "a", `{"x":"3"}`)
		})
		t.Run("patch", func(t *testing.T) {
			k.run(t, args("create -f", k.file(t, "p.json", manifest("p")))...)
			for kind, patch := range map[string]string{
				"merge": `{"metadata":{"labels":{"merge":"1"}}}`, "strategic": `{"metadata":{"labels":{"strategic":"1"}}}`, "json": `[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`,
			} {
				k.want(t, args("patch "+group+" p --type="+kind+" -p", patch), "event.events.k8s.io/p patched")
			}
			labels(t, "p", `{"merge":"1","strategic":"1"}`)
			k.want(t, args("patch event p -p", `{"message":"through core"}`), "event/p patched")
			if _, stderr, code := k.try(t, args("patch "+group+" p --type=merge -p", `{"note":"x"}`)...); code != 1 || !strings.Contains(stderr, "field is immutable") {
				t.Errorf("code %d: %s", code, stderr)
			}
		})
		t.Run("label and annotate", func(t *testing.T) {
			k.run(t, args("create -f", k.file(t, "l.json", manifest("l")))...)
			k.want(t, args("label "+group+" l a=1 b=2"), "event.events.k8s.io/l labeled")
			k.want(t, args("label events l a=3 --overwrite"), "labeled")
			k.want(t, args("label "+group+" l b-"), "unlabeled")
			labels(t, "l", `{"a":"3"}`)
			k.want(t, args("label "+group+" -l a=3 c=4"), "labeled")
			k.want(t, args("annotate "+group+" l x=y"), "event.events.k8s.io/l annotated")
			equalJSON(t, "annotations", s.get(t, in(eventsV1, "team", "l")).object().at("metadata.annotations"), `{"x":"y"}`)
		})
		t.Run("replace and edit", func(t *testing.T) {
			k.run(t, args("create -f", k.file(t, "r.json", manifest("r")))...)
			k.want(t, args("replace -f", k.file(t, "r.json", manifest("r", `{"metadata":{"labels":{"r":"1"}}}`))), "event.events.k8s.io/r replaced")
			labels(t, "r", `{"r":"1"}`)
			k.want(t, args("replace --force -f", k.file(t, "r.json", manifest("r", `{"note":"another one"}`))), "replaced")
			k.env = append(k.env, "KUBE_EDITOR=sed -i s/another/other/")
			k.want(t, args("edit event r"), "event/r edited")
			if got := s.get(t, in(eventsV1, "team", "r")).object().text("note"); got != "other one" {
				t.Errorf("note %q", got)
			}
		})
		t.Run("delete", func(t *testing.T) {
			k.want(t, args("delete "+group+" l"), `event.events.k8s.io "l" deleted`)
			s.get(t, in(eventsV1, "team", "l")).expect(404)
			k.want(t, args("delete -f", filepath.Join(k.home, "c.json")), "deleted")
			k.want(t, args("delete events -l r"), "No resources found")
			k.want(t, args("delete event none --ignore-not-found"))
			k.want(t, args("delete events --field-selector metadata.name=cc"), `event "cc" deleted`)
			k.want(t, args("delete events --all"), "deleted")
			if left := s.get(t, in(eventsV1, "team")).object().names(); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	})
}

// TestKubectlAuth asks who may do what.
func TestKubectlAuth(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		k.want(t, args("auth can-i create events"), "yes\n")
		k.want(t, args("auth can-i delete "+group+" -n other"), "yes\n")
		k.want(t, args("auth can-i --list"), "events", "[*]")
		k.want(t, args("auth whoami"), "tester")
	})
}

// TestKubectlNamespaces lists the namespaces, which nobody had to declare.
func TestKubectlNamespaces(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		s.create(t, "team", "a")
		k.want(t, args("get namespaces"), "NAME", "STATUS", "AGE", "default", "kube-system", "team", "Active")
		k.want(t, args("get ns team -o yaml"), "kubernetes.io/metadata.name: team", "phase: Active")
	})
}

// TestKubectlWatch is everything that waits: kubectl wait goes on by itself
// over a restart, the others end with their watch.
func TestKubectlWatch(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		s.create(t, "team", "a", `{"note":"first note"}`)
		t.Run("get", func(t *testing.T) {
			out := k.follow(t, s, args("get events -w")...)
			out.want(t, "LAST SEEN", "first note")
			s.create(t, "team", "b", `{"note":"second note"}`)
			out.want(t, "second note")
			s.delete(t, in(eventsV1, "team", "b"), "").expect(200)
			out.want(t, "second note")
		})
		t.Run("get with what happened", func(t *testing.T) {
			out := k.follow(t, s, args("get "+group+" -w --output-watch-events")...)
			out.want(t, "EVENT", "ADDED ")
			s.patch(t, in(eventsV1, "team", "a"), typeMerge, `{"metadata":{"labels":{"a":"1"}}}`).expect(200)
			out.want(t, "MODIFIED ")
		})
		t.Run("only what comes", func(t *testing.T) {
			out := k.follow(t, s, args("get events --watch-only -o name")...)
			s.untilWatched(t, 1)
			s.create(t, "team", "only")
			out.want(t, "event/only")
		})
		t.Run("events", func(t *testing.T) {
			out := k.follow(t, s, args("events -w")...)
			out.want(t, "first note")
			s.create(t, "team", "c", `{"note":"third note"}`)
			out.want(t, "third note")
		})
		t.Run("wait for a field", func(t *testing.T) {
			out := k.follow(t, s, args("wait event/a --for=jsonpath={.message}=changed --timeout=60s")...)
			s.untilWatched(t, 1)
			s.restart(t)
			s.patch(t, in(coreV1, "team", "a"), typeMerge, `{"message":"changed"}`).expect(200)
			out.want(t, "event/a condition met")
		})
		t.Run("wait for the end", func(t *testing.T) {
			out := k.follow(t, s, args("wait "+group+" a --for=delete --timeout=60s")...)
			s.untilWatched(t, 1)
			s.delete(t, in(eventsV1, "team", "a"), "").expect(200)
			out.want(t, "event.events.k8s.io/a condition met")
		})
	})
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
