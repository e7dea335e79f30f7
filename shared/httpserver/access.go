package httpserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	maxLoggedText = 256 // bytes of a path or user agent in a log line

	// statusClientGone is the logged status of a request whose client left before the answer. It is never sent.
	statusClientGone = 499
)

// Access adds to a handler: a request id (the client's X-Request-Id if it is well-formed, otherwise a new one), which
// is answered and logged; one access line; metrics by verb, code and class of client; and a 500 without detail after a
// panic. The trace id of a traceparent (W3C Trace Context) is logged. The query is never logged, because it may have
// private data.
func Access(log *slog.Logger, reg *prometheus.Registry, next http.Handler) http.Handler {
	return &accessed{log: log, metrics: newRequestMetrics(reg), next: next}
}

// accessed is the handler that Access returns.
type accessed struct {
	log     *slog.Logger
	metrics *requestMetrics
	next    http.Handler
}

// inFlight is a request that is being served.
type inFlight struct {
	req request
	rec recorder
}

// ServeHTTP is the one place where panics of handlers are caught.
func (a *accessed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := a.begin(w, r)
	defer func() {
		panicked := recover()
		f.rec.aborted = f.rec.aborted || r.Context().Err() != nil
		a.end(f, r, panicked)
		if panicked != nil && f.rec.aborted {
			panic(http.ErrAbortHandler) // cuts the connection, so that the client does not take half an answer for a whole one
		}
	}()
	a.next.ServeHTTP(&f.rec, r.WithContext(&f.req))
}

func (a *accessed) begin(w http.ResponseWriter, r *http.Request) *inFlight {
	f := &inFlight{request{Context: r.Context(), id: requestID(r.Header)}, recorder{ResponseWriter: w, start: time.Now()}}
	if parent := r.Header.Get(traceParentHeader); parent != "" {
		if f.req.trace = traceID(parent); f.req.trace != "" {
			f.req.parent = parent
		}
	}
	w.Header()[requestIDHeader] = []string{f.req.id}
	a.metrics.inFlight.Inc()
	return f
}

func (a *accessed) end(f *inFlight, r *http.Request, panicked any) {
	a.metrics.inFlight.Dec()
	if panicked != nil {
		f.rec.answerPanic(panicked, a.log.With("request_id", f.req.id))
	}
	f.rec.finish()
	took := time.Since(f.rec.start)
	for _, end := range f.req.atEnd {
		end(f.rec.code, took)
	}
	a.metrics.observe(r, f.req.verb, &f.rec)
	logRequest(a.log, r, &f.req, &f.rec, took)
}

// logRequest writes the access line. It creates the record itself, because a logger would look up its caller, which is
// not shown.
func logRequest(log *slog.Logger, of *http.Request, req *request, rec *recorder, took time.Duration) {
	if !log.Enabled(req, slog.LevelInfo) {
		return
	}
	var room [16]slog.Attr
	attrs := append(room[:0],
		slog.String("request_id", req.id),
		slog.String("method", Shorten(of.Method)),
		slog.String("path", Shorten(of.URL.Path)),
		slog.Int("code", rec.code),
		slog.Int64("bytes", rec.bytes),
		slog.Float64("ms", float64(took.Microseconds())/1000),
		slog.String("remote", of.RemoteAddr),
		slog.String("agent", Shorten(of.UserAgent())),
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

// Shorten returns a text of a client as logs have it: cut off with … behind 256 bytes.
func Shorten(s string) string {
	if len(s) > maxLoggedText {
		return s[:maxLoggedText] + "…"
	}
	return s
}

// recorder records the status and size of an answer. Flushing and deadlines work through Flush and Unwrap.
type recorder struct {
	http.ResponseWriter
	start      time.Time
	firstBytes time.Duration // from start to the header
	code       int
	bytes      int64
	aborted    bool
}

// WriteHeader records the final status. Informational ones (1xx) may precede it, except 101, which is final: no HTTP
// follows.
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

// answerPanic logs a panic, and answers 500 if nothing has been answered yet; otherwise it marks the answer as aborted,
// so that the connection is cut. [http.ErrAbortHandler] is not a fault: the handler uses it to cut the connection.
func (rec *recorder) answerPanic(panicked any, log *slog.Logger) {
	if err, ok := panicked.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		rec.aborted = true
		return
	}
	log.Error("panic while serving a request", "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
	if rec.code != 0 {
		rec.aborted = true
		return
	}
	header := rec.Header()
	id := header.Get(requestIDHeader)
	clear(header) // the handler's headers were meant for another answer
	header.Set(requestIDHeader, id)
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	http.Error(rec, "internal error", http.StatusInternalServerError)
}

// finish sets the code of a request whose handler has set none: net/http answers 200, if the client is still there.
func (rec *recorder) finish() {
	gone := rec.code == 0 && rec.aborted
	rec.implicitHeader()
	if gone {
		rec.code = statusClientGone
	}
}
