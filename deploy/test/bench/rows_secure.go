package main

import (
	"errors"
	"time"

	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// secureStage has the rows of the API over TLS and HTTP/2, as the peers were
// measured. Each connection has one request at a time. The goals are the best
// figures of any peer, from a measurement before that of the chart. Some of
// those peers are built on the library of kube-apiserver but do less, and some
// use a watch cache, which kube-apiserver does not use for events.
func secureStage() stage {
	return stage{
		name: "10,000 events over TLS and HTTP/2",
		open: func(b *bench) error {
			return errors.Join(b.start(target.Options{Secure: true}), b.up.Fill(b.ctx, tenThousand, 0, 10_000))
		},
		rows: []row{
			{name: "secure/create/1", goal: peer(atLeast(920)), run: creates(1)},
			{name: "secure/create/64", goal: peer(atLeast(2_794)), run: creates(64)},
			{name: "secure/create/256", goal: peer(atLeast(3_107)), run: creates(256)},
			{name: "secure/get/64", goal: peer(atLeast(6_363)), run: gets},
			{name: "secure/list/10000/json", goal: peer(p50Within(176 * time.Millisecond)), run: lists(tenThousand, 10_000, target.JSONType, "")},
			{name: "secure/list/10000/protobuf", goal: peer(p50Within(99 * time.Millisecond)), run: lists(tenThousand, 10_000, target.ProtoType, "")},
			{name: "secure/list/10000/table", run: lists(tenThousand, 10_000, target.TableType, "")},
			{name: "secure/list/10000/pages", goal: peer(p50Within(212 * time.Millisecond)), run: pages(tenThousand, 10_000, enough)},
			{name: "secure/select/10000", goal: peer(p50Within(9900 * time.Microsecond)), run: selects(tenThousand, 100)},
			{name: "secure/patch/merge", goal: peer(atLeast(1_627)), run: patches(workload.MergePatch)},
			{name: "secure/watch/1", goal: peer(p50Within(2 * time.Millisecond)), run: watches(1, watchInterval)},
			{name: "secure/watch/100", goal: peer(p99Within(6200 * time.Microsecond)), run: watches(100, watchInterval)},
			{name: "secure/watch/1000", goal: peer(atLeast(91_700)), run: watches(1000, watchInterval)},
			{name: "secure/saturation/1000", goal: peer(atLeast(108_000)), run: watches(1000, 0)},
			{name: "secure/memory", run: restingMemory},
		},
	}
}

// peer makes the figure of the best measured peer a goal.
func peer(g goal) goal { return goal{text: "best peer " + g.text, met: g.met, peer: true} }
