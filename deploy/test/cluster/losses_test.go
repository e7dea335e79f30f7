package cluster_test

import (
	"flag"
	"fmt"
	"maps"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
)

var losses = flag.Int("losses", 0, "failovers that lose commits")

// A failover to a server that lacks acknowledged writes is detected by both replicas: they begin an epoch, their
// watches end with 410, and no revision is given to another event.
func TestClusterLosses(t *testing.T) {
	if *losses == 0 {
		t.Skip("set -losses=20 to lose commits on purpose (make cluster-faults does)")
	}
	c := start(t, false)
	l := newLoad(t, c, true)
	defer l.stop()
	c.docker("exec", c.primary(), "curl", "--fail", "--silent", "--show-error", "--request", "PATCH", "http://127.0.0.1:8008/config",
		"--data", `{"synchronous_mode": false, "synchronous_mode_strict": false, "maximum_lag_on_failover": 1073741824}`)
	c.says("", "SHOW synchronous_standby_names")
	for i := range *losses {
		l.more(100)
		kept := l.written()
		c.caughtUp()
		before := l.detected()
		primary := c.primary()
		c.standbys(primary, "pause")
		c.says("0", "SELECT count(*) FROM pg_stat_replication")
		l.more(100)
		l.clock()
		c.docker("kill", primary)
		c.standbys(primary, "unpause")
		sent := l.written() // before there is another primary
		testenv.Eventually(t, "both replicas detect it", 2*time.Minute, func() error {
			for replica, d := range l.detected() {
				if b := before[replica]; d.times <= b.times || d.epoch <= b.epoch || d.gone <= b.gone {
					return fmt.Errorf("%s: %+v, before %+v", replica, d, b)
				}
			}
			return nil
		})
		l.more(100)
		t.Logf("failover %2d: %3d of %d acknowledged writes are lost, both replicas have detected it, longest time without a write %4.1f s",
			i+1, l.forget(kept, sent), len(sent)-len(kept), l.clock().Seconds())
		c.restore()
	}
	l.stop()
	l.verify()
}

// standbys pauses the nodes that are not the primary, or has them go on.
func (c *cluster) standbys(primary, do string) {
	c.t.Helper()
	for _, node := range nodes {
		if name := c.name(node); name != primary {
			c.docker(do, name)
		}
	}
}

// detection is what a replica and its watch say of lost commits.
type detection struct {
	times, epoch float64
	gone         int
}

func (l *load) detected() map[string]detection {
	l.t.Helper()
	all := map[string]detection{}
	for _, w := range l.watches {
		d := detection{times: l.c.metric(w.replica, "store_database_lost_commits_total"), epoch: l.c.metric(w.replica, "store_database_epoch")}
		l.mu.Lock()
		d.gone = w.gone
		l.mu.Unlock()
		all[w.replica] = d
	}
	return all
}

// written returns what was acknowledged up to now.
func (l *load) written() map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acknowledged)
}

// forget takes out of the acknowledged writes those that are lost, and returns how many. Only what was sent, and was
// not kept by the standbys, may be lost. Both replicas must agree.
func (l *load) forget(kept, sent map[string]uint64) (lost int) {
	l.t.Helper()
	acknowledged := l.written()
	first, second := l.list(replicas[0]), l.list(replicas[1])
	for name, revision := range acknowledged {
		_, wasKept := kept[name]
		_, wasSent := sent[name]
		switch at := first[name]; {
		case at != second[name]:
			l.t.Errorf("%s has revision %d at one replica, and %d at the other", name, at, second[name])
		case at == revision:
		case at != 0 || wasKept || !wasSent:
			l.t.Errorf("%s was acknowledged under revision %d, and is listed under %d", name, revision, at)
		default:
			lost++
			l.mu.Lock()
			delete(l.acknowledged, name)
			l.mu.Unlock()
		}
	}
	if lost == 0 {
		l.t.Error("no write was lost")
	}
	return lost
}
