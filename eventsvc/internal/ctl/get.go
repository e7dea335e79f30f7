package ctl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/cli"
	"tidings.example/shared/printable"
)

// get lists events.
type get struct {
	filters `embed:""`
	From    string `env:"-" placeholder:"TIME" help:"Only events that were last seen at this time or later: RFC 3339, a local time such as '2026-11-23 14:05', or before now such as -6h."`
	To      string `env:"-" placeholder:"TIME" help:"Only events that were last seen before this time."`
	Prefix  string `env:"-" placeholder:"TEXT" help:"Only events about objects whose name begins with this, such as web-."`
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
    eventsvc get -n shop --from=-2h --to=-1h --prefix web-
    eventsvc get -A -- pull -cached
    eventsvc get -A -o ndjson | jq -r .reason | sort | uniq -c

A table is in the order of time, the newest last. JSON and YAML are in the order of the server, by namespace and name, unless --last,
--since or a text is given. A server that answers queries looks for --since and text itself, and -A is then all that you may
list; from other servers, get reads everything and compares it itself. What mirrors say of their own work is then left out, unless
a filter or the text names it. Without --wait, the exit code is 0 even if there are no events.

--since, --from, --to and the column LAST SEEN mean the last occurrence, by the rule of kubectl's tables: the last time of the
series, else lastTimestamp, else firstTimestamp, else eventTime, else the creation.`
}

// Run lists the events.
func (g *get) Run(ctx context.Context, std IO) error {
	if err := g.checkFlags(); err != nil {
		return err
	}
	between, err := g.between(time.Now())
	if err != nil {
		return err
	}
	c, namespace, err := g.open()
	if err != nil {
		return err
	}
	return g.ask(ctx, c, namespace, std, between)
}

// ask asks once, or with --wait until there is an event, and shows what there is.
func (g *get) ask(ctx context.Context, c *client.Client, namespace string, std IO, between between) error {
	for deadline := time.Now().Add(g.Wait); ; {
		run, err := g.once(ctx, c, namespace, std, between)
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
	return g.check()
}

// askAgain is how often --wait asks.
const askAgain = time.Second

// once asks for the events once.
func (g *get) once(ctx context.Context, c *client.Client, namespace string, std IO, between between) (*getting, error) {
	run := &getting{get: g, std: std, out: newJSONList(std.Out, g.GroupDomain, g.Output), between: between}
	run.bar = terminal.NewProgress(std.Err)
	defer run.bar.Clear()
	err := run.search(ctx, c, namespace)
	if _, ok := errors.AsType[*unservedError](err); ok {
		_, err = c.Pages(ctx, g.path(namespace), g.query(), run.page, attempts(ctx))
	}
	return run, err
}

// getting is a running get.
type getting struct {
	*get
	std IO
	out *jsonList
	bar *terminal.Progress
	between
	read   int
	found  int
	sorted []seen // unless the server has sorted
}

// inOrder reports whether events are sorted by time before they are shown.
func (g *getting) inOrder() bool { return g.Output == "table" || g.Last > 0 || g.searches() }

// searches reports whether only some times or texts are wanted.
func (g *getting) searches() bool { return g.between != between{} || len(g.Text) > 0 }

// search asks for the events by a query. The error is an unservedError if there is no need to, or if the server does
// not answer queries.
func (g *getting) search(ctx context.Context, c *client.Client, namespace string) error {
	if !g.searches() || g.GroupDomain != "k8s.io" {
		return &unservedError{}
	}
	p := g.query()
	if !g.from.IsZero() {
		p.Set("from", g.from.UTC().Format(time.RFC3339Nano))
	} else {
		head, err := fetch(ctx, c, "events", "items", url.Values{"limit": {"1"}})
		if err != nil {
			return err
		}
		p.Set("from", head.HistoryFrom.UTC().Format(time.RFC3339))
	}
	p.Set("to", latest)
	if !g.to.IsZero() {
		p.Set("to", g.to.UTC().Format(time.RFC3339Nano))
	}
	p.Set("limit", strconv.Itoa(client.PageSize))
	if len(g.Text) > 0 {
		p.Set("search", g.words.search())
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
		g.bar.Show("%d events read", g.read)
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

// say says when the newest event was seen, if a range before now has none.
func (g *getting) say(ctx context.Context, c *client.Client, asked url.Values, got *answer) {
	if g.read == 0 && g.From == "" && g.Since > 0 {
		sayNewest(ctx, c, g.std.Err, asked, got)
	}
}

// latest ends a range that has what was observed in the future, by reporters whose clocks are ahead.
const latest = "9999-12-31T00:00:00Z"

// page takes a page of a list.
func (g *getting) page(page *client.Page) error {
	if err := g.items(page.Items); err != nil {
		return err
	}
	of := ""
	if left := page.Metadata.RemainingItemCount; left != nil { // not every server sends it
		of = fmt.Sprintf(" of %d", int64(g.read)+*left)
	}
	g.bar.Show("%d%s events read", g.read, of)
	return nil
}

// items takes events, of which the wanted ones are shown now or kept to be sorted.
func (g *getting) items(raw []json.RawMessage) error {
	events, err := decodeAll(raw)
	if err != nil {
		return err
	}
	for _, s := range events {
		if !g.has(lastSeen(s.event)) || !strings.HasPrefix(s.event.Regarding.Name, g.Prefix) || !g.words.in(s.event.Note) || g.leavesOut(s.event) {
			continue
		}
		g.found++
		switch {
		case g.inOrder():
			g.keep(s)
		default:
			if err := g.out.add(s); err != nil {
				return err
			}
		}
	}
	g.read += len(events)
	return nil
}

// leavesOut reports whether a search leaves out an event of what mirrors say of their own work, because no filter or
// text asks for it. Queries of a server have the same rule.
func (g *getting) leavesOut(ev *eventsv1.Event) bool {
	d := event.Dimensions{Reporter: ev.ReportingController, Reason: ev.Reason}
	asked := strings.ToLower(g.query().Get("fieldSelector") + " " + strings.Join(g.Text, " "))
	return g.searches() && d.Bookkeeping() && !strings.Contains(asked, strings.ToLower(d.Reason)) && !strings.Contains(asked, d.Reporter)
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
