// Package api is the HTTP surface of the events service: routes, options,
// answers and errors as clients of a Kubernetes API server know them. One file
// per verb. It decides nothing about events (package event), bytes (package
// codec) or disks (package store).
//
// The same operations are served twice, for events.{group_domain}/v1 and for
// core /api/v1: a [resource] is one of the two views.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/bearer"
)

// Config is what a server is made of.
type Config struct {
	Store store.Store
	Codec *codec.Codec
	Rules event.Rules
	// Verify turns a token into its caller.
	Verify func(ctx context.Context, token string) (*bearer.Caller, error)
	// Policy is who may do what, as it is now; nil: every caller may do
	// everything.
	Policy func() *policy.Policy
	// CoreAPI serves core /api/v1 beside events.{group_domain}/v1.
	CoreAPI bool
	// RequireNamespaces refuses to create events in namespaces that are not
	// known: the well-known ones, those of Namespaces and those that hold
	// events already.
	RequireNamespaces bool
	Namespaces        []string
	// Probe serves the health path that it is given.
	Probe func(path string) http.Handler
	Limits
	// WatchAfterExpiry is how long a watch may run on after the token that it
	// was begun with has expired.
	WatchAfterExpiry time.Duration
	// Withdrawn tells whether the key that signed a caller's token is gone.
	// Nil: keys are never withdrawn.
	Withdrawn func(context.Context, *bearer.Caller) bool
	// Audit is asked whether writes are to be refused, because they could not
	// be audited. [audit.Handler] makes its entries. It may be nil.
	Audit *audit.Log
	// Bookmarks is the time between two bookmarks of a watch; 0: a minute.
	Bookmarks time.Duration
	Log       *slog.Logger
	Registry  prometheus.Registerer
	Now       func() time.Time
}

// Server serves the API.
type Server struct {
	Config
	codec     *codec.Codec
	store     store.Store
	log       *slog.Logger
	buffers   buffers
	frames    buffers // of streams, which stay small
	watches   watches
	scheduler *flow.Scheduler
	rates     createRates
	refused   *prometheus.CounterVec
	resources []*resource
	groups    []apiGroup
	documents documents
	echo      *echo.Echo
}

// resource is the events of one view.
type resource struct {
	*Server
	view          event.View
	groupVersion  schema.GroupVersion
	groupResource schema.GroupResource
	path          string // "/apis/events.k8s.io/v1" or "/api/v1"
}

// New makes a server.
func New(c Config) (*Server, error) {
	if c.Store == nil || c.Codec == nil || c.Verify == nil || c.Probe == nil {
		return nil, errors.New("api: Store, Codec, Verify and Probe are required")
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Policy == nil {
		open := policy.Open()
		c.Policy = func() *policy.Policy { return open }
	}
	if c.Bookmarks <= 0 {
		c.Bookmarks = time.Minute
	}
	c.complete()
	s := &Server{Config: c, codec: c.Codec, store: seatedStore{c.Store}, log: c.Log, refused: newRefusals(), rates: newCreateRates(c.Limits)}
	s.watches.limit(c.MaxWatches, c.MaxClientWatches)
	s.scheduler = flow.New(c.MaxRequests, c.MaxClientRequests, runtime.GOMAXPROCS(0))
	if c.Registry != nil {
		for _, metric := range append(s.scheduler.Collectors(), s.watches.gauge(), s.refused, s.rates.gauge()) {
			if err := c.Registry.Register(metric); err != nil {
				return nil, err
			}
		}
	}
	if c.CoreAPI {
		s.resources = append(s.resources, s.resource(event.CoreV1, "/api"))
	}
	s.resources = append(s.resources, s.resource(event.EventsV1, "/apis/"+c.Codec.GroupVersion(event.EventsV1).Group))
	s.groups = s.apiGroups()
	var err error
	if s.documents, err = s.newDocuments(); err != nil {
		return nil, err
	}
	s.route()
	return s, nil
}

func (s *Server) resource(v event.View, groupPath string) *resource {
	gv := s.codec.GroupVersion(v)
	return &resource{
		Server: s, view: v,
		groupVersion: gv, groupResource: s.codec.Resource(v), path: groupPath + "/" + gv.Version,
	}
}

// route lists what is served.
func (s *Server) route() {
	e := echo.New()
	e.HTTPErrorHandler = s.fail
	e.Use(once(s.prepare, socketToken, bearer.Middleware(s.Verify, s.public, s.refuse), s.strict))
	for _, r := range s.resources {
		all, one := r.path+"/namespaces/:namespace/events", r.path+"/namespaces/:namespace/events/:name"
		list, watchOnly := r.listing(r.groupResource, false, r.list), r.listing(r.groupResource, true, r.list)
		e.GET(r.path+"/events", list)
		e.GET(all, list)
		e.POST(all, r.may(policy.Create, r.create))
		e.DELETE(all, r.may(policy.DeleteCollection, r.deleteCollection))
		e.GET(one, r.may(policy.Get, r.get))
		e.PUT(one, r.may(policy.Update, r.update))
		e.PATCH(one, r.may(policy.Patch, r.patch))
		e.DELETE(one, r.may(policy.Delete, r.delete))
		e.GET(r.path+"/watch/events", watchOnly)
		e.GET(r.path+"/watch/namespaces/:namespace/events", watchOnly)
		e.GET(r.path+"/watch/namespaces/:namespace/events/:name", watchOnly)
	}
	if s.CoreAPI {
		e.GET("/api/v1/namespaces", s.listing(namespacesResource, false, s.listNamespaces))
		e.GET("/api/v1/namespaces/:namespace", s.guard(namespacesResource, policy.Get, s.getNamespace))
	}
	s.routeReviews(e)
	s.routeDocuments(e)
	s.routeKinds(e)
	for _, path := range healthPaths() {
		h := echo.WrapHandler(s.Probe(path))
		e.GET(path, h)
		e.GET(path+"/*", h)
	}
	s.echo = e
}

// healthPaths are the probes in the Kubernetes form.
func healthPaths() []string { return []string{"/healthz", "/livez", "/readyz"} }

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path := canonical(r.URL.Path); r.URL.RawPath != "" || path != r.URL.Path {
		// Routes and names are those of the decoded path, as in the
		// original: an escaped slash parts segments like any other.
		u := *r.URL
		u.Path, u.RawPath = path, ""
		clone := *r
		clone.URL = &u
		r = &clone
	}
	s.echo.ServeHTTP(w, r)
}

// canonical is a path of the API without the slash at its end, which means
// nothing in the original, whatever the method. Other paths are as they are.
func canonical(path string) string {
	short, cut := strings.CutSuffix(path, "/")
	if cut && (under(short, "/api") || under(short, "/apis")) && !strings.HasSuffix(short, "/") {
		return short
	}
	return path
}

// Drain ends all watches and refuses new ones, so that their clients go on
// elsewhere or come back after a restart.
func (s *Server) Drain(ctx context.Context) {
	s.watches.close()
	s.watches.wait(ctx)
}

// under tells whether a path is a folder or something in it.
func under(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == '/')
}

// client names the caller of a request, for limits per client.
func client(r *http.Request) string {
	if caller, ok := bearer.FromContext(r.Context()); ok {
		return caller.Issuer + "\x00" + caller.Subject
	}
	return ""
}
