package cluster_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var faults = flag.String("faults", "short", "short: some of the faults; all: every one")

// A fault is done to the cluster under load, and then undone.
type fault struct {
	name  string
	short bool
	do    func(c *cluster)
	undo  func(c *cluster) // when writes go on
	stops bool             // writes are refused until it is undone
}

// all are the faults. Each begins with a cluster whose parts are all there.
var all = []fault{
	{name: "primary killed", short: true, do: func(c *cluster) { c.docker("kill", c.primary()) }, undo: (*cluster).restore},
	{name: "primary paused beyond its lease", short: true, do: func(c *cluster) { c.broken = c.primary(); c.docker("pause", c.broken) },
		undo: func(c *cluster) { c.docker("unpause", c.broken) }},
	{name: "replica killed", short: true, do: func(c *cluster) { c.docker("kill", c.container("eventsvc1")) }, undo: (*cluster).restore},
	{name: "primary cut off", do: func(c *cluster) { c.broken = c.primary(); c.docker("network", "disconnect", c.network(), c.broken) },
		undo: func(c *cluster) {
			c.docker("network", "connect", "--alias", c.service(c.broken), c.network(), c.broken)
		}},
	{name: "primary's disk full", stops: true, do: func(c *cluster) {
		c.broken = c.service(c.primary())
		c.docker("exec", c.primary(), "sh", "-c", "! fallocate --length 2G "+nodeFiles+"/filler")
	}, undo: func(c *cluster) {
		if err := os.Remove(filepath.Join(c.disks, c.broken, "filler")); err != nil {
			c.t.Fatal(err)
		}
	}},
	{name: "head locked by somebody", stops: true, do: func(c *cluster) {
		c.docker("exec", "--detach", "--env", "PGAPPNAME=somebody", c.primary(), "psql", "--host=/tmp", "--username=postgres", "--dbname=events",
			"--command=BEGIN; LOCK TABLE eventsvc.head; SELECT pg_sleep(3600)")
	}, undo: func(c *cluster) {
		c.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'somebody'")
	}},
	{name: "too many connections", stops: true, do: func(c *cluster) {
		c.sql("ALTER ROLE eventsvc CONNECTION LIMIT 0; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'eventsvc'")
	}, undo: func(c *cluster) { c.sql("ALTER ROLE eventsvc CONNECTION LIMIT -1") }},
	{name: "both standbys paused", short: true, stops: true, do: func(c *cluster) { c.broken = c.primary(); c.standbys(c.broken, "pause") },
		undo: func(c *cluster) { c.standbys(c.broken, "unpause") }},
	{name: "standby killed", do: func(c *cluster) { c.docker("kill", c.standby()) }, undo: (*cluster).restore},
	{name: "switchover by hand", do: func(c *cluster) {
		c.docker("exec", c.primary(), "patronictl", "-c", "/etc/tidings/patroni.yaml", "switchover", "tidings", "--force")
	}, undo: (*cluster).restore},
	{name: "replica restarted", do: func(c *cluster) { c.docker("restart", c.container("eventsvc2")) }, undo: (*cluster).restore},
	{name: "replica emptied", do: func(c *cluster) {
		c.compose("rm", "--stop", "--force", "eventsvc2")
		c.docker("volume", "rm", c.project+"_events2")
	}, undo: (*cluster).restore},
	{name: "load balancer restarted", do: func(c *cluster) { c.docker("restart", c.container("cluster")) }, undo: (*cluster).restore},
	{name: "rolling restart of everything", do: func(c *cluster) {
		for _, service := range []string{"db1", "db2", "db3", "tokensvc1", "tokensvc2", "eventsvc1", "eventsvc2"} {
			c.docker("restart", c.container(service))
			c.restore()
		}
	}, undo: (*cluster).restore},
}

// No fault of one part loses a write that was acknowledged, nor does a watch miss or repeat anything.
func TestClusterFaults(t *testing.T) {
	c := start(t, *faults == "all")
	l := newLoad(t, c, false)
	defer l.stop()
	l.more(100)
	for _, f := range all {
		if !f.short && *faults == "short" {
			continue
		}
		l.clock()
		begin, since := time.Now(), "began"
		f.do(c)
		if f.stops {
			l.refusals(10)
			l.clock()
			since = "was undone"
		} else {
			l.more(100)
		}
		f.undo(c)
		c.restore()
		l.more(100)
		t.Logf("%-32s longest time without a write %6.1f s since it %s, healthy after %6.1f s", f.name, l.clock().Seconds(), since, time.Since(begin).Seconds())
	}
	l.stop()
	l.verify()
}
