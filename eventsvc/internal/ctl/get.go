package ctl

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"

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
	out := g.sink(std.Out)
	bar, begin, read := terminal.NewProgress(std.Err), time.Now(), 0
	defer bar.Clear()
	list := func(page *client.Page) error {
		for _, item := range page.Items {
			s, err := decode(item)
			if err != nil {
				return err
			}
			if g.recent(s.event, begin) {
				if err := out.add(s); err != nil {
					return err
				}
			}
		}
		read += len(page.Items)
		bar.Show("%d%s events read", read, remaining(page, read))
		return nil
	}
	if _, err := c.Pages(ctx, g.path(g.GroupDomain, namespace), g.query(), pageSize, list, attempts(ctx, 5)); err != nil {
		return at(c, err)
	}
	bar.Clear()
	shown, err := out.end()
	if err == nil && shown == 0 && g.Output == "table" {
		fmt.Fprintln(std.Err, "No events found.")
	}
	return err
}

// remaining returns the total number of events, if the server sends it.
func remaining(page *client.Page, read int) string {
	if page.Metadata.RemainingItemCount == nil {
		return ""
	}
	return fmt.Sprintf(" of %d", int64(read)+*page.Metadata.RemainingItemCount)
}

// attempts retries a failed request a few times. It does not if the first attempt has not reached a server, because the
// address is then probably wrong and the user wants to know.
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

// sink receives the events of a list.
type sink interface {
	add(seen) error
	end() (shown int, err error)
}

func (g *get) sink(stdout io.Writer) sink {
	if g.Output == "table" {
		return &sorted{last: g.Last, write: func(all []seen) error {
			events := make([]*eventsv1.Event, len(all))
			for i, s := range all {
				events[i] = s.event
			}
			if len(all) == 0 {
				return nil
			}
			return newTable(stdout, g.AllNamespaces, false, g.Wide).rows(events)
		}}
	}
	w := &jsonList{w: bufio.NewWriterSize(stdout, 64<<10), domain: g.GroupDomain, lines: g.Output == "ndjson"}
	if g.Last == 0 {
		return w
	}
	return &sorted{last: g.Last, raw: true, write: func(all []seen) error {
		for _, s := range all {
			if err := w.add(s); err != nil {
				return err
			}
		}
		_, err := w.end()
		return err
	}}
}

// sorted collects events to sort them by time. If last > 0, it holds at most twice as many.
type sorted struct {
	last  int
	raw   bool // keep the JSON too
	all   []seen
	write func([]seen) error
}

func (o *sorted) add(s seen) error {
	if !o.raw {
		s.raw = nil
		s.event.ManagedFields, s.event.Annotations = nil, nil // no column needs them
	}
	o.all = append(o.all, s)
	if o.last > 0 && len(o.all) >= 2*o.last {
		o.sort()
	}
	return nil
}

func (o *sorted) sort() {
	slices.SortStableFunc(o.all, func(a, b seen) int {
		return cmp.Or(lastSeen(a.event).Compare(lastSeen(b.event)), cmp.Compare(a.event.Namespace+"/"+a.event.Name, b.event.Namespace+"/"+b.event.Name))
	})
	if o.last > 0 && len(o.all) > o.last {
		o.all = slices.Clone(o.all[len(o.all)-o.last:])
	}
}

func (o *sorted) end() (int, error) {
	o.sort()
	return len(o.all), o.write(o.all)
}

// jsonList writes events in the order of the server.
type jsonList struct {
	w      *bufio.Writer
	domain string
	lines  bool // one per line instead of one list
	n      int
}

func (l *jsonList) add(s seen) error {
	object := s.object(l.domain)
	if l.lines {
		l.n++
		_, _ = l.w.Write(bytes.TrimSpace(object))
		return l.w.WriteByte('\n')
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, object, "    ", "  "); err != nil {
		return err
	}
	before := ",\n    "
	if l.n == 0 {
		before = l.head() + "\n    "
	}
	l.n++
	_, _ = l.w.WriteString(before)
	_, err := l.w.Write(indented.Bytes())
	return err
}

func (l *jsonList) head() string {
	return fmt.Sprintf("{\n  \"kind\": \"EventList\",\n  \"apiVersion\": \"events.%s/v1\",\n  \"items\": [", l.domain)
}

func (l *jsonList) end() (int, error) {
	if !l.lines {
		after := "\n  ]\n}\n"
		if l.n == 0 {
			after = l.head() + "]\n}\n"
		}
		_, _ = l.w.WriteString(after)
	}
	return l.n, l.w.Flush()
}
