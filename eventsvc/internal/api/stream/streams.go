package stream

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/bearer"
)

// Config are the settings of [Streams].
type Config struct {
	Store store.Store
	IO    *httpio.IO
	Guard *access.Guard
	Log   *slog.Logger
	Now   func() time.Time

	Max, MaxClient int           // how many watches may be open, in all and of one client
	Bookmarks      time.Duration // between two bookmarks of a watch
	AfterExpiry    time.Duration // how long a watch goes on after its token has expired
	// Withdrawn reports whether the key that signed a caller's token is gone.
	Withdrawn func(context.Context, *bearer.Caller) bool
}

// Streams are the open watches: they are bounded, and can be ended.
type Streams struct {
	Config

	mu       sync.Mutex
	closed   bool
	open     map[*watch]struct{}
	byClient map[string]int
	tails    map[string]int // by client
	held     sync.WaitGroup
}

// watch is an open watch: who it is for and what it needs.
type watch struct {
	caller    *bearer.Caller
	namespace string
	may       access.Grant // as it was when the watch began
	allowed   func() bool  // nil: the policy decides on the namespace
	tail      bool
	end       context.CancelFunc
}

// New returns a Streams without an open watch.
func New(c Config) *Streams {
	return &Streams{Config: c, open: map[*watch]struct{}{}, byClient: map[string]int{}, tails: map[string]int{}}
}

// Collectors returns the gauge of open watches.
func (s *Streams) Collectors() []prometheus.Collector {
	return []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "eventsvc_watches", Help: "Open watches.",
	}, func() float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return float64(len(s.open))
	}), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "eventsvc_max_watches", Help: "Watches that may be open, as --max-watches says.",
	}, func() float64 { return float64(s.Max) })}
}

// Lister lists or watches what a request selects. It answers with a list, or begins a
// watch and returns the function that follows it, see [Streams.Open].
type Lister func(c echo.Context, may access.Grant, o metav1.ListOptions, f codec.Format) (follow func(), err error)

// ListOrWatch serves lists and watches of a resource. Errors surface in
// kube-apiserver's order: authorization, answer format, options.
func (s *Streams) ListOrWatch(of schema.GroupResource, forceWatch bool, next Lister) echo.HandlerFunc {
	return func(c echo.Context) error {
		// 1. The options say whether it is a list or a watch.
		o, optionsErr := httpio.ParseList(httpio.QueryOf(c.Request()), forceWatch)
		verb, scope := policy.List, codec.ScopeList
		if o.Watch {
			verb, scope = policy.Watch, codec.ScopeWatch
		}
		// 2. Authorization.
		may, err := s.Guard.Authorize(c, of, verb)
		if err != nil {
			return err
		}
		// 3. The format of the answer.
		f, err := codec.Negotiate(c.Request(), scope)
		if err != nil {
			return err
		}
		if optionsErr != nil {
			return optionsErr
		}
		// 4. The list, or the beginning of the watch, with a seat.
		var follow func()
		err = s.Guard.Seated(verb, func(c echo.Context) (err error) {
			follow, err = next(c, may, o, f)
			return err
		})(c)
		if follow == nil {
			return err
		}
		// 5. The rest of the watch, without one.
		follow()
		return nil
	}
}

// add counts a watch of a client in. Its end is called when it is no longer allowed,
// or when all watches are to end; done counts it out again.
func (s *Streams) add(client string, w *watch) (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errStopping()
	case len(s.open) >= s.Max:
		return nil, httpio.Beyond("watches", apierrors.NewTooManyRequests("too many watches are open on this server, please try again", 1))
	case s.byClient[client] >= s.MaxClient:
		return nil, httpio.Beyond("client-watches", apierrors.NewTooManyRequests("too many watches of this client are open, please try again", 1))
	case w.tail && s.tails[client] >= maxTails:
		return nil, httpio.Beyond("client-tails", apierrors.NewTooManyRequests("too many tails of this client are open, please try again", 1))
	}
	s.open[w] = struct{}{}
	s.byClient[client]++
	if w.tail {
		s.tails[client]++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, w)
		lower(s.byClient, client)
		if w.tail {
			lower(s.tails, client)
		}
	}, nil
}

// lower counts one less of a client.
func lower(n map[string]int, client string) {
	if n[client]--; n[client] == 0 {
		delete(n, client)
	}
}

// Drain ends all watches and refuses new ones, so that their clients go on elsewhere
// or come back after a restart. It waits until their connections are closed, or ctx
// ends.
func (s *Streams) Drain(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	for w := range s.open {
		w.end()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { s.held.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// hold counts in a connection that the HTTP server no longer knows of: the program
// must not end before it is closed. release counts it out again. After Drain there
// are no new ones.
func (s *Streams) hold() (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errStopping()
	}
	s.held.Add(1)
	return s.held.Done, nil
}

// errStopping is the 429 for a watch after Drain.
func errStopping() error {
	return apierrors.NewTooManyRequests("the server is shutting down, please try again", 5)
}

// limit returns how long a watch of a caller may go on: for the time that is asked for,
// or until some time after its token has expired.
func (s *Streams) limit(caller *bearer.Caller, asked time.Duration) time.Duration {
	if caller.Expires.IsZero() {
		return asked
	}
	return min(asked, caller.Expires.Add(s.AfterExpiry).Sub(s.Now()))
}

func (s *Streams) allowed(w *watch) bool {
	if w.allowed != nil {
		return w.allowed()
	}
	return w.may.Holds(s.Guard.Policy().Decide(w.caller, policy.Watch, w.namespace))
}

// PolicyChanged ends the watches that are no longer allowed.
func (s *Streams) PolicyChanged() {
	s.endIf(func(w *watch) bool { return !s.allowed(w) }, "watches ended that the policy no longer allows")
}

// Run ends the watches whose token was signed with a key that has since been withdrawn, or is of an issuer that is no
// longer trusted, until ctx ends. It looks once a second, and each key up once, however many watches depend on it.
func (s *Streams) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	type key struct{ issuer, id string }
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		gone := map[key]bool{}
		s.endIf(func(w *watch) bool {
			k := key{w.caller.Issuer, w.caller.KeyID}
			if _, known := gone[k]; !known {
				gone[k] = s.Withdrawn(ctx, w.caller)
			}
			return gone[k]
		}, "watches ended whose tokens are of a withdrawn key or issuer")
	}
}

// endIf ends the watches that a condition holds for, and says why in the log.
func (s *Streams) endIf(over func(*watch) bool, why string) {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	ended := 0
	for _, w := range open {
		if over(w) {
			w.end()
			ended++
		}
	}
	if ended > 0 {
		s.Log.Info(why, "watches", ended)
	}
}
