package aggregate

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	pathvalidation "k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/httpserver"
)

const (
	maxQuery   = 8 << 10          // as the event server has it
	maxName    = 768              // of a namespace or an event in a path, likewise
	pieceSize  = 32 << 10         // of an answer that is passed on
	watchPiece = 4 << 10          // the same of a watch, which has it while it waits
	watchSlack = 10 * time.Second // in which the event server ends a watch whose time is over
)

// The verbs that are served.
const (
	verbGet   = "get"
	verbList  = "list"
	verbWatch = "watch"
)

// The results of forwarding, as labels.
const (
	forwardAnswered = "answered"
	forwardAway     = "away"
	forwardRefused  = "refused"
)

// question is a request of a user for events.
type question struct {
	verb  string
	spec  authorizationv1.SubjectAccessReviewSpec
	path  string // at the event server
	query url.Values
	limit time.Duration
}

// read serves gets, lists, and watches of lists.
func (s *Server) read(c echo.Context) error { return s.answer(c, false) }

// watchOnly serves the paths that only watch.
func (s *Server) watchOnly(c echo.Context) error { return s.answer(c, true) }

func (s *Server) answer(c echo.Context, watchPath bool) error {
	q, err := s.question(c, watchPath)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	httpserver.SetVerb(ctx, q.verb)
	kind := s.requests
	if q.verb == verbWatch {
		kind = s.watches
	}
	leave, err := kind.enter(q.spec.User)
	if err != nil {
		return err
	}
	defer leave()
	httpserver.Leave(ctx)
	d, err := s.Reviewer.review(ctx, q.spec)
	if err != nil {
		return err
	}
	at := q.spec.ResourceAttributes
	audit.Decided(ctx, audit.Decision{
		Verb: q.verb, Group: at.Group, Resource: at.Resource, Namespace: at.Namespace, Name: at.Name, Allowed: d.allowed, Rule: d.reason,
	})
	if !d.allowed {
		return s.forbidden(q, d)
	}
	ctx, cancel := context.WithTimeout(ctx, q.limit)
	defer cancel()
	if q.verb == verbWatch {
		return s.watch(ctx, c, q)
	}
	return s.once(ctx, c, q)
}

// question reads what a request asks for, as kube-apiserver does: a name in the path makes it a get whatever the query
// says, and a name that the selector names is the name of a list or watch.
func (s *Server) question(c echo.Context, watchPath bool) (*question, error) {
	r := c.Request()
	user, _ := r.Context().Value(userKey{}).(*authenticationv1.UserInfo)
	if user == nil {
		return nil, apierrors.NewUnauthorized("Unauthorized")
	}
	if len(r.URL.RawQuery) > maxQuery {
		return nil, httpio.Beyond("query", apierrors.NewBadRequest("the query has more than "+strconv.Itoa(maxQuery)+" bytes: shorten the selectors"))
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, apierrors.NewBadRequest("the query cannot be read: " + err.Error())
	}
	namespace, name := c.Param("namespace"), c.Param("name")
	q := &question{verb: verbGet, query: query, limit: httpio.MaxRequestTime, path: "/apis/" + s.group.String()}
	if watchPath {
		q.path += "/watch"
	}
	for _, p := range c.ParamNames() {
		if len(pathvalidation.IsValidPathSegmentName(c.Param(p))) > 0 || c.Param(p) == "" || len(c.Param(p)) > maxName {
			return nil, echo.ErrNotFound
		}
	}
	if namespace != "" {
		q.path += "/namespaces/" + url.PathEscape(namespace)
	}
	q.path += "/events"
	if name != "" {
		q.path += "/" + url.PathEscape(name)
	}
	if name == "" || watchPath {
		if err := s.selection(q, watchPath); err != nil {
			return nil, err
		}
		if name == "" {
			name = httpio.NameSelected(query)
		}
	}
	q.spec = s.review(user, q.verb, namespace, name)
	return q, nil
}

// review returns the question whether a user may do what a request asks for.
func (s *Server) review(user *authenticationv1.UserInfo, verb, namespace, name string) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: s.group.Group, Version: s.group.Version, Resource: "events", Namespace: namespace, Name: name,
		},
	}
	for key, values := range user.Extra {
		spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	return spec
}

// selection makes a question one for a list or a watch.
func (s *Server) selection(q *question, watchPath bool) error {
	options, err := httpio.ParseList(q.query, watchPath)
	if err != nil {
		return err
	}
	q.verb = verbList
	if options.Watch {
		q.verb = verbWatch
		watched := httpio.WatchTime(options)
		q.query.Set("timeoutSeconds", strconv.Itoa(int(watched/time.Second)))
		q.limit = watched + watchSlack
	}
	if s.Cluster != "" {
		selector := event.ClusterLabel + "=" + s.Cluster
		if given := q.query.Get("labelSelector"); given != "" {
			selector = given + "," + selector
		}
		q.query["labelSelector"] = []string{selector}
	}
	return nil
}

// forbidden is the 403 for a user whom the cluster does not allow the request.
func (s *Server) forbidden(q *question, d decision) error {
	at, reason := q.spec.ResourceAttributes, d.reason
	if reason == "" {
		reason = "no rule of the cluster's RBAC allows it"
	}
	return access.Forbidden(q.spec.User, s.Codec.Group.Resource(event.EventsV1), q.verb, at.Namespace, at.Name, reason)
}

