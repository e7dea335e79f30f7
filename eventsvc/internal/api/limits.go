package api

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/bearer"
)

// Limits bound what clients may ask of the server, each with the word that the
// metric eventsvc_requests_refused_total has for it. Zero fields stand for
// [DefaultLimits], those of rates for no limit.
type Limits struct {
	MaxWatches, MaxClientWatches   int // watches, client-watches: that are open, in all and of one client
	MaxRequests, MaxClientRequests int // requests, client-requests: others in flight
	MaxBody                        int // body: bytes of a request
	MaxQuery                       int // query: bytes
	MaxSelectorTerms               int // selector: requirements and values of both selectors

	// create-rate, client-create-rate, namespace-create-rate: new events in
	// all, of one client and in one namespace.
	CreateRate, ClientCreateRate, NamespaceCreateRate Rate
}

// DefaultLimits are the limits of a server that is told nothing else. That of
// bodies is the original's.
var DefaultLimits = Limits{
	MaxWatches: 20000, MaxClientWatches: 4096, MaxRequests: 1024, MaxClientRequests: 256,
	MaxBody: 3 << 20, MaxQuery: 8 << 10, MaxSelectorTerms: 200,
}

// complete puts the defaults in.
func (l *Limits) complete() {
	d := DefaultLimits
	for set, fallback := range map[*int]int{
		&l.MaxWatches: d.MaxWatches, &l.MaxClientWatches: d.MaxClientWatches,
		&l.MaxRequests: d.MaxRequests, &l.MaxClientRequests: d.MaxClientRequests,
		&l.MaxBody: d.MaxBody, &l.MaxQuery: d.MaxQuery, &l.MaxSelectorTerms: d.MaxSelectorTerms,
	} {
		if *set <= 0 {
			*set = fallback
		}
	}
}

// newRefusals counts refused requests by limit. Each counter exists from the start,
// at 0, so that a rate over the time of the first refusal sees it.
func newRefusals() *prometheus.CounterVec {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "eventsvc_requests_refused_total", Help: "Requests refused because of a limit, by limit.",
	}, []string{"limit"})
	for _, limit := range []string{
		"watches", "client-watches", "requests", "client-requests", "create-rate", "client-create-rate", "namespace-create-rate",
		"body", "body-time", "query", "selector", "depth", "patch-operations", "labels", "annotations",
		"audit", // no limit of requests: the audit log fails, and writes are refused without it
	} {
		refused.WithLabelValues(limit)
	}
	return refused
}

// beyond is the answer to a request that breaks a limit.
func beyond(limit string, answer *apierrors.StatusError) error {
	return &event.LimitError{StatusError: answer, Limit: limit}
}

// watches knows the open watches: to bound them and to end them.
type watches struct {
	max, maxPerClient int

	mu       sync.Mutex
	closed   bool
	open     map[*openWatch]struct{}
	byClient map[string]int
	held     sync.WaitGroup
}

// openWatch is a watch, who it is for and what it needs.
type openWatch struct {
	caller    *bearer.Caller
	namespace string
	end       context.CancelFunc
}

func (w *watches) limit(all, perClient int) {
	w.max, w.maxPerClient = all, perClient
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
		return nil, beyond("watches", apierrors.NewTooManyRequests("too many watches are open on this server, please try again", 1))
	case w.byClient[client] >= w.maxPerClient:
		return nil, beyond("client-watches", apierrors.NewTooManyRequests("too many watches of this client are open, please try again", 1))
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

// hold counts in a connection that the HTTP server no longer knows of, because
// the program must not end before it is closed. Once all watches are to end
// there are no new ones. release counts it out again.
func (w *watches) hold() (release func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, false
	}
	w.held.Add(1)
	return w.held.Done, true
}

// wait waits until no connection is held, or ctx ends.
func (w *watches) wait(ctx context.Context) {
	ended := make(chan struct{})
	go func() { w.held.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
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
