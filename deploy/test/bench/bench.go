package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"tidings.example/deploy/test/bench/internal/proc"
	"tidings.example/deploy/test/bench/internal/stats"
	"tidings.example/deploy/test/bench/internal/target"
)

// bench is one run of the benchmark.
type bench struct {
	options
	ctx     context.Context
	tmp     string // for the data of the services and of the floors
	out     io.Writer
	results []*result
	up      *target.Services        // of the current stage
	current string                  // the row that runs
	attempt int                     // at it, from 1
	speed   func() (float64, error) // of the machine, see floor.Speedometer; nil: nobody asks

	database *target.Database // of the current stage
	hashes   func() ([]string, error)
}

// stage is a group of rows on services that were started for them.
type stage struct {
	name string
	open func(*bench) error
	// close ends what open has started besides the services; it may be nil.
	close func() error
	rows  []row
}

// row is one line of the table.
type row struct {
	name string
	long bool // only in the long form
	// peers: it measures another program, and runs only with -peers.
	peers bool
	once  bool // it changes what it measures, so that it cannot be repeated
	// grows: it leaves many events behind. It is repeated only if other
	// processes were busy, not if the machine was slow.
	grows bool
	goal  goal
	run   func(*bench) (*result, error)
	// beside returns a remark that compares the result with an earlier row;
	// empty if that has not run. It may be nil.
	beside func(b *bench, r *result) string
}

// goal is what a row must reach; without a goal, met is nil.
type goal struct {
	text string
	met  func(b *bench, r *result) bool
	peer bool // it is the figure of a peer
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
	hello         float64 // floor/hello/64 just before or after, whichever was less, where it was measured
	alone         float64 // what the floor under the row made per second meanwhile, where it was measured
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
		if s.close != nil {
			err = errors.Join(err, s.close())
		}
		if b.up != nil {
			err = errors.Join(err, b.up.Stop(), os.RemoveAll(b.up.Dir))
			b.up = nil
		}
		if b.database != nil {
			err = errors.Join(err, b.database.Stop())
			b.database = nil
		}
	}()
	if s.open != nil {
		err = s.open(b)
	}
	for _, row := range rows {
		if err := b.ctx.Err(); err != nil {
			return failed, err
		}
		r := b.runRow(row, err)
		if r.err != nil {
			failed++
		}
		b.results = append(b.results, r)
		fmt.Fprintf(b.out, "%-32s %s\n", r.cells(b)[0], r.line(b))
	}
	return failed, nil
}

// calm is the pause before a disturbed row is run again.
const calm = 3 * time.Second

// runRow runs a row, unless begin is the error with which its stage failed to
// open. A row that was disturbed is run again. The quietest attempt counts,
// whatever its figures are; a failed attempt always counts.
func (b *bench) runRow(row row, begin error) *result {
	if begin != nil {
		return finished(row, nil, begin)
	}
	var quietest *result
	for b.attempt = 1; b.attempt <= b.tries; b.attempt++ {
		if b.attempt > 1 {
			time.Sleep(calm)
		}
		b.current = row.name
		before := b.await(row)
		r, err := row.run(b)
		if r = finished(row, r, err); r.err != nil {
			return r
		}
		if r.rate > 0 || r.p50 > 0 {
			r.hello = min(before, b.speedFor(row))
		}
		if quietest == nil || r.calmer(quietest) {
			quietest = r
		}
		if !quietest.disturbed(row) || row.once || b.ctx.Err() != nil {
			break
		}
	}
	if row.beside != nil {
		if remark := row.beside(b, quietest); remark != "" {
			quietest.notef("%s", remark)
		}
	}
	if n := min(b.attempt, b.tries); n > 1 {
		quietest.notef("the quietest of %d attempts", n)
	}
	return quietest
}

// finished adds name, goal and error to the result of a row.
func finished(row row, r *result, err error) *result {
	if r == nil {
		r = new(result)
	}
	r.name, r.goal = row.name, row.goal
	switch {
	case errors.Is(err, target.ErrNotInstalled):
		r.goal = goal{text: row.goal.text}
		r.notef("%v", err)
	case err != nil:
		r.err = err
		r.notef("FAILED: %v", err)
	}
	return r
}

// fresh is a namespace that no earlier attempt at the row has used.
func (b *bench) fresh(namespace string) string {
	if b.attempt > 1 {
		return fmt.Sprintf("%s-%d", namespace, b.attempt)
	}
	return namespace
}

// chosen are the rows that the flags ask for.
func (o *options) chosen(rows []row) (chosen []row) {
	for _, r := range rows {
		if (!r.long || o.long) && (!r.peers || o.peers) && o.wants(r.name) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// wants tells whether a name is, or is below, one of -rows.
func (o *options) wants(name string) bool {
	if o.rows == "" {
		return true
	}
	for want := range strings.SplitSeq(o.rows, ",") {
		want = strings.TrimSpace(want)
		if name == want || strings.HasPrefix(name, strings.TrimSuffix(want, "/")+"/") {
			return true
		}
	}
	return false
}

// past returns the result of an earlier row, or nil if it has not run or has
// failed.
func (b *bench) past(name string) *result {
	for _, r := range b.results {
		if r.name == name && r.err == nil {
			return r
		}
	}
	return nil
}

// start starts fresh services for the rows of a stage.
func (b *bench) start(more target.Options) error {
	dir, err := os.MkdirTemp(b.tmp, "services")
	if err != nil {
		return fmt.Errorf("directory of the services: %w", err)
	}
	return b.startIn(dir, more)
}

// startIn starts services with the data in a directory.
func (b *bench) startIn(dir string, more target.Options) (err error) {
	if more.Hashes, err = b.hashes(); err != nil {
		return err
	}
	more.Cgroup, more.Profiles = b.cgroup, b.profiles != ""
	b.up, err = target.Start(b.ctx, b.bin, dir, more)
	return err
}
