package access_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
	"tidings.example/shared/httpserver"
)

// events are what the requests of these tests are about.
var events = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}

// someRights are those of the clients of these tests.
var someRights = map[string][]apitest.Right{
	"one":    {{Verbs: "list", Namespaces: []string{"shop"}}},
	"mixed":  {{Verbs: "list", Namespaces: []string{"team-*"}, Clusters: []string{"eu-*"}}, {Verbs: "list", Namespaces: []string{"ops"}}},
	"east":   {{Verbs: "list,create", Namespaces: []string{"*"}, Clusters: []string{"east"}}},
	"writer": {{Verbs: "create", Namespaces: []string{"shop"}}},
}

// newGuard returns a guard whose policy gives these rights, and that lets one request of a client in at a time.
func newGuard(t *testing.T, rights map[string][]apitest.Right, log *audit.Log) *access.Guard {
	t.Helper()
	p := apitest.ParsePolicy(t, apitest.ClusteredPolicy(rights))
	g := access.New(func() *policy.Policy { return p }, log, 10, 1, access.Rates{}, time.Now)
	g.Fresh = func(context.Context) (time.Duration, error) { return 0, nil }
	return g
}

// ask sends a request of a caller, nobody if the token is empty, to a handler. It returns the error of the handler.
func ask(t *testing.T, log *audit.Log, token string, h echo.HandlerFunc) (rec *httptest.ResponseRecorder, err error) {
	t.Helper()
	e := echo.New()
	e.HTTPErrorHandler = func(failed error, _ echo.Context) { err = failed }
	e.GET("/:namespace", h, bearer.Middleware(apitest.ByName, func(*http.Request) bool { return token == "" }, nil))
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/shop", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	rec = httptest.NewRecorder()
	httpserver.Access(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), audit.Handler(log, e)).ServeHTTP(rec, req)
	return rec, err
}

// readable asks for the namespaces that a caller may list.
func readable(t *testing.T, g *access.Guard, log *audit.Log, token string, asked ...string) (in access.Readable, err error) {
	t.Helper()
	_, err = ask(t, log, token, func(c echo.Context) (err error) {
		in, err = g.Readable(c, events, policy.List, asked)
		return err
	})
	return in, err
}

// TestReadable: a request may look at what the rules of its caller say, of that at what it has asked for, and its
// answer says what it leaves out.
func TestReadable(t *testing.T) {
	t.Parallel()
	g := newGuard(t, someRights, nil)
	names, clusters := []string{"ops", "other", "shop", "team-a"}, []string{"", "east", "eu-1"}
	allowedBy := func(allows func(namespace, cluster string) bool) (pairs []string) {
		for _, namespace := range names {
			for _, cluster := range clusters {
				if allows(namespace, cluster) {
					pairs = append(pairs, namespace+"/"+cluster)
				}
			}
		}
		return pairs
	}
	all := allowedBy(func(string, string) bool { return true })
	for _, c := range []struct {
		token                string
		asked                []string
		namespaces, clusters []string // nil: none is left out
		allowed              []string
	}{
		{"one", nil, []string{"shop"}, nil, []string{"shop/", "shop/east", "shop/eu-1"}},
		{"one", []string{"shop"}, []string{"shop"}, nil, []string{"shop/", "shop/east", "shop/eu-1"}},
		{"mixed", nil, []string{"ops", "team-*"}, []string{"*", "eu-*"}, []string{"ops/", "ops/east", "ops/eu-1", "team-a/eu-1"}},
		{"mixed", []string{"team-a", "ops", "team-a"}, []string{"ops", "team-a"}, []string{"*", "eu-*"}, []string{"ops/", "ops/east", "ops/eu-1", "team-a/eu-1"}},
		{"mixed", []string{"team-a"}, []string{"team-a"}, []string{"eu-*"}, []string{"team-a/eu-1"}},
		{"east", nil, nil, []string{"east"}, []string{"ops/east", "other/east", "shop/east", "team-a/east"}},
		{"east", []string{"shop"}, []string{"shop"}, []string{"east"}, []string{"shop/east"}},
		{"root", nil, nil, nil, all},
		{"root", []string{"shop"}, []string{"shop"}, nil, []string{"shop/", "shop/east", "shop/eu-1"}},
	} {
		asked := slices.Clone(c.asked)
		in, err := readable(t, g, nil, c.token, asked...)
		if err != nil {
			t.Errorf("%s, asking for %q: %v", c.token, c.asked, err)
			continue
		}
		apitest.Equal(t, in.Namespaces(), c.namespaces)
		apitest.Equal(t, in.Clusters(), c.clusters)
		apitest.Equal(t, allowedBy(in.Allows), c.allowed)
		apitest.Equal(t, asked, c.asked) // is the caller's
	}
	if pairs := allowedBy(access.Readable{}.Allows); pairs != nil {
		t.Errorf("a set that nobody has given allows %q", pairs)
	}
}

