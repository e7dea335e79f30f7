package ctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query/search"
	"tidings.example/shared/cli"
	"tidings.example/shared/printable"
)

// tail follows events.
type tail struct {
	filters `embed:""`
	WaitFor string        `env:"-" placeholder:"FIELD=VALUE,..." help:"End with success as soon as an event has these fields, such as reason=Completed,type!=Warning."`
	Timeout time.Duration `env:"-" placeholder:"DURATION" help:"End after this time; with --wait-for the exit code is then 3."`
	Output  string        `env:"-" short:"o" default:"table" enum:"table,json,ndjson" help:"table, json (one document per event) or ndjson (one event per line)."`
	Wide    bool          `env:"-" help:"Do not cut notes at the width of the terminal."`
}

// Help is shown below the settings.
func (*tail) Help() string {
	return `Examples:

    eventsvc tail -A --type Warning
    eventsvc tail -n shop --since 10m --regarding Job/nightly --wait-for reason=Completed --timeout 1h
    eventsvc tail -A "back-off" kind:pod
    eventsvc tail -A -o ndjson >> events.ndjson

It shows events from now on and, with --since, earlier ones. After a restart of the server it resumes, without losing or
repeating an event. --wait-for checks every event that is shown. tail searches for terms itself, so the server sends other
events too.

Exit codes: 0 the awaited event was seen, or a signal or --timeout has ended a tail without --wait-for; 1 failure, or a signal
before the awaited event; 2 usage; 3 --timeout before the awaited event.`
}

// ErrTimedOut reports that the awaited event did not come in time. Its exit code is 3.
var ErrTimedOut = errors.New("timed out")

// errAwaited ends a tail after the awaited event.
var errAwaited = errors.New("seen")

// following is a running tail.
type following struct {
	*tail
	client  *client.Client
	path    string
	wanted  *event.Filter   // nil: everything
	awaited fields.Selector // nil: nothing
	stdout  io.Writer
	stderr  io.Writer
	table   *table
	version string // everything up to this resourceVersion was shown
	away    bool   // the server does not answer, and that was printed
}

// Run follows the events.
func (t *tail) Run(ctx context.Context, std IO) error {
	if err := t.check(); err != nil {
		return err
	}
	f := &following{tail: t, stdout: std.Out, stderr: std.Err, table: newTable(std.Out, t.AllNamespaces, true, t.Wide)}
	if t.WaitFor != "" {
		var err error
		if f.awaited, err = parseAwaited(t.WaitFor); err != nil {
			return cli.Usagef("--wait-for: %w", err)
		}
	}
	if t.search != "" {
		e, _ := search.Parse(t.search) // it was checked
		f.wanted = e.Filter()
	}
	c, namespace, err := t.open()
	if err != nil {
		return err
	}
	f.client, f.path = c, t.path(namespace)
	limited := ctx
	if t.Timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, t.Timeout)
		defer cancel()
	}
	err = f.run(limited)
	switch {
	case errors.Is(err, errAwaited):
		return nil
	case limited.Err() == nil:
		return at(c, err)
	case f.awaited == nil:
		return nil // the end was asked for
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted before an event with %s was seen", t.WaitFor)
	}
	return fmt.Errorf("no event with %s was seen in %s: %w", t.WaitFor, t.Timeout, ErrTimedOut)
}

