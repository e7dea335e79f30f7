package main

import (
	"fmt"
	"time"
)

// The goals of the project, each as text for the table and as a test of the
// row's result.

func atLeast(rate float64) goal {
	return goal{text: fmt.Sprintf("≥ %.0f/s", rate), met: func(_ *bench, r *result) bool { return r.rate >= rate }}
}

func p50Within(d time.Duration) goal {
	return goal{text: fmt.Sprintf("p50 ≤ %v", d), met: func(_ *bench, r *result) bool { return r.p50 > 0 && r.p50 <= d }}
}

func p99Within(d time.Duration) goal {
	return goal{text: fmt.Sprintf("p99 ≤ %v", d), met: func(_ *bench, r *result) bool { return r.p99 > 0 && r.p99 <= d }}
}

func cpuWithin(d time.Duration) goal {
	return goal{text: fmt.Sprintf("CPU ≤ %v each", d), met: func(_ *bench, r *result) bool { return r.serverCPU > 0 && r.serverCPU <= d }}
}

func anonWithin(bytes int64) goal {
	return goal{text: fmt.Sprintf("RssAnon ≤ %d MiB", bytes>>20), met: func(_ *bench, r *result) bool { return r.memory.Anon > 0 && r.memory.Anon <= bytes }}
}

func residentWithin(bytes int64) goal {
	return goal{text: fmt.Sprintf("resident ≤ %d MiB", bytes>>20), met: func(_ *bench, r *result) bool {
		return r.memory.Anon > 0 && r.memory.Anon+r.memory.File <= bytes
	}}
}

// syncGoal allows one create twice the time of an append and its sync, and
// 0.3 ms.
func syncGoal() goal {
	return goal{text: "p50 ≤ 2 × floor/sync + 0.3ms", met: func(b *bench, r *result) bool {
		f := b.past("floor/sync")
		return f != nil && r.p50 > 0 && r.p50 <= 2*f.p50+300*time.Microsecond
	}}
}

// aloneShare asks for a share of what something alone made of the machine at that time.
func aloneShare(share float64, of string) goal {
	return goal{text: fmt.Sprintf("≥ %.0f %% of %s", 100*share, of), met: func(_ *bench, r *result) bool {
		return r.alone > 0 && r.rate >= share*r.alone
	}}
}

// rateOf asks for a share of another row's rate.
func rateOf(share float64, name string) goal {
	return goal{text: fmt.Sprintf("≥ %.0f %% of %s", 100*share, name), met: func(b *bench, r *result) bool {
		f := b.past(name)
		return f != nil && r.rate >= share*f.rate
	}}
}

// cpuOf allows a share of the processor time of another row.
func cpuOf(share float64, name string) goal {
	return goal{text: fmt.Sprintf("CPU ≤ %.0f %% of %s", 100*share, name), met: func(b *bench, r *result) bool {
		f := b.past(name)
		return f != nil && r.serverCPU > 0 && float64(r.serverCPU) <= share*float64(f.serverCPU)
	}}
}

// p99Of allows a multiple of another row's p99.
func p99Of(factor float64, name string) goal {
	return goal{text: fmt.Sprintf("p99 ≤ %.1f × %s", factor, name), met: func(b *bench, r *result) bool {
		f := b.past(name)
		return f != nil && r.p99 > 0 && float64(r.p99) <= factor*float64(f.p99)
	}}
}

// both asks for two goals.
func both(a, c goal) goal {
	return goal{text: a.text + ", " + c.text, met: func(b *bench, r *result) bool { return a.met(b, r) && c.met(b, r) }}
}

// either asks for one of two goals.
func either(a, c goal) goal {
	return goal{text: a.text + " or " + c.text, met: func(b *bench, r *result) bool { return a.met(b, r) || c.met(b, r) }}
}

// The remarks that say how near a row is to what its machine can do.

// share says which share of another row's rate a row reaches.
func share(name string) func(*bench, *result) string {
	return func(b *bench, r *result) string {
		f := b.past(name)
		if f == nil || f.rate == 0 {
			return ""
		}
		return fmt.Sprintf("%.0f %% of %s%s", 100*r.rate/f.rate, name, misses(b, r, f))
	}
}

// times says how many times the p50 and p99 of another row a row takes.
func times(name string) func(*bench, *result) string {
	return func(b *bench, r *result) string {
		f := b.past(name)
		if f == nil || f.p50 == 0 || f.p99 == 0 {
			return ""
		}
		return fmt.Sprintf("p50 %.1f and p99 %.1f × %s%s", float64(r.p50)/float64(f.p50), float64(r.p99)/float64(f.p99), name, misses(b, r, f))
	}
}

// timesAlone is times for a row of an attack, and compares the p99 of its floor, NAME/floor, in the same way. The floor
// does not change the goal: the load shares the cores, so clients of a server that does nothing also wait longer during
// an attack. The floor shows how much of the wait no service could avoid.
func timesAlone(name string) func(*bench, *result) string {
	return func(b *bench, r *result) string {
		remark := times(name)(b, r)
		floor, alone := b.past(r.name+"/floor"), b.past(name+"/floor")
		if remark == "" || floor == nil || alone == nil || alone.p99 == 0 {
			return remark
		}
		return fmt.Sprintf("%s, p99 of its floor %.1f × %s", remark, float64(floor.p99)/float64(alone.p99), alone.name)
	}
}

// misses returns a remark if the floor does not reach the row's goal either:
// then this machine is too slow for it.
func misses(b *bench, r, floor *result) string {
	if r.goal.met == nil || r.goal.met(b, floor) {
		return ""
	}
	return ", which misses the goal too"
}
