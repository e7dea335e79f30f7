package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/discovery"
	"tidings.example/eventsvc/internal/api/events"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/api/loki"
	"tidings.example/eventsvc/internal/api/mcp"
	"tidings.example/eventsvc/internal/api/queries"
	"tidings.example/eventsvc/internal/api/resource"
	"tidings.example/eventsvc/internal/api/stream"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

// Config is what a server is made of.
type Config struct {
	Store    store.Store
	Timeline store.Timeline
	Codec    *codec.Codec
	// Verify turns a token into its caller.
	Verify func(ctx context.Context, token string) (*bearer.Caller, error)
	// Basic turns a user, a password and the address that they come from into a caller. Nil: a password is a token.
	Basic func(ctx context.Context, user, password, source string) (*bearer.Caller, error)
	// Source finds that address. Nil: it is the peer of the connection.
	Source func(*http.Request) string
	// Resource says where clients get tokens. Its zero value says nothing. Its MCP is set from this Config.
	Resource resource.Config
	// Policy returns who may do what now.
	Policy func() *policy.Policy
	// Console serves the web page below [console.Folder]. Nil: there is none.
	Console http.Handler
	// MCP serves tools to agents at [mcp.Path].
	MCP bool
	// Hosts are the names whose pages may call these tools, in lower case, besides the names of this machine.
	Hosts []string
	// Namespaces, if there are any, let events be created only in them, in the well-known
	// ones, and in those that hold events.
	Namespaces []string
	// Probe serves the health path that it is given.
	Probe func(path string) http.Handler
	Limits
	// WatchAfterExpiry is how long a watch may go on after its token has expired.
	WatchAfterExpiry time.Duration
	// Withdrawn reports whether the key that signed a caller's token is gone.
	Withdrawn func(context.Context, *bearer.Caller) bool
	// Audit refuses writes that it could not record, if that is its setting. It may be
	// nil. [audit.Handler] makes its entries.
	Audit *audit.Log
	// Fresh makes the store show every write that was acknowledged before the call, by whichever replica. Where reads
	// may be older, it returns the age of what they show.
	Fresh func(context.Context) (age time.Duration, err error)
	// Bookmarks is the time between two bookmarks of a watch; 0: 20 s, so that within half a minute a mirror knows that
	// it has all.
	Bookmarks time.Duration
	Log       *slog.Logger
	Registry  prometheus.Registerer
	Now       func() time.Time
}

// Limits bound what clients may ask of the server. The word for each in the metric
// eventsvc_requests_refused_total stands beside it.
type Limits struct {
	MaxWatches, MaxClientWatches   int // watches, client-watches: that are open, in all and of one client
	MaxRequests, MaxClientRequests int // requests, client-requests: all but watches that are in flight; the first of a client is always let in
	MaxBody                        int // body: bytes of a request
	MaxQuery                       int // query: bytes
	MaxSelectorTerms               int // selector: requirements and values of both selectors

	CreateRates Rates // create-rate, client-create-rate, namespace-create-rate; zero: no limit
}

// LimitsOf returns the limits of a server with so many open watches and so many other requests in flight. One client
// may have a quarter of each: the others keep most of it, whatever the one does.
func LimitsOf(watches, requests int) Limits {
	return Limits{
		MaxWatches: watches, MaxClientWatches: max(1, watches/4), MaxRequests: requests, MaxClientRequests: max(1, requests/4),
		MaxBody:          3 << 20, // kube-apiserver's; an event has at most half as much
		MaxQuery:         8 << 10, // more than the longest that clients send: kubectl's and Grafana's have less than 1 KiB
		MaxSelectorTerms: 200,     // bounds the work for each event that a selector is compared with
	}
}

// Rate and Rates bound how many events are created.
type (
	// Rate is for all clients, for each client or for each namespace.
	Rate = access.Rate
	// Rates are all three.
	Rates = access.Rates
)

// Server serves the API. It is safe for concurrent use.
type Server struct {
	io       *httpio.IO
	guard    *access.Guard
	streams  *stream.Streams
	verify   func(ctx context.Context, token string) (*bearer.Caller, error)
	basic    func(ctx context.Context, user, password, source string) (*bearer.Caller, error)
	source   func(*http.Request) string
	maxQuery int
	mirrored *queries.Mirrored
	resource *resource.Server // of the paths below [resource.WellKnown]
	echo     *echo.Echo       // of all paths but those of the next three
	loki     *echo.Echo       // of those below [loki.Folder]
	mcp      *echo.Echo       // of those below [mcp.Path]; nil: there is none
	console  http.Handler     // of those below [console.Folder]; nil: there is none
}