// TestReadableIsWhatTheListIs: the set of a caller that asks for none has exactly the events that it may list in each
// namespace.
func TestReadableIsWhatTheListIs(t *testing.T) {
	t.Parallel()
	g := newGuard(t, someRights, nil)
	for _, token := range []string{"one", "mixed", "east", "root"} {
		in, err := readable(t, g, nil, token)
		if err != nil {
			t.Fatal(err)
		}
		caller, _ := apitest.ByName(t.Context(), token)
		for _, namespace := range []string{"ops", "other", "shop", "team-a", "team-"} {
			d := g.Policy().Decide(caller, policy.List, namespace)
			for _, cluster := range []string{"", "east", "eu-1"} {
				if want := d.Allowed && d.Clusters.Match(cluster); in.Allows(namespace, cluster) != want {
					t.Errorf("%s, events of the cluster %q in %s: %v, and its list says %v", token, cluster, namespace, !want, want)
				}
			}
		}
	}
}

// TestUnreadable: a namespace that is asked for and not granted is the 403 of its list, and a caller without rights
// gets that of all namespaces. The audit log has the decision, whatever it is.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	log := apitest.OpenAudit(t)
	g := newGuard(t, someRights, log.Log)
	if _, err := readable(t, g, log.Log, ""); !apierrors.IsUnauthorized(err) {
		t.Errorf("without a caller: %v", err)
	}
	for _, c := range []struct {
		token, where, lacks string
		asked               []string
	}{
		{"mixed", `in the namespace "shop"`, `in the namespace "shop"`, []string{"team-a", "shop", "other"}},
		{"writer", "at the cluster scope", `across all namespaces (namespaces: ["*"])`, nil},
	} {
		in, err := readable(t, g, log.Log, c.token, c.asked...)
		want := `events.events.k8s.io is forbidden: User "` + c.token + `" cannot list resource "events" in API group "events.k8s.io" ` + c.where +
			": no rule of the policy allows this client to list " + c.lacks
		if !apierrors.IsForbidden(err) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if in.Allows("team-a", "eu-1") {
			t.Error("what is refused allows something")
		}
	}
	if _, err := readable(t, g, log.Log, "mixed"); err != nil {
		t.Error(err)
	}
	_, entries := log.Entries()
	var got []audit.Entry
	for _, e := range entries[1:] { // the first caller is unknown
		got = append(got, audit.Entry{User: e.User, Verb: e.Verb, Resource: e.Resource, Namespace: e.Namespace, Allowed: e.Allowed})
		if (e.Rule == "") || *e.Allowed != strings.HasPrefix(e.Rule, `role "mixed"`) {
			t.Errorf("the rule is %q", e.Rule)
		}
	}
	apitest.Equal(t, got, []audit.Entry{
		{User: "mixed", Verb: "list", Resource: "events", Namespace: "shop", Allowed: new(false)},
		{User: "writer", Verb: "list", Resource: "events", Allowed: new(false)},
		{User: "mixed", Verb: "list", Resource: "events", Namespace: "ops,team-*", Allowed: new(true)},
	})
}

