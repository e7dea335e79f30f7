package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tidings.example/deploy/bench/internal/load"
	"tidings.example/deploy/bench/internal/proc"
	"tidings.example/deploy/bench/internal/stats"
)

// bench is one run of the benchmark.
type bench struct {
	options
	ctx     context.Context
	tmp     string // for the data of the services and of the floors
	out     io.Writer
	results []*result
	up      *services // of the current stage
	current string    // the row that runs
}

// stage is a group of rows on services that were started for them.
type stage struct {
	name string
	open func(*bench) error
	rows []row
}

// row is one line of the table.
type row struct {
	name string
	long bool // only in the long form
	goal goal
	run  func(*bench) (*result, error)
}

// goal is what a row is to reach; nil met means that nothing is asked for.
type goal struct {
	text string
	met  func(b *bench, r *result) bool
}

// result is what a row has measured. Zero fields are left out of the table.
type result struct {
	name          string
	rate          float64
	unit          string
	p50, p95, p99 time.Duration
	serverCPU     time.Duration // of the measured process, per operation
	clientCPU     time.Duration // of this program, per operation
	memory        proc.Memory
	disk          int64
	foreign       float64 // cores that others used meanwhile
	note          string
	goal          goal
	err           error
}

// quantiles takes the latencies of h.
func (r *result) quantiles(h *stats.Histogram) {
	r.p50, r.p95, r.p99 = h.Quantile(.50), h.Quantile(.95), h.Quantile(.99)
}

// notef adds a remark.
func (r *result) notef(format string, args ...any) {
	if r.note != "" {
		r.note += "; "
	}
	r.note += fmt.Sprintf(format, args...)
}

// run runs the stages' chosen rows. A row that fails is reported as such and
// the others go on.
func (b *bench) run(stages []stage) error {
	var failed int
	for _, s := range stages {
		rows := b.chosen(s.rows)
		if len(rows) == 0 {
			continue
		}
		n, err := b.runStage(s, rows)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		failed += n
	}
	if failed > 0 {
		return fmt.Errorf("%d rows failed: see their notes", failed)
	}
	return nil
}

func (b *bench) runStage(s stage, rows []row) (failed int, err error) {
	fmt.Fprintf(b.out, "# %s\n", s.name)
	defer func() {
		if b.up != nil {
			err = errors.Join(err, b.up.stop(), os.RemoveAll(b.up.dir))
			b.up = nil
		}
	}()
	if s.open != nil {
		if err := s.open(b); err != nil {
			return 0, err
		}
	}
	for _, row := range rows {
		if err := b.ctx.Err(); err != nil {
			return failed, err
		}
		b.current = row.name
		r, err := row.run(b)
		if r == nil {
			r = new(result)
		}
		r.name, r.goal, r.err = row.name, row.goal, err
		if err != nil {
			failed++
			r.notef("FAILED: %v", err)
		}
		b.results = append(b.results, r)
		fmt.Fprintf(b.out, "%-28s %s\n", r.name, r.line(b))
	}
	return failed, nil
}

