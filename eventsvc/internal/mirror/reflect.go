package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"tidings.example/eventsvc/internal/client"
)

// sink takes what a reflector sees.
type sink interface {
	begin() (round uint32) // of a list of everything
	see(*metadata)
	lose(*metadata)
	end(round uint32) // what was not seen since its begin is gone
}

// following says whether the objects of a kind are known.
type following int

const (
	unread   following = iota // not yet
	followed                  // all of them
	denied                    // the source does not let them be read
)

// notServed is how long a source is not asked again for what it does not have, because it is no cluster.
const notServed = 5 * time.Minute

// reflector follows the metadata of all objects of a kind. Another list does not hold them twice, as an informer would.
type reflector struct {
	source *client.Client // of metadata
	path   string
	kind   string // plural, for the log
	sink   sink
	log    *slog.Logger

	answered chan struct{} // is closed once they are known, or denied
	once     sync.Once
	mu       sync.Mutex
	now      following
	failed   bool
}

func newReflector(source *client.Client, path, kind string, to sink, log *slog.Logger) *reflector {
	return &reflector{source: source, path: path, kind: kind, sink: to, log: log, answered: make(chan struct{})}
}

func (r *reflector) state() following {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// run follows until ctx ends. It tries again after any failure.
func (r *reflector) run(ctx context.Context) {
	var wait client.Backoff
	for ctx.Err() == nil {
		began := time.Now()
		version, err := r.list(ctx)
		if err == nil {
			r.is(nil)
			err = r.source.Follow(ctx, r.path, version, nil, client.Follower{
				Connected: func() {}, Interrupted: func(error) {}, Change: r.change,
			})
		}
		if ctx.Err() != nil {
			return
		}
		if !client.Gone(err) {
			r.is(err)
		}
		if time.Since(began) > time.Minute {
			wait.Reset()
		}
		if client.Code(err) == http.StatusNotFound {
			_ = client.Sleep(ctx, notServed)
			continue
		}
		_ = wait.Wait(ctx, err)
	}
}

// list reads all of them.
func (r *reflector) list(ctx context.Context) (version string, err error) {
	round := r.sink.begin()
	version, err = r.source.Pages(ctx, r.path, nil, func(p *client.Page) error {
		for _, raw := range p.Items {
			if err := r.read(raw, r.sink.see); err != nil {
				return err
			}
		}
		return nil
	}, func(err error) error { return err })
	if err == nil {
		r.sink.end(round)
	}
	return version, err
}

func (r *reflector) change(c client.Change) error {
	switch {
	case c.Seen():
		return r.read(c.Object, r.sink.see)
	case c.Type == watch.Deleted:
		return r.read(c.Object, r.sink.lose)
	}
	return nil
}

func (r *reflector) read(raw json.RawMessage, keep func(*metadata)) error {
	var m metadata
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("the source sent what has no metadata: %.200s", raw)
	}
	keep(&m)
	return nil
}

// is notes whether the objects are followed, and logs when that changes.
func (r *reflector) is(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	off := client.Code(err) == http.StatusForbidden || client.Code(err) == http.StatusNotFound
	switch {
	case err == nil && (r.failed || r.now == denied):
		r.log.Info("events get the labels of their objects again", "kind", r.kind)
	case off && r.now != denied:
		r.log.Warn("events get no labels of their objects, because the source does not let these be read",
			"kind", r.kind, "error", err, "hint", "let this account get, list and watch "+r.kind+", or leave --enrich empty")
	case err != nil && !off && !r.failed:
		r.log.Warn("events may get no labels of their objects: reading these fails, trying again", "kind", r.kind, "error", err)
	}
	r.failed = err != nil && !off
	switch {
	case off:
		r.now = denied
	case err == nil:
		r.now = followed
	}
	if off || err == nil {
		r.once.Do(func() { close(r.answered) })
	}
}
