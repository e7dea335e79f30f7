package httpserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	requestIDHeader   = "X-Request-Id"
	traceParentHeader = "Traceparent"
	maxRequestID      = 64
	maxLoggedText     = 256 // bytes of a path or user agent in a log line

	// statusClientGone is the logged status of a request whose client left before the answer. It is never sent.
	statusClientGone = 499
)

// Access adds to a handler: a request id (the client's X-Request-Id if it is well-formed, otherwise a new one), which is
// answered and logged; one access line; metrics by verb, code and class of client; and a 500 without detail after a panic.
// The trace id of a traceparent (W3C Trace Context) is logged. The query is never logged, because it may have private data.
func Access(log *slog.Logger, reg *prometheus.Registry, next http.Handler) http.Handler {
	return &accessed{log: log, metrics: newRequestMetrics(reg), next: next}
}

// accessed is the handler that Access returns.
type accessed struct {
	log     *slog.Logger
	metrics *requestMetrics
	next    http.Handler
}

// ServeHTTP keeps its stack small, because the handler of a watch runs for a long time.
func (a *accessed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, rec := a.begin(w, r)
	panicked := serve(a.next, rec, r.WithContext(req))
	rec.aborted = rec.aborted || r.Context().Err() != nil
	a.end(r, req, rec, panicked)
	if panicked != nil && rec.aborted {
		panic(http.ErrAbortHandler) // cuts the connection, so that the client does not take half an answer for a whole one
	}
}

func (a *accessed) begin(w http.ResponseWriter, r *http.Request) (*request, *recorder) {
	req := &request{Context: r.Context(), id: requestID(r.Header)}
	if parent := r.Header.Get(traceParentHeader); parent != "" {
		if req.trace = traceID(parent); req.trace != "" {
			req.parent = parent
		}
	}
	w.Header()[requestIDHeader] = []string{req.id}
	a.metrics.inFlight.Inc()
	return req, &recorder{ResponseWriter: w, start: time.Now()}
}

func (a *accessed) end(r *http.Request, req *request, rec *recorder, panicked *caughtPanic) {
	a.metrics.inFlight.Dec()
	if panicked != nil {
		rec.answerPanic(panicked, a.log.With("request_id", req.id))
	}
	rec.finish()
	took := time.Since(rec.start)
	for _, end := range req.atEnd {
		end(rec.code, took)
	}
	a.metrics.observe(r, req.verb, rec)
	logRequest(a.log, r, req, rec, took)
}

// caughtPanic is the value and the stack of a panic.
type caughtPanic struct {
	value any
	stack []byte
}

// serve calls the handler and catches its panic.
func serve(next http.Handler, w http.ResponseWriter, r *http.Request) (panicked *caughtPanic) {
	defer func() {
		if value := recover(); value != nil {
			panicked = &caughtPanic{value, debug.Stack()}
		}
	}()
	next.ServeHTTP(w, r)
	return nil
}

// logRequest writes the access line. It creates the record itself, because a logger would look up its caller, which is not
// shown.
func logRequest(log *slog.Logger, r *http.Request, req *request, rec *recorder, took time.Duration) {
	if !log.Enabled(req, slog.LevelInfo) {
		return
	}
	var room [16]slog.Attr
	attrs := append(room[:0],
		slog.String("request_id", req.id),
		slog.String("method", truncate(r.Method)),
		slog.String("path", truncate(r.URL.Path)),
		slog.Int("code", rec.code),
		slog.Int64("bytes", rec.bytes),
		slog.Float64("ms", float64(took.Microseconds())/1000),
		slog.String("remote", r.RemoteAddr),
		slog.String("agent", truncate(r.UserAgent())),
	)
	if req.verb != "" {
		attrs = append(attrs, slog.String("verb", req.verb))
	}
	if req.trace != "" {
		attrs = append(attrs, slog.String("trace_id", req.trace))
	}
	if rec.aborted {
		attrs = append(attrs, slog.Bool("aborted", true))
	}
	attrs = append(attrs, req.attrs...)
	line := slog.NewRecord(rec.start.Add(took), slog.LevelInfo, "request", 0)
	line.AddAttrs(attrs...)
	_ = log.Handler().Handle(req, line) // as a logger does: there is nowhere to report that the log cannot be written
}

