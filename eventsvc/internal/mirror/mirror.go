package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/mirror/objectchange"
	"tidings.example/eventsvc/internal/rules"
)

// Config has the settings of a mirror.
type Config struct {
	Source, Target  *client.Client
	Cluster         string   // the source's name, part of the name of each copy
	Label           string   // key of the label of copies that holds Cluster; "": no label
	Namespaces      []string // of the source; none: all
	CursorNamespace string   // of the target
	Version         string   // of the mirror, which the cursor tells
	Enrich          Enrichment
	Changes         []Resource          // kinds of objects whose changes become events; none: no event is made
	State           *objectchange.State // what was seen of these objects
	Rules           func() *rules.Set   // what is not copied, as it is now; nil: everything is
	RulesChanged    <-chan struct{}     // receives after they have changed
	CheckEvery      time.Duration       // between comparisons of the cursor with the source; 0: 30 s
	Log             *slog.Logger
	Registry        prometheus.Registerer
}

// Mirror copies events until it is stopped.
type Mirror struct {
	Config
	metrics  *metrics
	copiers  []*copier
	enricher *enricher  // nil: nothing is added
	listing  sync.Mutex // is held by the tracker that lists objects
}

// New returns a mirror that has not begun.
func New(c Config) *Mirror {
	m := &Mirror{Config: c, metrics: newMetrics(c.Registry)}
	if len(c.Namespaces) == 0 {
		c.Namespaces = []string{""}
	}
	for _, namespace := range c.Namespaces {
		m.copiers = append(m.copiers, newCopier(m, namespace))
	}
	m.copiers = append(m.copiers, newTrackers(m, c.Namespaces)...)
	if c.Enrich.On() {
		m.enricher = newEnricher(c, m.metrics)
	}
	return m
}

// Run copies until ctx ends. It returns nil.
func (m *Mirror) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	if m.enricher != nil {
		all.Go(func() { m.enricher.run(ctx) })
		m.enricher.begun(ctx)
	}
	if m.Rules != nil {
		all.Go(func() { m.tellRules(ctx) })
	}
	for _, c := range m.copiers {
		all.Go(func() { c.run(ctx) })
	}
	return nil
}

// Ready returns the last failures, or nil while every namespace is watched and written.
func (m *Mirror) Ready(context.Context) error {
	var failures []error
	for _, c := range m.copiers {
		failures = append(failures, c.state.ready())
	}
	return errors.Join(failures...)
}

const (
	batchSize  = 256 // changes that may wait, and that are written before the cursor is saved
	sourceSide = "source"
	targetSide = "target"
)

// Reasons to list the source.
const (
	reasonFirst   = "first"
	reasonGone    = "gone"    // it no longer keeps the changes since the cursor
	reasonRewound = "rewound" // its versions have started over
	reasonSilent  = "silent"  // its watch says nothing, although it has a later version
)

// copier copies one namespace, or all of them.
type copier struct {
	ownEvents
	copied
	name    string // of what is copied, as metrics and logs show it
	path    string
	known   *known
	drops   drops
	state   *state
	relists bool // after a watch that says nothing for the time between checks; lists of other objects than events are large

	cursor  cursor // how far everything is written
	saved   cursor
	savedAt time.Time
	rewound bool    // the list's resourceVersions began again, so that the cursor's cannot be compared with them
	renew   bool    // likewise those of the cursor that the target has, until one is saved
	mark    *cursor // what the source had at a time, and the cursor has not reached; nil: none
}

// copied is what a copier copies: events, or changes of objects.
type copied interface {
	begin(context.Context) error                   // to continue from the cursor
	list(ctx context.Context, reason string) error // to begin again
	apply(context.Context, []client.Change) error  // to write changes and move the cursor
	save(context.Context) error                    // to save the cursor
}

func newCopier(m *Mirror, namespace string) *copier {
	c := baseCopier(m, namespace, cmp.Or(namespace, "*"), client.EventsPath("", namespace))
	c.copied, c.relists = events{c}, true
	return c
}

func baseCopier(m *Mirror, namespace, name, path string) *copier {
	c := &copier{ownEvents: ownEvents{m, namespace}, name: name, path: path, known: newKnown()}
	c.state = m.metrics.newState(name)
	return c
}

// events are the events of the source, or of one of its namespaces.
type events struct{ *copier }

func (c *copier) count(result string) { c.metrics.events.WithLabelValues(c.name, result).Inc() }

