package main

import (
	"fmt"
	"net/netip"
	"time"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/proc"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// emptyStage has the rows that begin with an empty store.
func emptyStage() stage {
	return stage{
		name: "an empty store",
		open: func(b *bench) error { return b.start(target.Options{}) },
		rows: []row{
			{name: "memory/empty", goal: anonWithin(32 << 20), run: restingMemory},
			{name: "create/1", grows: true, goal: syncGoal(), run: creates(1), beside: times("floor/sync")},
			{name: "floor/create/64", run: requestFloor(floor.Store, "puts/s", func(up *target.Services, e *target.Events) load.Spec { return up.CreateSpec(e, 64) })},
			{name: "create/64", grows: true, goal: both(atLeast(12_000), cpuWithin(100*time.Microsecond)), run: creates(64), beside: share("floor/create/64")},
			{name: "create/256", run: creates(256)},
			{name: "bulk/500", grows: true, goal: cpuOf(1./3, "create/64"), run: bulkCreates(8, 500), beside: share("create/64")},
		},
	}
}

// creates is a row of creates from a number of connections.
func creates(conns int) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, b.fresh(fmt.Sprintf("create-%d", conns)))
		if err != nil {
			return nil, err
		}
		return b.load(b.eventsvc(), "creates/s", b.up.CreateSpec(e, conns))
	}
}

// bulkCreates is a row of bulk requests of n events from a number of connections. Its figures are of single events, but
// for the latencies.
func bulkCreates(conns, n int) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, b.fresh(fmt.Sprintf("bulk-%d", n)))
		if err != nil {
			return nil, err
		}
		r, err := b.load(b.eventsvc(), "creates/s", load.Spec{
			Addr: b.up.API(), Secure: b.up.TLS, Conns: conns, Check: target.CheckBulk(n),
			Next: func(dst []byte, i int) []byte { return e.Bulk(dst, i, n) },
		})
		if err == nil {
			r.rate *= float64(n)
			r.serverCPU /= time.Duration(n)
			r.clientCPU /= time.Duration(n)
		}
		return r, err
	}
}

// patches is a row of patches that give each of 10,000 events a new series.
func patches(mediaType string) func(*bench) (*result, error) {
	return onEvents("patches/s", tenThousand, func(up *target.Services, e *target.Events) load.Spec {
		return workload.Patches(up, e, mediaType, patchers)
	})
}

// requestFloor sends the requests of a row to a floor server: one that answers from memory with the same headers and as
// many bytes, or one that reads them and, before it answers, puts a record as long as an event's into bbolt.
func requestFloor(kind, unit string, spec func(*target.Services, *target.Events) load.Spec) func(*bench) (*result, error) {
	return onFloor(kind, func(b *bench, p pid, addr netip.AddrPort) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, tenThousand)
		if err != nil {
			return nil, err
		}
		s := spec(b.up, e)
		s.Addr, s.Secure, s.Check = addr, nil, load.Status(200)
		return b.load(p, unit, s)
	})
}

// patchers is the number of connections that patch.
const patchers = 16

// mergePatches are those of patch/merge, for their floor.
func mergePatches(up *target.Services, e *target.Events) load.Spec {
	return workload.Patches(up, e, workload.MergePatch, patchers)
}

// restingMemory is a row of eventsvc with nothing to do.
func restingMemory(b *bench) (*result, error) { return b.resting(b.eventsvc()) }

// resting waits until a process has nothing to do and reads its memory.
func (b *bench) resting(p pid) (*result, error) {
	if err := proc.Rest(p.pid); err != nil {
		return nil, err
	}
	r := new(result)
	return r, r.space(p)
}