// TestAllowSome: a request that names its namespaces in its body is let in with a right in one of them.
func TestAllowSome(t *testing.T) {
	t.Parallel()
	g := newGuard(t, someRights, nil)
	called := 0
	h := g.AllowSome(events, policy.Create, func(echo.Context) error { called++; return nil })
	for range 2 { // the second one needs the seat of the first
		if _, err := ask(t, nil, "writer", h); err != nil {
			t.Error(err)
		}
	}
	if _, err := ask(t, nil, "one", h); !apierrors.IsForbidden(err) {
		t.Errorf("without the right: %v", err)
	}
	if _, err := ask(t, nil, "", h); !apierrors.IsUnauthorized(err) {
		t.Errorf("without a caller: %v", err)
	}
	if called != 2 {
		t.Errorf("the handler was called %d times", called)
	}
}

// TestNoWritesWithoutAudit: while the audit log fails and is required, writes are refused before they have a seat, and
// reads are not.
func TestNoWritesWithoutAudit(t *testing.T) {
	t.Parallel()
	log := apitest.OpenAudit(t)
	log.RefuseWrites = true
	g := newGuard(t, someRights, log.Log)
	served := func(echo.Context, access.Grant) error { return nil }
	write, read := g.Allow(events, policy.Create, served), g.Allow(events, policy.List, served)
	if _, err := ask(t, nil, "writer", write); err != nil {
		t.Error(err)
	}
	for range 10_000 { // nothing writes them, and there are more than can wait
		log.Record(&audit.Entry{})
	}
	if _, err := ask(t, nil, "writer", write); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "the audit log cannot be written") {
		t.Errorf("a write: %v", err)
	}
	if _, err := ask(t, nil, "one", read); err != nil {
		t.Errorf("a read: %v", err)
	}
}

// TestFresh: a read shows how old it may be, in whole seconds, and one that cannot be fresh gives its seat back.
func TestFresh(t *testing.T) {
	t.Parallel()
	g := newGuard(t, someRights, nil)
	read := g.Allow(events, policy.List, func(c echo.Context, _ access.Grant) error { return c.NoContent(http.StatusOK) })
	for _, c := range []struct {
		age time.Duration
		err error
		is  []string
	}{
		{age: 0},
		{err: apierrors.NewTimeoutError("late", 0)},
		{age: 1600 * time.Millisecond, is: []string{"2"}},
	} {
		g.Fresh = func(context.Context) (time.Duration, error) { return c.age, c.err }
		rec, err := ask(t, nil, "one", read)
		if !errors.Is(err, c.err) {
			t.Errorf("%v, want %v", err, c.err)
		}
		apitest.Equal(t, rec.Header()["Age"], c.is)
	}
}

// TestGrantOfAClusterIsNarrow: a grant for the events of one cluster shows and stores no others, and holds until a
// decision is for others.
func TestGrantOfAClusterIsNarrow(t *testing.T) {
	t.Parallel()
	g := newGuard(t, someRights, nil)
	_, err := ask(t, nil, "east", func(c echo.Context) error {
		may, err := g.Grant(c, events, policy.Create, "shop", "")
		if err != nil {
			return err
		}
		for cluster, seen := range map[string]bool{"east": true, "west": false, "": false} {
			a := event.NewAttributes([event.NumFields]string{event.Reason: "R"}, map[string]string{event.ClusterLabel: cluster})
			if may.Sees(a) != seen || may.Narrow(nil).Matches("shop", "a", a) != seen || may.Narrow(&event.Selector{}).Matches("shop", "a", a) != seen {
				t.Errorf("events of the cluster %q are shown: %v", cluster, !seen)
			}
			stored := may.MayStore("a", cluster)
			if seen != (stored == nil) || stored != nil && !strings.HasPrefix(stored.Error(), `events.events.k8s.io "a" is forbidden: User "east" cannot create resource "events" `+
				`in API group "events.k8s.io" in the namespace "shop": the label tidings.example/cluster is "`+cluster+`", and the policy allows`) {
				t.Errorf("a version of the cluster %q: %v", cluster, stored)
			}
		}
		for token, holds := range map[string]bool{"east": true, "root": false, "one": false} {
			caller, _ := apitest.ByName(t.Context(), token)
			if may.Holds(g.Policy().Decide(caller, policy.Create, "shop")) != holds {
				t.Errorf("with the rights of %s it holds: %v", token, !holds)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
