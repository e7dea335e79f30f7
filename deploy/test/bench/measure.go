package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/proc"
	"tidings.example/deploy/test/bench/internal/target"
)

// measure runs work and fills in rate and CPU time per operation; work returns
// the number of operations. A profile of the server is taken meanwhile where
// one is asked for.
func (b *bench) measure(r *result, p pid, work func() (int, error)) error {
	stop := b.profile(p)
	before, err := proc.UsageOf(p.pid)
	if err != nil {
		return err
	}
	ops, err := work()
	if err != nil {
		return err
	}
	after, err := proc.UsageOf(p.pid)
	if err != nil {
		return err
	}
	stop()
	elapsed := after.At.Sub(before.At)
	r.rate = float64(ops) / elapsed.Seconds()
	r.serverCPU = (after.Server - before.Server) / time.Duration(cmp.Or(ops, 1))
	r.clientCPU = (after.Self - before.Self) / time.Duration(cmp.Or(ops, 1))
	r.foreign = max((after.Others-before.Others).Seconds()/elapsed.Seconds(), 0)
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

// pid is a measured process: its number, its data directory and the URL of its
// admin listener; each may be empty.
type pid struct {
	pid        int
	dir, admin string
}

func (b *bench) eventsvc() pid {
	return pid{pid: b.up.Events.PID(), dir: b.up.DataDir(), admin: b.up.EventsAdmin}
}

func (b *bench) tokensvc() pid {
	return pid{pid: b.up.Token.PID(), admin: b.up.TokenAdmin}
}

// profile begins to take a CPU profile of the server into a file of -profile, if there is to be one;
// the returned function waits for it.
func (b *bench) profile(p pid) (wait func()) {
	if b.profiles == "" || p.admin == "" {
		return func() {}
	}
	file := filepath.Join(b.profiles, strings.ReplaceAll(b.current, "/", "-")+".pprof")
	done := target.BeginProfile(b.ctx, p.admin, b.duration, file)
	return func() {
		if err := done(); err != nil {
			fmt.Fprintf(b.out, "no profile of %s: %v\n", b.current, err)
		}
	}
}

// warmUp is how long a load runs before it is measured.
const warmUp = 300 * time.Millisecond

// enough is the number of operations that a row measures at least, even if they
// take longer than -duration. It waits for them no longer than patience.
const (
	enough   = 5
	patience = time.Minute
)

// load measures one load for the duration of a row, while others run beside it.
func (b *bench) load(p pid, unit string, spec load.Spec, others ...load.Spec) (*result, error) {
	return b.loadUntil(p, unit, func(l *load.Load) bool { return l.Done >= enough }, spec, others...)
}

// loadUntil is load with another condition for having measured enough.
func (b *bench) loadUntil(p pid, unit string, enough func(*load.Load) bool, spec load.Spec, others ...load.Spec) (*result, error) {
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
		if err := l.Run(b.duration, nil); err != nil {
			return 0, err
		}
		err := l.Run(patience, func() bool { return loads[0].Failed > 0 || enough(loads[0]) })
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
