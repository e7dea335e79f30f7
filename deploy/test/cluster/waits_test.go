package cluster_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
)

var (
	waits = flag.Int("waits", 0, "cuts of the standbys while commits wait for them")
	seed  = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random moments of -waits")
)

// The standbys are cut off, somebody ends the waits of commits for them, and the primary is killed or the standbys come
// back, all at random moments. No write that was acknowledged is lost, and no watch shows what is.
func TestClusterWaits(t *testing.T) {
	if *waits == 0 {
		t.Skip("set -waits=20 to cut off the standbys while commits wait for them (make cluster-faults does)")
	}
	t.Logf("-seed=%d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	moment := func(most time.Duration) { pause(t.Context(), time.Duration(random.Int64N(int64(most)))) }
	c := start(t, false)
	l := newLoad(t, c, false)
	defer l.stop()
	for i := range *waits {
		l.more(100)
		l.clock()
		primary, ended := c.primary(), 0
		moment(time.Second)
		c.cut(primary)
		for range 1 + random.IntN(2) {
			moment(700 * time.Millisecond)
			end := []string{"cancel", "terminate"}[random.IntN(2)]
			ended += strings.Count(c.sql("SELECT pg_"+end+"_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"), "t")
		}
		what := "come back"
		if random.IntN(3) > 0 {
			what = "come back, and the primary is killed"
			c.docker("kill", primary)
		} else if random.IntN(2) > 0 {
			l.named()
		}
		written := len(l.written())
		c.join(primary)
		for range 40 { // a standby takes over, unless Patroni has noted before that none has everything
			if len(l.written()) > written || !pause(t.Context(), time.Second) {
				break
			}
		}
		c.restore()
		l.more(100)
		t.Logf("%2d: %d waits are ended, the standbys %s; longest time without a write %.1f s", i+1, ended, what, l.clock().Seconds())
	}
	l.stop()
	l.verify()
}

// cut takes the nodes that are not the primary off the network. What is sent to a paused one reaches it later.
func (c *cluster) cut(primary string) {
	c.t.Helper()
	for _, node := range nodes {
		if name := c.name(node); name != primary {
			c.docker("network", "disconnect", c.network(), name)
		}
	}
}

// join undoes cut.
func (c *cluster) join(primary string) {
	c.t.Helper()
	for _, node := range nodes {
		if name := c.name(node); name != primary {
			c.docker("network", "connect", "--alias", node, c.network(), name)
		}
	}
}

// named waits until both replicas say that the standby stops all writes.
func (l *load) named() {
	l.t.Helper()
	for _, replica := range replicas {
		testenv.Eventually(l.t, replica+" names the standby", time.Minute, func() error {
			if missing, waits := l.c.metric(replica, "store_database_standbys_missing"), l.c.metric(replica, "store_database_standby_wait_seconds"); missing == 0 && waits < 3 {
				return fmt.Errorf("%v standbys are missing, a commit has waited for %v s", missing, waits)
			}
			return nil
		})
	}
}
