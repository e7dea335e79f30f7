// Package events serves the verbs of events, one file for each. pages.go says which state a list shows, page by page,
// and when it has expired (410); httpio/continue.go has the form of its token.
//
// The same operations are served twice, for events.{group_domain}/v1 and for core
// /api/v1: a [Resource] is the events of one of these views.
//
// # Contract
//
// Every verb shows its phases, numbered. Those that read format, body, options and
// deadline share [begin]; a create asks the create rates before it, and lists and watches
// begin in [stream.Streams.ListOrWatch] instead. Errors surface in kube-apiserver's order,
// because clients see only the first.
//
// What an update may change is decided by [event.ValidateUpdate]. An update that names another resourceVersion than the
// stored one gets 409 (update.go), and one that changes nothing is not stored (what is the same:
// codec/fields/fields.go). If another write is stored meanwhile, an update is decided again, on the newest version
// ([store.Store.Update]).
//
// # Errors
//
// Handlers return API errors, errors of the store or of a context; package httpio
// answers with them.
//
// # Concurrency
//
// A Resource is safe for concurrent use.
//
// # What it does not know
//
// Tokens, bytes of events (package codec) and disks (package store). What makes an event valid is decided by package
// event.
package events

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/api/stream"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/store"
)

// Config is what both views have in common.
type Config struct {
	Store    store.Store
	Timeline store.Timeline
	Codec    *codec.Codec
	IO       *httpio.IO
	Guard    *access.Guard
	Streams  *stream.Streams
	Arrivals *Arrivals
	Bulk     *prometheus.CounterVec // see [NewBulkCounter]
	MaxTerms int                    // of both selectors
	// Admit returns an error if no events may be created in a namespace.
	Admit func(ctx context.Context, may access.Grant, namespace string) error
	Now   func() time.Time
}

// Resource is the events of one view.
type Resource struct {
	Config
	view          event.View
	groupResource schema.GroupResource
	buffers       buffers
}

func newResource(c Config, v event.View) *Resource {
	return &Resource{Config: c, view: v, groupResource: c.Codec.Group.Resource(v), buffers: buffers{httpio.Pool{Max: 2 * listRoom}}}
}

// Route serves the events of a view below a path such as /api/v1.
func Route(e *echo.Echo, c Config, v event.View, path string) {
	r := newResource(c, v)
	may := func(v policy.Verb, next access.Handler) echo.HandlerFunc {
		return c.Guard.Allow(r.groupResource, v, next)
	}
	all, one := path+"/namespaces/:namespace/events", path+"/namespaces/:namespace/events/:name"
	list, watchOnly := c.Streams.ListOrWatch(r.groupResource, false, r.list), c.Streams.ListOrWatch(r.groupResource, true, r.list)
	e.GET(path+"/events", list)
	e.GET(all, list)
	e.POST(all, may(policy.Create, r.create))
	e.DELETE(all, may(policy.DeleteCollection, r.deleteCollection))
	e.GET(one, may(policy.Get, r.get))
	e.PUT(one, may(policy.Update, r.update))
	e.PATCH(one, may(policy.Patch, r.patch))
	e.DELETE(one, may(policy.Delete, r.delete))
	e.GET(path+"/watch/events", watchOnly)
	e.GET(path+"/watch/namespaces/:namespace/events", watchOnly)
	e.GET(path+"/watch/namespaces/:namespace/events/:name", watchOnly)
}

// call is a request to a verb, after [begin].
type call[Options any] struct {
	ctx     context.Context // ends when the request has taken too long
	key     store.Key       // named by the path
	format  codec.Format    // of the answer
	body    []byte          // until end
	options Options
	end     func()
}

// begin reads what every verb but lists and watches needs. The caller calls end.
func begin[Options any](
	r *Resource, c echo.Context, scope codec.Scope, parse func(req *http.Request, q url.Values, body []byte) (Options, error),
) (*call[Options], error) {
	req := c.Request()
	in := &call[Options]{key: store.Key{Namespace: c.Param("namespace"), Name: c.Param("name")}}
	// 1. The format of the answer.
	var err error
	if in.format, err = codec.Negotiate(req, scope); err != nil {
		return nil, err
	}
	// 2. The body.
	limit, free := httpio.MaxWriteTime, func() {}
	if req.Method == http.MethodGet {
		limit = 0 // a get waits for nothing, and a timer costs 4 % of it
	} else if in.body, free, err = r.IO.Body(req); err != nil {
		return nil, err
	}
	// 3. The options.
	q := httpio.QueryOf(req)
	if in.options, err = parse(req, q, in.body); err != nil {
		free()
		return nil, err
	}
	// 4. The deadline.
	if scope == codec.ScopeList {
		limit = httpio.MaxRequestTime
	}
	ctx, cancel, err := httpio.Deadline(req.Context(), q, limit)
	if err != nil {
		free()
		return nil, err
	}
	in.ctx, in.end = ctx, func() { cancel(); free() }
	return in, nil
}

// answer answers with one event.
func (r *Resource) answer(c echo.Context, code int, f codec.Format, rec *store.Record) error {
	return r.IO.Append(c, code, f, func(b []byte) ([]byte, error) { return r.Codec.AppendObject(b, f, r.view, rec.View()) })
}

// answerable takes the room of the answer to a write, which is not refused any more once it
// is done. Twice the stored value is enough for any format and for a buffer that has grown.
func answerable(ctx context.Context, value []byte) error {
	if n := 2 * len(value); n > flow.FreeAnswer {
		return httpio.Unread(flow.FromContext(ctx).Room().Try(n))
	}
	return nil
}

// named gives an error of the store the resource's name.
func (r *Resource) named(err error, name string) error {
	if errors.Is(err, store.ErrNotFound) {
		return apierrors.NewNotFound(r.groupResource, name)
	}
	return err
}