func truncate(s string) string {
	if len(s) > maxLoggedText {
		return s[:maxLoggedText] + "…"
	}
	return s
}

// requestID returns the client's id if it is short and has only harmless characters, and otherwise a random UUID. It needs to
// be unique, but not hard to guess.
func requestID(header http.Header) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if id := header.Get(requestIDHeader); id != "" && len(id) <= maxRequestID && consistsOf(id, harmless) {
		return id
	}
	var id uuid.UUID
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, RFC 9562 section 5.4
	return id.String()
}

// traceID returns the trace id of a well-formed traceparent of version 00, 00-<32 hex>-<16 hex>-<2 hex>, or "".
func traceID(parent string) string {
	parts := strings.Split(truncate(parent), "-")
	if len(parts) != 4 || parts[0] != "00" || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 ||
		!consistsOf(parts[1]+parts[2]+parts[3], "0123456789abcdef") {
		return ""
	}
	return parts[1]
}

func consistsOf(s, characters string) bool { return strings.Trim(s, characters) == "" }

// recorder records the status and size of an answer. Flushing and deadlines work through Flush and Unwrap.
type recorder struct {
	http.ResponseWriter
	start      time.Time
	firstBytes time.Duration // from start to the header
	code       int
	bytes      int64
	aborted    bool
}

// WriteHeader records the final status. Informational ones (1xx) may precede it, except 101, which is final: no HTTP follows.
func (rec *recorder) WriteHeader(code int) {
	if rec.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		rec.code, rec.firstBytes = code, time.Since(rec.start)
	}
	rec.ResponseWriter.WriteHeader(code)
}

// Write counts the bytes of the body.
func (rec *recorder) Write(b []byte) (int, error) {
	rec.implicitHeader()
	n, err := rec.ResponseWriter.Write(b)
	rec.bytes += int64(n)
	rec.aborted = rec.aborted || err != nil
	return n, err
}

// Flush sends what is buffered, for watches.
func (rec *recorder) Flush() {
	rec.implicitHeader()
	err := http.NewResponseController(rec.ResponseWriter).Flush()
	rec.aborted = rec.aborted || err != nil && !errors.Is(err, http.ErrNotSupported)
}

// Unwrap lets [http.ResponseController] reach the connection.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

func (rec *recorder) implicitHeader() {
	if rec.code == 0 {
		rec.code, rec.firstBytes = http.StatusOK, time.Since(rec.start)
	}
}

// answerPanic logs a panic, and answers 500 if nothing has been answered yet; otherwise it marks the answer as aborted, so
// that the connection is cut. [http.ErrAbortHandler] is not a fault: the handler uses it to cut the connection.
func (rec *recorder) answerPanic(panicked *caughtPanic, log *slog.Logger) {
	if err, ok := panicked.value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		rec.aborted = true
		return
	}
	log.Error("panic while serving a request", "panic", fmt.Sprint(panicked.value), "stack", string(panicked.stack))
	if rec.code != 0 {
		rec.aborted = true
		return
	}
	header := rec.Header()
	id := header.Get(requestIDHeader)
	clear(header) // the handler's headers were meant for another answer
	header.Set(requestIDHeader, id)
	header.Set("Cache-Control", "no-store")
	http.Error(rec, "internal error", http.StatusInternalServerError)
}

// finish sets the code of a request whose handler has set none.
func (rec *recorder) finish() {
	if rec.code != 0 {
		return
	}
	rec.code = http.StatusOK // net/http's answer for a handler that writes nothing
	if rec.aborted {
		rec.code = statusClientGone
	}
	rec.firstBytes = time.Since(rec.start)
}
