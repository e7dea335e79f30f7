package audit

import (
	"context"
	"net/http"
	"time"
	"unicode/utf8"

	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

const idHeader = "Audit-Id"

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
		if sent := r.Header.Get(idHeader); httpserver.WellFormedID(sent) {
			id = sent
		}
		w.Header()[idHeader] = []string{id}
		if l != nil {
			e := &Entry{
				ID: id, Method: r.Method, Path: r.URL.Path, Remote: r.RemoteAddr, Agent: r.UserAgent(),
			}
			if id != request {
				e.RequestID = request
			}
			r = httpserver.WithValue(r, entryKey{}, e)
			httpserver.AtEnd(ctx, func(code int, took time.Duration) {
				if caller, ok := bearer.FromContext(ctx); ok {
					e.Issuer, e.User, e.Client = caller.Issuer, caller.Subject, caller.ClientID
				}
				e.Time, e.Code, e.Millis = time.Now(), code, float64(took.Microseconds())/1000
				e.shorten()
				l.Record(e)
			})
		}
		next.ServeHTTP(w, r)
	})
}

// Authenticated notes how the request that ctx belongs to authenticates its caller, if not by a token.
func Authenticated(ctx context.Context, how string) {
	if e, ok := ctx.Value(entryKey{}).(*Entry); ok {
		e.Auth = how
	}
}

// Decision is a request of a caller, and whether the policy allows it.
type Decision struct {
	Verb, Group, Resource, Namespace, Name string
	Allowed                                bool
	Rule                                   string // the rule that allows it, or the reason of the refusal
	Impersonate                            *Impersonate
}

// Decided adds a decision to the entry of the request that ctx belongs to. A write that
// may create has two decisions: the entry has the first one, and the status code shows
// a refusal by the second.
func Decided(ctx context.Context, d Decision) {
	e, ok := ctx.Value(entryKey{}).(*Entry)
	if !ok || e.Allowed != nil {
		return
	}
	e.Verb, e.Group, e.Resource, e.Namespace, e.Name = d.Verb, d.Group, d.Resource, d.Namespace, d.Name
	e.Allowed, e.Rule, e.Impersonate = new(d.Allowed), d.Rule, d.Impersonate
}

// Called adds the tool of MCP that was called to the entry of the request that ctx belongs to.
func Called(ctx context.Context, tool string) {
	if e, ok := ctx.Value(entryKey{}).(*Entry); ok {
		e.Tool = tool
	}
}

// maxText is how many bytes a text of an entry has in JSON at most, and maxWrote in how many namespaces events are
// counted apart. So an entry has a few kilobytes at most, whatever a client sends, and nobody can replace the log with
// few requests.
const maxText, maxWrote = 256, 16

// shorten cuts the texts of an entry.
func (e *Entry) shorten() {
	for _, text := range []*string{
		&e.ID, &e.RequestID, &e.Issuer, &e.User, &e.Client, &e.Auth, &e.Verb, &e.Group, &e.Resource, &e.Namespace, &e.Name,
		&e.Method, &e.Path, &e.Rule, &e.Tool, &e.Remote, &e.Agent,
	} {
		*text = shorten(*text)
	}
	if e.Impersonate != nil {
		e.Impersonate = &Impersonate{shorten(e.Impersonate.User), e.Impersonate.Groups}
	}
}

// shorten returns a text that has at most maxText bytes in JSON, cut off with … if it has more.
func shorten(text string) string {
	size := 0
	for i, r := range text {
		switch {
		case r < ' ', r == 0x7f, r == utf8.RuneError, r == '\u2028', r == '\u2029': // at most \u and four digits
			size += 6
		case r == '"', r == '\\':
			size += 2
		default:
			size += utf8.RuneLen(r)
		}
		if size > maxText {
			return text[:i] + "…"
		}
	}
	return text
}

// Wrote counts the events of a request that names many, by namespace.
type Wrote map[string]*Writes

// Writes counts the events of a namespace that a request has created or replaced, that were there already, and that
// were refused.
type Writes struct {
	Created   int `json:"created,omitempty"`
	Replaced  int `json:"replaced,omitempty"`
	Unchanged int `json:"unchanged,omitempty"`
	Refused   int `json:"refused,omitempty"`
}

// Add counts an event by the status code that it is answered with, and whether it replaced another version.
func (w Wrote) Add(namespace string, code int, replaced bool) {
	namespace = shorten(namespace)
	if w[namespace] == nil && len(w) >= maxWrote {
		namespace = "…" // no namespace is named so
	}
	n := w[namespace]
	if n == nil {
		n = &Writes{}
		w[namespace] = n
	}
	switch {
	case code >= http.StatusBadRequest:
		n.Refused++
	case code == http.StatusCreated:
		n.Created++
	case replaced:
		n.Replaced++
	default:
		n.Unchanged++
	}
}

// Stored adds what became of many events to the entry of the request that ctx belongs to.
func Stored(ctx context.Context, w Wrote) {
	if e, ok := ctx.Value(entryKey{}).(*Entry); ok {
		e.Wrote = w
	}
}
