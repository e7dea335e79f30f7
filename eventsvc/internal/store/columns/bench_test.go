package columns

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// week is rows of a week: those of 4,000 pods on 60 nodes, as kubelets and controllers report them.
func week(n int) func(i int) Row {
	r := rand.New(rand.NewPCG(7, 0))
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	type pod struct{ namespace, app, name, uid, node string }
	apps := []string{"shop", "cart", "mail", "search", "media", "orders", "billing", "ledger", "auth", "gateway", "sync", "cache", "worker", "queue"}
	pods := make([]pod, 4000)
	for i := range pods {
		app := apps[r.IntN(len(apps))]
		pods[i] = pod{apps[r.IntN(len(apps))] + []string{"", "-dev", "-test"}[r.IntN(3)], app, app + "-" + random(9) + "-" + random(5),
			fmt.Sprintf("%08x-7ca3-4b8e-9d11-%012x", r.Uint32(), r.Int64N(1<<48)), fmt.Sprintf("node-%02d", r.IntN(60))}
	}
	kinds := []struct {
		weight               int
		kind, reason, report string
		note                 func(p *pod) string
	}{
		{18, "Normal", "Pulled", "kubelet", func(p *pod) string {
			return fmt.Sprintf("Container image \"registry.example/%s/%s:2.%d.%d\" already present on machine", p.namespace, p.app, r.IntN(41), r.IntN(10))
		}},
		{34, "Normal", "Started", "kubelet", func(p *pod) string { return "Started container " + p.app }},
		{10, "Normal", "Scheduled", "default-scheduler", func(p *pod) string {
			return fmt.Sprintf("Successfully assigned %s/%s to %s", p.namespace, p.name, p.node)
		}},
		{9, "Warning", "Unhealthy", "kubelet", func(*pod) string {
			return fmt.Sprintf("Readiness probe failed: Get \"http://10.%d.%d.%d:8080/healthz\": context deadline exceeded", r.IntN(256), r.IntN(256), r.IntN(256))
		}},
		{6, "Warning", "BackOff", "kubelet", func(p *pod) string {
			return fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", p.app, p.name, p.namespace, p.uid)
		}},
	}
	all := 0
	for _, k := range kinds {
		all += k.weight
	}
	return func(i int) Row {
		at, p := r.IntN(all), &pods[r.IntN(len(pods))]
		k := 0
		for at >= kinds[k].weight {
			at, k = at-kinds[k].weight, k+1
		}
		node := ""
		if kinds[k].report == "kubelet" {
			node = p.node
		}
		a := event.NewAttributes([event.NumFields]string{
			event.RegardingKind: "Pod", event.RegardingNamespace: p.namespace, event.RegardingName: p.name, event.RegardingUID: p.uid, event.RegardingAPIVersion: "v1",
			event.Reason: kinds[k].reason, event.Type: kinds[k].kind, event.ReportingController: kinds[k].report, event.Source: kinds[k].report, event.Node: node,
		}, nil)
		seen := time.Unix(1.7e9, 0).Add(7 * 24 * time.Hour / time.Duration(n) * time.Duration(i)).Truncate(time.Microsecond)
		return Row{
			Revision: uint64(2 + i), Occurrence: event.Occurrence{Time: seen, First: seen, Count: 1, New: 1}, Namespace: []byte(p.namespace), Attributes: a,
			Note: []byte(kinds[k].note(p)),
		}
	}
}

// BenchmarkScan counts and finds in columns of a million rows, in one thread.
func BenchmarkScan(b *testing.B) {
	const rows, perTable = 1_000_000, 1 << 16
	row := week(rows)
	var tables []Pieces
	var lasts []uint64
	size := 0
	began := cpu(b)
	for from := 0; from < rows; from += perTable {
		all := make([]Row, 0, perTable)
		for i := from; i < min(rows, from+perTable); i++ {
			all = append(all, row(i))
		}
		m, last := build(b, all)
		for _, piece := range m {
			size += len(piece)
		}
		tables, lasts = append(tables, m), append(lasts, last)
	}
	b.Logf("%.1f bytes a row; %.1f µs to make and to build one", float64(size)/rows, float64((cpu(b)-began).Microseconds())/rows)
	word := func(text string) *event.Filter {
		return &event.Filter{Kind: event.FilterWord, Word: event.Fold(nil, []byte(text))}
	}
	is := func(dimension, value string) *event.Filter {
		return &event.Filter{Kind: event.FilterDimension, Dimension: dimension, Fits: func(t string) bool { return t == value }}
	}
	for _, q := range []struct {
		name    string
		filter  *event.Filter
		by      []string
		objects bool
	}{
		{"types", nil, []string{"type"}, false},
		{"phrase", word("probe failed"), []string{"type"}, false},
		{"warned objects", is("type", "Warning"), []string{}, true},
		{"reasons of a node", is("node", "node-17"), []string{"reason"}, false},
		{"rare", word("ledger:2.39.7"), []string{}, false},
		{"two words", event.All(word("restarting"), word("gateway")), []string{}, false},
		{"digits", word("17"), []string{}, false},
		{"absent", word("zzqqnothere"), []string{}, false},
		{"facets", is("type", "Warning"), nil, false},
	} {
		b.Run(q.name, func(b *testing.B) {
			least, hits := time.Hour, int64(0)
			for b.Loop() {
				began, groups := cpu(b), 0
				hits = 0
				c := &store.Count{By: q.by, Objects: q.objects, Group: func(event.Dimensions, event.Regarding) int { groups++; return groups }}
				for i, m := range tables {
					t, err := Open(lasts[i], m)
					if err != nil {
						b.Fatal(err)
					}
					s, err := t.Scan(&Query{From: 0, To: 1 << 40, Last: lasts[i], Filter: q.filter})
					if err != nil {
						b.Fatal(err)
					}
					if s == nil {
						continue
					}
					n, err := s.Counter(c, func(o store.Occurred) { hits += o.Count })
					for chunk := 0; err == nil && chunk < s.Chunks(); chunk++ {
						err = n.Chunk(chunk)
					}
					if err != nil {
						b.Fatal(err)
					}
					n.Flush()
				}
				least = min(least, cpu(b)-began)
			}
			b.ReportMetric(float64(least.Microseconds())/1e3, "least-cpu-ms")
			b.ReportMetric(float64(hits), "hits")
		})
	}
}

// cpu is the processor time of this process: on a busy machine it says more than the time that passed.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
