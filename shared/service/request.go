package service

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// request is what Access knows about a request in flight. It is the request's context as well, so that what is learnt
// about the request on its way need not be wrapped around a copy of it.
type request struct {
	context.Context
	id     string
	parent string // a well-formed traceparent, or ""
	trace  string // the trace id in it
	verb   string // "": the method
	attrs  []slog.Attr
	values []contextValue
	room   [2]contextValue // of values

	detached *detached // nil: the answer is its handler's
	atEnd    []func(code int, took time.Duration)
}

type requestKey struct{}

type contextValue struct{ key, value any }

// Value is what [WithValue] has put in last under the key, or else what the context of the connection has.
func (r *request) Value(key any) any {
	if _, ok := key.(requestKey); ok {
		return r
	}
	for i := len(r.values) - 1; i >= 0; i-- {
		if r.values[i].key == key {
			return r.values[i].value
		}
	}
	return r.Context.Value(key)
}

// WithValue is [context.WithValue] for the context of a request. Where [Access] serves the request nothing is copied: all
// contexts made from the request's have the value too. It may be called when [Annotate] may.
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

// RequestID is the id of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r.id
	}
	return ""
}

// PassTrace gives a request to another service the traceparent of the request that ctx belongs to, if that has one.
func PassTrace(ctx context.Context, header http.Header) {
	if r, ok := ctx.Value(requestKey{}).(*request); ok && r.parent != "" {
		header.Set(traceParentHeader, r.parent)
	}
}

// Annotate adds attributes to the access line of the request that ctx belongs to, such as the caller or why it was
// refused. It may be called only while the request is being served, by the goroutine that serves it.
func Annotate(ctx context.Context, attrs ...slog.Attr) {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		r.attrs = append(r.attrs, attrs...)
	}
}

// AtEnd calls f when the request that ctx belongs to is over, with the status code of its answer and how long it took. A
// watch is over when it ends, though its handler may have returned before. Without [Access] f is never called. AtEnd may be
// called when [Annotate] may.
func AtEnd(ctx context.Context, f func(code int, took time.Duration)) {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		r.atEnd = append(r.atEnd, f)
	}
}

// SetVerb says what the request that ctx belongs to asks for, for its metrics and its access line. Verbs are few and
// fixed. It may be called when [Annotate] may.
func SetVerb(ctx context.Context, verb string) {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		r.verb = verb
	}
}
