// Package queries serves /query/v1: what happened, over time, to what, and what changed.
//
// # Contract
//
// [Service.Route] serves a GET for each path of [endpoints], with the parameters that the table of
// parameters has for it; [OpenAPI] describes them from the same table. An answer is JSON,
// or CSV for clients that prefer it. It says what it covers: the range, the revision, the
// beginning of history, gaps of mirrors, the namespaces and clusters if the caller sees only some, and
// whether and why it is not whole. In CSV, Warning headers say why it is not whole
// (RFC 7234, as kube-apiserver uses them) and a Link header has the next page (RFC 8288).
//
// The files: endpoints.go is the table of paths, parameters.go and times.go read the query string, cursor.go continues
// a page; search.go says what a search means; answers.go has what all answers say, and each path a file of its name;
// deleted.go lists what somebody has deleted, which `eventsvc import` brings back (undelete); mirrored.go follows the
// cursors of mirrors; ask.go answers the tools for agents, openapi.go describes the paths.
//
// # Errors
//
// A mistake in a parameter is a 400 whose cause names it. A caller without the right to
// list is refused before any parameter but the namespaces is looked at.
//
// # Concurrency
//
// Handlers run with a seat, which the timeline takes again for each of its calls. What an
// answer keeps in memory has taken its room before, and its rows are written while they are sent.
//
// # What it does not know
//
// How questions are answered (package query), rights (package access), and stored bytes
// (package codec).
package queries

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/flow"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

// Path is the folder of the queries.
const Path = "/query/v1"

// Config is what queries are answered with.
type Config struct {
	Timeline store.Timeline // takes the seats of requests
	Revision func() uint64  // of the newest write
	Codec    *codec.Codec
	IO       *httpio.IO
	Guard    *access.Guard
	Mirrored *Mirrored
	MaxTerms int // of both selectors
	Now      func() time.Time
}

// Service answers questions.
type Service struct {
	Config
	querier query.Querier
}

// New returns what answers questions.
func New(c Config) *Service {
	return &Service{Config: c, querier: query.Querier{
		Timeline: c.Timeline, Revision: c.Revision, Origin: codec.Origin, Now: c.Now,
	}}
}

// Route serves the queries.
func (s *Service) Route(e *echo.Echo) {
	for _, p := range endpoints {
		e.GET(Path+"/"+p.name, s.Guard.Seated(policy.List, func(c echo.Context) error { return s.serve(c, p) }))
	}
	e.GET(Path+"/"+reading.name, s.Guard.Seated(policy.List, s.serveSearch))
}

// endpoint is one path.
type endpoint struct {
	name       string
	summary    string
	parameters []string
	by         []query.Dimension // allowed in the parameter "by"
	mostBy     int               // 0: all of them
	lined      bool              // answers in lines too, and not as a table
	required   string            // parameter, if there is one
	orders     []query.Order     // the first is for requests that name none
	limit      int               // if none is given
	maxLimit   int
	allHistory bool                                             // is the range if no beginning is given; else the last hour
	ofNow      bool                                             // is what the rows say, whatever the range and the revision are
	instant    bool                                             // is what the question is about, with a window, instead of a range
	answer     func(context.Context, *request) (*answer, error) // nil: in JSON alone, by a handler of its own
}

// answer is what a request gets, in both forms.
type answer struct {
	json    any        // an object without its lists
	lists   []elements // come last in the object
	held    int        // bytes of memory that the rows take until they are sent, if they are more than those of a question
	scope   string     // see [Table]
	verdict string     // likewise
	columns []string
	rows    func(row func([]string) error) error // calls row with each row
	next    string                               // the continue of the next page; empty: there is none
	behind  func(row int) string                 // the continue behind a row; nil: there is none
}

// elements are a list of an answer.
type elements struct {
	name   string
	n      int
	append func(b []byte, i int) ([]byte, error)
}

// request is one request to an endpoint, after the preamble.
type request struct {
	*Service
	endpoint *endpoint
	given    url.Values // the parameters
	readable access.Readable
	asked    []string // the namespaces that are named
	// listable returns all that the caller may list, whatever namespaces are named.
	listable func() (access.Readable, error)
	limit    int
	order    query.Order
	by       []query.Dimension // nil: none are named
	over     []query.Dimension // likewise
	values   int               // of each dimension
	step     time.Duration     // 0: chosen
	lines    *lines            // nil: the answer comes alone
	cursor   *cursor
	shot     *query.Snapshot
}

