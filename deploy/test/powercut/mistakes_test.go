//go:build linux

package powercut

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
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
		{"the write-ahead log is not synced", edit{"internal/store/wal/wal.go",
			"return disk.SyncData(l.file)", "_ = disk.SyncData; return nil"}, journal, []string{"small"}},
		{"directories are not synced", edit{"../shared/safefile/safefile.go",
			"errors.Join(f.Sync(), f.Close())", "f.Close()"}, strict, []string{"small"}},
		{"the directory above a new data directory is not synced", edit{"../shared/safefile/safefile.go",
			"if err = Sync(parent); errors.Is", "if err = nil; errors.Is"}, strict, []string{"small", "few", "many"}},
	} {
		t.Run(strings.ReplaceAll(mistake.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			binary := build(t, smallFiles, mistake.edit)
			keys := startIssuer(t)
			const chains = 30
			cuts := 0
			for s := range uint64(chains) {
				i := slices.IndexFunc(loads, func(l load) bool { return l.name == mistake.loads[s%uint64(len(mistake.loads))] })
				c := newChain(newMachine(t, binary, keys), mistake.mode, &loads[i], *seed+s, t.TempDir())
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
	c := newChain(newMachine(t, binary, startIssuer(t)), journal, &load{}, *seed, t.TempDir())
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

// TestLostDeletions cuts the power when the service has removed a log file and
// noted in its index that it is gone. If the removal was not synced the file is
// there again, with versions of events whose deletions are in the next file. The
// service must not drop these deletions when it compacts that file: an index
// that is rebuilt from the log would bring the events back.
func TestLostDeletions(t *testing.T) {
	needDisk(t)
	const compact = "internal/store/maintenance/compact.go"
	for name, c := range map[string]struct {
		edits []edit
		lost  bool
	}{
		"as it is": {},
		"the account of dead records is trusted": {lost: true, edits: []edit{
			{compact, "errors.Join(disk.Remove(s.Path), safefile.Sync(filepath.Dir(s.Path)))",
				"errors.Join(disk.Remove(s.Path), safefile.Sync(filepath.Dir(filepath.Dir(s.Path))))"},
			{compact, "if saved.Counted && !again {", "if true {"},
		}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			l := &load{history: 100 * time.Millisecond, flags: []string{"--history=100ms", "--compress-after=off"}} // compressing syncs the directory
			chain := newChain(newMachine(t, build(t, append(c.edits, smallFiles)...), startIssuer(t)), strict, l, *seed, t.TempDir())
			chain.loseDeletions(t.Context())
			switch came := strings.Join(chain.wrong, "\n"); {
			case !c.lost && came != "":
				t.Error(came)
			case c.lost && !strings.Contains(came, "a list has"):
				t.Errorf("deleted events did not come back: %s", came)
			}
		})
	}
}

// loseDeletions produces the state that TestLostDeletions describes, and rebuilds the index from the log.
func (c *chain) loseDeletions(ctx context.Context) {
	const files = 2 // that so many events fill
	const events = files * 256 << 10 / 1000
	c.use(ctx, func(_ *mount, _ *service, w *writer) {
		for range events {
			w.createOne()
		}
	})
	c.disk.restart()
	c.use(ctx, func(m *mount, _ *service, w *writer) {
		for _, name := range slices.Clone(w.alive) {
			w.delete(name)
		}
		for range events {
			w.createOne()
		}
		removed, syncs := false, 0
		m.stopWhen(func(change, name string) bool {
			log := strings.HasPrefix(name, "log-") && strings.HasSuffix(name, ".db")
			switch {
			case syncs == 2: // of a commit of the index
				return true
			case change == "unlink" && log:
				removed = true
			case removed && change == "fsync" && name == "index.db":
				syncs++
			}
			return false
		})
		for !m.hasStopped() && ctx.Err() == nil {
			_ = c.machine.run("compact") // which the cut interrupts
		}
	})
	c.cut(nothing)
	c.use(ctx, func(_ *mount, _ *service, w *writer) {
		for _, name := range slices.Clone(w.alive) { // makes the files with the deletions worth a compaction
			w.delete(name)
		}
		for range 10 {
			if err := c.machine.run("compact"); err != nil {
				c.fail("%v", err)
			}
		}
	})
	c.disk.restart()
	c.removeIndex()
	c.use(ctx, func(*mount, *service, *writer) {})
}

// use starts the service, compares what it shows, calls a function, and kills the service. It does not run "eventsvc
// check", which would write.
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
const writeAheadLog = dataDir + "/store/wal"

// endsCheckpoint reports whether only a meta page of a log file waits for a
// sync. bbolt syncs the pages that it points to before.
func endsCheckpoint(n *inode) bool {
	if !strings.HasPrefix(n.name, "log-") || !strings.HasSuffix(n.name, ".db") || len(n.writes) != 1 {
		return false
	}
	w := n.writes[0]
	return w.offset == 0 || w.offset == int64(len(w.data))
}
