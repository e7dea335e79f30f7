package loki

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/api/stream"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
)

// Folder is the path below which this API is.
const Folder = "/loki"

// Config is what the API is made of.
type Config struct {
	Store    store.Store
	Timeline store.Timeline
	Codec    *codec.Codec
	IO       *httpio.IO
	Guard    *access.Guard
	Streams  *stream.Streams
	Now      func() time.Time
}

// API serves requests.
type API struct{ Config }

// The bounds of a request, besides those of LogQL.
const (
	maxBody     = 64 << 10    // bytes of a form
	maxTime     = time.Minute // of a query
	maxLooked   = 2_000_000   // versions of events that a query looks at
	maxSeries   = 500         // of an answer, as Loki has it
	maxInner    = 10_000      // series before they are put together, and sets of labels
	maxPoints   = 11_000      // of a series, as Prometheus and Loki have it
	maxCells    = 2_000_000   // counters of a range aggregation
	maxStreams  = 100_000     // that a query looks at
	maxLines    = 5_000       // of an answer, as Loki has it
	maxBytes    = 16 << 20    // of an answer
	maxNames    = 50          // of labels in targetLabels, and of selectors in match[]
	volumeLimit = 100         // if the client sets none, as Loki has it
	lineLimit   = 100         // if the client sets none
	fieldLimit  = 1_000       // likewise, of detected fields
	defaultTime = time.Hour   // likewise, how far a query looks back
)

// Route adds the routes.
func Route(e *echo.Echo, c Config) {
	a := &API{c}
	g := e.Group(Folder + "/api/v1")
	for path, h := range map[string]handler{
		"/query": a.query, "/query_range": a.queryRange,
		"/labels": a.labels, "/label": a.labels, "/label/:label/values": a.labelValues, "/series": a.series,
		"/index/stats": a.stats, "/index/volume": a.volume, "/index/volume_range": a.volumeRange,
		"/detected_labels": a.detectedLabels, "/detected_fields": a.detectedFields, "/detected_field/:label/values": a.detectedValues,
		"/patterns": a.patterns, "/format_query": formatQuery,
		"/drilldown-limits": drilldownLimits, "/status/buildinfo": buildInfo,
	} {
		g.GET(path, a.serve(h))
		g.POST(path, a.serve(h))
	}
	g.GET("/tail", a.tail)
}

// request is what every handler gets.
type request struct {
	echo.Context
	ctx      context.Context
	values   url.Values // of the query and of the form
	readable access.Readable
	cluster  string // of X-Scope-OrgID, empty: all
	now      time.Time
	turns    *flow.Turns
	looked   int // versions of events that were looked at
	kept     int // bytes, see grow
	warnings []string
}

// warn adds a warning to the answer, once.
func (r *request) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.warnings, text) {
		r.warnings = append(r.warnings, text)
	}
}

// A share bounds how much of something a request keeps. Half of it is for whoever comes first, and the other half for
// namespaces that have little: so one namespace that has very much does not take the place of all others.
type share struct {
	most int
	n    int
	of   map[string]int // by namespace
}

// shares is how many namespaces have at least their part of the whole.
const shares = 100

// take reports whether there is room for one more of a namespace, and takes it.
func (s *share) take(namespace string) bool {
	if s.n >= s.most || s.n >= s.most/2 && s.of[namespace] >= s.most/shares {
		return false
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.of[namespace]++
	s.n++
	return true
}

// allows reports whether the request may see a stream.
func (r *request) allows(d event.Dimensions) bool {
	return (r.cluster == "" || r.cluster == d.Cluster) && r.readable.Allows(d.Namespace, d.Cluster)
}

// grow takes room for n bytes more that the request keeps until it is answered, if they do
// not fit into the room of a question.
func (r *request) grow(n int) error {
	r.kept += n
	return httpio.Unread(flow.FromContext(r.ctx).Room().Grow(r.kept))
}

// handler answers with what it returns as JSON.
type handler func(r *request) (answer, error)

// answer appends JSON.
type answer func(b []byte) []byte

var jsonFormat = codec.Format{Media: codec.JSON}

// serve wraps a handler: rights, form, seat, time.
func (a *API) serve(h handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, err := a.begin(c, policy.List)
		if err != nil {
			return err
		}
		return a.Guard.Seated(policy.List, func(c echo.Context) error {
			ctx, cancel := context.WithTimeout(c.Request().Context(), maxTime)
			defer cancel()
			r.ctx, r.Context, r.turns = ctx, c, flow.NewTurns(ctx)
			if err := flow.FromContext(ctx).Take(ctx, flow.Question); err != nil {
				return httpio.Unread(err)
			}
			respond, err := h(r)
			if err != nil {
				return explain(err)
			}
			return a.IO.Append(c, http.StatusOK, jsonFormat, func(b []byte) ([]byte, error) {
				if b = respond(b); len(b) > maxBytes {
					return b, badRequest("the answer has more than %d bytes: select fewer series, a larger step or a lower limit", maxBytes)
				}
				return b, nil
			})
		})(c)
	}
}

// begin decides what a request may see, and reads its form.
func (a *API) begin(c echo.Context, v policy.Verb) (*request, error) {
	in, err := a.Guard.Readable(c, a.Codec.Group.Resource(event.EventsV1), v, nil)
	if err != nil {
		return nil, err
	}
	r := &request{Context: c, ctx: c.Request().Context(), readable: in, now: a.Now()}
	if r.cluster, err = tenant(c.Request().Header); err != nil {
		return nil, err
	}
	if r.values, err = a.form(c.Request()); err != nil {
		return nil, err
	}
	return r, nil
}

// form returns the parameters of a request, those of its body first.
func (a *API) form(r *http.Request) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("the query is malformed: %v", err)
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // in lower case; parameters do not matter
	if r.Method != http.MethodPost || media != "application/x-www-form-urlencoded" {
		return values, nil
	}
	r.Body = http.MaxBytesReader(nil, r.Body, maxBody)
	body, free, err := a.IO.Body(r)
	if err != nil {
		return nil, err
	}
	defer free()
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, badRequest("the form is malformed: %v", err)
	}
	for name, all := range values {
		form[name] = append(form[name], all...)
	}
	return form, nil
}

// tenant returns the cluster that the tenant header names. Loki takes several tenants
// joined by bars, which would be several clusters here: a selector says that better.
func tenant(h http.Header) (string, error) {
	all := h.Values("X-Scope-OrgID")
	switch {
	case len(all) == 0 || len(all) == 1 && all[0] == "":
		return "", nil
	case len(all) > 1 || strings.Contains(all[0], "|"):
		return "", badRequest("X-Scope-OrgID names several tenants: name one cluster, or none and use a selector such as {cluster=~\"a|b\"}")
	case len(validation.IsValidLabelValue(all[0])) > 0:
		return "", badRequest("X-Scope-OrgID is no name of a cluster: want the value of the label %s, or no header", event.ClusterLabel)
	}
	return all[0], nil
}

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}
