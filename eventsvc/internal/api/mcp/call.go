package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/api/queries"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/eventsvc/internal/query"
	terms "tidings.example/eventsvc/internal/query/search"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

// call is one call of a tool.
type call struct {
	*Server
	echo.Context
	tool  *tool
	given map[string]string // the arguments
}

// call answers tools/call.
func (s *Server) call(c echo.Context, m *message) error {
	name := m.params.text("name")
	i := slices.IndexFunc(tools, func(t *tool) bool { return t.name == name })
	if i < 0 {
		problem := invalidParams("there is no tool %s", shown(name))
		if !m.modern { // earlier revisions have no status for it
			problem.status = http.StatusOK
		}
		return s.refuse(c, m, problem)
	}
	audit.Called(c.Request().Context(), name)
	in, problem := m.params.in("arguments")
	if problem != nil {
		return s.refuse(c, m, problem)
	}
	err := s.Guard.Seated(policy.List, func(c echo.Context) error {
		given, err := tools[i].read(in)
		if err != nil {
			return err
		}
		text, err := tools[i].answer(&call{s, c, tools[i], given})
		if err != nil {
			return err
		}
		return s.tell(c, m, text, false)
	})(c)
	if err == nil || c.Response().Committed {
		return err
	}
	text, ok := s.explain(c, err)
	if !ok {
		return &failure{err, m.id}
	}
	httpserver.Annotate(c.Request().Context(), slog.String("refused", "tool"))
	s.IO.Count(err)
	return s.tell(c, m, text, true)
}

// tell answers with the text of a tool.
func (s *Server) tell(c echo.Context, m *message, text string, failed bool) error {
	result := object{"content": raw([]any{map[string]string{"type": "text", "text": text}})}
	if failed {
		result["isError"] = raw(true)
	}
	return s.result(c, m, result)
}

// explain returns what a model can do about an error. It returns false for errors about which it can do nothing.
func (s *Server) explain(c echo.Context, err error) (text string, ok bool) {
	if wrong, ok := errors.AsType[*argumentError](err); ok {
		return wrong.Error(), true
	}
	if apierrors.IsForbidden(err) {
		return s.granted(c, err), true
	}
	st := httpio.StatusOf(err)
	switch {
	case errors.Is(err, httpio.ErrClientGone), errors.Is(err, context.Canceled):
		return "", false
	case st.Code >= http.StatusInternalServerError && st.Code != http.StatusGatewayTimeout:
		return "", false
	case st.Code == http.StatusGatewayTimeout:
		return "the answer took too long: ask about a shorter time, by from and to, or about one namespace", true
	case st.Details == nil || len(st.Details.Causes) == 0:
		return st.Message, true
	}
	cause := st.Details.Causes[0]
	return (&argumentError{argumentOf(cause.Field), cause.Message}).Error(), true
}

// argumentOf returns the argument from which a parameter of a question was made.
func argumentOf(parameter string) string {
	switch parameter {
	case "continue":
		return cursor.name
	case "at":
		return to.name
	case "window":
		return from.name
	}
	return parameter
}

// granted says in which namespaces a caller who was refused may list events.
func (s *Server) granted(c echo.Context, err error) string {
	in, none := s.Guard.Readable(c, s.Codec.Group.Resource(event.EventsV1), policy.List, nil)
	if none != nil {
		who := ""
		if caller, ok := bearer.FromContext(c.Request().Context()); ok {
			who = caller.Subject
		}
		return "nothing is granted: " + shown(who) + " may list events in no namespace. Who runs the service can allow it, in the policy."
	}
	return "argument namespace: it is not granted, or does not exist. You may list events in " + some(in.Namespaces(), 50) + "."
}

// some joins names, and says how many are left out.
func some(names []string, most int) string {
	var all []string
	for _, name := range names[:min(len(names), most)] {
		if !plain(strings.Trim(name, "*")) && name != "*" {
			name = quote(name, maxName)
		}
		all = append(all, name)
	}
	if more := len(names) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// full reports whether details are asked for.
func (c *call) full() bool { return c.given[detail.name] == detail.Enum[0] }

// page begins an answer. Its first line says what the answer covers.
func (c *call) page(t *queries.Table) *page {
	p := &page{most: usualBytes}
	if c.full() {
		p.most = fullBytes
	}
	p.add(c.covers(t))
	if t.Scope != "" {
		p.add("looked at " + t.Scope)
	}
	if t.OverEvents {
		p.add("counts are of the versions of events that are held: what was deleted or replaced before history begins is not counted")
	}
	return p
}

// covers is the first line of an answer.
func (c *call) covers(t *queries.Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "range %s..%s rev %d; history from %s; ", queries.Stamp(t.From), queries.Stamp(t.To), t.Revision, seconds(queries.Stamp(t.Begin)))
	lacks(&b, t)
	if len(t.Asked) > 0 {
		fmt.Fprintf(&b, "namespace %s; ", some(t.Asked, 20))
	}
	switch {
	case len(t.Listable) > 0:
		fmt.Fprintf(&b, "you may list: %s; ", some(t.Listable, 20))
	case len(t.Asked) > 0:
		b.WriteString("you may list all; ")
	default:
		b.WriteString("all namespaces; ")
	}
	if len(t.Clusters) > 0 {
		fmt.Fprintf(&b, "clusters: %s; ", some(t.Clusters, 20))
	}
	if age := c.Response().Header().Get("Age"); age != "" {
		fmt.Fprintf(&b, "as it was %s s ago; ", age)
	}
	if len(t.Partial) == 0 {
		b.WriteString("complete")
	} else {
		b.WriteString("PARTIAL: " + strings.Join(t.Partial, "; "))
	}
	for _, hint := range t.Hints {
		b.WriteString("; " + quote(hint, usualNote))
	}
	return b.String()
}

