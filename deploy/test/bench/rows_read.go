package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// Namespaces that the reading rows find filled.
const (
	tenThousand     = "ten-thousand"
	hundredThousand = "hundred-thousand"
	million         = "million"
)

// readStage has the rows over 10,000 events, the watches at the end of it.
func readStage() stage {
	s := stage{
		name: "10,000 events",
		open: func(b *bench) error {
			return errors.Join(b.start(target.Options{}), b.up.Fill(b.ctx, tenThousand, 0, 10_000))
		},
		rows: []row{
			{name: "floor/get/64", run: requestFloor(floor.Answer, "gets/s", manyGets)},
			{name: "get/64", goal: atLeast(40_000), run: gets, beside: share("floor/get/64")},
			passwords(),
			{name: "list/10000/json", goal: p50Within(18 * time.Millisecond), run: lists(tenThousand, 10_000, target.JSONType, ""), beside: times("floor/copy/16MiB")},
			{name: "list/10000/protobuf", goal: p50Within(18 * time.Millisecond), run: lists(tenThousand, 10_000, target.ProtoType, ""), beside: times("floor/copy/16MiB")},
			{name: "list/10000/table", goal: p50Within(60 * time.Millisecond), run: lists(tenThousand, 10_000, target.TableType, "")},
			{name: "list/10000/gzip", run: lists(tenThousand, 10_000, target.JSONType, "Accept-Encoding: gzip\r\n")},
			{name: "list/10000/pages", run: pages(tenThousand, 10_000, enough)},
			{name: "select/10000", goal: p50Within(2 * time.Millisecond), run: selects(tenThousand, 100)},
			{name: "floor/patch/16", run: requestFloor(floor.Store, "puts/s", mergePatches)},
			{name: "patch/merge", grows: true, goal: atLeast(8_000), run: patches(workload.MergePatch), beside: share("floor/patch/16")},
			{name: "patch/strategic", grows: true, goal: atLeast(8_000), run: patches(workload.StrategicPatch), beside: share("floor/patch/16")},
		},
	}
	s.rows = append(s.rows, watchRows()...)
	return s
}

// largeStage has the lists of 100,000 events.
func largeStage() stage {
	return stage{
		name: "100,000 events",
		open: func(b *bench) error {
			return errors.Join(b.start(target.Options{}), b.up.Fill(b.ctx, hundredThousand, 0, 100_000))
		},
		rows: []row{
			{name: "list/100000/json", goal: p50Within(200 * time.Millisecond), run: lists(hundredThousand, 100_000, target.JSONType, "")},
			{name: "list/100000/pages", goal: p50Within(300 * time.Millisecond), run: pages(hundredThousand, 100_000, enough)},
			{name: "memory/100000", run: restingMemory},
		},
	}
}

// onEvents is a row of a load on the events of a namespace.
func onEvents(unit, namespace string, spec func(*target.Services, *target.Events) load.Spec) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, namespace)
		if err != nil {
			return nil, err
		}
		return b.load(b.eventsvc(), unit, spec(b.up, e))
	}
}

// gets is a row of gets of 10,000 events.
func gets(b *bench) (*result, error) { return onEvents("gets/s", tenThousand, manyGets)(b) }

func manyGets(up *target.Services, e *target.Events) load.Spec { return workload.Gets(up, e, 64) }

// passwords is a row of small requests of 16 connections. Turns with a user and a password, whose token eventsvc keeps,
// alternate with turns with a token. The row has the figures of the turns with a password.
func passwords() row {
	const most, turns = 1.1, 12
	ratio := 0.0
	return row{
		name: "password/16",
		goal: goal{text: fmt.Sprintf("CPU ≤ %.1f × that with a token", most), met: func(*bench, *result) bool { return ratio > 0 && ratio <= most }},
		run: func(b *bench) (*result, error) {
			short := *b
			short.duration /= 4
			ask := func(e *target.Events) (*result, error) {
				spec := workload.Questions(b.up, e, "/loki/api/v1/status/buildinfo", []string{`"version"`}, new(int))
				spec.Conns = 16
				return short.load(b.eventsvc(), "requests/s", spec)
			}
			var r *result
			var ratios []float64
			for range turns {
				withToken, err := b.up.EventsOf(b.ctx, 0, tenThousand)
				if err != nil {
					return r, err
				}
				plain, err := ask(withToken)
				if err != nil {
					return r, err
				}
				if r, err = ask(b.up.WithPassword(0, tenThousand)); err != nil {
					return r, err
				}
				ratios = append(ratios, float64(r.serverCPU)/float64(plain.serverCPU))
			}
			slices.Sort(ratios)
			ratio = (ratios[turns/2-1] + ratios[turns/2]) / 2
			r.notef("%.2f × the CPU with a token, in %d turns between %.2f and %.2f", ratio, turns, ratios[0], ratios[turns-1])
			return r, nil
		},
	}
}

// lists is a row of unpaged lists of n events, one after the other.
func lists(namespace string, n int, accept, fields string) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, namespace)
		if err != nil {
			return nil, err
		}
		size := 0
		r, err := b.load(b.eventsvc(), "lists/s", workload.Lists(b.up, e, n, accept, fields, &size))
		if err == nil {
			r.notef("%.1f MB, %.2f GB/s", float64(size)/1e6, float64(size)/r.p50.Seconds()/1e9)
		}
		return r, err
	}
}

// selects is a row of lists by a label that 1 % of the events have.
func selects(namespace string, n int) func(*bench) (*result, error) {
	return selections(namespace, "labelSelector="+url.QueryEscape(target.ShardLabel+"=07"), n)
}

// pages is a row of lists by pages of 500; its times are of whole lists, of which there are so many at least.
func pages(namespace string, n int, least int64) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, namespace)
		if err != nil {
			return nil, err
		}
		p := workload.NewPager(b.up, e, n)
		complete := func(*load.Load) bool { return p.Times.Count() >= least }
		r, err := b.loadUntil(b.eventsvc(), "pages/s", complete, p.Pages())
		if err != nil {
			return r, err
		}
		r.quantiles(&p.Times)
		r.notef("times are of all %d pages; %.1f s per million", (n+workload.PageSize-1)/workload.PageSize, r.p50.Seconds()/float64(n)*1e6)
		return r, nil
	}
}
