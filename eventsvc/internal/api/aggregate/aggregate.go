package aggregate

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/discovery"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

// Config is what a server is made of.
type Config struct {
	Events     *client.Client // the event server
	Cluster    string         // reads are limited to the events of this cluster; "": to what the event server's policy allows
	Codec      *codec.Codec
	Advertise  []string // verbs in discovery
	FrontProxy *FrontProxy
	Reviewer   *Reviewer
	Probe      func(path string) http.Handler // serves the health path that it is given
	Log        *slog.Logger
	Registry   prometheus.Registerer
}

// Server is the aggregated API server.
type Server struct {
	Config
	io                *httpio.IO
	echo              *echo.Echo
	group             schema.GroupVersion
	requests, watches *open
	side              side // the event server
	refused           *prometheus.CounterVec
	forwarded         *prometheus.CounterVec
	sent              *sentBytes
	reviewEvery       time.Duration // of an open watch
	patience          time.Duration // with an event server that says nothing; then it is asked whether it is ready
	look              time.Duration // how long that question may take; with patience, less than the promised five seconds
	draining          context.Context
	drain             context.CancelFunc
}

// probes are the health paths in the Kubernetes form.
var probes = []string{"/healthz", "/livez", "/readyz"}

// New returns a server.
func New(c Config) (*Server, error) {
	groups := discovery.Aggregated(c.Codec, c.Advertise)
	s := &Server{
		Config: c, group: groups[0].GroupVersion, io: httpio.New(c.Log, 0, []string{"/api", "/apis"}),
		requests: newOpen("requests", maxRequests, maxUserRequests), watches: newOpen("watches", maxWatches, maxUserWatches),
		side: side{log: c.Log, name: "the event server"}, sent: newSentBytes(), reviewEvery: time.Minute, patience: time.Second, look: 3500 * time.Millisecond,
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_aggregate_unidentified_total", Help: "Requests refused because they do not come from the front proxy or name no user, by reason.",
		}, []string{"reason"}),
		forwarded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_aggregate_forwarded_total",
			Help: "Requests passed to the event server: answered, away (no answer) or refused (it does not accept this process's token, or not for that).",
		}, []string{"result"}),
	}
	s.draining, s.drain = context.WithCancel(context.Background())
	for _, reason := range identityReasons {
		s.refused.WithLabelValues(reason)
	}
	for _, result := range []string{forwardAnswered, forwardAway, forwardRefused} {
		s.forwarded.WithLabelValues(result)
	}
	for _, metric := range append(s.io.Collectors(), s.refused, s.forwarded, s.sent) {
		if err := c.Registry.Register(metric); err != nil {
			return nil, err
		}
	}
	s.routes(groups)
	return s, nil
}

// routes is the table of everything that is served.
func (s *Server) routes(groups []discovery.Group) {
	e := echo.New()
	e.HTTPErrorHandler = s.io.Fail
	e.Use(func(echo.HandlerFunc) echo.HandlerFunc { return s.serve })
	for _, path := range probes {
		e.GET(path, echo.WrapHandler(s.Probe(path)))
		e.GET(path+"/*", echo.WrapHandler(s.Probe(path)))
	}
	discovery.Route(e, s.Codec, s.io, groups, nil)
	folder := groups[0].Path()
	for _, path := range []string{"/events", "/namespaces/:namespace/events", "/namespaces/:namespace/events/:name"} {
		for prefix, handle := range map[string]echo.HandlerFunc{folder: s.read, folder + "/watch": s.watchOnly} {
			e.GET(prefix+path, handle)
			e.HEAD(prefix+path, handle)
			e.Match([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, prefix+path, s.refuseWrite)
		}
	}
	s.echo = e
}

// ServeHTTP serves one request. Routes and names are those of the decoded path, as in kube-apiserver; a slash at the
// end has no meaning there.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u := *r.URL
	u.RawPath = ""
	if u.Path = strings.TrimSuffix(u.Path, "/"); u.Path == "" {
		u.Path = "/"
	}
	clone := *r
	clone.URL = &u
	s.echo.ServeHTTP(w, &clone)
}

// serve calls the handler that the router has found, if the front proxy names the user. Probes need no user.
func (s *Server) serve(c echo.Context) error {
	h, r := c.Response().Header(), c.Request()
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	if isProbe(r.URL.Path) {
		return c.Handler()(c)
	}
	user, refusal := s.FrontProxy.identify(r)
	if refusal != nil {
		s.refused.WithLabelValues(refusal.reason).Inc()
		httpserver.Annotate(r.Context(), slog.String("refused", refusal.Error()))
		if refusal.reason == reasonNotReady {
			return retryAfter(apierrors.NewServiceUnavailable("the front proxy is not known yet, please try again"), 1)
		}
		return apierrors.NewUnauthorized("Unauthorized")
	}
	audit.Authenticated(r.Context(), "front-proxy")
	if err := bearer.Admit(c, &bearer.Caller{Subject: user.Username}, nil, ""); err != nil {
		return err
	}
	if err := access.NoImpersonation(c.Request()); err != nil { // kube-apiserver removes the headers of what it allows
		return err
	}
	c.SetRequest(httpserver.WithValue(c.Request(), userKey{}, user))
	switch {
	case r.Header.Get("Upgrade") != "":
		return apierrors.NewBadRequest("connections are not upgraded here: watch over HTTP")
	case strings.Contains(c.Param("name"), "/"), strings.Contains(r.URL.Path, "//"):
		return echo.ErrNotFound
	case r.Method == http.MethodOptions: // the router answers OPTIONS
		return echo.ErrMethodNotAllowed
	}
	return c.Handler()(c)
}

// userKey is the key of the user in a request's context.
type userKey struct{}

func isProbe(path string) bool {
	return slices.ContainsFunc(probes, func(probe string) bool { return httpio.Under(path, probe) })
}

// refuseWrite answers every write with a 405: the namespace controller takes a 405 for "not supported", but a 403 for a
// failure.
func (s *Server) refuseWrite(c echo.Context) error {
	c.Response().Header().Set("Allow", "GET, HEAD")
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: "history is read-only through the aggregation layer",
		Details: &metav1.StatusDetails{Group: s.group.Group, Kind: s.Codec.Group.Resource(event.EventsV1).Resource, Name: c.Param("name")},
	}}
}

// Drain ends all watches. Their clients continue elsewhere.
func (s *Server) Drain(context.Context) { s.drain() }
