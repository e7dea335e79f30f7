package httpserver

import (
	"context"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	requestIDHeader   = "X-Request-Id"
	traceParentHeader = "Traceparent"
	maxID             = 64
)

// request has the data of Access about a request in flight. It is also the request's context, so that values can be
// added without copying the request.
type request struct {
	context.Context
	id     string
	parent string // a well-formed traceparent, or ""
	trace  string // the trace id in it
	verb   string // empty: the method is used
	attrs  []slog.Attr
	values []contextValue
	room   [2]contextValue // memory for the first values
	atEnd  []func(code int, took time.Duration)
}

type requestKey struct{}

type contextValue struct{ key, value any }

// Value returns the last value that [WithValue] has added under the key, or else the value of the parent context.
func (r *request) Value(key any) any {
	if _, ok := key.(requestKey); ok {
		return r
	}
	for _, v := range slices.Backward(r.values) {
		if v.key == key {
			return v.value
		}
	}
	return r.Context.Value(key)
}

// WithValue is [context.WithValue] for the context of a request. If [Access] serves the request, nothing is copied, and
// contexts that were derived from the request's before have the value too. It may be called when [Annotate] may.
func WithValue(r *http.Request, key, value any) *http.Request {
	of, ok := r.Context().Value(requestKey{}).(*request)
	if !ok {
		return r.WithContext(context.WithValue(r.Context(), key, value))
	}
	if of.values == nil {
		of.values = of.room[:0]
	}
	of.values = append(of.values, contextValue{key, value})
	return r
}

// RequestID returns the id of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r.id
	}
	return ""
}

// PassTrace copies the traceparent of the request that ctx belongs to, if it has one, into the header of a request to
// another service.
func PassTrace(ctx context.Context, header http.Header) {
	if r, ok := ctx.Value(requestKey{}).(*request); ok && r.parent != "" {
		header.Set(traceParentHeader, r.parent)
	}
}

// Annotate adds attributes to the access line of the request that ctx belongs to, such as the caller or the reason of a
// refusal. Only the goroutine that serves the request may call it, while it serves the request.
func Annotate(ctx context.Context, attrs ...slog.Attr) {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		r.attrs = append(r.attrs, attrs...)
	}
}

// AtEnd calls f when the request that ctx belongs to has ended, with the status code of its answer and its duration.
// Without [Access] f is never called. AtEnd may be called when [Annotate] may.
func AtEnd(ctx context.Context, f func(code int, took time.Duration)) {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		r.atEnd = append(r.atEnd, f)
	}
}

// SetVerb sets the verb in the metrics and the access line of the request that ctx belongs to. Verbs must be few and
// fixed, because they are labels. It may be called when [Annotate] may.
func SetVerb(ctx context.Context, verb string) {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		r.verb = verb
	}
}

// WellFormedID reports whether an id of a client is short and has only characters that are harmless in a header or a
// log.
func WellFormedID(id string) bool {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return id != "" && len(id) <= maxID && consistsOf(id, harmless)
}

// requestID returns the client's id if it is well-formed, and otherwise a random UUID. It needs to be unique, but not
// hard to guess.
func requestID(header http.Header) string {
	if id := header.Get(requestIDHeader); WellFormedID(id) {
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
	parts := strings.Split(Shorten(parent), "-")
	if len(parts) != 4 || parts[0] != "00" || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 ||
		!consistsOf(parts[1]+parts[2]+parts[3], "0123456789abcdef") {
		return ""
	}
	return parts[1]
}

func consistsOf(s, characters string) bool { return strings.Trim(s, characters) == "" }
