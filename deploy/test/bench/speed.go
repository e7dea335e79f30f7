package main

import (
	"fmt"
	"net/netip"
	"time"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/proc"
)

// What the machines that the goals are of gave of floor/hello/64.
const leastHello, mostHello = 64_000, 93_000

// speedometer measures how fast the machine is just now: processors and memory
// that are shared with other guests change by the minute, and nothing in /proc
// tells of it. It asks what floor/hello/64 asks, for a moment.
type speedometer struct {
	process *proc.Process
	addr    netip.AddrPort
}

// How long it asks before it counts, and then.
const (
	speedWarmUp = 100 * time.Millisecond
	speedTime   = 400 * time.Millisecond
)

func startSpeedometer(dir string) (*speedometer, error) {
	p, addr, err := floor.Start(dir, floor.Hello)
	if err != nil {
		return nil, err
	}
	return &speedometer{p, addr}, nil
}

func (s *speedometer) stop() error { return floor.Stop(s.process) }

// read returns requests per second.
func (s *speedometer) read() (float64, error) {
	l, err := load.NewLoop()
	if err != nil {
		return 0, err
	}
	defer l.Close()
	ld, err := l.NewLoad(helloSpec(s.addr))
	if err != nil {
		return 0, err
	}
	ld.Start()
	if err := l.Run(speedWarmUp, nil); err != nil {
		return 0, err
	}
	ld.Reset()
	from := l.Now()
	if err := l.Run(speedTime, nil); err != nil {
		return 0, err
	}
	rate := float64(ld.Done) / (l.Now() - from).Seconds()
	if err := ld.Drain(); err != nil {
		return 0, err
	}
	return rate, ld.Failure
}

// await reads the machine's speed before a row. One that leaves events behind
// waits for a faster machine, as long as the others would be repeated: repeated
// itself, it would leave more than those behind it are meant to have.
func (b *bench) await(row row) float64 {
	for try := 1; ; try++ {
		hello := b.speedFor(row)
		if !row.grows || hello == 0 || hello >= leastHello || try == b.tries || b.ctx.Err() != nil {
			return hello
		}
		time.Sleep(calm)
	}
}

// speedFor reads the machine's speed for a row whose goal depends on it; 0 for
// the others.
func (b *bench) speedFor(row row) float64 {
	if b.speed == nil || row.goal.met == nil || row.goal.peer || row.once {
		return 0
	}
	hello, err := b.speed()
	if err != nil {
		fmt.Fprintf(b.out, "the machine's speed is not known: %v\n", err)
		return 0
	}
	return hello
}

// disturbed tells whether others took much of the processors during a row, or
// made the machine slower than any that the goals are of.
func (r *result) disturbed(row row) bool {
	return r.foreign > noisy || !row.grows && r.hello > 0 && r.hello < leastHello
}

// calmer tells whether the machine was more its own than for another attempt at
// the row, whatever their figures are.
func (r *result) calmer(other *result) bool {
	switch quiet := r.foreign <= noisy; {
	case quiet != (other.foreign <= noisy):
		return quiet
	case r.hello != other.hello:
		return r.hello > other.hello
	}
	return r.foreign < other.foreign
}

// speedText is what the machine gave, beside the slowest that the goals are of.
func speedText(hello float64) string {
	if hello == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*hello/leastHello)
}
