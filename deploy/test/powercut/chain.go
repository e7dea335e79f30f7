//go:build linux

package powercut

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A chain is a data directory that lives through several cuts. Everything that
// it does is drawn from its seed; what the service does meanwhile is not.
type chain struct {
	machine
	load  *load
	rng   *rand.Rand
	tmp   string
	disk  *disk
	model *model
	story []string // what has happened so far
	cuts  int

	restored bool // from a backup, which has no history

	mu    sync.Mutex
	wrong []string // violations
}

func newChain(m machine, on mode, l *load, seed uint64, tmp string) *chain {
	c := &chain{machine: m, load: l, rng: rand.New(rand.NewPCG(seed, sum(string(on)+l.name))), tmp: tmp, model: newModel()}
	c.flags, c.mountpoint = l.flags, filepath.Join(tmp, "disk")
	c.disk = c.newDisk(on)
	if err := os.Mkdir(c.mountpoint, 0o700); err != nil {
		c.fail("%v", err)
	}
	return c
}

// newDisk returns an empty disk, sometimes with the data directory.
func (c *chain) newDisk(m mode) *disk {
	d := newDisk(m)
	if c.rng.IntN(2) == 0 {
		d.makeDir(dataDir)
	}
	return d
}

// fail notes a violation.
func (c *chain) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, strings.ReplaceAll(text, "\n", " | ")+" ["+strings.Join(c.story, "; ")+"]")
}

// run cuts the power until there were enough cuts or something is wrong.
func (c *chain) run(ctx context.Context, cuts int) {
	c.interruptStarts()
	for len(c.wrong) == 0 && ctx.Err() == nil {
		if c.cuts >= cuts {
			c.finish()
			return
		}
		c.round(ctx)
	}
}

// round lets clients use the service until the power is cut, looks at one
// outcome of that moment and goes on with another.
func (c *chain) round(ctx context.Context) {
	m, s := c.verified()
	if s == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clients := startClients(ctx, c.load, s, c.model, c.rng, c.fail)
	moment := c.awaitMoment(m, s)
	err := c.powerOff(m, s.process)
	clients.running.Wait()
	if err != nil {
		c.fail("%v", err)
	}
	if len(c.wrong) > 0 {
		return
	}
	c.story = append(c.story, moment)
	c.look([]outcome{nothing, something, something}[c.rng.IntN(3)])
	if c.rng.IntN(6) == 0 { // only killed: what waits for a sync still does
		c.story = append(c.story, "killed")
		c.disk.restart()
		return
	}
	c.cut([]outcome{nothing, nothing, something, something, everything}[c.rng.IntN(5)])
	if c.rng.IntN(4) == 0 {
		c.removeIndex()
	}
	c.interruptStarts()
}

// removeIndex removes the index. The next start rebuilds it from the log.
func (c *chain) removeIndex() {
	if c.disk.remove(dataDir + "/store/index.db") {
		c.story = append(c.story, "index.db removed")
	}
}

// cut continues the chain from one outcome of a cut.
func (c *chain) cut(o outcome) {
	c.cuts++
	c.disk = c.disk.cut(o, c.rng)
	c.story = append(c.story, fmt.Sprintf("cut that keeps %s", o))
}

// look verifies one outcome of a cut. The chain does not continue from it.
func (c *chain) look(o outcome) {
	disk, model, story := c.disk, c.model, len(c.story)
	c.cut(o)
	if c.rng.IntN(3) > 0 {
		c.removeIndex()
	}
	if m, s := c.verified(); s != nil {
		if err := c.powerOff(m, s.process); err != nil {
			c.fail("%v", err)
		}
	}
	c.disk, c.model, c.story = disk, model, c.story[:story]
}

// finish verifies the last state of the chain once more: after a restart with
// the index removed, or after a backup was restored on another disk and the
// power was cut there.
func (c *chain) finish() {
	m, s := c.verified()
	if s == nil {
		return
	}
	backup := filepath.Join(c.tmp, "backup.tar")
	restore := c.rng.IntN(2) == 0
	if restore {
		if err := c.machine.run("backup", backup); err != nil {
			c.fail("%v", err)
		}
	}
	if err := c.powerOff(m, s.process); err != nil || len(c.wrong) > 0 {
		c.fail("power off: %v", err)
		return
	}
	if restore {
		c.restore(backup)
	} else {
		c.cut(everything)
		c.removeIndex()
	}
	if m, s := c.verified(); s != nil {
		if err := c.powerOff(m, s.process); err != nil {
			c.fail("%v", err)
		}
	}
}

// restore restores a backup on an empty disk and cuts the power when that has ended.
func (c *chain) restore(backup string) {
	c.disk = c.newDisk(c.disk.mode)
	m, err := c.disk.mount(c.mountpoint)
	if err != nil {
		c.fail("%v", err)
		return
	}
	if err := errors.Join(c.machine.run("restore", backup), c.powerOff(m)); err != nil {
		c.fail("%v", err)
		return
	}
	c.restored = true
	c.story = append(c.story, "backup restored")
	c.cut([]outcome{nothing, something}[c.rng.IntN(2)])
}

