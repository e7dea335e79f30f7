package main

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
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
			{name: "floor/get/64", run: onFloor(floor.Answer, getFloor)},
			{name: "get/64", goal: atLeast(40_000), run: gets, beside: share("floor/get/64")},
			{name: "list/10000/json", goal: p50Within(18 * time.Millisecond), run: lists(tenThousand, 10_000, target.JSONType, ""), beside: times("floor/copy/16MiB")},
			{name: "list/10000/protobuf", goal: p50Within(18 * time.Millisecond), run: lists(tenThousand, 10_000, target.ProtoType, ""), beside: times("floor/copy/16MiB")},
			{name: "list/10000/table", goal: p50Within(60 * time.Millisecond), run: lists(tenThousand, 10_000, target.TableType, "")},
			{name: "list/10000/gzip", run: lists(tenThousand, 10_000, target.JSONType, "Accept-Encoding: gzip\r\n")},
			{name: "list/10000/pages", run: pages(tenThousand, 10_000)},
			{name: "select/10000", goal: p50Within(2 * time.Millisecond), run: selects(tenThousand, 100)},
			{name: "floor/patch/16", run: storeFloor(func(e *target.Events) load.Spec { return patchSpec(e, mergePatch) })},
			{name: "patch/merge", grows: true, goal: atLeast(8_000), run: patches(mergePatch), beside: share("floor/patch/16")},
			{name: "patch/strategic", grows: true, goal: atLeast(8_000), run: patches(strategicPatch), beside: share("floor/patch/16")},
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
			{name: "list/100000/pages", goal: p50Within(300 * time.Millisecond), run: pages(hundredThousand, 100_000)},
			{name: "memory/100000", run: restingMemory},
		},
	}
}

func gets(b *bench) (*result, error) {
	e, err := b.up.EventsOf(b.ctx, 0, tenThousand)
	if err != nil {
		return nil, err
	}
	return b.load(b.eventsvc(), "gets/s", load.Spec{
		Addr: b.up.API(), Secure: b.up.TLS, Conns: 64,
		Next:  func(dst []byte, i int) []byte { return e.Get.Fill(dst, scattered(i)) },
		Check: e.CheckEvent(200, scattered),
	})
}

// getFloor sends the same requests to a server that answers from memory, with
// the same headers and as many bytes.
func getFloor(b *bench, p pid, addr netip.AddrPort) (*result, error) {
	e, err := b.up.EventsOf(b.ctx, 0, tenThousand)
	if err != nil {
		return nil, err
	}
	return b.load(p, "gets/s", load.Spec{
		Addr: addr, Conns: 64,
		Next:  func(dst []byte, i int) []byte { return e.Get.Fill(dst, scattered(i)) },
		Check: load.Status(200),
	})
}

// lists is a row of unpaged lists of n events, one after the other.
func lists(namespace string, n int, accept, fields string) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, namespace)
		if err != nil {
			return nil, err
		}
		request := e.Request("GET", e.Path(), "Accept: "+accept+"\r\n"+fields, "")
		size := 0
		r, err := b.load(b.eventsvc(), "lists/s", load.Spec{
			Addr: b.up.API(), Secure: b.up.TLS, Conns: 1,
			Next: func(dst []byte, _ int) []byte { return append(dst, request...) },
			Keep: func(i int) bool { return i%target.KeptLists == 0 },
			Check: func(i int, a *load.Answer) error {
				if size == 0 {
					size = a.Size
				}
				return target.CheckList(i, a, size, n, fields != "")
			},
		})
		if err == nil {
			r.notef("%.1f MB, %.2f GB/s", float64(size)/1e6, float64(size)/r.p50.Seconds()/1e9)
		}
		return r, err
	}
}

// selects is a row of lists by a label that 1 % of the events have.
func selects(namespace string, n int) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, namespace)
		if err != nil {
			return nil, err
		}
		request := e.All("GET", "?labelSelector="+url.QueryEscape(target.ShardLabel+"=07"), target.JSONType)
		return b.load(b.eventsvc(), "lists/s", load.Spec{
			Addr: b.up.API(), Secure: b.up.TLS, Conns: 1,
			Next: func(dst []byte, _ int) []byte { return append(dst, request...) },
			Check: func(i int, a *load.Answer) error {
				if err := load.Status(200)(i, a); err != nil {
					return err
				}
				if got := target.CountEvents(a.Body); i%target.KeptLists == 0 && got != n {
					return fmt.Errorf("%d events in a selection of %d: %.300s", got, n, a.Body)
				}
				return nil
			},
		})
	}
}

// pages is a row of lists by pages of 500; its times are of whole lists.
func pages(namespace string, n int) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, namespace)
		if err != nil {
			return nil, err
		}
		p := target.NewPager(e, n)
		complete := func(*load.Load) bool { return p.Times.Count() >= enough }
		r, err := b.loadUntil(b.eventsvc(), "pages/s", complete, load.Spec{Addr: b.up.API(), Secure: b.up.TLS, Conns: 1, Next: p.Ask, Check: p.Check})
		if err != nil {
			return r, err
		}
		r.quantiles(&p.Times)
		r.notef("times are of all %d pages", (n+target.PageSize-1)/target.PageSize)
		return r, nil
	}
}
