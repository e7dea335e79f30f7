package ctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/cli"
	"tidings.example/shared/printable"
)

// get lists events.
type get struct {
	filters `embed:""`
	From    string `env:"-" placeholder:"TIME" help:"Only events that were observed at this time or later: RFC 3339, a local time such as '2026-11-23 14:05', or before now such as -6h."`
	To      string `env:"-" placeholder:"TIME" help:"Only events that were observed before this time."`
	Last    int    `env:"-" placeholder:"N" help:"Only the N events that were last seen."`
	Output  string `env:"-" short:"o" default:"table" enum:"table,json,yaml,ndjson" help:"table, json or yaml (one list) or ndjson (one event per line)."`
	Wide    bool   `env:"-" help:"Do not cut notes at the width of the terminal."`

	Wait time.Duration `env:"-" placeholder:"DURATION" help:"Ask again for this long, until there is an event; exit code 1 if there is none."`
}

// Help is shown below the settings.
func (*get) Help() string {
	return `Examples:

    eventsvc get -A --type Warning --since 1h
    eventsvc get -n shop --regarding Pod/web-0
    eventsvc get -A --since 7d "no space left"
    eventsvc get -n shop --from=-2h --to=-1h 'name:web-*'
    eventsvc get -A -- pull -cached
    eventsvc get -A -o ndjson | jq -r .reason | sort | uniq -c

A table is in the order of time, the newest last. JSON and YAML are in the order of the server, by namespace and name, unless --last,
a range of time or a term is given. The server looks for these, as for eventsvc query: with -A, in all that you may list, and
without what mirrors say of their own work, unless a filter or a term names it. A Kubernetes API server cannot be asked so.
Without --wait, the exit code is 0 even if there are no events.

The column LAST SEEN means the last occurrence, by the rule of kubectl's tables: the last time of the series, else lastTimestamp,
else firstTimestamp, else eventTime, else the creation.`
}

// Run lists the events.
func (g *get) Run(ctx context.Context, std IO) error {
	if err := g.checkFlags(); err != nil {
		return err
	}
	c, namespace, err := g.open()
	if err != nil {
		return err
	}
	return g.ask(ctx, c, namespace, std)
}

// ask asks once, or with --wait until there is an event, and shows what there is.
func (g *get) ask(ctx context.Context, c *client.Client, namespace string, std IO) error {
	for deadline := time.Now().Add(g.Wait); ; {
		run, err := g.once(ctx, c, namespace, std)
		switch {
		case g.Wait == 0 && err != nil, err != nil && !client.Retryable(err):
			return at(c, err)
		case err == nil && (g.Wait == 0 || run.found > 0):
			return run.end()
		case time.Now().After(deadline) && err != nil:
			return at(c, err)
		case time.Now().After(deadline):
			return fmt.Errorf("no event within %s", g.Wait)
		}
		if err := client.Sleep(ctx, askAgain); err != nil {
			return err
		}
	}
}

// checkFlags checks what can be wrong before a server is asked.
func (g *get) checkFlags() error {
	if g.Wait < 0 {
		return cli.Usagef("--wait %s is negative: set a duration such as 60s", g.Wait)
	}
	if g.Last < 0 {
		return cli.Usagef("--last %d is negative: set a number of events", g.Last)
	}
	if g.Since > 0 && g.From != "" {
		return cli.Usagef("--since and --from exclude each other: set one of them")
	}
	return g.check()
}

// askAgain is how often --wait asks.
const askAgain = time.Second

// once asks for the events once.
func (g *get) once(ctx context.Context, c *client.Client, namespace string, std IO) (run *getting, err error) {
	run = &getting{get: g, std: std, out: newJSONList(std.Out, g.GroupDomain, g.Output), bar: terminal.NewProgress(std.Err)}
	defer run.bar.Clear()
	if g.searches() {
		err = run.find(ctx, c, namespace)
	} else {
		_, err = c.Pages(ctx, g.path(namespace), g.query(), run.page, attempts(ctx))
	}
	return run, err
}

// getting is a running get.
type getting struct {
	*get
	std    IO
	out    *jsonList
	bar    *terminal.Progress
	found  int
	sorted []seen // unless the server has sorted
}

// inOrder reports whether events are sorted by time before they are shown.
func (g *getting) inOrder() bool { return g.Output == "table" || g.Last > 0 || g.searches() }

