package audit

import (
	"context"
	"net/http"
	"strings"
	"time"

	"tidings.example/shared/bearer"
	"tidings.example/shared/service"
)

const (
	idHeader  = "Audit-Id"
	maxID     = 64  // bytes, as in kube-apiserver
	maxCaller = 256 // bytes of each text that a caller sends
)

type entryKey struct{}

// Handler gives every answer an Audit-Id, and every request an entry with the
// same id, refused requests too. As in kube-apiserver the id is the client's
// where it sends one that is well-formed, and else the request's. With a nil log
// there are only ids. It belongs directly below [service.Access], which knows the
// status codes and when watches end.
func Handler(l *Log, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		request := service.RequestID(ctx)
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
			r = service.WithValue(r, entryKey{}, e)
			service.AtEnd(ctx, func(code int, took time.Duration) {
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

// Decision is what a caller wants, and whether it is allowed.
type Decision struct {
	Verb, Group, Resource, Namespace, Name string
	Allowed                                bool
	Rule                                   string // that allows it, or why none does
}

// Decided notes a decision in the entry of the request that ctx belongs to. Of
// several for one request, those of a write that may create, the first counts;
// the code tells of the second.
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

// wellFormed tells whether an id is short and of characters that do no harm in a
// header or a log.
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
