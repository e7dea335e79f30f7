package main

import (
	"errors"
	"time"
)

// secureStage has the rows of the API once more over TLS and HTTP/2, as the
// peers were measured. Their best figures are the goals here; each connection
// has one request at a time.
func secureStage() stage {
	return stage{
		name: "10,000 events over TLS and HTTP/2",
		open: func(b *bench) error { return errors.Join(b.start(extra{secure: true}), b.fill(tenThousand, 0, 10_000)) },
		rows: []row{
			{name: "secure/create/1", goal: peer(peerFigure{title: "create, 1 connection", rate: 920}), run: creates(1)},
			{name: "secure/create/64", goal: peer(peerFigure{title: "create, 64 connections", rate: 2_794}), run: creates(64)},
			{name: "secure/create/256", goal: peer(peerFigure{title: "create, 256 connections", rate: 3_107}), run: creates(256)},
			{name: "secure/get/64", goal: peer(peerFigure{title: "get by name, 64 connections", rate: 6_363}), run: gets},
			{name: "secure/list/10000/json", goal: peer(peerFigure{title: "list of 10,000, JSON", p50: 176 * time.Millisecond}), run: lists(tenThousand, 10_000, jsonType, "")},
			{name: "secure/list/10000/protobuf", goal: peer(peerFigure{title: "list of 10,000, protobuf", p50: 99 * time.Millisecond}), run: lists(tenThousand, 10_000, protoType, "")},
			{name: "secure/list/10000/table", run: lists(tenThousand, 10_000, tableType, "")},
			{name: "secure/list/10000/pages", goal: peer(peerFigure{title: "list of 10,000 in pages of 500", p50: 212 * time.Millisecond}), run: pages(tenThousand, 10_000)},
			{name: "secure/select/10000", goal: peer(peerFigure{title: "selector that matches 1 %", p50: 9900 * time.Microsecond}), run: selects(tenThousand, 100)},
			{name: "secure/patch/merge", goal: peer(peerFigure{title: "merge patch, 16 connections", rate: 1_627}), run: patches(mergePatch)},
			{name: "secure/watch/1", goal: peer(peerFigure{title: "1 watcher", p50: 2 * time.Millisecond}), run: watches(1, watchInterval)},
			{name: "secure/watch/100", goal: peer(peerFigure{title: "100 watchers", p99: 6200 * time.Microsecond}), run: watches(100, watchInterval)},
			{name: "secure/watch/1000", goal: peer(peerFigure{title: "deliveries to 1,000 watchers", rate: 91_700}), run: watches(1000, watchInterval)},
			{name: "secure/saturation/1000", goal: peer(peerFigure{title: "the same at saturation", rate: 108_000}), run: watches(1000, 0)},
			{name: "secure/memory", run: (*bench).restingMemory},
		},
	}
}

// peer is the goal to be no worse than the best of the measured peers.
func peer(p peerFigure) goal {
	g := atLeast(p.rate)
	switch {
	case p.p50 > 0:
		g = p50Within(p.p50)
	case p.p99 > 0:
		g = p99Within(p.p99)
	}
	return goal{text: "best peer " + g.text, met: g.met, peer: &p}
}
