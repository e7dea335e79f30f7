package e2e_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// compose is the project of docker-compose.yml under a name and on ports of its own.
type compose struct {
	project string
	dir     string // of docker-compose.yml
	env     []string
	build   []string // --build, unless the images are there already
}

func (c *compose) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("docker", append([]string{"compose", "--project-name", c.project, "--progress", "quiet"}, args...)...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	var stderr testenv.Output
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker compose %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// TestCompose runs the scenarios against the containers.
func TestCompose(t *testing.T) {
	t.Parallel()
	c, w := startCompose(t)
	t.Run("Hardened", c.hardened)
	t.Run("Images", testImages)
	t.Run("ImageVersion", testImageVersion)
	t.Run("DockerRun", testDockerRun)
	t.Run("FirstRun", func(t *testing.T) { testFirstRun(t, c.project+"-first") })
	runScenarios(t, w)
	t.Run("Console", func(t *testing.T) { testConsole(t, w.events+"/console/", w.tokens) })
	t.Run("Roles", func(t *testing.T) { testRoles(t, w) })
	t.Run("DemoProfile", func(t *testing.T) {
		c.run(t, append([]string{"--profile", "demo", "up", "--detach", "reporter"}, c.build...)...)
		all := request{"GET", w.events + "/apis/events.k8s.io/v1/events?fieldSelector=reportingController=kubelet", w.token(t), "", nil}
		testenv.Eventually(t, "the reporter records", deadline, func() error {
			var list eventsv1.EventList
			code, err := call(t.Context(), http.DefaultClient, all, &list)
			if err != nil || code != http.StatusOK || len(list.Items) == 0 {
				return fmt.Errorf("status %d, %d events, %w", code, len(list.Items), err)
			}
			return nil
		})
	})
}

// testRoles checks what the demo clients may do: their scope is their role.
func testRoles(t *testing.T, w *world) {
	for client, want := range map[string][3]int{ // list, create, delete
		"demo-reader": {http.StatusOK, http.StatusForbidden, http.StatusForbidden},
		"demo-writer": {http.StatusForbidden, http.StatusCreated, http.StatusForbidden},
		"demo-admin":  {http.StatusOK, http.StatusCreated, http.StatusOK},
	} {
		token, _, err := requestToken(t.Context(), w.tokens, client, clientSecret)
		if err != nil {
			t.Fatalf("%s: %v", client, err)
		}
		collection := eventsIn(w.events, "roles")
		for i, r := range []request{
			{"GET", collection, token, "", nil},
			{"POST", collection, token, "application/json", encode(newEvent("by-"+client, "Tried"))},
			{"DELETE", collection + "/by-" + client, token, "", nil},
		} {
			var answer map[string]any
			if code, err := call(t.Context(), http.DefaultClient, r, &answer); err != nil || code != want[i] {
				t.Errorf("%s: %s is answered %d %v, %v; want %d", client, r.method, code, answer["message"], err, want[i])
			}
		}
	}
}

// testFirstRun starts a clean clone on a machine that has the images, stores an event, and runs the commands of the
// documentation that are for containers.
func testFirstRun(t *testing.T, project string) {
	begin := time.Now()
	c := &compose{project: project, dir: clone(t), env: freePorts(t)}
	t.Cleanup(func() { c.run(t, "down", "--volumes") })
	c.run(t, "up", "--wait", "--wait-timeout=600")
	healthy := time.Since(begin)
	value := func(i int) string { _, port, _ := strings.Cut(c.env[i], "="); return "http://localhost:" + port }
	w := &world{tokens: value(0), events: value(1)}
	var created eventsv1.Event
	code, err := call(t.Context(), http.DefaultClient, request{"POST", eventsIn(w.events, "default"), w.token(t), "application/json", encode(newEvent("first", "Stored"))}, &created)
	if err != nil || code != http.StatusCreated {
		t.Fatalf("create: %d %v", code, err)
	}
	t.Logf("from clone to healthy: %.1f s, to the first stored event: %.1f s", healthy.Seconds(), time.Since(begin).Seconds())

	testPages(t, c)
	w.token(t) // with the new password
}

// composePages are the pages whose compose block is run, with the first block of SQL, and what the block prints.
var composePages = map[string]string{
	"deploy/docs/how-to/database-password.md": "",
}

// testPages runs the blocks of pages that need Compose, and their SQL, which it takes back.
func testPages(t *testing.T, c *compose) {
	for page, want := range composePages {
		of := blocks(t, filepath.Join(root, page))
		c.run(t, "exec", "-T", "postgres", "psql", "-q", "-v", "ON_ERROR_STOP=1", "-U", "tidings", "-c", "BEGIN; "+of["sql"][0]+"ROLLBACK")
		cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", of["compose"][0])
		cmd.Dir, cmd.Env = c.dir, append(append(os.Environ(), c.env...), "COMPOSE_PROJECT_NAME="+c.project)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%s: %v\n%s\n%s", page, err, of["compose"][0], out)
		}
	}
}

