package api

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/shared/bearer"
)

// The defaults of how many watches may be open.
const (
	defaultMaxWatches       = 20000
	defaultMaxClientWatches = 4096
)

// watches knows the open watches: to bound them and to end them.
type watches struct {
	max, maxPerClient int

	mu       sync.Mutex
	closed   bool
	open     map[*openWatch]struct{}
	byClient map[string]int
}

// openWatch is a watch, who it is for and what it needs.
type openWatch struct {
	caller    *bearer.Caller
	namespace string
	end       context.CancelFunc
}

func (w *watches) limit(all, perClient int) {
	w.max, w.maxPerClient = all, perClient
	if w.max <= 0 {
		w.max = defaultMaxWatches
	}
	if w.maxPerClient <= 0 {
		w.maxPerClient = defaultMaxClientWatches
	}
	w.open, w.byClient = map[*openWatch]struct{}{}, map[string]int{}
}

// add counts a watch of a client in. Its end is called when it is no longer
// allowed, or when all watches are to end; done counts it out again.
func (w *watches) add(client string, o *openWatch) (done func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return nil, apierrors.NewTooManyRequests("the server is shutting down, please try again", 5)
	case len(w.open) >= w.max:
		return nil, apierrors.NewTooManyRequests("too many watches are open on this server, please try again", 1)
	case w.byClient[client] >= w.maxPerClient:
		return nil, apierrors.NewTooManyRequests("too many watches of this client are open, please try again", 1)
	}
	w.open[o] = struct{}{}
	w.byClient[client]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, o)
		if w.byClient[client]--; w.byClient[client] == 0 {
			delete(w.byClient, client)
		}
	}, nil
}

// close ends all watches and lets no new ones in.
func (w *watches) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for o := range w.open {
		o.end()
	}
}

// all are the watches that are open now.
func (w *watches) all() []*openWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.open))
}

func (w *watches) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "eventsvc_watches", Help: "Open watches.",
	}, func() float64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		return float64(len(w.open))
	})
}