// parseAwaited parses --wait-for. A field that no event has is an error, because the wait would never end.
func parseAwaited(text string) (fields.Selector, error) {
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return nil, err
	}
	known := fieldsOf(&eventsv1.Event{})
	for _, r := range selector.Requirements() {
		if strings.Contains(r.Value, "*") {
			return nil, fmt.Errorf("%s=%s: * is no pattern here: write the whole value", r.Field, r.Value)
		}
		if !known.Has(r.Field) {
			return nil, fmt.Errorf("there is no field %q, only: %s", r.Field, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return selector, nil
}

// fieldsOf returns the fields of an event that can be awaited: those of field selectors, and a few more.
func fieldsOf(ev *eventsv1.Event) fields.Set {
	return fields.Set{
		"metadata.name": ev.Name, "metadata.namespace": ev.Namespace, "type": ev.Type, "reason": ev.Reason, "action": ev.Action,
		"reportingController": ev.ReportingController, "reportingInstance": ev.ReportingInstance,
		"regarding.kind": ev.Regarding.Kind, "regarding.namespace": ev.Regarding.Namespace, "regarding.name": ev.Regarding.Name,
		"regarding.uid": string(ev.Regarding.UID), "regarding.fieldPath": ev.Regarding.FieldPath,
		"count": strconv.FormatInt(event.OccurrenceOf(ev).Count, 10),
	}
}

// run shows earlier events, if --since asks for them, and then new ones.
func (f *following) run(ctx context.Context) error {
	var err error
	if f.Since == 0 {
		f.version, err = f.client.Version(ctx, f.path)
	} else {
		err = f.past(ctx, func(s seen) bool { return time.Since(lastSeen(s.event)) <= f.Since }, byTime)
	}
	for err == nil {
		err = f.client.Follow(ctx, f.path, f.version, f.query(), client.Follower{
			Connected: f.connected, Change: f.change, Interrupted: f.interrupted,
		})
		switch {
		case client.Gone(err):
			f.say("the server no longer keeps every change since the connection was lost: of those events only the last state is shown")
			before := f.version
			err = f.past(ctx, func(s seen) bool { return client.Newer(s.event.ResourceVersion, before) }, func(a, b seen) int {
				if client.Newer(a.event.ResourceVersion, b.event.ResourceVersion) {
					return 1
				}
				return -1
			})
		case errors.Is(err, client.ErrRewound):
			f.say("the server has lost its history, or is another one: continuing with what happens from now on")
			f.version, err = f.client.Version(ctx, f.path)
		}
	}
	return err
}

// past shows existing events: those that are wanted, in that order.
func (f *following) past(ctx context.Context, wanted func(seen) bool, order func(a, b seen) int) error {
	var all []seen
	version, err := f.client.Pages(ctx, f.path, f.query(), func(page *client.Page) error {
		events, err := decodeAll(page.Items)
		for _, s := range events {
			if wanted(s) && f.fits(s) {
				all = append(all, s)
			}
		}
		return err
	}, attempts(ctx))
	if err != nil {
		return err
	}
	f.version = version
	slices.SortStableFunc(all, order)
	return f.show(all)
}

// change shows a change. It ignores deletions, most of which are expiries.
func (f *following) change(c client.Change) error {
	f.version = c.Version
	if !c.Seen() {
		return nil
	}
	s, err := decode(c.Object)
	if err != nil || !f.fits(s) {
		return err
	}
	return f.show([]seen{s})
}

// fits reports whether the terms fit an event.
func (f *following) fits(s seen) bool {
	return f.wanted == nil || f.wanted.Matches(event.SubjectOf(s.event))
}

func (f *following) connected() {
	if f.away {
		f.away = false
		f.say("connected again")
	}
}

// interrupted prints once that the server does not answer, however many attempts fail.
func (f *following) interrupted(err error) {
	if !f.away {
		f.away = true
		f.say("%v; trying again until it answers", err)
	}
}

func (f *following) say(format string, args ...any) {
	fmt.Fprintln(f.stderr, "eventsvc: "+printable.OneLine(fmt.Sprintf(format, args...)))
}

// show writes events, up to the awaited one.
func (f *following) show(all []seen) error {
	end := slices.IndexFunc(all, func(s seen) bool { return f.awaited != nil && f.awaited.Matches(fieldsOf(s.event)) })
	if end >= 0 {
		all = all[:end+1]
	}
	if err := f.write(all); err != nil {
		return err
	}
	if end >= 0 {
		return errAwaited
	}
	return nil
}

func (f *following) write(all []seen) error {
	switch {
	case len(all) == 0:
		return nil
	case f.Output == "table":
		return f.table.rows(all)
	}
	var out bytes.Buffer
	for _, s := range all {
		if err := writeJSON(&out, f.Output, s.object(f.GroupDomain)); err != nil {
			return err
		}
	}
	_, err := f.stdout.Write(out.Bytes())
	return err
}
