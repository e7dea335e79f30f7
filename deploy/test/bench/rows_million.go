package main

import (
	"errors"
	"fmt"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/proc"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// millionEvents is the number of events of the long form.
const millionEvents = 1_000_000

// millionStage has the rows over a million events.
func millionStage() stage {
	ready := goal{text: "ready < 1 s", met: func(_ *bench, r *result) bool { return r.p50 < time.Second }}
	removal := goal{text: "< 10 s, probe p99 < 100 ms", met: func(_ *bench, r *result) bool {
		return r.rate > millionEvents/10 && r.p99 < 100*time.Millisecond
	}}
	return stage{
		name: "1,000,000 events",
		open: fillMillion,
		rows: []row{
			{name: "memory/1000000", long: true, goal: anonWithin(350 << 20), run: restingMemory},
			{name: "select/1000000", long: true, goal: p50Within(60 * time.Millisecond), run: selects(million, millionEvents/100)},
			{name: "start/warm", long: true, goal: ready, run: restarts(false)},
			{name: "start/cold", long: true, run: restarts(true)},
			{name: "deletecollection/1000000", long: true, once: true, goal: removal, run: deleteAll},
		},
	}
}

func fillMillion(b *bench) error {
	if err := b.start(target.Options{}); err != nil {
		return err
	}
	begun := time.Now()
	if err := b.up.Fill(b.ctx, million, 0, millionEvents); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "filled at %.0f creates/s\n", millionEvents/time.Since(begun).Seconds())
	return nil
}

// restarts is a row of one stop and start; its time is until ready.
func restarts(cold bool) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		ready, err := b.up.RestartEvents(b.ctx, cold)
		if err != nil {
			return nil, err
		}
		r, err := restingMemory(b)
		r.p50 = ready
		if cold {
			err = errors.Join(err, proc.ReadCached(b.up.DataDir()))
		}
		return r, err
	}
}

// deleteLimit is how long the deletion of a million events may take.
const deleteLimit = 3 * time.Minute

// deleteAll deletes a million events by one request; the latencies are those
// of creates at 100/s meanwhile.
func deleteAll(b *bench) (*result, error) {
	e, err := b.up.EventsOf(b.ctx, 0, million)
	if err != nil {
		return nil, err
	}
	other, err := b.up.EventsOf(b.ctx, 0, "probe")
	if err != nil {
		return nil, err
	}
	l, err := load.NewLoop()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	probe := b.up.CreateSpec(other, 16)
	probe.Interval = 10 * time.Millisecond
	creates, err := l.NewLoad(probe)
	if err != nil {
		return nil, err
	}
	size := 0
	removal, err := l.NewLoad(workload.Deletion(b.up, e, &size))
	if err != nil {
		return nil, err
	}
	r := &result{unit: "deletions/s"}
	err = b.measure(r, b.eventsvc(), func() (int, error) {
		creates.Start()
		removal.Start()
		err := l.Run(deleteLimit, removal.Finished)
		return millionEvents, err
	})
	if !removal.Finished() {
		err = errors.Join(err, fmt.Errorf("not answered after %v", deleteLimit))
	}
	if err := errors.Join(err, creates.Drain(), removal.Failure, creates.Failure); err != nil {
		return r, err
	}
	r.quantiles(&creates.Latency)
	r.notef("%.1f s, %.0f MB in the answer; the times are of creates at 100/s meanwhile", millionEvents/r.rate, float64(size)/1e6)
	return r, load.Do(workload.NoneLeft(b.up, e), time.Minute)
}
