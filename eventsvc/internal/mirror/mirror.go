package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/client"
)

// Config is what is copied, and where to.
type Config struct {
	Source, Target  *client.Client
	Cluster         string   // the source's name, part of every copy's
	Label           string   // key of the label that holds it; empty: none
	Namespaces      []string // of the source; none: all
	CursorNamespace string   // of the target
	Parallel        int      // writes at once
	Log             *slog.Logger
	Registry        prometheus.Registerer
}

// Mirror copies until it is stopped.
type Mirror struct {
	Config
	metrics *metrics
	copiers []*copier
}

// New makes a mirror.
func New(c Config) *Mirror {
	m := &Mirror{Config: c, metrics: newMetrics(c.Registry)}
	if len(c.Namespaces) == 0 {
		c.Namespaces = []string{""}
	}
	for _, namespace := range c.Namespaces {
		m.copiers = append(m.copiers, newCopier(m, namespace))
	}
	return m
}

// Run copies until ctx ends.
func (m *Mirror) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, c := range m.copiers {
		all.Go(func() { c.run(ctx) })
	}
	all.Wait()
	return nil
}

// Ready tells whether everything is being watched and written.
func (m *Mirror) Ready(context.Context) error {
	var failures []error
	for _, c := range m.copiers {
		failures = append(failures, c.state.ready())
	}
	return errors.Join(failures...)
}

// Bounds of a copier.
const (
	pageSize   = 500              // events of one page of a list
	batchSize  = 256              // changes that wait, and that are written before the cursor moves
	saveEvery  = time.Second      // of the cursor, while it moves
	saveAnyway = 10 * time.Minute // so that retention does not take it, and people see that it lives
	lastSave   = 5 * time.Second  // for the cursor when stopping
	sourceSide = "source"
	targetSide = "target"
)

// Why the source is listed.
const (
	reasonFirst   = "first"
	reasonGone    = "gone"    // it has forgotten the changes since the cursor
	reasonRewound = "rewound" // its versions have started over
)

// copier copies one namespace, or all of them.
type copier struct {
	*Mirror
	namespace string // of the source; "": all
	path      string
	known     known
	state     *state

	version string // everything up to here is written
	saved   string
	savedAt time.Time
}

func newCopier(m *Mirror, namespace string) *copier {
	c := &copier{Mirror: m, namespace: namespace, path: client.EventsPath("", namespace)}
	c.state = m.metrics.newState(c.label())
	return c
}

// label is the namespace as metrics and logs show it.
func (c *copier) label() string {
	if c.namespace == "" {
		return "*"
	}
	return c.namespace
}

func (c *copier) now() metav1.Time { return metav1.NewTime(time.Now()) }

func (c *copier) count(result string) { c.metrics.events.WithLabelValues(c.label(), result).Inc() }

// run copies until ctx ends. Whatever fails is tried again: a mirror that gave up would lose events.
func (c *copier) run(ctx context.Context) {
	var wait client.Backoff
	for c.version == "" && ctx.Err() == nil {
		version, err := c.loadCursor(ctx)
		if err == nil && version == "" {
			err = c.list(ctx, reasonFirst)
		} else if err == nil {
			c.moved(version)
			c.saved, c.savedAt = version, time.Now()
			c.Log.InfoContext(ctx, "going on from the cursor", "namespace", c.label(), "version", version)
		}
		if err != nil && ctx.Err() == nil {
			c.targetFailed(err)
			_ = wait.Wait(ctx, err)
		}
	}
	c.targetFailed(nil)
	wait.Reset()
	for ctx.Err() == nil {
		began := time.Now()
		err := c.follow(ctx)
		switch {
		case ctx.Err() != nil:
		case client.Gone(err):
			err = c.list(ctx, reasonGone)
		case errors.Is(err, client.ErrRewound):
			err = c.list(ctx, reasonRewound)
		}
		if time.Since(began) > time.Minute {
			wait.Reset()
		}
		if err != nil && ctx.Err() == nil {
			c.sourceFailed(err)
			_ = wait.Wait(ctx, err)
		}
	}
	if c.version != c.saved {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
		defer cancel()
		c.save(last)
	}
}

