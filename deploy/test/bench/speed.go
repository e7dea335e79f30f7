package main

import (
	"fmt"
	"time"
)

// The range of floor/hello/64, in requests per second, on the machines that the
// goals were set on.
const leastHello, mostHello = 64_000, 93_000

// await reads the machine's speed before a row. A row that leaves events behind
// waits until the machine is fast enough, with as many looks as other rows have
// attempts: if it were repeated, later rows would find too many events.
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

// disturbed reports whether other processes used much of the processors during
// a row, or the machine was slower than any that the goals were set on.
func (r *result) disturbed(row row) bool {
	return r.foreign > noisy || !row.grows && r.hello > 0 && r.hello < leastHello
}

// calmer reports whether the machine was quieter than during another attempt at
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
