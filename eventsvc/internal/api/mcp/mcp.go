// Package mcp serves /mcp, the Model Context Protocol: agents ask what happened, by five tools that only read.
//
// # Contract
//
// [Server.Route] serves the streamable HTTP transport of revision 2026-07-28, without state: each POST has one message
// and one answer, which is JSON. On the same path it serves the revisions of the initialize era ([legacy]), as far as
// they need no session. What this server has is described by server/discover, initialize and tools/list; it has no
// resources, no prompts and no streams.
//
// A tool asks the questions of package queries, so that its answers, rights and limits are those of /query/v1. Its
// answer is one text, because clients show that and some show nothing else, and it is much shorter than the JSON of the
// same rows: the first line says what the answer covers, then there is a line for each row. The text ends with whole
// lines at [usualBytes] or, if details are asked for, at [fullBytes].
//
// # Untrusted text
//
// Notes, names and reasons are written by workloads, which may speak to the model. Each is on one line, as a JSON
// string unless it is a plain name, and everything that is invisible or changes direction is escaped. The heads of
// columns and the descriptions of tools say what it is. Nothing of an event is anywhere else.
//
// # Errors
//
// Messages that break the protocol are answered with an error of JSON-RPC, with the HTTP status that the transport asks
// for. What a model can mend is an answer of the tool that is marked as an error and says what to change: a wrong
// argument, a namespace that is not granted, a limit. A 403 would make clients begin to authorize again. All other
// errors are those of every path, in the form of JSON-RPC without an id.
//
// # Concurrency
//
// A Server is safe for concurrent use. A call of a tool has a seat of fair queueing. The other methods answer with what
// is made at the start, and have none.
//
// # What it does not know
//
// How questions are answered (package queries), and tokens.
package mcp

import (
	"encoding/json"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/api/queries"
	"tidings.example/eventsvc/internal/api/resource"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/shared/httpserver"
)

// Path is where the protocol is served.
const Path = resource.MCP

// maxBody is the size of the largest message, in bytes. A call with all arguments has less than 2 KiB.
const maxBody = 64 << 10

const mediaJSON = "application/json"

// Config is what the tools are made of.
type Config struct {
	Queries *queries.Service
	Codec   *codec.Codec
	IO      *httpio.IO
	Guard   *access.Guard
	Now     func() time.Time
	// Hosts are the names whose pages may call tools, in lower case, besides the names of this machine.
	Hosts []string
}

// Server serves the protocol.
type Server struct {
	Config
	initialized, discovered, listed object // results that are made at the start
}

// New returns a server.
func New(c Config) *Server { return &Server{c, initialized(), discovered(), listed()} }

// Route serves [Path].
func (s *Server) Route(e *echo.Echo) { e.POST(Path, s.post) }

// Fail answers a request with an error of JSON-RPC. It is the error handler of echo.
func (s *Server) Fail(err error, c echo.Context) {
	s.IO.FailAs(func(c echo.Context, err error, st *metav1.Status) error {
		if st.Code == http.StatusMethodNotAllowed {
			c.Response().Header().Set(echo.HeaderAllow, http.MethodPost)
		}
		// Codes from -32768 to -32000 are the protocol's: the others are those of HTTP.
		return s.send(c, int(st.Code), response{ID: idOf(err), Error: &rpcError{Code: int(st.Code), Message: st.Message}})
	})(err, c)
}

// post answers one message.
func (s *Server) post(c echo.Context) error {
	if err := acceptable(c.Request().Header); err != nil {
		return err
	}
	body, free, err := s.IO.BodyUpTo(c.Request(), maxBody)
	if err != nil {
		return err
	}
	defer free()
	m, problem := parse(body)
	if problem == nil {
		problem = m.settle(c.Request().Header)
	}
	if problem != nil {
		return s.refuse(c, m, problem)
	}
	if m.id == nil { // of which none asks for anything here
		return c.NoContent(http.StatusAccepted)
	}
	return s.dispatch(c, m)
}

// acceptable returns an error unless a request has JSON and accepts it.
func acceptable(h http.Header) error {
	if media, _, _ := mime.ParseMediaType(h.Get("Content-Type")); media != mediaJSON {
		return unfit(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "the body must be "+mediaJSON+": say so in Content-Type")
	}
	if accept := h.Get("Accept"); accept != "" && httpio.Preferred(accept, map[string]string{
		mediaJSON: mediaJSON, "application/*": mediaJSON, "*/*": mediaJSON,
	}) == "" {
		return unfit(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "answers are "+mediaJSON+": list it in Accept")
	}
	return nil
}

func unfit(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// dispatch answers a request.
func (s *Server) dispatch(c echo.Context, m *message) error {
	switch {
	case m.method == methodCall:
		return s.call(c, m)
	case m.method == methodList:
		if cursor := m.params.text("cursor"); cursor != "" {
			return s.refuse(c, m, invalidParams("the list of tools has one page: leave out the cursor"))
		}
		return s.result(c, m, s.listed)
	case m.modern && m.method == methodDiscover:
		return s.result(c, m, s.discovered)
	case !m.modern && m.method == methodInitialize:
		return s.initialize(c, m)
	case !m.modern && m.method == "ping":
		return s.result(c, m, object{})
	}
	return s.refuse(c, m, &rpcError{Code: codeMethodNotFound, Message: "Method not found: this server has tools only", status: http.StatusNotFound})
}

// response is the answer to a message.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// result answers with a result. What only revisions without a handshake know is left out for others.
func (s *Server) result(c echo.Context, m *message, result object) error {
	if m.modern {
		result = result.with(complete)
	} else {
		result = result.without("ttlMs", "cacheScope")
	}
	return s.send(c, http.StatusOK, response{ID: m.id, Result: raw(result)})
}

// refuse answers a message that breaks the protocol.
func (s *Server) refuse(c echo.Context, m *message, problem *rpcError) error {
	httpserver.Annotate(c.Request().Context(), slog.String("refused", strconv.Itoa(problem.Code)))
	status := problem.status
	if status == 0 {
		status = http.StatusBadRequest
	}
	return s.send(c, status, response{ID: m.id, Error: problem})
}

func (s *Server) send(c echo.Context, status int, r response) error {
	r.Version = "2.0"
	b, err := marshal(r)
	if err != nil {
		return err
	}
	return s.IO.Writer(c, status, mediaJSON).Send(b)
}
