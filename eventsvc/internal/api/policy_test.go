package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
	"tidings.example/shared/waittest"
)

const testIssuer = "https://issuer.example"

// byName makes of a token "client scope scope…" the caller who says so.
func byName(_ context.Context, token string) (*bearer.Caller, error) {
	words := strings.Fields(strings.ReplaceAll(token, "+", " "))
	return &bearer.Caller{Issuer: testIssuer, Subject: words[0], ClientID: words[0], Scopes: words[1:], KeyID: "k1"}, nil
}

func parsePolicy(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text), policy.Options{Issuers: []string{testIssuer}, Default: testIssuer})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newPolicyWorld has a policy that can be replaced. The caller "root" may do everything.
func newPolicyWorld(t *testing.T, text string, changes ...func(*api.Config)) (*world, *atomic.Pointer[policy.Policy]) {
	t.Helper()
	var current atomic.Pointer[policy.Policy]
	current.Store(parsePolicy(t, text))
	changes = append(changes, func(c *api.Config) { c.Verify, c.Policy = byName, current.Load })
	return newWorld(t, changes...), &current
}

// as sends a request in the name of a caller.
func (w *world) as(token, method, path, body string, headers ...string) *answer {
	w.t.Helper()
	return w.do(method, path, body, append(headers, "Authorization", "Bearer "+token)...)
}

// form is one way to ask for something, and what it takes.
type form struct {
	name, method, path string // {ns} and {name} are replaced
	body               string
	headers            []string
	verbs              string // all of them are needed
	needs              string // "": nothing; "object": it must be there; "none": it must not
	across             bool   // can be asked across all namespaces, by the path without {ns}
	code               int    // of who may; 0: 200, or 201 where the object must not be there
}

// allowed is the status of an answer to who may ask in this form.
func (f form) allowed() int {
	switch {
	case f.code != 0:
		return f.code
	case strings.HasPrefix(f.needs, "none"):
		return http.StatusCreated
	}
	return http.StatusOK
}

// whole is the event that the forms write and find.
const whole = `{"metadata":{"name":"{name}"},"eventTime":"2026-01-02T03:04:05.000006Z","reportingController":"example.com/ctl",` +
	`"reportingInstance":"c","action":"Do","reason":"B","type":"Normal","regarding":{"namespace":"{ns}"}}`