// searches reports whether only some times or texts are wanted.
func (g *get) searches() bool { return g.Since > 0 || g.From != "" || g.To != "" || g.search != "" }

// find asks for the events by a query.
func (g *getting) find(ctx context.Context, c *client.Client, namespace string) error {
	p := g.query()
	if err := setRange(p, g.Since, map[string]string{"from": g.From, "to": g.To}); err != nil {
		return err
	}
	if !p.Has("from") {
		head, err := fetch(ctx, c, "events", "items", url.Values{"limit": {"1"}})
		if err != nil {
			return err
		}
		p.Set("from", head.HistoryFrom.UTC().Format(time.RFC3339))
	}
	if !p.Has("to") {
		p.Set("to", latest)
	}
	p.Set("limit", strconv.Itoa(client.PageSize))
	if g.search != "" {
		p.Set("search", g.search)
	}
	if !g.AllNamespaces {
		p.Set("namespace", cmp.Or(g.Namespace, namespace))
	}
	var a *answer
	for {
		page, err := fetch(ctx, c, "events", "items", p)
		if err != nil {
			return err
		}
		if err := g.items(page.rows); err != nil {
			return err
		}
		g.bar.Show("%d events read", g.found)
		page.rows = nil
		if a = a.with(page); page.Continue == "" {
			break
		}
		p.Set("continue", page.Continue)
	}
	g.bar.Clear()
	for _, line := range a.notices(p.Has("namespace")) {
		fmt.Fprintln(g.std.Err, "eventsvc: "+printable.OneLine(line))
	}
	g.say(ctx, c, p, a)
	return nil
}

// say prints when the newest event was seen, if --since finds none.
func (g *getting) say(ctx context.Context, c *client.Client, asked url.Values, got *answer) {
	if g.found == 0 && g.From == "" && g.Since > 0 {
		sayNewest(ctx, c, g.std.Err, asked, got)
	}
}

// latest ends a range that has what was observed in the future, by reporters whose clocks are ahead.
const latest = "9999-12-31T00:00:00Z"

// page shows or keeps the events of a page of a list.
func (g *getting) page(page *client.Page) error {
	if err := g.items(page.Items); err != nil {
		return err
	}
	of := ""
	if left := page.Metadata.RemainingItemCount; left != nil { // not every server sends it
		of = fmt.Sprintf(" of %d", int64(g.found)+*left)
	}
	g.bar.Show("%d%s events read", g.found, of)
	return nil
}

// items takes events, which are shown now or kept to be sorted.
func (g *getting) items(raw []json.RawMessage) error {
	events, err := decodeAll(raw)
	if err != nil {
		return err
	}
	for _, s := range events {
		if g.inOrder() {
			g.keep(s)
		} else if err := g.out.add(s); err != nil {
			return err
		}
	}
	g.found += len(events)
	return nil
}

// end shows what was kept.
func (g *getting) end() error {
	g.sorted = newest(g.sorted, g.Last)
	switch {
	case g.Output == "table" && len(g.sorted) == 0:
		_, err := fmt.Fprintln(g.std.Err, "No events found.")
		return err
	case g.Output == "table":
		return newTable(g.std.Out, g.AllNamespaces, false, g.Wide).rows(g.sorted)
	}
	for _, s := range g.sorted {
		if err := g.out.add(s); err != nil {
			return err
		}
	}
	return g.out.end()
}

// keep keeps an event to be sorted later: with --last, at most twice as many as are shown.
func (g *getting) keep(s seen) {
	if g.Output == "table" { // no column needs these
		s.raw, s.event.ManagedFields, s.event.Annotations = nil, nil, nil
	}
	if g.sorted = append(g.sorted, s); g.Last > 0 && len(g.sorted) >= 2*g.Last {
		g.sorted = newest(g.sorted, g.Last)
	}
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

// maxAttempts is how often a request is sent that fails.
const maxAttempts = 5

// attempts returns a function that waits after a failed request, up to maxAttempts. It does not retry if the first
// attempt has not reached a server, because the address is then probably wrong and the user wants to know.
func attempts(ctx context.Context) func(error) error {
	var wait client.Backoff
	n, first := 0, time.Now()
	return func(err error) error {
		n++
		if !client.Retryable(err) || n >= maxAttempts || client.Code(err) == 0 && time.Since(first) < time.Second {
			return err
		}
		if wait.Wait(ctx, err) != nil {
			return err
		}
		return nil
	}
}
