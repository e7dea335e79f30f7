package e2e_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// checkout is a directory with what `make run` needs: the built binaries and
// deploy, with every port replaced by a free one.
type checkout struct {
	dir   string
	env   []string
	moved *strings.Replacer // from the documented addresses to the ones used here
}

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	c := &checkout{dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(c.dir, "var"), 0o750); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"bin": bin, "deploy": filepath.Join(root, "deploy")} {
		if err := os.Symlink(target, filepath.Join(c.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	var pairs []string
	for _, l := range []struct{ setting, usual string }{
		{"TOKENSVC_LISTEN_HTTP", "127.0.0.1:9000"}, {"TOKENSVC_LISTEN_ADMIN", "127.0.0.1:9001"},
		{"EVENTSVC_LISTEN_HTTP", "127.0.0.1:8080"}, {"EVENTSVC_LISTEN_HTTPS", "127.0.0.1:8443"},
		{"EVENTSVC_LISTEN_ADMIN", "127.0.0.1:8081"},
	} {
		addr := porttest.Addr(t)
		c.env = append(c.env, l.setting+"="+addr)
		pairs = append(pairs, l.usual, addr)
	}
	for _, further := range []string{"127.0.0.1:8082", "127.0.0.1:8090", "127.0.0.1:8091", "127.0.0.1:9100", "127.0.0.1:9101"} { // of what the pages start themselves
		pairs = append(pairs, further, porttest.Addr(t))
	}
	c.moved = strings.NewReplacer(pairs...)
	return c
}

// makeRun is the program behind `make run`.
func (c *checkout) makeRun(t *testing.T, env ...string) *process {
	t.Helper()
	file, err := os.Create(filepath.Join(c.dir, "var/run.log")) // as the page about troubles says
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	p := &process{name: "local", dir: c.dir, env: append(c.env, env...), copy: file}
	p.start(t)
	t.Cleanup(func() { _ = p.end(syscall.SIGTERM) })
	return p
}

func (p *process) waitFor(t *testing.T, text string) {
	t.Helper()
	testenv.Eventually(t, p.name+" prints "+text, deadline, func() error {
		ended := false
		select {
		case <-p.done:
			ended = true
		default:
		}
		said := p.log.String() // all of it, if it has ended
		if strings.Contains(said, text) {
			return nil
		}
		if ended {
			t.Fatalf("%s ended before it printed %q:\n%s", p.name, text, said)
		}
		return fmt.Errorf("so far:\n%s", said)
	})
}

// shell runs lines of a page in a shell, with our kubectl on the PATH.
func (c *checkout) shell(t *testing.T, script string) string {
	t.Helper()
	testenv.Tool(t, "curl")
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", c.moved.Replace(script)+"\nwait") // also for what the script has stopped
	cmd.Dir = c.dir
	for _, setting := range c.env {
		if strings.Contains(setting, "_LISTEN_ADMIN=") { // whom to ask; the others are about whom to be
			cmd.Env = append(cmd.Env, setting)
		}
	}
	cmd.Env = append(append(os.Environ(), cmd.Env...), "CGO_ENABLED=0", // the build cache of this test's own builds
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECACHEDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v in\n%s\n%s", err, script, out)
	}
	return string(out)
}

const readyLine = "Both services are ready."

// TestMakeRun runs the first command of the README. The commands that it prints
// work, Ctrl-C ends it cleanly, and a second start keeps the events.
func TestMakeRun(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	p := c.makeRun(t)
	p.waitFor(t, "--watch\n\n")

	info, err := os.Stat(filepath.Join(c.dir, "var/kubeconfig"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("var/kubeconfig: %v, %v; want mode 0600", info, err)
	}
	_, guide, _ := strings.Cut(p.log.String(), readyLine)
	if address := regexp.MustCompile(`(?m)^  console  (\S+)`).FindStringSubmatch(guide); address == nil {
		t.Errorf("no address of the console in\n%s", guide)
	} else {
		testConsole(t, address[1], "http://"+c.moved.Replace("127.0.0.1:9000"))
	}
	typed := regexp.MustCompile(`(?m)^  ((?:TOKEN=|curl|export|kubectl|\S*deploy/examples/).*)$`).FindAllStringSubmatch(guide, -1)
	var script strings.Builder
	for _, line := range typed {
		if !strings.HasSuffix(line[1], "--watch") {
			script.WriteString(line[1] + "\n")
		}
	}
	out := c.shell(t, script.String())
	if n := strings.Count(out, "Greeted"); len(typed) != 7 || n < 4 {
		t.Errorf("%d lines to type, and %d times Greeted in\n%s", len(typed), n, out)
	}
	if ages := regexp.MustCompile(`(?m)^(\S+) +Normal +Greeted`).FindAllStringSubmatch(out, -1); len(ages) != 2 {
		t.Errorf("%d of 2 events in the table of\n%s", len(ages), out)
	} else if recent := regexp.MustCompile(`^(\d+m)?(\d+s)?$`); !recent.MatchString(ages[0][1]) || !recent.MatchString(ages[1][1]) {
		t.Errorf("events that were just recorded are shown as %s and %s old", ages[0][1], ages[1][1])
	}

	if err := p.end(syscall.SIGINT); err != nil {
		t.Errorf("%v\n%s", err, p.log.String())
	}
	p = c.makeRun(t)
	p.waitFor(t, readyLine)
	list := c.shell(t, "KUBECONFIG=var/kubeconfig kubectl get events.events.k8s.io -o name")
	if n := strings.Count(list, "hello-"); n != 2 {
		t.Errorf("%d of 2 events after the second start: %s", n, list)
	}
}

// TestMakeRunBusyPort: if a port is busy, the service's own error is printed and no process stays.
func TestMakeRunBusyPort(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	p := c.makeRun(t, "EVENTSVC_LISTEN_HTTP="+busy.Addr().String())
	testenv.Eventually(t, "make run gives up", deadline, func() error {
		select {
		case <-p.done:
			return nil
		default:
			return fmt.Errorf("still running")
		}
	})
	_, port, _ := net.SplitHostPort(busy.Addr().String())
	said := p.log.String()
	if p.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit code %d, want 1", p.cmd.ProcessState.ExitCode())
	}
	expect(t, said, port, "--listen-http", "eventsvc ended with exit status 1")
	free, err := net.Listen("tcp", strings.TrimPrefix(c.env[0], "TOKENSVC_LISTEN_HTTP="))
	if err != nil {
		t.Fatalf("tokensvc is still there: %v", err)
	}
	free.Close()
}

// TestMakeRunDyingService: when one service has ended, the other one is
// stopped.
func TestMakeRunDyingService(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	p := c.makeRun(t)
	p.waitFor(t, readyLine)
	out, err := exec.CommandContext(t.Context(), testenv.Tool(t, "pgrep"), "-P", fmt.Sprint(p.cmd.Process.Pid), "eventsvc").Output()
	if err != nil {
		t.Fatalf("make run has no child eventsvc: %v", err)
	}
	var pid int
	if _, err := fmt.Sscan(string(out), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, "eventsvc ended with signal: killed")
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}

// border is printed after each block of a page.
const border = "---- end of the block ----"

// TestDocumentation runs the sh blocks of the README's first minute and of
// every page below deploy/docs, one page in one shell, while `make run` is up.
// A block output of a page shows what the block before it prints, except times and ids.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	expected := map[string][]string{
		"README.md":             {"Greeted", `"type":"ADDED"`, "event.events.k8s.io/hello-"},
		"docs/how-to/backup.md": {"var/events.tar: revision ", "events, checked", "no problem found", `"revision":`, "0 created, 0 changed, 0 deleted"},
		"docs/how-to/commandline.md": {"default/nightly.", "BackupFailed   job/nightly", "shop/web-3.", "deployment/web-3", `"attempt":"2"`,
			"TIME                  COUNT   TYPE", "Warning 1", "REASON         OBJECT", "reason      1       "},
		"docs/how-to/dump.md": {"created, 0 changed", "0 created, 0 changed, 0 deleted", "events, from ", "job/nightly"},
		"docs/how-to/undo.md": {"13 events were deleted and are gone", "13 created, 0 changed, 0 deleted, 0 unchanged, 0 left out", "BackupFailed   job/backup-13",
			"0 events were deleted and are gone"},
		"docs/how-to/erase.md":            {"none is left"},
		"docs/how-to/tell-somebody.md":    {"STARTS", "SUMMARY"},
		"docs/how-to/connect.md":          {"Normal Started backup of orders started", "recorded nightly-", "two events, one token", "invalid_client"},
		"docs/tutorials/first-service.md": {"not in billing", "orders has started", "refused, as the policy says", "Started   deployment/orders"},
		"docs/tutorials/find-out-what-happened.md": {"TIME                  COUNT   TYPE", "Normal 7", "checkout-7d9f-*", "BackOff                    shop/pod/checkout-7d9f-0",
			"ScalingReplicaSet          deployment/checkout"},
		"docs/how-to/kubectl.md":       {"hello-", "labeled", "deleted"},
		"docs/how-to/mirror.md":        {"NodeNotReady", "node/node-1", "up to resourceVersion", `eventsvc_mirror_lists_total{namespace="*",reason="first"} 1`},
		"docs/how-to/no-secrets.md":    {`"kty":"EC"`, `"sub": "backup"`, `"client_id":"workload"`, `"token_endpoint_auth_method":"private_key_jwt"`, `{"access_token":"ey`},
		"docs/how-to/health.md":        {"[+]store ok"},
		"docs/how-to/allow.md":         {`yes: role "events:admin"`, "refused"},
		"docs/how-to/limits.md":        {"eventsvc_max_watches"},
		"docs/how-to/recover.md":       {"continues after revision", "no problem found", "the same authority", `"code":410`},
		"docs/reference/sizing.md":     {"events fit into"},
		"docs/how-to/client-secret.md": {"UPDATE clients"},
		"docs/how-to/signing-keys.md":  {"signing"},
		"docs/how-to/limit-space.md":   {"events of", "retention: 72h0m0s", "# file", "store_retention_lag_seconds"},
		"docs/how-to/full-disk.md":     {"healthy", "store_full 0"},
		"docs/how-to/keep-and-drop.md": {"keep-failures", "noise", "killing"},
		"docs/how-to/upgrade.md":       {"eventsvc "},
		"docs/how-to/troubleshoot.md": {"[+]store ok", "\naccepted\n", "the slash counts", "another audience", `role "events:admin"`, "not allowed",
			"job/nightly", "no problem found", `"refused":"no token"`, "processors in use"},
		"docs/how-to/grow.md":         {"store_queued_writes"},
		"docs/reference/reference.md": {"did you mean max-bytes?", "exit code 2", "[+]retention ok", "[+]room ok", "EVENTSVC_RETENTION"},
	}
	for _, page := range shellPages(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(page, root+"/"), "deploy/")
		all := steps(t, page)
		if len(all) == 0 && expected[name] == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t)
			c.makeRun(t).waitFor(t, readyLine)
			var script strings.Builder
			for _, s := range all {
				script.WriteString(s.commands + "echo '" + border + "'\n")
			}
			printed := c.shell(t, before[name]+logged.Replace(script.String()))
			expect(t, printed, expected[name]...)
			for i, output := range strings.Split(printed, border+"\n")[:len(all)] {
				for _, shown := range all[i].shown {
					if line := absent(shown, output); line != "" {
						t.Errorf("the page shows a line %q that\n%s\ndoes not print at this place:\n%s", line, all[i].commands, output)
					}
				}
			}
		})
	}
}