func forms() []form {
	const (
		table   = "application/json;as=Table;v=v1;g=meta.k8s.io"
		partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
		parts   = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
		proto   = "application/vnd.kubernetes.protobuf"
		apply   = `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"{name}"},"eventTime":"2026-01-02T03:04:05.000006Z",` +
			`"reportingController":"example.com/ctl","reportingInstance":"c","action":"Do","reason":"B","type":"Normal","regarding":{"namespace":"{ns}"}}`
		list, one   = "/apis/events.k8s.io/v1/namespaces/{ns}/events", "/apis/events.k8s.io/v1/namespaces/{ns}/events/{name}"
		core        = "/api/v1/namespaces/{ns}/events"
		coreOne     = core + "/{name}"
		merge, json = "application/merge-patch+json", "application/json-patch+json"
		strategic   = "application/strategic-merge-patch+json"
		applied     = "application/apply-patch+yaml"
		unreadable  = "?watch=1&resourceVersion=abc" // is refused behind the decision
	)
	accept := func(media string) []string { return []string{"Accept", media} }
	content := func(media string) []string { return []string{"Content-Type", media} }
	return []form{
		{name: "get", method: "GET", path: one, verbs: "get", needs: "object"},
		{name: "get core", method: "GET", path: coreOne, verbs: "get", needs: "object"},
		{name: "get table", method: "GET", path: one, headers: accept(table), verbs: "get", needs: "object"},
		{name: "get metadata", method: "GET", path: one, headers: accept(partial), verbs: "get", needs: "object"},
		{name: "get protobuf", method: "GET", path: one, headers: accept(proto), verbs: "get", needs: "object"},
		{name: "list", method: "GET", path: list, verbs: "list", across: true},
		{name: "list core", method: "GET", path: core, verbs: "list", across: true},
		{name: "list table", method: "GET", path: list, headers: accept(table), verbs: "list", across: true},
		{name: "list metadata", method: "GET", path: list, headers: accept(parts), verbs: "list", across: true},
		{name: "list protobuf", method: "GET", path: core, headers: accept(proto), verbs: "list", across: true},
		{name: "list by name", method: "GET", path: list + "?fieldSelector=metadata.name%3D{name}", verbs: "list", across: true},
		{name: "list by namespace", method: "GET", path: list + "?fieldSelector=metadata.namespace%3D{ns}", verbs: "list", across: true},
		{name: "list by label", method: "GET", path: list + "?labelSelector=a%3Db&limit=1", verbs: "list", across: true},
		{name: "list on", method: "GET", path: list + "?limit=1&continue={continue}", verbs: "list", across: true},
		{name: "list on, core, table", method: "GET", path: core + "?limit=1&continue={continue}", headers: accept(table), verbs: "list", across: true},
		{name: "list, not watch", method: "GET", path: list + "?watch=false", verbs: "list", across: true},
		{name: "watch", method: "GET", path: list + unreadable, verbs: "watch", across: true, code: 400},
		{name: "watch core", method: "GET", path: core + unreadable, verbs: "watch", across: true, code: 400},
		{name: "watch by name", method: "GET", path: list + unreadable + "&fieldSelector=metadata.name%3D{name}", verbs: "watch", across: true, code: 400},
		{name: "watch without a value", method: "GET", path: list + "?watch&resourceVersion=abc", verbs: "watch", across: true, code: 400},
		{name: "watch, old path", method: "GET", path: "/apis/events.k8s.io/v1/watch/namespaces/{ns}/events?resourceVersion=abc", verbs: "watch", across: true, code: 400},
		{name: "watch, old path, one", method: "GET", path: "/api/v1/watch/namespaces/{ns}/events/{name}?resourceVersion=abc", verbs: "watch", code: 400},
		{name: "create", method: "POST", path: list, body: whole, verbs: "create", needs: "none"},
		{name: "create core", method: "POST", path: core, body: `{"metadata":{"name":"{name}"},"involvedObject":{"namespace":"{ns}"}}`, verbs: "create", needs: "none"},
		{name: "create, dry run", method: "POST", path: list + "?dryRun=All", body: whole, verbs: "create", needs: "none"},
		{name: "put", method: "PUT", path: one, body: whole, verbs: "update", needs: "object"},
		{name: "put core, dry run", method: "PUT", path: coreOne + "?dryRun=All", body: `{"metadata":{"name":"{name}"},"involvedObject":{"namespace":"{ns}"}}`, verbs: "update", needs: "none-put"},
		{name: "put creates", method: "PUT", path: one, body: whole, verbs: "update,create", needs: "none"},
		{name: "put creates, dry run", method: "PUT", path: one + "?dryRun=All", body: whole, verbs: "update,create", needs: "none"},
		{name: "merge patch", method: "PATCH", path: one, body: `{"metadata":{"labels":{"x":"y"}}}`, headers: content(merge), verbs: "patch", needs: "object"},
		{name: "merge patch, dry run", method: "PATCH", path: coreOne + "?dryRun=All", body: `{"metadata":{"labels":{"x":"z"}}}`, headers: content(merge), verbs: "patch", needs: "object"},
		{name: "json patch", method: "PATCH", path: one, body: `[{"op":"add","path":"/metadata/labels","value":{"x":"j"}}]`, headers: content(json), verbs: "patch", needs: "object"},
		{name: "json patch of nothing", method: "PATCH", path: one, body: `[{"op":"add","path":"/metadata/labels","value":{"x":"j"}}]`, headers: content(json), verbs: "patch", needs: "none", code: 404},
		{name: "strategic patch", method: "PATCH", path: one, body: `{"metadata":{"labels":{"x":"s"}}}`, headers: content(strategic), verbs: "patch", needs: "object"},
		{name: "apply", method: "PATCH", path: one + "?fieldManager=m&force=true", body: apply, headers: content(applied), verbs: "patch", needs: "object"},
		{name: "apply creates", method: "PATCH", path: one + "?fieldManager=m", body: apply, headers: content(applied), verbs: "patch,create", needs: "none"},
		{name: "apply creates, dry run", method: "PATCH", path: one + "?fieldManager=m&dryRun=All", body: apply, headers: content(applied), verbs: "patch,create", needs: "none"},
		{name: "delete", method: "DELETE", path: one, verbs: "delete", needs: "object"},
		{name: "delete core, dry run", method: "DELETE", path: coreOne + "?dryRun=All", verbs: "delete", needs: "object"},
		{name: "deletecollection", method: "DELETE", path: list, verbs: "deletecollection"},
		{name: "deletecollection, table, dry run", method: "DELETE", path: core + "?dryRun=All", headers: accept(table), verbs: "deletecollection"},
		{name: "get namespace", method: "GET", path: "/api/v1/namespaces/{ns}", verbs: "get", needs: "object"},
		{name: "list namespaces", method: "GET", path: "/api/v1/namespaces", verbs: "list", across: true},
		{name: "watch namespaces", method: "GET", path: "/api/v1/namespaces" + unreadable, verbs: "watch", across: true, code: 400},
	}
}