// New makes a server. An error means a mistake in the program, not in its settings.
func New(c Config) (*Server, error) {
	if c.Store == nil || c.Timeline == nil || c.Codec == nil || c.Verify == nil || c.Policy == nil || c.Withdrawn == nil || c.Fresh == nil || c.Probe == nil {
		return nil, errors.New("api: Store, Timeline, Codec, Verify, Policy, Withdrawn, Fresh and Probe are required")
	}
	c.Bookmarks = cmp.Or(c.Bookmarks, 20*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Store, c.Timeline = access.Store(c.Store), access.Timeline(c.Timeline)
	groups := discovery.Groups(c.Codec)
	c.Resource.MCP = c.MCP
	documents, err := resource.New(c.Resource)
	if err != nil {
		return nil, err
	}
	if c.Source == nil {
		c.Source = httpserver.Source(nil)
	}
	s := &Server{verify: c.Verify, basic: c.Basic, source: c.Source, maxQuery: c.MaxQuery, resource: documents, console: c.Console}
	s.io = httpio.New(c.Log, c.MaxBody, append(discovery.Folders(groups), queriesFolder, bulkFolder))
	s.guard = access.New(c.Policy, c.Audit, c.MaxRequests, c.MaxClientRequests, c.CreateRates, c.Now)
	s.guard.Fresh, s.guard.Resource = c.Fresh, documents
	s.streams = stream.New(stream.Config{
		Store: c.Store, IO: s.io, Guard: s.guard, Log: c.Log, Now: c.Now, Max: c.MaxWatches, MaxClient: c.MaxClientWatches,
		Bookmarks: c.Bookmarks, AfterExpiry: c.WatchAfterExpiry, Withdrawn: c.Withdrawn,
	})
	arrivals, bulk := events.NewArrivals(c.Now), events.NewBulkCounter()
	s.mirrored = queries.NewMirrored(c.Store, c.Codec, c.Log, c.Now)
	if c.Registry != nil {
		for _, metric := range slices.Concat(s.guard.Collectors(), s.streams.Collectors(), s.io.Collectors(), []prometheus.Collector{arrivals.Collector(), bulk, s.mirrored}) {
			if err := c.Registry.Register(metric); err != nil {
				return nil, err
			}
		}
	}
	s.routes(c, groups, arrivals, bulk)
	return s, nil
}

// queriesFolder and bulkFolder are where all versions of the queries, and of creates of many events, are.
const (
	queriesFolder = "/query"
	bulkFolder    = "/bulk"
)

// routes is the table of everything that is served.
func (s *Server) routes(c Config, groups []discovery.Group, arrivals *events.Arrivals, bulk *prometheus.CounterVec) {
	s.echo = newRouter(s.serve, s.io.Fail)
	s.loki = newRouter(s.serve, s.io.FailInText)
	e := s.echo
	e.GET("/", discovery.Index(e, s.loki))
	ns := discovery.NewNamespaces(c.Store, c.Codec, s.io, s.streams, c.MaxSelectorTerms, c.Namespaces)
	admit := func(ctx context.Context, may access.Grant, namespace string) error {
		if len(c.Namespaces) == 0 {
			return nil
		}
		return ns.Exists(ctx, may, namespace, 0)
	}
	both := events.Config{
		Store: c.Store, Timeline: c.Timeline, Codec: c.Codec, IO: s.io, Guard: s.guard, Streams: s.streams,
		Arrivals: arrivals, Bulk: bulk, MaxTerms: c.MaxSelectorTerms, Admit: admit, Now: c.Now,
	}
	events.Route(e, both, event.CoreV1, "/api/v1")
	ns.Route(e, s.guard)
	events.Route(e, both, event.EventsV1, "/apis/"+c.Codec.Group.GroupVersion(event.EventsV1).String())
	events.RouteBulk(e, both)
	discovery.RouteReviews(e, c.Codec, s.io, s.guard, groups)
	loki.Route(s.loki, loki.Config{Store: c.Store, Timeline: c.Timeline, Codec: c.Codec, IO: s.io, Guard: s.guard, Streams: s.streams, Now: c.Now})
	for _, path := range probes {
		h := echo.WrapHandler(c.Probe(path))
		e.GET(path, h)
		e.GET(path+"/*", h)
	}
	answers := queries.New(queries.Config{
		Timeline: c.Timeline, Revision: c.Store.Revision, Codec: c.Codec, IO: s.io, Guard: s.guard, Mirrored: s.mirrored, MaxTerms: c.MaxSelectorTerms, Now: c.Now,
	})
	answers.Route(e)
	if c.MCP {
		s.routeMCP(mcp.New(mcp.Config{Queries: answers, Codec: c.Codec, IO: s.io, Guard: s.guard, Now: c.Now, Hosts: c.Hosts}))
	}
	more := map[string]func() ([]byte, error){strings.TrimPrefix(queries.Path, "/"): queries.OpenAPI, "bulk/v1": events.BulkOpenAPI}
	discovery.Route(e, c.Codec, s.io, groups, more)
}

// routeMCP serves tools. A page of another origin is refused before anything else.
func (s *Server) routeMCP(tools *mcp.Server) {
	s.mcp = newRouter(func(c echo.Context) error {
		if err := tools.Origin(c.Request()); err != nil {
			prepare(c.Response().Header())
			return err
		}
		return s.serve(c)
	}, tools.Fail)
	tools.Route(s.mcp)
}

// probes are the health paths in the Kubernetes form.
var probes = []string{"/healthz", "/livez", "/readyz"}

// public reports which requests need no token: the probes without a check's name, and
// the version, which clients ask for before they have one.
func public(r *http.Request) bool {
	path := r.URL.Path
	return r.Method == http.MethodGet && (slices.Contains(probes, path) || path == "/version" || path == "/version/")
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path := canonical(r.URL.Path); r.URL.RawPath != "" || path != r.URL.Path {
		// Routes and names are those of the decoded path, as in kube-apiserver: an
		// escaped slash separates segments like any other.
		u := *r.URL
		u.Path, u.RawPath = path, ""
		clone := *r
		clone.URL = &u
		r = &clone
	}
	switch {
	case httpio.Under(r.URL.Path, loki.Folder):
		s.loki.ServeHTTP(w, r)
	case httpio.Under(r.URL.Path, resource.WellKnown):
		prepare(w.Header())
		s.resource.ServeHTTP(w, r)
	case httpio.Under(r.URL.Path, mcp.Path):
		s.serveMCP(w, r)
	case s.console != nil && s.serveConsole(w, r):
	default:
		s.echo.ServeHTTP(w, r)
	}
}

// serveMCP serves tools, if there are any.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	if s.mcp == nil {
		prepare(w.Header())
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	s.mcp.ServeHTTP(w, r)
}