// lacks writes which events an answer may lack.
func lacks(b *strings.Builder, t *queries.Table) {
	const mostGaps = 5
	for i, g := range t.Gaps {
		if i == mostGaps {
			fmt.Fprintf(b, "and %d GAPS more, the last until %s; ", len(t.Gaps)-i, queries.Stamp(t.Gaps[len(t.Gaps)-1].To))
			break
		}
		fmt.Fprintf(b, "GAP %s..%s %s (events may be missing); ", queries.Stamp(g.From), queries.Stamp(g.To), token(g.Cluster))
	}
	if len(t.Gaps) == 0 {
		b.WriteString("no known gaps; ")
	}
	for i, l := range t.Late {
		if i == mostGaps {
			fmt.Fprintf(b, "and %d LATE mirrors more; ", len(t.Late)-i)
			break
		}
		fmt.Fprintf(b, "mirror of %s is LATE: events since %s may be missing; ", token(l.Cluster), queries.Stamp(l.Since))
	}
	for i, g := range t.Dropped {
		if i == mostGaps {
			fmt.Fprintf(b, "and DROPPED by %d rules more; ", len(t.Dropped)-i)
			break
		}
		fmt.Fprintf(b, "DROPPED by rule %s: %d in %s..%s %s (not stored); ", g.Rule, g.Count, queries.Stamp(g.From), queries.Stamp(g.To), token(g.Cluster))
	}
}

// ask asks a question with the arguments that all questions have.
func (c *call) ask(name string, parameters url.Values) (*queries.Table, error) {
	return c.Queries.Ask(c.Context, name, c.asked(parameters))
}

// asked adds the arguments that all questions have to parameters.
func (c *call) asked(parameters url.Values) url.Values {
	for argument, parameter := range map[string]string{namespace.name: "namespace", limitName: "limit", cursor.name: "continue"} {
		if value := c.value(argument); value != "" && !parameters.Has(parameter) {
			parameters.Set(parameter, value)
		}
	}
	return parameters
}

// value returns an argument or, if it is not given, its default.
func (c *call) value(name string) string {
	if value, ok := c.given[name]; ok {
		return value
	}
	for _, a := range c.tool.arguments {
		if a.name == name && a.Default != nil {
			return fmt.Sprint(a.Default)
		}
	}
	return ""
}

// period sets the range of a question.
func (c *call) period(parameters url.Values) url.Values {
	for _, a := range []argument{from, to} {
		if value := c.given[a.name]; value != "" {
			parameters.Set(a.name, value)
		}
	}
	return parameters
}

// where returns the parameters that select by the argument search and by others, which are terms of a search: so they
// are compared as its terms are, and a value that fits nothing is named.
func (c *call) where(names ...string) (url.Values, error) {
	text := c.given[search.name]
	e, err := terms.Parse(text)
	if err != nil {
		return nil, &argumentError{search.name, err.Error()}
	}
	if e != nil && e.Kind == terms.Or {
		text = "(" + text + ")"
	}
	for _, name := range append(names, cluster.name) {
		value := c.given[name]
		if value == "" {
			continue
		}
		term := terms.Term(name, value)
		var wrong *terms.Error
		if _, err := terms.Parse(term); errors.As(err, &wrong) {
			return nil, &argumentError{name, wrong.Problem}
		} else if err != nil {
			return nil, &argumentError{name, err.Error()}
		}
		text += " " + term
	}
	if c.given[warnings.name] == "true" {
		text += " " + terms.Term(string(query.Type), "Warning")
	}
	if text == "" {
		return url.Values{}, nil
	}
	return url.Values{"search": {text}}, nil
}

// seconds cuts the fraction of a second off a time.
func seconds(stamp string) string {
	if whole, _, ok := strings.Cut(stamp, "."); ok {
		return whole + "Z"
	}
	return stamp
}
