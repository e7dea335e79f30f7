package cluster_test

import (
	"cmp"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
)

var faults = flag.String("faults", "short", "short: some of the faults; all: every one")

// A fault is done to the cluster under load, and then undone.
type fault struct {
	name   string
	short  bool
	do     func(c *cluster)
	during func(c *cluster) // after writes go on
}

// all are the faults. Each begins with a cluster whose parts are all there.
var all = []fault{
	{"primary killed", true, func(c *cluster) { c.docker("kill", c.primary()) }, (*cluster).restore},
	{"primary paused beyond its lease", true, func(c *cluster) { c.paused = c.primary(); c.docker("pause", c.paused) },
		func(c *cluster) { c.docker("unpause", c.paused) }},
	{"replica killed", true, func(c *cluster) { c.docker("kill", c.container("eventsvc1")) }, (*cluster).restore},
	{"primary cut off", false, func(c *cluster) { c.paused = c.primary(); c.docker("network", "disconnect", c.network(), c.paused) },
		func(c *cluster) {
			c.docker("network", "connect", "--alias", c.service(c.paused), c.network(), c.paused)
		}},
	{"standby killed", false, func(c *cluster) { c.docker("kill", c.standby()) }, (*cluster).restore},
	{"switchover by hand", false, func(c *cluster) {
		c.docker("exec", c.primary(), "patronictl", "-c", "/etc/tidings/patroni.yaml", "switchover", "tidings", "--force")
	}, (*cluster).restore},
	{"replica restarted", false, func(c *cluster) { c.docker("restart", c.container("eventsvc2")) }, (*cluster).restore},
	{"replica emptied", false, func(c *cluster) {
		c.compose("rm", "--stop", "--force", "eventsvc2")
		c.docker("volume", "rm", c.project+"_events2")
	}, (*cluster).restore},
	{"rolling restart of everything", false, func(c *cluster) {
		for _, service := range []string{"db1", "db2", "db3", "tokensvc1", "tokensvc2", "eventsvc1", "eventsvc2"} {
			c.docker("restart", c.container(service))
			c.restore()
		}
	}, (*cluster).restore},
}

// No fault of one part loses a write that was acknowledged, nor does a watch miss or repeat anything.
func TestClusterFaults(t *testing.T) {
	c := start(t)
	l := newLoad(t, c)
	defer l.stop()
	l.more(100)
	for _, f := range all {
		if !f.short && *faults == "short" {
			continue
		}
		l.gap()
		begin := time.Now()
		f.do(c)
		l.more(100)
		f.during(c)
		c.restore()
		l.more(100)
		t.Logf("%-32s longest time without a write %6.1f s, healthy after %6.1f s", f.name, l.gap().Seconds(), time.Since(begin).Seconds())
	}
	l.stop()
	l.verify()
}

// cluster is a project of docker compose.
type cluster struct {
	t              testing.TB
	project        string
	env            []string
	tokens, events string // the load balancer
	paused         string // container
}

// start starts the cluster, and leaves nothing of it behind.
func start(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, project: cmp.Or(os.Getenv("E2E_PROJECT"), fmt.Sprintf("tidings-%d", os.Getpid())) + "-cluster"}
	up := []string{"up", "--wait", "--wait-timeout=600", "cluster"}
	switch os.Getenv("E2E_COMPOSE") {
	case "":
		t.Skip("set E2E_COMPOSE=1 to run against docker compose (make cluster-faults does)")
	case "built":
	default:
		up = append(up, "--build")
	}
	for name, url := range map[string]*string{"CLUSTER_TOKEN_PORT": &c.tokens, "CLUSTER_HTTP_PORT": &c.events} {
		_, port, err := net.SplitHostPort(testenv.FreeAddr(t))
		if err != nil {
			t.Fatal(err)
		}
		c.env, *url = append(c.env, name+"="+port), "http://localhost:"+port
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.compose("logs", "--no-color", "--tail=60"))
		}
		c.compose("down", "--volumes", "--timeout=5")
	})
	c.compose(up...)
	return c
}

// compose runs docker compose.
func (c *cluster) compose(args ...string) string {
	c.t.Helper()
	return c.docker(append([]string{"compose", "--project-name", c.project, "--profile", "cluster", "--progress", "quiet"}, args...)...)
}

// docker runs docker. A busy machine may need another try.
func (c *cluster) docker(args ...string) string {
	c.t.Helper()
	var err error
	for range 3 {
		cmd := exec.Command("docker", args...)
		cmd.Dir, cmd.Env = "../../..", append(os.Environ(), c.env...)
		var stderr testenv.Output
		cmd.Stderr = &stderr
		var out []byte
		if out, err = cmd.Output(); err == nil {
			return strings.TrimSpace(string(out))
		}
		err = fmt.Errorf("docker %s: %w\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	c.t.Fatal(err)
	return ""
}

// restore starts what does not run, and waits until everything is healthy.
func (c *cluster) restore() {
	c.t.Helper()
	testenv.Eventually(c.t, "everything is healthy", 5*time.Minute, func() error { // what was paused is unhealthy at first
		cmd := exec.Command("docker", "compose", "--project-name", c.project, "--profile", "cluster", "--progress", "quiet", "up", "--wait", "cluster")
		cmd.Dir, cmd.Env = "../../..", append(os.Environ(), c.env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
}

// container returns the container of a service.
func (c *cluster) container(service string) string {
	c.t.Helper()
	return c.compose("ps", "--all", "--quiet", service)
}

// service returns the service of a container.
func (c *cluster) service(container string) string {
	c.t.Helper()
	return c.docker("inspect", "--format", `{{index .Config.Labels "com.docker.compose.service"}}`, container)
}

func (c *cluster) network() string { return c.project + "_default" }

// address returns where a replica listens, empty while it does not run.
func (c *cluster) address(service string) string {
	out, err := exec.Command("docker", "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", c.project+"-"+service+"-1").Output()
	if ip := strings.TrimSpace(string(out)); err == nil && ip != "" {
		return "http://" + ip + ":8080"
	}
	return ""
}

// primary returns the container of the primary.
func (c *cluster) primary() string { c.t.Helper(); return c.database("primary") }

// standby returns the container of the synchronous standby.
func (c *cluster) standby() string { c.t.Helper(); return c.database("synchronous") }

// database returns the container whose Patroni says that it has a role.
func (c *cluster) database(role string) (container string) {
	c.t.Helper()
	testenv.Eventually(c.t, role, 2*time.Minute, func() error {
		for _, service := range []string{"db1", "db2", "db3"} {
			name := c.project + "-" + service + "-1"
			if exec.Command("docker", "exec", name, "curl", "--fail", "--silent", "http://127.0.0.1:8008/"+role).Run() == nil {
				container = name
				return nil
			}
		}
		return fmt.Errorf("no node is %s", role)
	})
	return container
}
