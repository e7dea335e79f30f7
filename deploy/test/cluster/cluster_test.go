package cluster_test

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// cluster is a project of docker compose.
type cluster struct {
	t              testing.TB
	project        string
	env            []string
	tokens, events string // the load balancer
	disks          string // folder with a small file system for each node of PostgreSQL, empty without
	broken         string // container or service that a fault was done to
}

var nodes = []string{"db1", "db2", "db3"}

// nodeFiles is where a node has its files.
const nodeFiles = "/var/lib/postgresql/node"

// start starts the cluster, and leaves nothing of it behind. The disks of the nodes are small ones on request.
func start(t *testing.T, small bool) *cluster {
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
	if small {
		c.disks = t.TempDir()
		c.env = append(c.env, "DISKS="+c.disks, "COMPOSE_FILE=docker-compose.yml:deploy/test/cluster/disks.yaml")
		for _, node := range nodes {
			mount(t, filepath.Join(c.disks, node))
		}
	}
	for name, url := range map[string]*string{"CLUSTER_TOKEN_PORT": &c.tokens, "CLUSTER_HTTP_PORT": &c.events} {
		_, port, err := net.SplitHostPort(porttest.Addr(t))
		if err != nil {
			t.Fatal(err)
		}
		c.env, *url = append(c.env, name+"="+port), "http://localhost:"+port
	}
	t.Cleanup(func() {
		if t.Failed() {
			for line := range strings.Lines(c.compose("logs", "--no-color", "--tail=10000")) {
				if !strings.Contains(line, `"msg":"request"`) {
					t.Log(line)
				}
			}
		}
		c.compose("down", "--volumes", "--timeout=5")
	})
	c.compose(up...)
	return c
}

// mount makes a file system of 1 GiB that is removed with the test.
func mount(t *testing.T, dir string) {
	t.Helper()
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	for _, command := range [][]string{
		{"truncate", "--size=1G", dir + ".image"}, {"mkfs.ext4", "-q", "-m", "0", dir + ".image"},
		{"mkdir", dir}, {"mount", "-o", "loop", dir + ".image", dir}, {"rmdir", dir + "/lost+found"}, // Docker sets the owner of an empty volume
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			testenv.Unable(t, "no file system on a loop device can be made here, which needs root: %v: %v: %s", command, err, out)
		}
	}
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
	c.caughtUp()
}

// caughtUp waits until both standbys have what the primary has now.
func (c *cluster) caughtUp() {
	c.t.Helper()
	at := c.sql("SELECT pg_current_wal_lsn()")
	c.says("2", "SELECT count(*) FROM pg_stat_replication WHERE flush_lsn >= '"+at+"'")
}

// says waits until the primary answers a query so.
func (c *cluster) says(want, query string) {
	c.t.Helper()
	testenv.Eventually(c.t, query, 2*time.Minute, func() error {
		if got := c.sql(query); got != want {
			return fmt.Errorf("the answer is %q, want %q", got, want)
		}
		return nil
	})
}

// sql has the primary run statements.
func (c *cluster) sql(statements string) string {
	c.t.Helper()
	return c.docker("exec", c.primary(), "psql", "--host=/tmp", "--username=postgres", "--dbname=events", "--tuples-only", "--no-align", "--command="+statements)
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

// name returns the name of the container that a service has, running or not.
func (c *cluster) name(service string) string { return c.project + "-" + service + "-1" }

// address returns where a replica listens, empty while it does not run.
func (c *cluster) address(service string) string {
	out, err := exec.Command("docker", "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", c.name(service)).Output()
	if ip := strings.TrimSpace(string(out)); err == nil && ip != "" {
		return "http://" + ip + ":8080"
	}
	return ""
}

// metric returns a metric of a replica.
func (c *cluster) metric(service, name string) float64 {
	c.t.Helper()
	answer, err := http.Get(strings.Replace(c.address(service), ":8080", ":8081", 1) + "/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	for in := bufio.NewScanner(answer.Body); in.Scan(); {
		if value, found := strings.CutPrefix(in.Text(), name+" "); found {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				c.t.Fatal(err)
			}
			return f
		}
	}
	c.t.Fatalf("%s has no metric %s", service, name)
	return 0
}

// primary returns the container of the primary.
func (c *cluster) primary() string { c.t.Helper(); return c.database("primary") }

// standby returns the container of the synchronous standby.
func (c *cluster) standby() string { c.t.Helper(); return c.database("synchronous") }

// database returns the container whose Patroni says that it has a role.
func (c *cluster) database(role string) (container string) {
	c.t.Helper()
	testenv.Eventually(c.t, role, 2*time.Minute, func() error {
		for _, node := range nodes {
			name := c.name(node)
			if exec.Command("docker", "exec", name, "curl", "--fail", "--silent", "http://127.0.0.1:8008/"+role).Run() == nil {
				container = name
				return nil
			}
		}
		return fmt.Errorf("no node is %s", role)
	})
	return container
}
