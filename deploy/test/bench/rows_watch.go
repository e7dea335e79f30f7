package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/workload"
)

const (
	watchInterval = 5 * time.Millisecond // 200 events a second
	watchDrain    = 20 * time.Second     // for what is under way at the end
)

// watchRows are the rows with watchers, each right after its floor.
func watchRows() []row {
	// One percent may be still under way when the time is over.
	everything := both(atLeast(198_000), p99Of(1.5, "floor/fanout/1000"))
	fair := either(atLeast(400_000), rateOf(1, "floor/fanout/saturation/1000"))
	rows := []row{
		{name: "floor/fanout/1", run: watchFloor(1, watchInterval)},
		{name: "watch/1", goal: p50Within(time.Millisecond), run: watches(1, watchInterval), beside: times("floor/fanout/1")},
		{name: "floor/fanout/100", run: watchFloor(100, watchInterval)},
		{name: "watch/100", goal: p99Within(3 * time.Millisecond), run: watches(100, watchInterval), beside: times("floor/fanout/100")},
		{name: "floor/fanout/1000", run: watchFloor(1000, watchInterval)},
		{name: "watch/1000", goal: everything, run: watches(1000, watchInterval), beside: times("floor/fanout/1000")},
		{name: "memory/10000", goal: anonWithin(96 << 20), run: restingMemory},
	}
	for _, n := range []int{1, 100, 1000} {
		name := fmt.Sprintf("floor/fanout/saturation/%d", n)
		r := row{name: fmt.Sprintf("saturation/%d", n), grows: true, run: watches(n, 0)}
		if n == 1000 {
			r.goal = fair
		}
		rows = append(rows, row{name: name, run: watchFloor(n, 0)}, r)
	}
	return rows
}

// watches is a row of n watchers while events are created: at a fixed rate,
// or with interval 0 as fast as they are answered.
func watches(n int, interval time.Duration) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		name := b.fresh(fmt.Sprintf("watch-%d-%d", n, interval.Microseconds()))
		e, err := b.up.EventsOf(b.ctx, 0, name)
		if err != nil {
			return nil, err
		}
		revision, err := b.up.Revision(b.ctx)
		if err != nil {
			return nil, err
		}
		spec := b.up.CreateSpec(e, postersFor(interval))
		spec.Interval = interval
		return b.fanout(b.eventsvc(), spec, load.WatchSpec{Watchers: n, Revision: revision, Request: e.Watch, Sample: e.CheckFrame})
	}
}

// watchFloor sends the same number of bytes to as many readers, without a
// service.
func watchFloor(n int, interval time.Duration) func(*bench) (*result, error) {
	return onFloor(floor.Fanout, func(b *bench, p pid, addr netip.AddrPort) (*result, error) {
		frame := workload.Frames(addr, frameSize)
		spec := load.Spec{Addr: addr, Conns: postersFor(interval), Interval: interval, Next: frame.Fill, Check: load.Status(201)}
		return b.fanout(p, spec, load.WatchSpec{
			Watchers: n,
			Request:  func(dst []byte, _ uint64) []byte { return append(dst, "GET / HTTP/1.1\r\n\r\n"...) },
			Sample:   func([]byte) error { return nil },
		})
	})
}

// fanout measures the deliveries of what spec creates to those who watch, and
// verifies every one of them.
func (b *bench) fanout(p pid, spec load.Spec, watch load.WatchSpec) (*result, error) {
	l, err := load.NewLoop()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	ld, err := l.NewLoad(spec)
	if err != nil {
		return nil, err
	}
	if !watch.Addr.IsValid() { // otherwise others are watched than are asked
		watch.Addr = spec.Addr
	}
	watch.Secure, watch.Began = spec.Secure, ld.Began
	au, err := l.NewAudience(watch)
	if err != nil {
		return nil, err
	}
	r := &result{unit: "deliveries/s"}
	err = b.measure(r, p, func() (int, error) {
		ld.Start()
		err := l.Run(b.duration, nil)
		return au.Deliveries, err
	})
	inTime := au.Deliveries
	if err := errors.Join(err, ld.Drain(), ld.Failure); err != nil {
		return r, err
	}
	ended := l.Now()
	err = au.Verify(ld.Asked(), watchDrain)
	r.quantiles(&au.Latency)
	r.notef("%.0f events/s, %d of %d deliveries in time, the last %v later; %d B each; %d streams resumed",
		float64(ld.Asked())/b.duration.Seconds(), inTime, ld.Asked()*watch.Watchers, (l.Now() - ended).Round(time.Millisecond), au.Bytes/max(au.Deliveries, 1), au.Cuts)
	return r, err
}

// postersFor is the number of connections that create events: more if they
// create without pause.
func postersFor(interval time.Duration) int {
	if interval == 0 {
		return 64
	}
	return 16
}