// freePorts are the published ports.
func freePorts(t *testing.T) []string {
	t.Helper()
	var env []string
	for _, name := range []string{"TOKEN_PORT", "HTTP_PORT", "HTTPS_PORT"} {
		_, port, _ := net.SplitHostPort(porttest.Addr(t))
		env = append(env, name+"="+port)
	}
	return env
}

// startCompose builds and starts the containers, and leaves nothing behind.
func startCompose(t *testing.T) (*compose, *world) {
	t.Helper()
	build := []string{"--build"}
	switch os.Getenv("E2E_COMPOSE") {
	case "":
		t.Skip("set E2E_COMPOSE=1 to run against docker compose as well (make e2e does)")
	case "built":
		build = nil
	}
	env := freePorts(t)
	port := func(i int) string { _, port, _ := strings.Cut(env[i], "="); return port }
	token, plain, secure := port(0), port(1), port(2)
	c := &compose{
		dir:     root,
		project: cmp.Or(os.Getenv("E2E_PROJECT"), fmt.Sprintf("tidings-e2e-%d", os.Getpid())),
		env:     env,
		build:   build,
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.run(t, "logs", "--no-color", "--tail=200"))
		}
		noSecrets(t, c.run(t, "logs", "--no-color", "--no-log-prefix", "tokensvc", "eventsvc"))
		c.run(t, "--profile", "demo", "down", "--volumes", "--remove-orphans")
	})
	c.run(t, append([]string{"up", "--wait", "--wait-timeout=600"}, c.build...)...)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	c.run(t, "cp", "eventsvc:/data/tls/ca.crt", ca)
	return c, &world{
		recreate: func(t *testing.T) {
			t.Helper()
			c.run(t, "down")
			c.run(t, "up", "--wait")
		},
		tokens: "http://localhost:" + token, events: "http://localhost:" + plain, secure: "https://localhost:" + secure,
		ca: ca,
		restart: func(t *testing.T, service string) {
			t.Helper()
			c.run(t, "stop", service)
			c.run(t, "up", "--wait", "--no-deps", service)
		},
		kill: func(t *testing.T, service string) {
			t.Helper()
			c.run(t, "kill", service)
			c.run(t, "up", "--wait", "--no-deps", service)
		},
		inside: c.tokenFromInside,
	}
}

// tokenFromInside fetches a token by the service's name in the containers' network.
func (c *compose) tokenFromInside(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", "run", "--rm", "--network", c.project+"_default",
		"--volume", filepath.Join(root, "deploy/local/demo-secret")+":/demo-secret:ro", "--read-only", "--cap-drop", "ALL",
		"tidings/tokensvc", "credential", "--token-url=http://tokensvc:9000/oauth2/token", "--client-id="+clientID,
		"--client-secret-file=/demo-secret").Output()
	if err != nil {
		t.Fatalf("a token from inside the network: %v %s", err, stderrOf(err))
	}
	var credential struct{ Status struct{ Token string } }
	if err := json.Unmarshal(out, &credential); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return credential.Status.Token
}

// hardened checks the restrictions of the running containers of both services.
func (c *compose) hardened(t *testing.T) {
	for _, service := range []string{"tokensvc", "eventsvc"} {
		id := strings.TrimSpace(c.run(t, "ps", "--quiet", service))
		out, err := exec.CommandContext(t.Context(), "docker", "inspect", id).Output()
		if err != nil {
			t.Fatalf("docker inspect: %v %s", err, stderrOf(err))
		}
		var containers []struct {
			Config     struct{ User string }
			HostConfig struct {
				ReadonlyRootfs bool
				CapDrop        []string
				SecurityOpt    []string
				PortBindings   map[string][]struct{ HostIP string }
				Memory         int64
				PidsLimit      int64
				LogConfig      struct{ Config map[string]string }
			}
		}
		if err := json.Unmarshal(out, &containers); err != nil || len(containers) != 1 {
			t.Fatalf("%d containers, %v in %s", len(containers), err, out)
		}
		host := containers[0].HostConfig
		if containers[0].Config.User != "65532:65532" || !host.ReadonlyRootfs || !slices.Equal(host.CapDrop, []string{"ALL"}) ||
			!slices.Contains(host.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s runs as %+v", service, containers[0])
		}
		if host.Memory <= 0 || host.PidsLimit <= 0 || host.LogConfig.Config["max-size"] == "" || host.LogConfig.Config["max-file"] == "" {
			t.Errorf("%s has no bound for its memory, its processes or its log: %+v", service, host)
		}
		for port, bindings := range host.PortBindings {
			for _, b := range bindings {
				if b.HostIP != "127.0.0.1" {
					t.Errorf("%s: port %s is open on %q", service, port, b.HostIP)
				}
			}
		}
		if out, err := exec.CommandContext(t.Context(), "docker", "run", "--rm", "--entrypoint", "/bin/sh", "tidings/"+service, "-c", "true").CombinedOutput(); err == nil {
			t.Errorf("the image of %s has a shell: %s", service, out)
		}
	}
}

func stderrOf(err error) string {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(exit.Stderr)
	}
	return ""
}
