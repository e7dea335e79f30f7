package ctl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/cli"
)

// get lists events.
type get struct {
	access  `embed:""`
	filters `embed:""`
	Last    int    `env:"-" placeholder:"N" help:"Only the N events that were last seen."`
	Output  string `env:"-" short:"o" default:"table" enum:"table,json,ndjson" help:"table, json (one list) or ndjson (one event per line)."`
	Wide    bool   `env:"-" help:"Do not cut notes at the width of the terminal."`
}

// Help is shown below the settings.
func (*get) Help() string {
	return `Examples:

    eventsvc get -A --type Warning --since 1h
    eventsvc get -n shop --regarding Pod/web-0
    eventsvc get -A -o ndjson | jq -r .reason | sort | uniq -c

A table is in the order of time, the newest last. JSON is in the order of the server, by namespace and name, unless --last is
given. The exit code is 0 if there are no events, too.`
}

// pageSize is the number of events of one request.
const pageSize = 500

// Run lists the events.
func (g *get) Run(ctx context.Context, std IO) error {
	if err := g.check(); err != nil {
		return err
	}
	if g.Last < 0 {
		return cli.Usagef("--last %d is negative: set a number of events", g.Last)
	}
	c, namespace, err := g.open()
	if err != nil {
		return err
	}
	out := newJSONList(std.Out, g.GroupDomain, g.Output)
	bar, begin, read := terminal.NewProgress(std.Err), time.Now(), 0
	defer bar.Clear()
	var sorted []seen // a table, and the last events
	list := func(page *client.Page) error {
		events, err := decodePage(page)
		if err != nil {
			return err
		}
		for _, s := range events {
			switch {
			case !g.recent(s.event, begin):
			case g.Output == "table" || g.Last > 0:
				sorted = g.insert(sorted, s)
			default:
				if err := out.add(s); err != nil {
					return err
				}
			}
		}
		read += len(events)
		bar.Show("%d%s events read", read, remaining(page, read))
		return nil
	}
	if _, err := c.Pages(ctx, g.path(g.GroupDomain, namespace), g.query(), pageSize, list, attempts(ctx, 5)); err != nil {
		return at(c, err)
	}
	bar.Clear()
	sorted = newest(sorted, g.Last)
	if g.Output == "table" {
		return g.table(std, sorted)
	}
	for _, s := range sorted {
		if err := out.add(s); err != nil {
			return err
		}
	}
	return out.end()
}

func (g *get) table(std IO, events []seen) error {
	if len(events) == 0 {
		_, err := fmt.Fprintln(std.Err, "No events found.")
		return err
	}
	return newTable(std.Out, g.AllNamespaces, false, g.Wide).rows(events)
}

// insert appends an event to those that are sorted later. With --last, it keeps at most twice as many as are shown.
func (g *get) insert(all []seen, s seen) []seen {
	if g.Output == "table" { // no column needs these
		s.raw, s.event.ManagedFields, s.event.Annotations = nil, nil, nil
	}
	if all = append(all, s); g.Last > 0 && len(all) >= 2*g.Last {
		return newest(all, g.Last)
	}
	return all
}

// newest sorts events by the time of their last occurrence and returns the last ones; 0 is all.
func newest(all []seen, last int) []seen {
	slices.SortStableFunc(all, byTime)
	if last > 0 && len(all) > last {
		all = slices.Clone(all[len(all)-last:])
	}
	return all
}

// byTime is the order of the last occurrences, and then of namespaces and names.
func byTime(a, b seen) int {
	return cmp.Or(lastSeen(a.event).Compare(lastSeen(b.event)), cmp.Compare(a.event.Namespace+"/"+a.event.Name, b.event.Namespace+"/"+b.event.Name))
}

// remaining returns the total number of events, if the server sends it.
func remaining(page *client.Page, read int) string {
	if page.Metadata.RemainingItemCount == nil {
		return ""
	}
	return fmt.Sprintf(" of %d", int64(read)+*page.Metadata.RemainingItemCount)
}

// attempts returns a function that waits after a failed request, up to limit attempts. It does not retry if the first attempt
// has not reached a server, because the address is then probably wrong and the user wants to know.
func attempts(ctx context.Context, limit int) func(error) error {
	var wait client.Backoff
	n, first := 0, time.Now()
	return func(err error) error {
		n++
		if !client.Retryable(err) || n >= limit || client.Code(err) == 0 && time.Since(first) < time.Second {
			return err
		}
		if wait.Wait(ctx, err) != nil {
			return err
		}
		return nil
	}
}
