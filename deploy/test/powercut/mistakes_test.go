//go:build linux

package powercut

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestMistakesAreFound runs campaigns against builds of eventsvc with one
// mistake each. Every one must lead to a violation.
func TestMistakesAreFound(t *testing.T) {
	needDisk(t)
	for _, mistake := range []struct {
		name  string
		edit  edit
		mode  mode
		loads []string
	}{
		{"the write-ahead log is not synced", edit{"internal/store/bolt/journal.go",
			"syscall.Fdatasync(int(j.file.Fd()))", "error(nil)"}, journal, []string{"small"}},
		{"directories are not synced", edit{"internal/store/bolt/file.go",
			"errors.Join(d.Sync(), d.Close())", "d.Close()"}, strict, []string{"small"}},
		{"the directory above a new data directory is not synced", edit{"internal/store/bolt/db.go",
			"makeDir(o.Dir)", "os.MkdirAll(o.Dir, 0o700)"}, strict, []string{"small", "few", "many"}},
	} {
		t.Run(strings.ReplaceAll(mistake.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			binary := build(t, smallFiles, mistake.edit)
			keys := startIssuer(t)
			const chains = 30
			cuts := 0
			for s := range uint64(chains) {
				i := slices.IndexFunc(loads, func(l load) bool { return l.name == mistake.loads[s%uint64(len(mistake.loads))] })
				c := newChain(machine{binary: binary, issuer: keys}, mistake.mode, &loads[i], *seed+s, t.TempDir())
				c.run(t.Context(), 8)
				if cuts += c.cuts; len(c.wrong) > 0 {
					t.Logf("found after %d cuts: %s", cuts, c.wrong[0])
					return
				}
			}
			t.Errorf("not found in %d cuts", cuts)
		})
	}
}

// TestFailedCheckpointSync lets the sync of the meta page that ends a checkpoint
// fail, kills the service and starts it again. The page is still in the page
// cache then, so that the checkpoint seems to be complete, but it is not on the
// disk, and the kernel has reported the error already: a sync finds nothing to
// do. The service must write the page again before it reuses the half of the
// write-ahead log that the checkpoint is about. To show it, the power is cut
// just before the next checkpoint ends, when that half has new frames.
func TestFailedCheckpointSync(t *testing.T) {
	needDisk(t)
	binary := *eventsvc
	if binary == "" {
		binary = build(t, smallFiles)
	}
	c := newChain(machine{binary: binary, issuer: startIssuer(t)}, journal, &load{}, *seed, t.TempDir())
	writeUntilCheckpointFails := func(m *mount, _ *service, w *writer) {
		m.failSyncWhen(func(n *inode) bool {
			if !endsCheckpoint(n) {
				return false
			}
			log := m.find(writeAheadLog)
			for before := log.syncs; log.syncs == before && !m.hasStopped(); {
				m.synced.Wait() // writes go on in the other half of the log
			}
			return true
		})
		for !m.hasStopped() {
			w.createOne()
		}
	}
	c.use(t.Context(), writeUntilCheckpointFails)
	c.story = append(c.story, "the sync of a checkpoint has failed", "killed")
	c.disk.restart()
	c.use(t.Context(), writeUntilCheckpointFails)
	c.cut(nothing)
	c.use(t.Context(), func(*mount, *service, *writer) {})
	for _, text := range c.wrong {
		t.Error(text)
	}
}

// use compares what is there without "eventsvc check", which would write, lets a function use the service, and kills it.
func (c *chain) use(ctx context.Context, f func(*mount, *service, *writer)) {
	m, s := c.compared(false)
	if s == nil {
		return
	}
	f(m, s, newWriter(&clients{load: c.load, service: s, model: c.model, ctx: ctx, fail: c.fail}, "w", c.rng))
	if err := c.powerOff(m, s.process); err != nil {
		c.fail("%v", err)
	}
}

// writeAheadLog is where the newest writes are until a checkpoint.
const writeAheadLog = dataDir + "/store/journal"

// endsCheckpoint reports whether all that waits for a sync of a log file is a
// meta page: bbolt syncs what it leads to before.
func endsCheckpoint(n *inode) bool {
	if !strings.HasPrefix(n.name, "log-") || !strings.HasSuffix(n.name, ".db") || len(n.writes) != 1 {
		return false
	}
	w := n.writes[0]
	return w.offset == 0 || w.offset == int64(len(w.data))
}
