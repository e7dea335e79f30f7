package main

import (
	"fmt"
	"net/url"
	"time"

	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// queryStage has the rows of questions about a week with so many events. The goals are for
// a million; more are asked about only in the long form.
func queryStage(events int) stage {
	h := &target.History{Events: events}
	prefix, long := "query/", events > millionEvents
	if long {
		prefix = fmt.Sprintf("query/%d/", events)
	}
	ask := func(name string, within time.Duration, path func(*target.History) string, expect ...string) row {
		r := row{name: prefix + name, long: long, run: questions(h, path, expect)}
		if within > 0 && !long {
			r.goal = p50Within(within)
		}
		return r
	}
	query := func(what, parameters string, reach time.Duration) func(*target.History) string {
		return func(h *target.History) string {
			return "/query/v1/" + what + "?" + parameters + workload.Range("from", h.End.Add(-reach), "to", h.End)
		}
	}
	const week, day = 7 * 24 * time.Hour, 24 * time.Hour
	agents := row{name: prefix + "mcp/overview", long: long, run: overview(h, week)}
	if !long {
		agents.goal = p50Within(60 * time.Millisecond)
	}
	return stage{
		name: fmt.Sprintf("a week of %d events", events),
		open: func(b *bench) error {
			h.End = time.Now().Truncate(time.Second)
			if err := b.start(target.Options{MaxBytes: listsBytes}); err != nil {
				return err
			}
			begun := time.Now()
			if err := b.up.FillHistory(b.ctx, h); err != nil {
				return err
			}
			fmt.Fprintf(b.out, "filled at %.0f creates/s\n", float64(h.Events)/time.Since(begun).Seconds())
			return nil
		},
		rows: []row{
			ask("events/text", 300*time.Millisecond, query("events", "search=attempt&limit=100", week), `"items"`),
			ask("events/rare", 0, query("events", "search="+target.RareWord+"&limit=10", week), target.RareWord),
			ask("events/no-match", 3*time.Second, query("events", "search=nowhere-to-be-found", week), `"items"`),
			ask("histogram/week", 150*time.Millisecond, query("histogram", "by=type", week), `"buckets"`),
			ask("histogram/day", 30*time.Millisecond, query("histogram", "by=type", day), `"buckets"`),
			ask("facets/week", 150*time.Millisecond, query("facets", "by=type,reason,kind,namespace,reporter", week), `"facets"`),
			ask("facets/day", 30*time.Millisecond, query("facets", "by=type,reason,kind,namespace,reporter", day), `"facets"`),
			ask("groups/reason", 300*time.Millisecond, query("groups", "by=reason,namespace", week), `"groups"`),
			ask("groups/object", 0, query("groups", "by=object", day), `"groups"`),
			ask("changes", 150*time.Millisecond, func(h *target.History) string {
				return "/query/v1/changes?window=15m&at=" + url.QueryEscape(h.End.UTC().Format(time.RFC3339))
			}, `"changes"`),
			ask("loki/week", 200*time.Millisecond, func(h *target.History) string {
				return "/loki/api/v1/query_range?step=3600&query=" + url.QueryEscape(`sum by (level) (count_over_time({namespace=~".+"}[1h]))`) + workload.Range("start", h.End.Add(-week), "end", h.End)
			}, `"matrix"`),
			agents,
			{name: prefix + "memory", long: long, goal: anonWithin(350 << 20), run: restingMemory},
		},
	}
}

// overview is a row of the question that agents begin with.
func overview(h *target.History, reach time.Duration) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, h.Namespace(0))
		if err != nil {
			return nil, err
		}
		size := 0
		r, err := b.load(b.eventsvc(), "answers/s", workload.Overview(b.up, e, h.End.Add(-reach), h.End, &size))
		if err == nil {
			r.notef("%d bytes", size)
		}
		return r, err
	}
}

// questions is a row of one question, asked again and again.
func questions(h *target.History, path func(*target.History) string, expect []string) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		e, err := b.up.EventsOf(b.ctx, 0, h.Namespace(0))
		if err != nil {
			return nil, err
		}
		size := 0
		r, err := b.load(b.eventsvc(), "answers/s", workload.Questions(b.up, e, path(h), expect, &size))
		if err == nil {
			r.notef("%.1f kB", float64(size)/1e3)
		}
		return r, err
	}
}
