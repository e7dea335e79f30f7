package main

import (
	"errors"
	"net/netip"

	"tidings.example/deploy/test/bench/internal/floor"
)

const (
	eventSize  = 1017     // bytes of a stored value in the bbolt floor
	frameSize  = 1556     // bytes of an event in a watch
	copiedSize = 16 << 20 // bytes, as a list of 10,000 events has
)

// floors are the rows of the machine itself.
func floors() stage {
	bolt := func(callers int) func(*bench) (*result, error) {
		return floorOf("puts/s", func(b *bench) (*floor.Result, error) {
			return floor.BoltPuts(b.tmp, callers, eventSize, b.duration)
		})
	}
	return stage{name: "what this machine can do", rows: []row{
		{name: "floor/sync", run: floorOf("appends/s", func(b *bench) (*floor.Result, error) { return floor.AppendSync(b.tmp, b.duration) })},
		{name: "floor/bbolt/1", run: bolt(1)},
		{name: "floor/bbolt/64", run: bolt(64)},
		{name: "floor/bbolt/256", run: bolt(256)},
		{name: "floor/hello/64", run: onFloor(floor.Hello, helloFloor)},
		{name: "floor/copy/16MiB", run: onFloor(floor.Copy, copyFloor)},
		{name: "floor/sign", run: floorOf("signatures/s", func(b *bench) (*floor.Result, error) { return floor.Sign(b.duration) })},
		{name: "floor/bcrypt", run: floorOf("compares/s", func(b *bench) (*floor.Result, error) { return floor.Compare(b.duration) })},
	}}
}

// floorOf is a row that runs in this process.
func floorOf(unit string, measure func(*bench) (*floor.Result, error)) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		r := &result{unit: unit}
		var f *floor.Result
		err := b.measure(r, pid{}, func() (n int, err error) {
			if f, err = measure(b); err != nil {
				return 0, err
			}
			return f.Count, nil
		})
		if err != nil {
			return r, err
		}
		r.rate = f.Rate()
		r.quantiles(&f.Times)
		return r, nil
	}
}

// onFloor is a row that measures a floor server in a process of its own.
func onFloor(kind string, measure func(b *bench, p pid, addr netip.AddrPort) (*result, error)) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		p, addr, err := floor.Start(b.tmp, kind)
		if err != nil {
			return nil, err
		}
		r, err := measure(b, pid{pid: p.PID()}, addr)
		return r, errors.Join(err, floor.Stop(p))
	}
}

// helloFloor is HTTP by echo without any work behind it.
func helloFloor(b *bench, p pid, addr netip.AddrPort) (*result, error) {
	return b.load(p, "requests/s", floor.HelloSpec(addr))
}

// copyFloor moves as many bytes over loopback as a list of 10,000 events has.
func copyFloor(b *bench, p pid, addr netip.AddrPort) (*result, error) {
	r := &result{unit: "copies/s"}
	var copied *floor.Result
	err := b.measure(r, p, func() (n int, err error) {
		copied, err = floor.ReadCopies(addr, copiedSize, b.duration)
		return copied.Count, err
	})
	r.quantiles(&copied.Times)
	r.notef("%.1f GB/s", copiedSize/r.p50.Seconds()/1e9)
	return r, err
}
