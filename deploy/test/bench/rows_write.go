package main

import (
	"errors"
	"fmt"
	"time"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/proc"
)

// emptyStage has the rows that begin with an empty store.
func emptyStage() stage {
	return stage{
		name: "an empty store",
		open: func(b *bench) error { return b.start(extra{}) },
		rows: []row{
			{name: "memory/empty", goal: anonWithin(32 << 20), run: (*bench).restingMemory},
			{name: "create/1", grows: true, goal: syncGoal(), run: creates(1), beside: times("floor/sync")},
			{name: "floor/create/64", run: storeFloor(func(e *events) load.Spec { return load.Spec{Conns: 64, Next: e.create.fill} })},
			{name: "create/64", grows: true, goal: both(atLeast(12_000), cpuWithin(100*time.Microsecond)), run: creates(64), beside: share("floor/create/64")},
			{name: "create/256", run: creates(256)},
		},
	}
}

// creates is a row of creates from a number of connections.
func creates(conns int) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.namespace(b.fresh(fmt.Sprintf("create-%d", conns)))
		if err != nil {
			return nil, err
		}
		r, err := b.load(b.eventsvc(), "creates/s", b.createSpec(e, conns))
		return r, err
	}
}

// createSpec creates events 0, 1, 2 … of e.
func (b *bench) createSpec(e *events, conns int) load.Spec {
	return load.Spec{Addr: b.up.api(), Secure: b.up.tls, Conns: conns, Next: e.create.fill, Check: e.checkEvent(201, same)}
}

// namespace makes requests for a namespace, with a new token.
func (b *bench) namespace(name string) (*events, error) {
	token, err := b.up.fetchToken(b.ctx)
	if err != nil {
		return nil, err
	}
	return newEvents(b.up.eventsAddr.String(), token, name), nil
}

// fillPart is how many events are created with one token.
const fillPart = 100_000

// fill creates the events from to upTo-1 of a namespace.
func (b *bench) fill(namespace string, from, upTo int) error {
	for at := from; at < upTo; at = min(at+fillPart, upTo) {
		if err := b.fillPart(namespace, at, min(at+fillPart, upTo)); err != nil {
			return fmt.Errorf("fill %s: %w", namespace, err)
		}
	}
	return nil
}

func (b *bench) fillPart(namespace string, from, upTo int) error {
	e, err := b.namespace(namespace)
	if err != nil {
		return err
	}
	l, err := load.NewLoop()
	if err != nil {
		return err
	}
	defer l.Close()
	spec := b.createSpec(e, 256)
	spec.Next = func(dst []byte, i int) []byte { return e.create.fill(dst, from+i) }
	spec.Check = e.checkEvent(201, func(i int) int { return from + i })
	spec.Limit = upTo - from
	ld, err := l.NewLoad(spec)
	if err != nil {
		return err
	}
	ld.Start()
	// Half the rate that any peer reaches is slow enough to give up.
	limit := time.Duration(spec.Limit)*time.Millisecond + 30*time.Second
	if err := l.Run(limit, ld.Finished); err != nil {
		return err
	}
	if !ld.Finished() {
		return fmt.Errorf("%d of %d events are not created after %v", ld.Done, spec.Limit, limit)
	}
	return ld.Failure
}

// patches is a row of patches that give each of 10,000 events a new series.
func patches(mediaType string) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.namespace(tenThousand)
		if err != nil {
			return nil, err
		}
		spec := patchSpec(e, mediaType)
		spec.Addr, spec.Secure, spec.Check = b.up.api(), b.up.tls, e.checkEvent(200, scattered)
		return b.load(b.eventsvc(), "patches/s", spec)
	}
}

// storeFloor is requests to a server that only reads them and puts a record of
// an event's length into bbolt before it answers.
func storeFloor(spec func(*events) load.Spec) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.namespace(tenThousand)
		if err != nil {
			return nil, err
		}
		p, addr, err := b.startFloor(floor.Store)
		if err != nil {
			return nil, err
		}
		s := spec(e)
		s.Addr, s.Check = addr, load.Status(200)
		r, err := b.load(pid{pid: p.PID()}, "puts/s", s)
		return r, errors.Join(err, stopFloor(p))
	}
}

const (
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
)

// patchSpec patches the events of e from 16 connections.
func patchSpec(e *events, mediaType string) load.Spec {
	return load.Spec{Conns: 16, Next: func(dst []byte, i int) []byte {
		body := fmt.Sprintf(`{"series":{"count":%d,"lastObservedTime":"%s"}}`, i+2, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
		return e.patch(dst, scattered(i), mediaType, body)
	}}
}

// scattered visits the 10,000 events in an order without neighbours.
func scattered(i int) int { return i * 7919 % 10_000 }

// restingMemory is a row of eventsvc with nothing to do.
func (b *bench) restingMemory() (*result, error) { return b.resting(b.eventsvc()) }

// resting waits until a process has nothing to do and reads its memory.
func (b *bench) resting(p pid) (*result, error) {
	r := new(result)
	before, err := proc.CPU(p.pid)
	for range 100 { // at most ten seconds
		time.Sleep(100 * time.Millisecond)
		now, err2 := proc.CPU(p.pid)
		if err = errors.Join(err, err2); err != nil || now == before {
			break
		}
		before = now
	}
	if err != nil {
		return r, err
	}
	return r, r.space(p)
}