// list copies everything that is there, and takes the version that the list shows for the cursor.
func (c *copier) list(ctx context.Context, reason string) error {
	c.metrics.lists.WithLabelValues(c.label(), reason).Inc()
	c.Log.InfoContext(ctx, "listing the source", "namespace", c.label(), "reason", reason)
	var wait client.Backoff
	n := 0
	page := func(p *client.Page) error {
		wait.Reset()
		c.sourceFailed(nil)
		items := make([]item, 0, len(p.Items))
		for _, raw := range p.Items {
			items = c.appendItem(items, raw, false)
		}
		n += len(items)
		return c.write(ctx, items)
	}
	version, err := c.Source.Pages(ctx, c.path, nil, pageSize, page, func(err error) error {
		if client.Gone(err) { // the pages are of a version that is no longer kept: from the beginning
			return err
		}
		c.sourceFailed(err)
		return wait.Wait(ctx, err)
	})
	if err != nil {
		return err
	}
	c.Log.InfoContext(ctx, "listed the source", "namespace", c.label(), "events", n, "version", version)
	c.moved(version)
	c.save(ctx)
	return nil
}

// follow copies what changes, until the source says that there is no going on from here.
func (c *copier) follow(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	changes := make(chan client.Change, batchSize)
	from := c.version
	var ended error
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(changes)
		ended = c.Source.Follow(ctx, c.path, from, nil, client.Follower{
			Connected:   func() { c.sourceFailed(nil) },
			Interrupted: c.sourceFailed,
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
	defer reader.Wait()
	defer stop()
	for {
		c.state.level(len(changes) == 0)
		batch, open := c.next(changes)
		c.state.level(false)
		if err := c.apply(ctx, batch); err != nil {
			return err
		}
		if time.Since(c.savedAt) >= saveEvery && c.version != c.saved || time.Since(c.savedAt) >= saveAnyway {
			c.save(ctx)
		}
		if !open {
			return ended
		}
	}
}

// next waits for changes, or until the cursor is to be saved, and takes all that are waiting.
func (c *copier) next(changes <-chan client.Change) (batch []client.Change, open bool) {
	limit := saveAnyway
	if c.version != c.saved {
		limit = saveEvery
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case change, ok := <-changes:
		if !ok {
			return nil, false
		}
		batch = append(batch, change)
	case <-timer.C:
		return nil, true
	}
	for len(batch) < batchSize {
		select {
		case change, ok := <-changes:
			if !ok {
				return batch, false
			}
			batch = append(batch, change)
		default:
			return batch, true
		}
	}
	return batch, true
}

// apply writes a batch; only then the cursor moves.
func (c *copier) apply(ctx context.Context, batch []client.Change) error {
	if len(batch) == 0 {
		return nil
	}
	items := make([]item, 0, len(batch))
	for _, change := range batch {
		switch {
		case change.Seen():
			items = c.appendItem(items, change.Object, change.Type == watch.Modified)
		case change.Type == watch.Deleted:
			c.count(resultKept)
		}
	}
	if err := c.write(ctx, items); err != nil {
		return err
	}
	c.moved(batch[len(batch)-1].Version)
	return nil
}

// appendItem leaves out what is no event, which would come again and again.
func (c *copier) appendItem(items []item, raw json.RawMessage, modified bool) []item {
	it, err := c.newItem(raw, modified)
	if err != nil {
		c.count(resultRefused)
		c.Log.Warn("left out", "namespace", c.label(), "error", err)
		return items
	}
	return append(items, it)
}

// moved is told up to where everything is written.
func (c *copier) moved(version string) {
	c.version = version
	c.state.moved(version)
}

// save writes the cursor. If that fails, the same is copied again after a restart, which changes nothing.
func (c *copier) save(ctx context.Context) {
	c.savedAt = time.Now()
	if err := c.saveCursor(ctx, c.version); err != nil {
		if ctx.Err() == nil {
			c.targetFailed(fmt.Errorf("write the cursor: %w", err))
		}
		return
	}
	c.saved = c.version
	c.targetFailed(nil)
}

func (c *copier) sourceFailed(err error) { c.failed(sourceSide, err) }
func (c *copier) targetFailed(err error) { c.failed(targetSide, err) }

// failed keeps the last failure of a side for the readiness probe, and logs it when it is another than before.
func (c *copier) failed(side string, err error) {
	if err != nil {
		c.metrics.failures.WithLabelValues(side, fmt.Sprint(client.Code(err))).Inc()
	}
	if client.Code(err) == http.StatusTooManyRequests || !c.state.fail(side, err) {
		return // being asked to wait is no failure
	}
	if err == nil {
		c.Log.Info("answers again", "side", side, "namespace", c.label())
		return
	}
	c.Log.Warn("does not do what is asked, trying again until it does", "side", side, "namespace", c.label(),
		"error", err, "hint", client.Hint(err))
}