// chosen are the rows that the flags ask for.
func (b *bench) chosen(rows []row) (chosen []row) {
	for _, r := range rows {
		if (!r.long || b.long) && b.wants(r.name) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// wants tells whether a name is, or is below, one of -rows.
func (b *bench) wants(name string) bool {
	if b.rows == "" {
		return true
	}
	for want := range strings.SplitSeq(b.rows, ",") {
		want = strings.TrimSpace(want)
		if name == want || strings.HasPrefix(name, strings.TrimSuffix(want, "/")+"/") {
			return true
		}
	}
	return false
}

// past finds a row that has run, for the goals that refer to one.
func (b *bench) past(name string) *result {
	for _, r := range b.results {
		if r.name == name && r.err == nil {
			return r
		}
	}
	return nil
}

// start starts fresh services for the rows of a stage.
func (b *bench) start(more extra) error {
	dir, err := os.MkdirTemp(b.tmp, "services")
	if err != nil {
		return fmt.Errorf("directory of the services: %w", err)
	}
	b.up, err = startServices(b.ctx, b.bin, dir, more)
	return err
}

// usage is a reading of what has been used so far.
type usage struct {
	at                   time.Time
	server, self, others time.Duration
}

func (b *bench) usage(pid int) (u usage, err error) {
	busy, err1 := proc.BusyCPU()
	var err2 error
	if pid != 0 {
		u.server, err2 = proc.CPU(pid)
	}
	self, err3 := proc.CPU(os.Getpid())
	u.at, u.self, u.others = time.Now(), self, busy-self-u.server
	return u, errors.Join(err1, err2, err3)
}

// measure runs work and fills in rate and CPU time per operation; work returns
// the number of operations. A profile of the server is taken meanwhile where
// one is asked for.
func (b *bench) measure(r *result, p pid, work func() (int, error)) error {
	stop := b.profile(p)
	before, err := b.usage(p.pid)
	if err != nil {
		return err
	}
	ops, err := work()
	if err != nil {
		return err
	}
	after, err := b.usage(p.pid)
	if err != nil {
		return err
	}
	stop()
	elapsed := after.at.Sub(before.at)
	r.rate = float64(ops) / elapsed.Seconds()
	r.serverCPU = (after.server - before.server) / time.Duration(cmp.Or(ops, 1))
	r.clientCPU = (after.self - before.self) / time.Duration(cmp.Or(ops, 1))
	r.foreign = max((after.others-before.others).Seconds()/elapsed.Seconds(), 0)
	return r.space(p)
}

// space reads the memory and the disk that a process takes.
func (r *result) space(p pid) error {
	var err1, err2 error
	if p.pid != 0 {
		r.memory, err1 = proc.MemoryOf(p.pid)
	}
	if p.dir != "" {
		r.disk, err2 = proc.DiskBytes(p.dir)
	}
	return errors.Join(err1, err2)
}

// pid is a measured process: its number, where it keeps data, and where it
// offers profiles; each may be empty.
type pid struct {
	pid        int
	dir, admin string
}

func (b *bench) eventsvc() pid {
	return pid{pid: b.up.events.PID(), dir: b.up.dataDir(), admin: b.up.eventsAdmin}
}

func (b *bench) tokensvc() pid {
	return pid{pid: b.up.token.PID(), admin: b.up.tokenAdmin}
}

// profile begins to take a CPU profile of the server into a file of -profile;
// the returned function waits for it.
func (b *bench) profile(p pid) (wait func()) {
	if b.profiles == "" || p.admin == "" {
		return func() {}
	}
	done := make(chan error, 1)
	file := filepath.Join(b.profiles, strings.ReplaceAll(b.current, "/", "-")+".pprof")
	seconds := max(int(b.duration/time.Second), 1)
	go func() {
		done <- download(b.ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", p.admin, seconds), file)
	}()
	return func() {
		if err := <-done; err != nil {
			fmt.Fprintf(b.out, "no profile of %s: %v\n", b.current, err)
		}
	}
}

func download(ctx context.Context, url, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}

// warmUp is how long a load runs before it is measured.
const warmUp = 300 * time.Millisecond

// load measures one load for the duration of a row.
func (b *bench) load(p pid, unit string, spec load.Spec) (*result, error) {
	return b.loadBeside(p, unit, spec)
}

// loadBeside measures one load while others run beside it.
func (b *bench) loadBeside(p pid, unit string, spec load.Spec, others ...load.Spec) (*result, error) {
	l, err := load.NewLoop()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	var loads []*load.Load
	for _, s := range append([]load.Spec{spec}, others...) {
		ld, err := l.NewLoad(s)
		if err != nil {
			return nil, err
		}
		ld.Start()
		loads = append(loads, ld)
	}
	if err := l.Run(warmUp, nil); err != nil {
		return nil, err
	}
	for _, ld := range loads {
		ld.Reset()
	}
	r := &result{unit: unit}
	err = b.measure(r, p, func() (int, error) {
		err := l.Run(b.duration, nil)
		return loads[0].Done, err
	})
	if err != nil {
		return r, err
	}
	for i, ld := range loads {
		if i > 0 {
			r.notef("beside %.0f/s", float64(ld.Done)/b.duration.Seconds())
		}
		if err := errors.Join(ld.Drain(), ld.Failure); err != nil {
			return r, err
		}
	}
	r.quantiles(&loads[0].Latency)
	return r, nil
}