// logged has the page about troubles look for the line of the request that it has sent: a service writes that after the
// answer.
var logged = strings.NewReplacer("logs() { cat var/run.log; }",
	`logs() { for try in $(seq 600); do grep -q '"refused":"no token"' var/run.log && break; sleep 0.1; done; cat var/run.log; }`)

// TestFirstService: each block of the first tutorial works in a shell of its own, as when somebody reads on the next
// day.
func TestFirstService(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	all := steps(t, filepath.Join(root, "deploy/docs/tutorials/first-service.md"))
	if len(all) < 7 {
		t.Fatalf("%d blocks", len(all))
	}
	for _, s := range all {
		cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", c.moved.Replace(s.commands))
		cmd.Dir = c.dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			for _, service := range []string{"tokensvc", "eventsvc"} {
				_ = exec.Command("sh", "-c", "kill $(cat "+filepath.Join(c.dir, "var/first", service)+".pid)").Run() // whichever runs
			}
			t.Fatalf("%v in\n%s\n%s", err, s.commands, out)
		}
	}
}

// before prepares what a page takes for granted: a way to the server, and the events that it asks for.
var before = map[string]string{
	"docs/how-to/tell-somebody.md": "export EVENTSVC_KUBECONFIG=var/kubeconfig\n",
	"docs/how-to/console-time.md": `export EVENTSVC_KUBECONFIG=var/kubeconfig TZ=UTC
eventsvc record -f - <<'EOF'
{"eventTime":"2026-11-24T03:09:40Z","type":"Warning","reason":"NodeNotReady","note":"Node node-2 status is now: NodeNotReady","regarding":{"kind":"Node","name":"node-2"}}
{"eventTime":"2026-11-24T03:10:05Z","type":"Warning","reason":"Evicted","note":"The node node-2 was low on disk","metadata":{"namespace":"shop"},"regarding":{"kind":"Pod","name":"web-1","namespace":"shop"}}
{"eventTime":"2026-11-24T03:10:20Z","type":"Warning","reason":"NodeHasDiskPressure","note":"Node node-2 status is now: NodeHasDiskPressure","regarding":{"kind":"Node","name":"node-2"}}
EOF
`,
	"docs/how-to/deployment-yesterday.md": `export EVENTSVC_KUBECONFIG=var/kubeconfig TZ=UTC
day=$(date -u -d yesterday +%Y-%m-%d)
labels='"metadata":{"namespace":"shop","labels":{"tidings.example/owner-kind":"Deployment","tidings.example/owner-name":"web"}}'
eventsvc record -f - <<EOF
{"eventTime":"${day}T02:10:03Z","reason":"ScalingReplicaSet","note":"Scaled up replica set web-5d8f to 3 from 2","regarding":{"kind":"Deployment","name":"web","namespace":"shop"},$labels}
{"eventTime":"${day}T02:10:05Z","type":"Warning","reason":"BackOff","note":"Back-off restarting failed container","series":{"count":12,"lastObservedTime":"${day}T02:14:09Z"},"regarding":{"kind":"Pod","name":"web-5d8f-x2x7k","namespace":"shop"},$labels}
EOF
`,
	"docs/how-to/slow-creates.md": "logs() { cat var/run.log; }\n",
	"docs/reference/query.md": `export EVENTSVC_KUBECONFIG=$PWD/var/kubeconfig KUBECONFIG=$PWD/var/kubeconfig TZ=UTC
deploy/examples/incident.sh | eventsvc record -f - > var/incident
`,
}

// shellPages are the pages whose sh blocks are run.
func shellPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "deploy/docs/*/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	return append(pages, filepath.Join(root, "README.md"))
}