// run copies until ctx ends. It tries again after any failure, because events are lost while no mirror runs.
func (c *copier) run(ctx context.Context) {
	var wait client.Backoff
	for c.cursor.version == "" && ctx.Err() == nil {
		if err := c.begin(ctx); err != nil && ctx.Err() == nil {
			c.tellFailure(err)
			_ = wait.Wait(ctx, err)
		}
	}
	c.targetFailed(nil)
	wait.Reset()
	for ctx.Err() == nil {
		began := time.Now()
		err := c.resume(ctx, c.follow(ctx))
		if time.Since(began) > time.Minute {
			wait.Reset()
		}
		if err != nil && ctx.Err() == nil {
			c.tellFailure(err)
			_ = wait.Wait(ctx, err)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
	defer cancel()
	if c.cursor != c.saved {
		_ = c.save(last) // the next start begins at the cursor that the target has
	}
	c.reportDrops(last, true)
}

// resume does what the end of following asks for. It returns the error that is left.
func (c *copier) resume(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return err
	case client.Gone(err):
		err = c.list(ctx, reasonGone)
	case errors.Is(err, client.ErrRewound):
		err = c.list(ctx, reasonRewound)
	case errors.Is(err, client.ErrSilent):
		err = c.list(ctx, reasonSilent)
	}
	if errors.Is(err, errLost) {
		err = c.begin(ctx) // if that fails, the next save finds the same
	}
	return err
}

// begin continues from the cursor, or lists the source if there is none.
func (c events) begin(ctx context.Context) error {
	stored, counts, _, err := c.loadCursor(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errTarget, err)
	}
	c.known.versions.Clear() // of a target that has lost writes
	c.await(nil)
	c.drops, c.renew = drops{counts: counts}, false
	c.cursor, c.saved, c.savedAt = stored, stored, time.Now()
	if stored.version == "" {
		return c.list(ctx, reasonFirst)
	}
	c.moved(stored.version)
	c.Log.InfoContext(ctx, "continuing from the cursor", "namespace", c.name, "version", stored.version)
	return nil
}

// list copies every event of the source. The version of the list becomes the cursor. If there was a cursor before, the
// time since then is a gap.
func (c events) list(ctx context.Context, reason string) error {
	if c.cursor != c.saved { // so that the gap begins at the same time, and has the same name, if this process is killed
		if err := c.save(ctx); err != nil {
			return err
		}
	}
	c.metrics.lists.WithLabelValues(c.name, reason).Inc()
	c.Log.InfoContext(ctx, "listing the source", "namespace", c.name, "reason", reason)
	c.drops.pending = nil
	c.await(nil)
	c.rewound = reason == reasonRewound
	c.renew = c.renew || c.rewound
	defer func() { c.rewound = false }()
	lost := gap{cursor: c.cursor}
	var wait client.Backoff
	n, asked := 0, time.Now()
	page := func(p *client.Page) error {
		wait.Reset()
		c.sourceFailed(nil)
		if lost.to.IsZero() {
			lost.to = time.Now() // the list shows the source as it was between asked and now
		}
		items := make([]item, 0, len(p.Items)+len(p.Events))
		for _, raw := range p.Items {
			items = c.appendText(items, raw)
		}
		for i := range p.Events {
			items = c.appendItem(items, &p.Events[i])
		}
		n += len(items)
		lost.list(items)
		err := c.write(ctx, items)
		if err == nil {
			c.wrote(items)
		}
		return err
	}
	version, err := c.Source.Protobuf().Pages(ctx, c.path, nil, page, func(err error) error {
		if client.Gone(err) { // the version of the first pages is no longer kept: list from the beginning
			return err
		}
		c.sourceFailed(err)
		err = wait.Wait(ctx, err)
		if lost.to.IsZero() {
			asked = time.Now()
		}
		return err
	})
	if err == nil {
		err = c.report(ctx, lost, reason)
	}
	if err != nil {
		return err
	}
	c.dropped()
	c.Log.InfoContext(ctx, "listed the source", "namespace", c.name, "events", n, "version", version)
	c.moved(version)
	c.cursor.complete = asked
	return c.save(ctx)
}