// interruptStarts sometimes cuts the power while the service starts.
func (c *chain) interruptStarts() {
	for c.rng.IntN(3) == 0 {
		m, err := c.disk.mount(c.mountpoint)
		if err != nil {
			c.fail("%v", err)
			return
		}
		changes := c.rng.IntN(60)
		m.stopWhen(func(_, _ string) bool { changes--; return changes < 0 })
		s, err := c.serve()
		if err != nil {
			c.fail("%v", err)
			return
		}
		select {
		case <-m.stopped:
		case <-s.done:
		case <-time.After(200 * time.Millisecond):
		}
		c.story = append(c.story, "interrupted start")
		if err := c.powerOff(m, s.process); err != nil {
			c.fail("%v", err)
		}
		c.cut([]outcome{nothing, something, something}[c.rng.IntN(3)])
	}
}

// awaitMoment waits for the moment at which the power is cut.
func (c *chain) awaitMoment(m *mount, s *service) string {
	wait := time.Duration(100+c.rng.IntN(500)) * time.Millisecond
	n := 1 + c.rng.IntN(12)
	kind := []string{"any", "write", "fsync", "name", "name", "log file", "log file", "stop"}[c.rng.IntN(8)]
	limit := time.Second
	if slices.Contains(c.load.commands, "compact") && c.rng.IntN(2) == 0 { // when there is something to compact
		kind, n, wait, limit = "compaction", 1+c.rng.IntN(4), wait+c.load.retention+c.load.history, 3*time.Second
	}
	select {
	case <-s.done:
	case <-time.After(wait):
	}
	left := n
	m.stopWhen(func(change, name string) bool {
		if isOfKind(kind, change, name) {
			left--
		}
		return left < 0
	})
	if kind == "stop" {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-m.stopped:
	case <-s.done:
		if kind != "stop" || s.err != nil {
			c.fail("the service has ended by itself: %v: %s", s.err, &s.output)
		}
	case <-time.After(limit):
	}
	return fmt.Sprintf("load for %v, then %d changes of kind %q", wait, n, kind)
}

// isOfKind reports whether a change of a file belongs to a kind of moments.
func isOfKind(kind, change, name string) bool {
	switch kind {
	case "name":
		return change != "write" && change != "fsync" && change != "setattr"
	case "compaction":
		return (change == "rename" || change == "unlink") && strings.HasPrefix(name, "log-")
	case "log file":
		return strings.HasPrefix(name, "log-") || strings.HasPrefix(name, "index")
	case "write", "fsync":
		return change == kind
	}
	return true
}

// verified starts the service on the disk and compares everything it shows with
// the model. Sometimes it runs "eventsvc check" before. It returns nil after a
// violation.
func (c *chain) verified() (*mount, *service) {
	return c.compared(c.model.confirmed > 0 && c.rng.IntN(2) == 0)
}

func (c *chain) compared(check bool) (*mount, *service) {
	m, err := c.disk.mount(c.mountpoint)
	if err != nil {
		c.fail("%v", err)
		return nil, nil
	}
	s, err := c.verify(check)
	if err == nil && len(c.wrong) == 0 {
		return m, s
	}
	if err != nil {
		c.fail("%v", err)
	}
	var all []*process
	if s != nil {
		all = append(all, s.process)
	}
	if err := c.powerOff(m, all...); err != nil {
		c.fail("%v", err)
	}
	return nil, nil
}

func (c *chain) verify(check bool) (*service, error) {
	if check {
		if err := c.machine.run("check"); err != nil {
			return nil, err
		}
	}
	s, err := c.serve()
	if err != nil {
		return nil, err
	}
	if err := s.ready(); err != nil {
		return s, err
	}
	shown, err := c.read(s)
	if err != nil {
		return s, err
	}
	next, wrong := c.model.verify(*shown, c.load.mayBeGone)
	for _, text := range wrong[:min(len(wrong), 3)] {
		c.fail("%s", text)
	}
	if len(wrong) > 3 {
		c.fail("%d violations in all", len(wrong))
	}
	c.model = next
	return s, nil
}

// read writes one event, which must get a new revision, and then reads
// everything.
func (c *chain) read(s *service) (*seen, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const namespace, name = "first", "write"
	r := request{change{key: namespace + "/" + name, request: newRequestID(), sum: sum("")}, true}
	status, answer, err := s.call(ctx, "PUT", "namespaces/"+namespace+"/events/"+name, "application/json", event(namespace, name, r.request, ""))
	if err != nil || status != 200 && status != 201 {
		return nil, fmt.Errorf("the first write after a start: %d %w: %.300s", status, err, answer)
	}
	before := c.model.newest
	r.revision = revisionIn(answer)
	c.model = c.model.with(r)
	if r.revision <= before {
		return nil, fmt.Errorf("the first write after a start has revision %d, but %d was given before", r.revision, before)
	}
	out := &seen{from: c.model.from}
	if out.list, out.revision, err = s.list(ctx); err != nil {
		return nil, err
	}
	if n := len(c.model.history); n > 0 && c.rng.IntN(2) == 0 {
		out.from = c.model.history[c.rng.IntN(n)].revision
	}
	if err = s.watchUpTo(ctx, out); errors.Is(err, errGone) {
		out.from, out.watch = c.model.revision, nil
		err = s.watchUpTo(ctx, out)
	}
	if errors.Is(err, errGone) && (c.load.history > 0 || c.restored) {
		out.gone, err = true, nil
	}
	if err != nil {
		return nil, fmt.Errorf("watch from %d to %d: %w", out.from, out.revision, err)
	}
	return out, nil
}

// watchUpTo watches what has happened up to the revision of the list.
func (s *service) watchUpTo(ctx context.Context, out *seen) error {
	return s.watch(ctx, out.from, func(c change) bool {
		if c.revision <= out.revision {
			out.watch = append(out.watch, c)
		}
		return c.revision < out.revision
	})
}