// serve answers a request.
func (s *Service) serve(c echo.Context, p *endpoint) error {
	req := c.Request()
	// 1. Authorization, which is about namespaces.
	given, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return badRequest("", "the query cannot be read: %v", err)
	}
	r, err := s.request(c, p, given)
	if err != nil {
		return err
	}
	// 2. The format of the answer.
	media, err := p.negotiate(req.Header.Get("Accept"))
	if err != nil {
		return err
	}
	// 3. The answer, within the time that it may take.
	ctx, cancel := context.WithTimeout(req.Context(), httpio.MaxRequestTime)
	defer cancel()
	if media == mediaLines {
		r.lines = s.newLines(c, cancel)
		defer r.lines.end()
	}
	a, err := r.ask(ctx)
	if err == nil {
		return r.send(ctx, c, media, a)
	}
	if err = p.wrong(err); r.lines.end() {
		return r.lines.fail(s.IO.Refusal(c, err))
	}
	return err
}

// request returns a request with the namespaces that it is about.
func (s *Service) request(c echo.Context, p *endpoint, given url.Values) (*request, error) {
	asked, err := p.namespaces(given)
	if err != nil {
		return nil, err
	}
	if len(asked) == 0 { // a named namespace that the caller may not see is refused, not empty
		asked = query.NamespaceOf(given.Get("search"))
	}
	r := &request{Service: s, endpoint: p, given: given, asked: asked}
	resource := s.Codec.Group.Resource(event.EventsV1)
	if r.readable, err = s.Guard.Readable(c, resource, policy.List, asked); err != nil {
		return nil, err
	}
	r.listable = func() (access.Readable, error) {
		if len(asked) == 0 {
			return r.readable, nil
		}
		return s.Guard.Readable(c, resource, policy.List, nil)
	}
	return r, nil
}

// ask reads the parameters, and answers once there is room for it. An answer for which the usual room is not enough
// begins again when the largest one is free.
func (r *request) ask(ctx context.Context) (*answer, error) {
	if err := r.endpoint.check(r.given); err != nil {
		return nil, err
	}
	if err := r.read(); err != nil {
		return nil, err
	}
	seat := flow.FromContext(ctx)
	a, err := r.answerIn(ctx, flow.Question)
	if errors.Is(err, flow.ErrUnread) || errors.Is(err, flow.ErrUnreadOfFlow) {
		seat.Room().Free() // nobody waits for what one has who waits
		a, err = r.answerIn(ctx, flow.LargestQuestion)
	}
	if err == nil {
		err = seat.Room().Set(max(flow.Question, min(a.held, seat.Room().Bytes())))
	}
	return a, httpio.Unread(err)
}

// answerIn answers once there is so much room.
func (r *request) answerIn(ctx context.Context, room int) (*answer, error) {
	if err := flow.FromContext(ctx).Take(ctx, room); err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	return r.endpoint.answer(ctx, r)
}

// open reads what all questions have in common, and fixes the state that the answer shows.
func (r *request) open(ctx context.Context) (err error) {
	if text := r.given.Get("step"); text != "" {
		if r.step, err = duration(text); err != nil {
			return badRequest("step", "%v", err)
		}
	}
	if subject := r.subject(); r.endpoint.instant && subject != (query.Subject{}) {
		if err := subject.Check(); err != nil {
			return err
		}
	}
	if r.cursor, err = r.continued(); err != nil {
		return err
	}
	in, err := r.period()
	if err != nil {
		return err
	}
	q := query.Query{From: in.from, To: in.to, Allows: r.readable.Allows}
	if r.cursor != nil {
		q.Revision = r.cursor.Revision
	} else if q.Revision, err = r.revision(); err != nil {
		return err
	}
	if q.Terms, err = r.terms(); err != nil {
		return err
	}
	if r.shot, err = r.querier.Snapshot(ctx, q); err != nil {
		return err
	}
	if err = r.shot.FindGaps(ctx); err != nil {
		return err
	}
	return r.shot.FindDropped(ctx)
}

// hint looks for terms that fit nothing, if the first page of an answer is empty.
func (r *request) hint(ctx context.Context, empty bool) error {
	if !empty || r.cursor != nil {
		return nil
	}
	in, err := r.listable()
	if err != nil {
		return err
	}
	return r.shot.FindHints(ctx, r.given[repeated], r.subject(), in.Allows)
}

// terms returns what the selectors and the search ask for.
func (r *request) terms() (query.Terms, error) {
	byField, byLabel := r.given.Get("fieldSelector"), r.given.Get("labelSelector")
	if err := event.CheckTerms(byField, byLabel, r.MaxTerms); err != nil {
		return query.Terms{}, err
	}
	terms, err := query.ParseTerms(byField, byLabel, r.given.Get("search"))
	if err != nil {
		return terms, err
	}
	cluster, err := r.cluster()
	if err == nil && cluster != "" {
		terms.InCluster(cluster)
	}
	return terms, err
}

// render appends an event of events/v1 as it is in answers.
func (s *Service) render(b []byte, v *store.View) ([]byte, error) {
	return s.Codec.AppendObject(b, codec.Format{}, event.EventsV1, v)
}