// follow copies changes until the source cannot continue from the last version.
func (c *copier) follow(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	changes := make(chan client.Change, batchSize)
	from := c.cursor.version
	marks := make(chan cursor)
	var silence time.Duration
	if c.relists {
		silence = c.checks()
	}
	var ended error
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(changes)
		ended = c.Source.Follow(ctx, c.path, from, nil, client.Follower{
			Connected:   func() { c.sourceFailed(nil) },
			Interrupted: c.sourceFailed,
			Silence:     silence, EndSilent: c.relists,
			Change: func(change client.Change) error {
				select {
				case changes <- change:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
		})
	})
	reader.Go(func() { c.check(ctx, marks) })
	defer reader.Wait()
	defer stop()
	for {
		c.state.setIdle(len(changes) == 0)
		batch, open := c.next(changes, marks)
		c.state.setIdle(false)
		if err := c.apply(ctx, batch); err != nil {
			return err
		}
		if c.untilSave() <= 0 {
			if err := c.save(ctx); err != nil {
				return err
			}
		}
		if !open {
			return ended
		}
	}
}

// next waits for changes, or until the cursor has to be saved, and takes all changes that are waiting.
func (c *copier) next(changes <-chan client.Change, marks <-chan cursor) (batch []client.Change, open bool) {
	if c.mark != nil {
		marks = nil // the earlier mark comes first
	}
	timer := time.NewTimer(c.untilSave())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil, true
	case mark := <-marks:
		c.await(&mark)
		c.passMark()
		return nil, true
	case change, open := <-changes:
		for ; open; change, open = <-changes {
			if batch = append(batch, change); len(changes) == 0 || len(batch) == batchSize {
				return batch, true
			}
		}
		return batch, false
	}
}

// apply writes a batch, and then moves the cursor.
func (c events) apply(ctx context.Context, batch []client.Change) error {
	if len(batch) == 0 {
		return nil
	}
	c.drops.pending = nil
	items := make([]item, 0, len(batch))
	for _, change := range batch {
		switch {
		case change.Seen():
			items = c.appendText(items, change.Object)
		case change.Type == watch.Deleted:
			c.count(resultKept)
		}
	}
	if err := c.write(ctx, items); err != nil {
		return err
	}
	c.dropped()
	c.wrote(items)
	c.moved(batch[len(batch)-1].Version)
	return nil
}

// appendText is appendItem for an event in JSON.
func (c *copier) appendText(items []item, text json.RawMessage) []item {
	ev := new(corev1.Event)
	if err := json.Unmarshal(text, ev); err != nil {
		return c.appendNone(items, fmt.Errorf("the source sent what is no event: %.200s", text))
	}
	return c.appendItem(items, ev)
}

// appendItem appends the copy of an event, unless a rule drops it.
func (c *copier) appendItem(items []item, ev *corev1.Event) []item {
	if ev.UID == "" || ev.Name == "" {
		return c.appendNone(items, fmt.Errorf("the source sent an event with the name %q and the uid %q", ev.Name, ev.UID))
	}
	it := c.newItem(ev)
	if c.drop(&it) {
		return items
	}
	return append(items, it)
}

// appendNone counts and logs what is no event. It is left out: to try it again would not help.
func (c *copier) appendNone(items []item, err error) []item {
	c.count(resultRefused)
	c.Log.Warn("left out", "namespace", c.name, "error", err)
	return items
}

// wrote notes the newest of the items that were written.
func (c *copier) wrote(items []item) {
	for i := range items {
		c.cursor.last = later(c.cursor.last, items[i].written)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// errTarget wraps errors of the target where others are those of the source.
var errTarget = errors.New("the target")

// tellFailure tells of an error of either side.
func (c *copier) tellFailure(err error) {
	if errors.Is(err, errTarget) {
		c.targetFailed(err)
		return
	}
	c.sourceFailed(err)
}

func (c *copier) sourceFailed(err error) { c.failed(sourceSide, err) }
func (c *copier) targetFailed(err error) { c.failed(targetSide, err) }

// failed counts a failure of a side and keeps it for the readiness probe. It logs when failures begin and when they
// end; nil is a success.
func (c *copier) failed(side string, err error) {
	if err != nil {
		c.metrics.failures.WithLabelValues(side, fmt.Sprint(client.Code(err))).Inc()
	}
	if client.Code(err) == http.StatusTooManyRequests || !c.state.fail(side, err) {
		return // a request to wait is no failure
	}
	if err == nil {
		c.Log.Info("answers again", "side", side, "namespace", c.name)
		return
	}
	c.Log.Warn("requests fail, trying again until they succeed", "side", side, "namespace", c.name,
		"error", err, "hint", client.Hint(err))
}
