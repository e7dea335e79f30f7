package main

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/proc"
	"tidings.example/deploy/test/bench/internal/stats"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// listsEvents is the number of events of the rows over many namespaces.
const listsEvents = 3_000_000

// listsBytes is what three million events may take of the disk; the default would remove
// the oldest ones.
const listsBytes = "40GiB"

// listsStage has the lists of which none may take longer because there are many events
// that it does not show.
func listsStage() stage {
	s := stage{
		name: "3,000,000 events in 200 namespaces",
		open: func(b *bench) error {
			return errors.Join(b.start(target.Options{MaxBytes: listsBytes}), b.up.FillVaried(b.ctx, listsEvents))
		},
	}
	inNamespace := listsEvents / target.VariedNamespaces
	for _, l := range []struct {
		name, namespace, query string
		events                 int // in the answer
		within                 time.Duration
	}{
		{"page/500", "", fmt.Sprintf("limit=%d", workload.PageSize), workload.PageSize, 15 * time.Millisecond},
		{"list/namespace-type", target.VariedNamespace(100), "fieldSelector=" + url.QueryEscape("type=Warning"), inNamespace / target.VariedWarnings, 150 * time.Millisecond},
		{"list/reason", "", fmt.Sprintf("fieldSelector=%s&limit=%d", url.QueryEscape("reason="+target.VariedReason(37)), workload.PageSize), workload.PageSize, 100 * time.Millisecond},
	} {
		run := selections(l.namespace, l.query, l.events)
		if l.name == "page/500" {
			run = onePages(listsEvents)
		}
		s.rows = append(s.rows,
			row{name: l.name, long: true, goal: p50Within(l.within), run: run},
			row{name: l.name + "/cold", long: true, goal: p50Within(5 * l.within), run: coldLists(l.namespace, l.query, l.events)})
	}
	s.rows = append(s.rows, row{name: "list/all", long: true, run: pages("", listsEvents, 1)})
	return s
}

// selections is a row of lists with a query, each of so many events.
func selections(namespace, query string, n int) func(*bench) (*result, error) {
	return onEvents("lists/s", namespace, func(up *target.Services, e *target.Events) load.Spec { return workload.Selections(up, e, query, n) })
}

// coldStarts is how often the service is started for a row of cold lists.
const coldStarts = 5

// coldLists is a row of lists that are the first after a start for which the kernel had to
// read the files again.
func coldLists(namespace, query string, n int) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		var times stats.Histogram
		for range coldStarts {
			if _, err := b.up.RestartEvents(b.ctx, true); err != nil {
				return nil, err
			}
			e, err := b.up.EventsOf(b.ctx, 0, namespace)
			if err != nil {
				return nil, err
			}
			spec := workload.Selections(b.up, e, query, n)
			spec.Limit = 1
			begun := time.Now()
			if err := load.Do(spec, time.Minute); err != nil {
				return nil, err
			}
			times.Add(time.Since(begun))
		}
		r := &result{}
		r.quantiles(&times)
		r.notef("each the first list after a start with dropped pages")
		return r, proc.ReadCached(b.up.DataDir())
	}
}

// onePages is a row of the pages of a list of all the events; its times are of single pages.
func onePages(events int) func(*bench) (*result, error) {
	return onEvents("pages/s", "", func(up *target.Services, e *target.Events) load.Spec { return workload.NewPager(up, e, events).Pages() })
}
