package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/proc"
	"tidings.example/deploy/test/bench/internal/stats"
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
		{name: "floor/hello/64", run: helloFloor},
		{name: "floor/copy/16MiB", run: copyFloor},
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

// startFloor starts a floor server in a process of its own.
func (b *bench) startFloor(kind string) (*proc.Process, netip.AddrPort, error) {
	port, err := proc.FreePort()
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
	self, err := os.Executable()
	if err != nil {
		return nil, addr, fmt.Errorf("floor server: %w", err)
	}
	p, err := proc.Start(filepath.Join(b.tmp, "floor.log"), exec.Command(self, floorCommand, kind, addr.String(), b.tmp))
	if err != nil {
		return nil, addr, err
	}
	for end := time.Now().Add(10 * time.Second); ; {
		c, err := net.Dial("tcp", addr.String())
		if err == nil {
			return p, addr, c.Close()
		}
		if time.Now().After(end) {
			return nil, addr, errors.Join(fmt.Errorf("floor server: %w", err), stopFloor(p))
		}
		time.Sleep(time.Millisecond)
	}
}

// stopFloor ends a floor server, which knows no other end than a signal.
func stopFloor(p *proc.Process) error {
	if err := p.Stop(); err != nil && err.Error() != "signal: terminated" {
		return err
	}
	return nil
}

// helloFloor is HTTP by echo without any work behind it.
func helloFloor(b *bench) (*result, error) {
	p, addr, err := b.startFloor(floor.Hello)
	if err != nil {
		return nil, err
	}
	r, err := b.load(pid{pid: p.PID()}, "requests/s", helloSpec(addr))
	return r, errors.Join(err, stopFloor(p))
}

// helloSpec asks the server of helloFloor.
func helloSpec(addr netip.AddrPort) load.Spec {
	request := []byte("GET /hello HTTP/1.1\r\nHost: " + addr.String() + "\r\n\r\n")
	return load.Spec{
		Addr: addr, Conns: 64,
		Next:  func(dst []byte, _ int) []byte { return append(dst, request...) },
		Check: load.Status(200),
	}
}

// copyFloor moves as many bytes over loopback as a list of 10,000 events has.
func copyFloor(b *bench) (*result, error) {
	p, addr, err := b.startFloor(floor.Copy)
	if err != nil {
		return nil, err
	}
	r := &result{unit: "copies/s"}
	var times stats.Histogram
	err = b.measure(r, pid{pid: p.PID()}, func() (int, error) { return copies(addr, b.duration, &times) })
	r.quantiles(&times)
	r.notef("%.1f GB/s", copiedSize/r.p50.Seconds()/1e9)
	return r, errors.Join(err, stopFloor(p))
}

func copies(addr netip.AddrPort, d time.Duration, times *stats.Histogram) (n int, err error) {
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	buf := make([]byte, 256<<10)
	ask := binary.BigEndian.AppendUint64(nil, copiedSize)
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
		start := time.Now()
		if _, err := c.Write(ask); err != nil {
			return n, err
		}
		if err := discard(c, copiedSize, buf); err != nil {
			return n, err
		}
		times.Add(time.Since(start))
	}
	return n, nil
}

func discard(from io.Reader, n int, buf []byte) error {
	for n > 0 {
		k, err := from.Read(buf)
		if err != nil {
			return err
		}
		n -= k
	}
	return nil
}
