package main

import (
	"bytes"
	"fmt"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// compressedShare is the part of its files that a store may take when it is compressed. The log file that is still
// written to is none of it, because it is compressed when it is full: 64 MiB, of however many events.
const compressedShare = 1.0 / 8

// mixBytes is room for ten million events: they take 26 GiB before they are compressed, and eventsvc gives events about
// half of its limit.
const mixBytes = "100GiB"

// mixStage has the rows of events of a realistic mix, before and after they are compressed.
func mixStage(events int) stage {
	m := &target.Mix{Events: events}
	prefix := fmt.Sprintf("mix/%d/", events)
	var plain target.StoreSize
	named := func(name string, g goal, run func(*bench) (*result, error)) row {
		return row{name: prefix + name, long: true, goal: g, run: run}
	}
	replayed := rateOf(0.6, prefix+"plain/replay")
	ready := goal{text: "ready < 1 s a million, < 3 s ten", met: func(_ *bench, r *result) bool {
		return r.p50 < time.Second || events > millionEvents && r.p50 < 3*time.Second
	}}
	before := []row{named("plain/get", goal{}, mixGets(m)), named("plain/replay", goal{}, replays)}
	if events == millionEvents { // more are not in memory, and a search that waits for the disk ends after 20 seconds
		before = append(before, named("plain/scan", goal{}, mixScan(m)))
	}
	return stage{
		name: fmt.Sprintf("%d events of a realistic mix", events),
		open: func(b *bench) error {
			m.Begin = time.Now().Truncate(time.Second).Add(-time.Duration(events) * 10 * time.Millisecond)
			if err := b.start(target.Options{MaxBytes: mixBytes, Events: []string{"--compress-after=off"}}); err != nil {
				return err
			}
			begun := time.Now()
			err := b.up.FillMix(b.ctx, m, func(done int) {
				if done%(events/10) == 0 {
					fmt.Fprintf(b.out, "filled with %d events in %s\n", done, time.Since(begun).Round(time.Second))
				}
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(b.out, "filled at %.0f creates/s\n", float64(events)/time.Since(begun).Seconds())
			plain, err = target.StoreSizeOf(b.up.DataDir())
			return err
		},
		rows: append(before, []row{
			named("plain/memory", goal{}, restingMemory),
			{name: prefix + "compress", long: true, once: true, run: compresses(m, &plain), goal: goal{
				text: "store ≤ 1/8 of its bytes", met: func(_ *bench, r *result) bool { return float64(r.disk) <= compressedShare*float64(plain.Full()) },
			}},
			named("start", ready, restarts(false)),
			named("get", p50Within(500*time.Microsecond), mixGets(m)),
			named("page/500", p50Within(60*time.Millisecond), onePages(events)),
			named("events/500", p50Within(15*time.Millisecond), mixPage(m)),
			named("scan", p50Within(3*time.Second), mixScan(m)),
			named("replay", replayed, replays),
			named("memory", goal{}, restingMemory),
		}...),
	}
}

// compresses is the row that compresses the log; its disk is what the store takes then, without the file that is
// written to.
func compresses(m *target.Mix, plain *target.StoreSize) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		r := &result{unit: "events/s"}
		err := b.measure(r, b.eventsvc(), func() (int, error) {
			_, err := b.up.Compress()
			return m.Events, err
		})
		if err != nil {
			return r, err
		}
		now, err := target.StoreSizeOf(b.up.DataDir())
		if err != nil {
			return r, err
		}
		r.disk = now.Full()
		share := func(before, after int64) float64 { return float64(before) / float64(after) }
		each := func(bytes int64) float64 { return float64(bytes) / float64(m.Events) }
		r.notef("full log files 1/%.1f; with the index 1/%.1f; with the file that is written to 1/%.1f, that is %.0f B an event (log %.0f, index %.0f) instead of %.0f; at 1,000 events a second %.1f %% of a core",
			share(plain.Sealed, now.Sealed), share(plain.Full(), now.Full()), share(plain.Full()+plain.Head, now.Full()+now.Head),
			each(now.Full()+now.Head), each(now.Sealed+now.Head), each(now.Index), each(plain.Full()+plain.Head), 100*1000*r.serverCPU.Seconds())
		return r, nil
	}
}

// mixGets is a row of gets of events in no order.
func mixGets(m *target.Mix) func(*bench) (*result, error) {
	return onEvents("gets/s", "", func(up *target.Services, e *target.Events) load.Spec { return workload.MixGets(up, e, m) })
}

// mixPage is a row of a page of events from the middle of the mix, newest first.
func mixPage(m *target.Mix) func(*bench) (*result, error) {
	return mixQuestion(m, "limit=500", m.Events/2, false)
}

// mixScan is a row of searches for a text that none of the first million events has.
func mixScan(m *target.Mix) func(*bench) (*result, error) {
	return mixQuestion(m, "search=nowhere-to-be-found", millionEvents, true)
}

// mixQuestion is a row of a question about the first events, newest first. An answer that must be whole has no next
// page: a search ends after 20 seconds, wherever it has come to.
func mixQuestion(m *target.Mix, parameters string, events int, whole bool) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, "")
		if err != nil {
			return nil, err
		}
		path := "/query/v1/events?" + parameters + workload.Range("from", m.Begin, "to", m.At(events))
		spec := workload.Questions(b.up, e, path, nil, new(int))
		check := spec.Check
		spec.Check = func(i int, a *load.Answer) error {
			if whole == bytes.Contains(a.Body, []byte(`"continue":`)) {
				return fmt.Errorf("answer %d has a next page: %v, want %v", i, whole, !whole)
			}
			return check(i, a)
		}
		return b.load(b.eventsvc(), "answers/s", spec)
	}
}

// replays is a row of watches from the beginning, one after the other.
func replays(b *bench) (*result, error) {
	replay, err := workload.Replay(b.ctx, b.up)
	if err != nil {
		return nil, err
	}
	r := &result{unit: "changes/s"}
	return r, b.measure(r, b.eventsvc(), func() (n int, err error) {
		for begun := time.Now(); err == nil && time.Since(begun) < b.duration; n += workload.ReplayedChanges {
			err = replay()
		}
		return n, err
	})
}