// rights says what a caller of the matrix may do in a namespace, "" for all. It
// is written by hand, apart from the policy.
func rights(caller, namespace string) []string {
	reading, writing := []string{"get", "list", "watch"}, []string{"create", "update", "patch"}
	name, scopes, _ := strings.Cut(caller, "+")
	var out []string
	for scope := range strings.SplitSeq(scopes, "+") {
		switch scope {
		case "events:read":
			out = append(out, reading...)
		case "events:write":
			out = append(out, writing...)
		case "events:admin":
			out = slices.Concat(out, reading, writing, []string{"delete", "deletecollection"})
		}
	}
	switch {
	case name == "root":
		return append(out, "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
	case strings.HasPrefix(name, "only-"):
		return append(out, strings.TrimPrefix(name, "only-"))
	case name == "team" && namespace == "team-a":
		return slices.Concat(out, reading, writing)
	case name == "prefix" && strings.HasPrefix(namespace, "team-"):
		return slices.Concat(out, reading, []string{"delete"})
	}
	return out
}

const matrixPolicy = `
roles:
  - {name: team, rules: [{verbs: [get, list, watch, create, update, patch], namespaces: [team-a]}]}
  - {name: prefix, rules: [{verbs: [get, list, watch, delete], namespaces: [team-*]}]}
`

var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

func fullMatrixPolicy() string {
	var roles, bindings strings.Builder
	for _, verb := range verbs {
		fmt.Fprintf(&roles, "  - {name: only-%s, rules: [{verbs: [%s], namespaces: ['*']}]}\n", verb, verb)
		fmt.Fprintf(&bindings, "  - {role: only-%s, subjects: [{clientID: only-%s}]}\n", verb, verb)
	}
	return matrixPolicy + roles.String() + "bindings:\n  - {role: 'events:admin', subjects: [{clientID: root}]}\n" +
		"  - {role: team, subjects: [{clientID: team}]}\n  - {role: prefix, subjects: [{clientID: prefix}]}\n" + bindings.String()
}

// TestPolicyMatrix: every form of access for every caller in every namespace is
// allowed or refused as the caller's rights say. A refused request changes
// nothing and does not reveal what exists.
func TestPolicyMatrix(t *testing.T) {
	t.Parallel()
	w, _ := newPolicyWorld(t, fullMatrixPolicy())
	callers := []string{"root", "nobody", "x+events:read", "x+events:write", "x+events:admin", "x+events:read+events:write", "x+events", "team", "prefix", "team+events:read"}
	for _, verb := range verbs {
		callers = append(callers, "only-"+verb)
	}
	for _, f := range forms() {
		for _, caller := range callers {
			for _, namespace := range []string{"team-a", "team-b", "default"} {
				w.tryForm(f, caller, namespace, f.path)
			}
			if f.across {
				w.tryForm(f, caller, "", strings.Replace(f.path, "namespaces/{ns}/events", "events", 1))
			}
		}
	}
}

// tryForm does one cell of the matrix.
func (w *world) tryForm(f form, caller, namespace, path string) {
	w.t.Helper()
	in := namespace
	if in == "" || !strings.Contains(path, "/{ns}") { // across all: objects are somewhere
		in = "default"
		namespace = ""
	}
	held := rights(caller, namespace)
	fill := func(text, name string) string { return strings.NewReplacer("{ns}", in, "{name}", name).Replace(text) }
	missing := ""
	for verb := range strings.SplitSeq(f.verbs, ",") {
		if missing == "" && !slices.Contains(held, verb) {
			missing = verb
		}
	}
	events := fill("/apis/events.k8s.io/v1/namespaces/{ns}/events", "")
	if f.needs != "" {
		w.as("root", "DELETE", events+"/obj", "")
	}
	if f.needs == "object" {
		w.as("root", "POST", events, fill(whole, "obj")).must(201)
	}
	if f.needs == "none-put" && missing == "" && !slices.Contains(held, "create") {
		missing = "create"
	}
	if strings.Contains(path, "{continue}") { // where another client's list goes on
		for _, name := range []string{"next1", "next2"} {
			w.as("root", "PUT", events+"/"+name, fill(whole, name))
		}
		list, _, _ := strings.Cut(fill(path, ""), "?")
		place := w.as("root", "GET", list+"?limit=1", "").must(200).at("metadata.continue").(string)
		path = strings.Replace(path, "{continue}", place, 1)
	}
	before := w.db.Revision()
	a := w.as(caller, f.method, fill(path, "obj"), fill(f.body, "obj"), f.headers...)
	what := fmt.Sprintf("%s by %s in %q", f.name, caller, namespace)
	if missing == "" {
		if a.code != f.allowed() {
			w.t.Errorf("%s: %d, want %d: %s", what, a.code, f.allowed(), a.body)
		}
		return
	}
	if a.code != http.StatusForbidden {
		w.t.Errorf("%s: %d, not refused: %s", what, a.code, a.body)
		return
	}
	if w.db.Revision() != before {
		w.t.Errorf("%s: refused, but something was written", what)
	}
	if text := string(a.body); !strings.Contains(text, " cannot "+missing+" resource ") || !strings.Contains(text, "no rule of the policy allows this client to "+missing) {
		w.t.Errorf("%s: the answer does not say that %s is missing: %s", what, missing, text)
	}
	if !strings.Contains(a.header.Get("WWW-Authenticate"), `error="insufficient_scope", scope="events:`) {
		w.t.Errorf("%s: challenge %q", what, a.header.Get("WWW-Authenticate"))
	}
	// With another name, of something that is not there, the answer is the same.
	if strings.Contains(f.verbs, ",") || f.needs == "none-put" {
		return // whether it is there is what the second right is about
	}
	other := w.as(caller, f.method, fill(path, "zzz"), fill(f.body, "zzz"), f.headers...)
	if got := strings.ReplaceAll(string(other.body), "zzz", "obj"); other.code != a.code || got != string(a.body) {
		w.t.Errorf("%s: tells what is there:\n%s\n%s", what, a.body, got)
	}
}

// TestForbidden is the exact answer.
func TestForbidden(t *testing.T) {
	t.Parallel()
	w, _ := newPolicyWorld(t, "{}")
	for _, c := range []struct{ method, path, message, scope string }{
		{
			"GET", "/apis/events.k8s.io/v1/events",
			`events.events.k8s.io is forbidden: User "bob" cannot list resource "events" in API group "events.k8s.io" at the cluster scope: ` +
				`no rule of the policy allows this client to list across all namespaces (namespaces: ["*"]), nor has its token the scope "events:read"`,
			"events:read",
		},
		{
			"DELETE", corePath + "/a",
			`events "a" is forbidden: User "bob" cannot delete resource "events" in API group "" in the namespace "default": ` +
				`no rule of the policy allows this client to delete in the namespace "default", nor has its token the scope "events:admin"`,
			"events:admin",
		},
		{
			"GET", eventsPath + "?watch=1&fieldSelector=metadata.name%3Da",
			`events.events.k8s.io "a" is forbidden: User "bob" cannot watch resource "events" in API group "events.k8s.io" in the namespace "default": ` +
				`no rule of the policy allows this client to watch in the namespace "default", nor has its token the scope "events:read"`,
			"events:read",
		},
		{
			"GET", "/api/v1/namespaces/team-a",
			`namespaces "team-a" is forbidden: User "bob" cannot get resource "namespaces" in API group "" in the namespace "team-a": ` +
				`no rule of the policy allows this client to get in the namespace "team-a", nor has its token the scope "events:read"`,
			"events:read",
		},
	} {
		a := w.as("bob", c.method, c.path, "").must(403)
		st := a.status()
		equal(t, st.Message, c.message)
		equal(t, string(st.Reason), "Forbidden")
		equal(t, a.header.Get("X-Content-Type-Options"), "nosniff")
		equal(t, a.header.Get("WWW-Authenticate"), `Bearer error="insufficient_scope", scope="`+c.scope+`"`)
		if !strings.Contains(string(a.body), `"details":{`) {
			t.Errorf("no details: %s", a.body)
		}
	}
	// Nothing that is merely unknown is forbidden, and the description is for everybody.
	w.as("bob", "GET", "/apis/events.k8s.io/v1/pods", "").must(404)
	w.as("bob", "GET", "/apis/events.k8s.io/v1", "").must(200)
	w.as("bob", "GET", "/openapi/v3", "").must(200)
}

// TestContinueTokensCarryNoRights: the token of one client shows another only
// what it may list itself.
func TestContinueTokensCarryNoRights(t *testing.T) {
	t.Parallel()
	w, _ := newPolicyWorld(t, fullMatrixPolicy())
	for _, namespace := range []string{"team-a", "team-b", "default"} {
		for _, name := range []string{"a", "b", "c"} {
			w.as("root", "POST", "/api/v1/namespaces/"+namespace+"/events", `{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"`+namespace+`"}}`).must(201)
		}
	}
	token := func(path string) string {
		return w.as("root", "GET", path+"?limit=1", "").must(200).at("metadata.continue").(string)
	}
	all, teamA, other := token("/api/v1/events"), token("/api/v1/namespaces/team-a/events"), token(corePath)
	w.as("team", "GET", "/api/v1/events?limit=1&continue="+all, "").must(403)
	w.as("team", "GET", corePath+"?limit=1&continue="+other, "").must(403)
	w.as("team", "GET", "/api/v1/namespaces/team-b/events?limit=1&continue="+teamA, "").must(403)
	w.as("team", "GET", "/api/v1/namespaces/team-a/events?limit=1&continue="+all, "").must(400)
	for _, mine := range []string{teamA, other} { // a token is a place in the caller's own list, whoever made it
		a := w.as("team", "GET", "/api/v1/namespaces/team-a/events?continue="+mine, "").must(200)
		equal(t, a.names(), []string{"b", "c"})
		if strings.Contains(string(a.body), `"namespace":"default"`) {
			t.Errorf("another namespace's events: %s", a.body)
		}
	}
}

// TestReviewsFollowThePolicy: for every caller and verb, a self-subject review
// says what the matrix says.
func TestReviewsFollowThePolicy(t *testing.T) {
	t.Parallel()
	w, _ := newPolicyWorld(t, fullMatrixPolicy())
	for _, caller := range []string{"root", "nobody", "x+events:read", "x+events:write", "team", "prefix", "only-delete"} {
		for _, namespace := range []string{"team-a", "team-b", "default", ""} {
			held := rights(caller, namespace)
			for _, verb := range verbs {
				a := w.as(caller, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
					`{"spec":{"resourceAttributes":{"verb":"`+verb+`","group":"events.k8s.io","resource":"events","namespace":"`+namespace+`"}}}`).must(201)
				if got := a.at("status.allowed"); got != slices.Contains(held, verb) || a.at("status.reason") == nil {
					t.Errorf("%s %s %q: %s", caller, verb, namespace, a.body)
				}
			}
			a := w.as(caller, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"`+namespace+`"}}`).must(201)
			listed := map[string]bool{}
			for _, rule := range a.at("status.resourceRules").([]any) {
				if field(rule, "resources").([]any)[0] == "events" {
					for _, verb := range field(rule, "verbs").([]any) {
						listed[verb.(string)] = true
					}
				}
			}
			for _, verb := range verbs {
				if listed[verb] != slices.Contains(held, verb) {
					t.Errorf("%s in %q: rules have %v, want %v", caller, namespace, listed, held)
				}
			}
		}
	}
	a := w.as("team", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		`{"spec":{"resourceAttributes":{"verb":"create","group":"events.k8s.io","resource":"events","namespace":"team-a"}}}`)
	if reason := a.at("status.reason").(string); !strings.HasPrefix(reason, `role "team", bound in line `) {
		t.Errorf("the rule is not named: %s", reason)
	}
}

// TestPolicyEndsWatches: a watch that a new policy does not allow ends at once
// behind a bookmark, others go on.
func TestPolicyEndsWatches(t *testing.T) {
	t.Parallel()
	w, current := newPolicyWorld(t, fullMatrixPolicy())
	last := w.as("root", "POST", eventsPath, newEvent("a")).must(201).at("metadata.resourceVersion").(string)
	srv := w.serve()
	query := "?watch=1&allowWatchBookmarks=true&resourceVersion=" + last
	mine := w.watch(srv, eventsPath+query, "Authorization", "Bearer only-watch")
	namespaces := w.watch(srv, "/api/v1/namespaces"+query, "Authorization", "Bearer only-watch")
	other := w.watch(srv, eventsPath+query, "Authorization", "Bearer x+events:read")
	current.Store(parsePolicy(t, "bindings: [{role: 'events:admin', subjects: [{clientID: root}]}]"))
	w.server.PolicyChanged()
	for _, s := range []*stream{mine, namespaces} {
		kind, object := s.next()
		equal(t, kind, "BOOKMARK")
		equal(t, field(object, "metadata.resourceVersion"), any(last))
		s.ended()
	}
	w.as("root", "POST", eventsPath, newEvent("b")).must(201)
	equal(t, other.take(1), []change{{"ADDED", "b", "hello"}})
	w.as("only-watch", "GET", eventsPath+query, "").must(403)
}

// TestWithdrawnKeysEndWatches: a watch ends at once, too, when the key of its
// token is withdrawn.
func TestWithdrawnKeysEndWatches(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	w, _ := newPolicyWorld(t, "{}", func(c *api.Config) {
		c.Withdrawn = func(_ context.Context, caller *bearer.Caller) bool {
			return gone.Load() && caller.KeyID == "k1" && caller.Issuer == testIssuer
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.server.Run(ctx) }()
	s := w.watch(w.serve(), eventsPath+"?watch=1&allowWatchBookmarks=true", "Authorization", "Bearer x+events:read")
	kind, _ := s.next() // the end of the initial events
	equal(t, kind, "BOOKMARK")
	gone.Store(true)
	kind, _ = s.next()
	equal(t, kind, "BOOKMARK")
	s.ended()
	stop()
	if err := waittest.Within(t, done); err != nil {
		t.Error(err)
	}
}

// TestWatchesAfterExpiry: a watch runs on after its token for as long as the
// setting says, however long it asked for.
func TestWatchesAfterExpiry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		life, after time.Duration
		ends        bool
	}{
		{-time.Minute, time.Minute + time.Second, true}, // expired, a second is left
		{time.Second, 0, true},                          // with the token
		{-time.Second, 30 * time.Minute, false},
		{30 * time.Minute, 0, false},
	} {
		expires := time.Now().Add(c.life)
		w := newWorld(t, func(config *api.Config) {
			config.WatchAfterExpiry = c.after
			config.Verify = func(context.Context, string) (*bearer.Caller, error) {
				return &bearer.Caller{Issuer: testIssuer, Subject: "x", Expires: expires}, nil
			}
		})
		last := w.create("a")
		limit := ""
		if !c.ends {
			limit = "&timeoutSeconds=2" // ends it otherwise
		}
		s := w.watch(w.serve(), eventsPath+"?watch=1&allowWatchBookmarks=true&resourceVersion="+last+limit)
		if !c.ends {
			w.create("b") // comes, so it has not ended with the token
			equal(t, s.take(1), []change{{"ADDED", "b", "hello"}})
			continue
		}
		kind, object := s.next()
		equal(t, kind, "BOOKMARK")
		equal(t, field(object, "metadata.resourceVersion"), any(last))
		s.ended()
	}
}
