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
		{"page/500", "", fmt.Sprintf("limit=%d", target.PageSize), target.PageSize, 15 * time.Millisecond},
		{"list/namespace-type", target.VariedNamespace(100), "fieldSelector=" + url.QueryEscape("type=Warning"), inNamespace / target.VariedWarnings, 150 * time.Millisecond},
		{"list/reason", "", fmt.Sprintf("fieldSelector=%s&limit=%d", url.QueryEscape("reason="+target.VariedReason(37)), target.PageSize), target.PageSize, 100 * time.Millisecond},
	} {
		run := selections(l.namespace, l.query, l.events)
		if l.name == "page/500" {
			run = onePages
		}
		s.rows = append(s.rows,
			row{name: l.name, long: true, goal: p50Within(l.within), run: run},
			row{name: l.name + "/cold", long: true, goal: p50Within(5 * l.within), run: coldLists(l.namespace, l.query, l.events)})
	}
	s.rows = append(s.rows, row{name: "list/all", long: true, run: allPages})
	return s
}

// selections is a row of lists with a query, each of so many events.
func selections(namespace, query string, n int) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, namespace)
		if err != nil {
			return nil, err
		}
		return b.load(b.eventsvc(), "lists/s", listSpec(b, e, query, n))
	}
}

// listSpec asks for a list again and again, and expects so many events in it.
func listSpec(b *bench, e *target.Events, query string, n int) load.Spec {
	request := e.All("GET", "?"+query, target.JSONType)
	return load.Spec{
		Addr: b.up.API(), Secure: b.up.TLS, Conns: 1,
		Next: func(dst []byte, _ int) []byte { return append(dst, request...) },
		Check: func(i int, a *load.Answer) error {
			if err := load.Status(200)(i, a); err != nil {
				return err
			}
			if got := target.CountEvents(a.Body); i%target.KeptLists == 0 && got != n {
				return fmt.Errorf("%d events in a list of %d: %.300s", got, n, a.Body)
			}
			return nil
		},
	}
}

// coldStarts is how often the service is started for a row of cold lists.
const coldStarts = 5

// coldLists is a row of lists that are the first after a start for which the kernel had to
// read the files again.
func coldLists(namespace, query string, n int) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		var times stats.Histogram
		for range coldStarts {
			if err := b.up.Events.Stop(); err != nil {
				return nil, err
			}
			if err := proc.DropCached(b.up.DataDir()); err != nil {
				return nil, err
			}
			if _, err := b.up.StartEvents(b.ctx); err != nil {
				return nil, err
			}
			e, err := b.up.EventsOf(b.ctx, 0, namespace)
			if err != nil {
				return nil, err
			}
			spec := listSpec(b, e, query, n)
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

// onePages is a row of the pages of a list of everything; its times are of single pages.
func onePages(b *bench) (*result, error) {
	e, err := b.up.EventsOf(b.ctx, 0, "")
	if err != nil {
		return nil, err
	}
	p := target.NewPager(e, listsEvents)
	return b.load(b.eventsvc(), "pages/s", load.Spec{Addr: b.up.API(), Secure: b.up.TLS, Conns: 1, Next: p.Ask, Check: p.Check})
}

// allPages is a row of a list of everything by pages; its time is of the whole list.
func allPages(b *bench) (*result, error) {
	e, err := b.up.EventsOf(b.ctx, 0, "")
	if err != nil {
		return nil, err
	}
	p := target.NewPager(e, listsEvents)
	once := func(*load.Load) bool { return p.Times.Count() > 0 }
	r, err := b.loadUntil(b.eventsvc(), "pages/s", once, load.Spec{Addr: b.up.API(), Secure: b.up.TLS, Conns: 1, Next: p.Ask, Check: p.Check})
	if err != nil {
		return r, err
	}
	r.quantiles(&p.Times)
	r.notef("%.1f s per million; the times are of all %d pages", r.p50.Seconds()/listsEvents*1e6, (listsEvents+target.PageSize-1)/target.PageSize)
	return r, nil
}
