package audit

import (
	"context"
	"net/http"
	"strings"
	"time"

	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

const (
	idHeader  = "Audit-Id"
	maxID     = 64  // bytes, as in kube-apiserver
	maxCaller = 256 // bytes of each text that a caller sends
)

type entryKey struct{}

// Handler sets the Audit-Id of every answer, and records an entry with the same id for
// every request, including refused ones. As in kube-apiserver the id is the client's if
// that is well-formed, otherwise it is the request id. With a nil log there are only
// ids. [httpserver.Access] must wrap it directly, because that knows the status code and
// the end of a watch.
func Handler(l *Log, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		request := httpserver.RequestID(ctx)
		id := request
		if sent := r.Header.Get(idHeader); wellFormed(sent) {
			id = sent
		}
		w.Header()[idHeader] = []string{id}
		if l != nil {
			e := &Entry{
				ID: id, Method: shorten(r.Method), Path: shorten(r.URL.Path),
				Remote: r.RemoteAddr, Agent: shorten(r.UserAgent()),
			}
			if id != request {
				e.RequestID = request
			}
			r = httpserver.WithValue(r, entryKey{}, e)
			httpserver.AtEnd(ctx, func(code int, took time.Duration) {
				if caller, ok := bearer.FromContext(ctx); ok {
					e.Issuer, e.User, e.Client = caller.Issuer, shorten(caller.Subject), shorten(caller.ClientID)
				}
				e.Time, e.Code, e.Millis = time.Now(), code, float64(took.Microseconds())/1000
				l.Record(e)
			})
		}
		next.ServeHTTP(w, r)
	})
}

// Decision is a request of a caller, and whether the policy allows it.
type Decision struct {
	Verb, Group, Resource, Namespace, Name string
	Allowed                                bool
	Rule                                   string // that allows it, or the reason of the refusal
}

// Decided adds a decision to the entry of the request that ctx belongs to. A write that
// may create has two decisions: the entry has the first one, and the status code shows
// a refusal by the second.
func Decided(ctx context.Context, d Decision) {
	e, ok := ctx.Value(entryKey{}).(*Entry)
	if !ok || e.Allowed != nil {
		return
	}
	e.Verb, e.Group, e.Resource = shorten(d.Verb), d.Group, d.Resource
	e.Namespace, e.Name = shorten(d.Namespace), shorten(d.Name)
	e.Allowed, e.Rule = new(bool), d.Rule
	*e.Allowed = d.Allowed
}

// wellFormed reports whether an id is short and has only characters that are harmless
// in a header or a log.
func wellFormed(id string) bool {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return id != "" && len(id) <= maxID && strings.Trim(id, harmless) == ""
}

func shorten(text string) string {
	if len(text) > maxCaller {
		return text[:maxCaller] + "…"
	}
	return text
}
