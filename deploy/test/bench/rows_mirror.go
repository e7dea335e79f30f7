package main

import (
	"errors"
	"fmt"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/proc"
	"tidings.example/deploy/test/bench/internal/target"
)

// mirrorStage has the rows of a mirror that copies the events of an eventsvc, which stands for a cluster, into a hub.
// Their times are from the due time of a create in the cluster until a watcher of the hub has the copy. CPU, memory and
// disk are the hub's.
func mirrorStage() stage {
	return stage{
		name: "a cluster and its hub",
		open: func(b *bench) error { return b.start(target.Options{}) },
		rows: []row{
			{name: "mirror/200", run: mirrors(watchInterval), beside: times("watch/1")},
			{name: "mirror/2000", run: mirrors(watchInterval / 10)},
		},
	}
}

// mirrors is a row of a watcher of the hub while events are created in the cluster at a fixed rate.
func mirrors(interval time.Duration) func(*bench) (*result, error) {
	return func(b *bench) (r *result, err error) {
		hub, stop, err := b.beside(target.Options{})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		m, err := b.up.Mirror(b.ctx, hub)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, m.Stop()) }()
		namespace := b.fresh(fmt.Sprintf("mirror-%d", interval.Microseconds()))
		events, err1 := b.up.EventsOf(b.ctx, 0, namespace)
		copies, err2 := hub.EventsOf(b.ctx, 0, namespace)
		held, err3 := b.up.Held(b.ctx)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		if err := hub.AwaitHeld(b.ctx, int(held)+1); err != nil { // what is there and the cursor: the mirror has begun
			return nil, err
		}
		revision, err := hub.Revision(b.ctx)
		if err != nil {
			return nil, err
		}
		before, err := proc.CPU(m.PID())
		if err != nil {
			return nil, err
		}
		spec := b.up.CreateSpec(events, postersFor(interval))
		spec.Interval = interval
		p := pid{pid: hub.Events.PID(), dir: hub.DataDir(), admin: hub.EventsAdmin}
		r, err = b.fanout(p, spec, load.WatchSpec{Addr: hub.API(), Watchers: 1, Revision: revision, Request: copies.Watch, Sample: copies.CheckFrame})
		if err != nil {
			return r, err
		}
		after, err := proc.CPU(m.PID())
		r.notef("the mirror takes %.0f µs of CPU an event", float64((after-before).Microseconds())/(r.rate*b.duration.Seconds()))
		return r, err
	}
}