// canonical returns a path of the API without the slash at its end, which has no meaning
// in kube-apiserver. It returns other paths unchanged.
func canonical(path string) string {
	short, cut := strings.CutSuffix(path, "/")
	if cut && (httpio.Under(short, "/api") || httpio.Under(short, "/apis") || httpio.Under(short, queriesFolder) || httpio.Under(short, bulkFolder) || short == mcp.Path) && !strings.HasSuffix(short, "/") {
		return short
	}
	return path
}

// Drain ends all watches and refuses new ones, see [stream.Streams.Drain].
func (s *Server) Drain(ctx context.Context) { s.streams.Drain(ctx) }

// Refused counts a request to another listener that was refused because of a limit.
func (s *Server) Refused(limit string) { s.io.Refused(limit) }

// PolicyChanged ends the watches that are no longer allowed.
func (s *Server) PolicyChanged() { s.streams.PolicyChanged() }

// Run ends watches whose keys are withdrawn, and follows the cursors of mirrors, until ctx ends: see
// [stream.Streams.Run] and [queries.Mirrored.Run].
func (s *Server) Run(ctx context.Context) error {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { _ = s.mirrored.Run(ctx) }) // it returns nil
	return s.streams.Run(ctx)
}

// newRouter returns a router that passes every request to serve, also if it has found no route.
func newRouter(serve echo.HandlerFunc, fail echo.HTTPErrorHandler) *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = fail
	e.Use(func(echo.HandlerFunc) echo.HandlerFunc { return serve })
	return e
}

// serve passes a request to the handler that the router has found, if it has a good token
// and may be served at all.
func (s *Server) serve(c echo.Context) error {
	prepare(c.Response().Header())
	if !public(c.Request()) {
		if err := s.authenticate(c); err != nil {
			if later := busy(err); later != nil {
				httpserver.Annotate(c.Request().Context(), slog.String("refused", err.Error()))
				return later
			}
			return s.guard.Refuse(c, err)
		}
		if err := access.NoImpersonation(c.Request()); err != nil {
			return err
		}
	}
	if err := s.strict(c); err != nil {
		return err
	}
	return c.Handler()(c)
}

// The values of headers that every answer has.
var (
	noCache = []string{"no-cache, private"}
	noSniff = []string{"nosniff"}
	noPage  = []string{"default-src 'none'; frame-ancestors 'none'"} // nothing here is a page
)

// prepare sets the headers that every answer has.
func prepare(h http.Header) {
	h["Cache-Control"] = noCache
	h["X-Content-Type-Options"] = noSniff
	h["Content-Security-Policy"] = noPage
}

// tooLong reports whether nothing can have a name, because none is so long. Such names reach neither the policy nor the
// audit log.
func tooLong(name string) bool { return len(name) > maxName }

// maxName is the length of the longest name that is accepted: of an event by core/v1.
const maxName = 768

// strict refuses long queries, and requests that the router lets through: names with
// slashes in them, namespaces without a name, and OPTIONS.
func (s *Server) strict(c echo.Context) error {
	switch {
	case len(c.Request().URL.RawQuery) > s.maxQuery:
		return httpio.Beyond("query", apierrors.NewBadRequest(fmt.Sprintf("the query has more than %d bytes: shorten the selectors", s.maxQuery)))
	case strings.Contains(c.Param("name"), "/"), strings.Contains(c.Request().URL.Path, "//"), slices.ContainsFunc(c.ParamValues(), tooLong):
		return echo.ErrNotFound
	case c.Request().Method == http.MethodOptions:
		return echo.ErrMethodNotAllowed
	}
	return nil
}