// open asks the event server. If the event server refuses this process, the user gets a 503, because the user cannot
// fix that.
func (s *Server) open(ctx context.Context, r *http.Request, q *question) (*http.Response, error) {
	header := http.Header{"Accept-Encoding": {"identity"}}
	if accepted := r.Header["Accept-Encoding"]; len(accepted) > 0 && q.verb != verbWatch {
		header["Accept-Encoding"] = accepted
	}
	if accept := r.Header["Accept"]; len(accept) > 0 {
		header["Accept"] = accept
	}
	if id := r.Header.Get("Audit-Id"); httpserver.WellFormedID(id) {
		header.Set("Audit-Id", id)
	}
	header.Set("X-Request-Id", httpserver.RequestID(r.Context()))
	httpserver.PassTrace(r.Context(), header)
	var resp *http.Response
	if err := s.attended(ctx, func(ctx context.Context) (err error) {
		resp, err = s.Events.Open(ctx, client.Request{Path: q.path, Query: q.query, Header: header})
		return err
	}); err != nil {
		return nil, s.away(ctx, err)
	}
	code := resp.StatusCode
	if code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusNotFound && q.verb != verbGet {
		_ = resp.Body.Close()
		s.forwarded.WithLabelValues(forwardRefused).Inc()
		s.side.failed(client.Refusal(code, "answers "+resp.Status+" to "+q.path+": its --group-domain, or the rights of the token of this process, are others"))
		return nil, apierrors.NewServiceUnavailable("the event server does not accept questions of the aggregation layer: its operator has to fix that")
	}
	s.forwarded.WithLabelValues(forwardAnswered).Inc()
	s.side.failed(nil)
	return resp, nil
}

// once serves a get or a list.
func (s *Server) once(ctx context.Context, c echo.Context, q *question) error {
	if q.verb == verbGet && s.Cluster != "" {
		if err := s.ofCluster(ctx, q); err != nil {
			return err
		}
	}
	resp, err := s.open(ctx, c.Request(), q)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	begin(c, resp)
	_, err = s.pass(c, q, resp.Body, func([]byte) {})
	return err
}

// ofCluster returns an error unless an event is one of the cluster; a 404 for those of others. One that is given to
// another cluster before it is read is shown, unless the policy of the event server limits this process too.
func (s *Server) ofCluster(ctx context.Context, q *question) error {
	var object metav1.PartialObjectMetadata
	err := s.attended(ctx, func(ctx context.Context) error {
		return s.Events.Metadata().Do(ctx, client.Request{Path: q.path}, &object)
	})
	switch {
	case err == nil && object.Labels[event.ClusterLabel] == s.Cluster:
		return nil
	case err == nil, client.Code(err) == http.StatusNotFound:
		return apierrors.NewNotFound(s.Codec.Group.Resource(event.EventsV1), q.spec.ResourceAttributes.Name)
	}
	return s.away(ctx, err)
}

// attended asks the event server with a context that ends early if nothing comes for a while, and the event server does
// not say either that it is ready: a list may take long, but nobody should wait for a server that is dead. A server
// without room for new events is read as before. The context stays open for the body of an answer.
func (s *Server) attended(ctx context.Context, ask func(context.Context) error) error {
	asking, end := context.WithCancelCause(ctx)
	var answered atomic.Bool
	timer := time.AfterFunc(s.patience, func() {
		looking, cancel := context.WithTimeout(asking, s.look)
		defer cancel()
		code, _, err := s.Events.Exchange(looking, client.Request{Path: "/readyz", Query: url.Values{"exclude": {"room"}}})
		if (err != nil || code != http.StatusOK) && !answered.Load() {
			end(errNotReady)
		}
	})
	defer timer.Stop()
	err := ask(asking)
	answered.Store(true)
	if err != nil && errors.Is(context.Cause(asking), errNotReady) {
		return errNotReady
	}
	return err
}

// errNotReady is why a question is given up before its time is over.
var errNotReady = errors.New("it says nothing, and not that it is ready")

// away is the answer while the event server gives none. It asks nobody to wait: kubectl would, for a minute and without
// a word.
func (s *Server) away(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.forwarded.WithLabelValues(forwardAway).Inc()
	s.side.failed(err)
	httpserver.Annotate(ctx, slog.String("refused", err.Error()))
	return apierrors.NewServiceUnavailable("the event server does not answer, please try again")
}

// passed are the headers of an answer that reach the client; Retry-After only of one that is no failure of the event
// server.
var passed = []string{"Content-Type", "Content-Encoding", "Content-Length", "Vary", "Warning", "Age", "Retry-After", "Allow"}

// begin writes the status and the headers of an answer.
func begin(c echo.Context, resp *http.Response) {
	h := c.Response().Header()
	for _, name := range passed {
		if values := resp.Header[name]; len(values) > 0 && (name != "Retry-After" || resp.StatusCode < http.StatusInternalServerError) {
			h[name] = values
		}
	}
	c.Response().WriteHeader(resp.StatusCode)
}

// pass passes a body on in pieces, each of which saw sees first. It reports whether the body came to its end.
func (s *Server) pass(c echo.Context, q *question, body io.Reader, saw func([]byte)) (whole bool, err error) {
	if c.Request().Method == http.MethodHead {
		return true, nil
	}
	size := pieceSize
	if q.verb == verbWatch {
		size = watchPiece
	}
	w, piece := c.Response().Writer, make([]byte, size)
	for {
		n, readErr := body.Read(piece)
		if n > 0 {
			saw(piece[:n])
			s.sent.add(q.spec.User, n)
			if _, err := w.Write(piece[:n]); err != nil {
				return false, httpio.ErrClientGone
			}
			if q.verb == verbWatch {
				if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
					return false, httpio.ErrClientGone
				}
			}
		}
		switch {
		case errors.Is(readErr, io.EOF):
			return true, nil
		case readErr != nil:
			return false, readErr
		}
	}
}
