package access_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/api/apitest"
)

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

// TestPolicyMatrix: every form of access for every caller in every namespace is
// allowed or refused as the caller's rights say. A refused request changes
// nothing and does not reveal what exists.
func TestPolicyMatrix(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy())
	callers := []string{"root", "nobody", "x+events:read", "x+events:write", "x+events:admin", "x+events:read+events:write", "x+events", "team", "prefix", "team+events:read"}
	for _, verb := range apitest.Verbs {
		callers = append(callers, "only-"+verb)
	}
	for _, f := range forms() {
		for _, caller := range callers {
			for _, namespace := range []string{"team-a", "team-b", "default"} {
				tryForm(w, f, caller, namespace, f.path)
			}
			if f.across {
				tryForm(w, f, caller, "", strings.Replace(f.path, "namespaces/{ns}/events", "events", 1))
			}
		}
	}
}

// tryForm does one cell of the matrix.
func tryForm(w *apitest.World, f form, caller, namespace, path string) {
	w.T.Helper()
	in := namespace
	if in == "" || !strings.Contains(path, "/{ns}") { // across all: objects are somewhere
		in = "default"
		namespace = ""
	}
	held := apitest.Rights(caller, namespace)
	fill := func(text, name string) string { return strings.NewReplacer("{ns}", in, "{name}", name).Replace(text) }
	missing := ""
	for verb := range strings.SplitSeq(f.verbs, ",") {
		if missing == "" && !slices.Contains(held, verb) {
			missing = verb
		}
	}
	events := fill("/apis/events.k8s.io/v1/namespaces/{ns}/events", "")
	if strings.HasPrefix(f.needs, "none") {
		w.As("root", "DELETE", events+"/obj", "")
	}
	if f.needs == "object" {
		if a := w.As("root", "POST", events, fill(whole, "obj")); a.Code != http.StatusConflict { // which is not written again
			a.Must(201)
		}
	}
	if f.needs == "none-put" && missing == "" && !slices.Contains(held, "create") {
		missing = "create"
	}
	if strings.Contains(path, "{continue}") { // where another client's list goes on
		for _, name := range []string{"next1", "next2"} {
			w.As("root", "PUT", events+"/"+name, fill(whole, name))
		}
		list, _, _ := strings.Cut(fill(path, ""), "?")
		place := w.As("root", "GET", list+"?limit=1", "").Must(200).At("metadata.continue").(string)
		path = strings.Replace(path, "{continue}", place, 1)
	}
	before := w.DB.Revision()
	a := w.As(caller, f.method, fill(path, "obj"), fill(f.body, "obj"), f.headers...)
	what := fmt.Sprintf("%s by %s in %q", f.name, caller, namespace)
	if missing == "" {
		if a.Code != f.allowed() {
			w.T.Errorf("%s: %d, want %d: %s", what, a.Code, f.allowed(), a.Body)
		}
		return
	}
	if a.Code != http.StatusForbidden {
		w.T.Errorf("%s: %d, not refused: %s", what, a.Code, a.Body)
		return
	}
	if w.DB.Revision() != before {
		w.T.Errorf("%s: refused, but something was written", what)
	}
	if text := string(a.Body); !strings.Contains(text, " cannot "+missing+" resource ") || !strings.Contains(text, "no rule of the policy allows this client to "+missing) {
		w.T.Errorf("%s: the answer does not say that %s is missing: %s", what, missing, text)
	}
	if !strings.Contains(a.Header.Get("WWW-Authenticate"), `error="insufficient_scope", scope="events:`) {
		w.T.Errorf("%s: challenge %q", what, a.Header.Get("WWW-Authenticate"))
	}
	// With another name, of something that is not there, the answer is the same.
	if strings.Contains(f.verbs, ",") || f.needs == "none-put" {
		return // whether it is there is what the second right is about
	}
	other := w.As(caller, f.method, fill(path, "zzz"), fill(f.body, "zzz"), f.headers...)
	if got := strings.ReplaceAll(string(other.Body), "zzz", "obj"); other.Code != a.Code || got != string(a.Body) {
		w.T.Errorf("%s: tells what is there:\n%s\n%s", what, a.Body, got)
	}
}

// TestForbidden is the exact answer.
func TestForbidden(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, "{}")
	for _, c := range []struct{ method, path, message, scope string }{
		{
			"GET", "/apis/events.k8s.io/v1/events",
			`events.events.k8s.io is forbidden: User "bob" cannot list resource "events" in API group "events.k8s.io" at the cluster scope: ` +
				`no rule of the policy allows this client to list across all namespaces (namespaces: ["*"]), nor has its token the scope "events:read"`,
			"events:read",
		},
		{
			"DELETE", apitest.CorePath + "/a",
			`events "a" is forbidden: User "bob" cannot delete resource "events" in API group "" in the namespace "default": ` +
				`no rule of the policy allows this client to delete in the namespace "default", nor has its token the scope "events:admin"`,
			"events:admin",
		},
		{
			"GET", apitest.EventsPath + "?watch=1&fieldSelector=metadata.name%3Da",
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
		a := w.As("bob", c.method, c.path, "").Must(403)
		st := a.Status()
		apitest.Equal(t, st.Message, c.message)
		apitest.Equal(t, string(st.Reason), "Forbidden")
		apitest.Equal(t, a.Header.Get("X-Content-Type-Options"), "nosniff")
		apitest.Equal(t, a.Header.Get("WWW-Authenticate"), `Bearer error="insufficient_scope", scope="`+c.scope+`"`)
		if !strings.Contains(string(a.Body), `"details":{`) {
			t.Errorf("no details: %s", a.Body)
		}
	}
	// Nothing that is merely unknown is forbidden, and the description is for everybody.
	w.As("bob", "GET", "/apis/events.k8s.io/v1/pods", "").Must(404)
	w.As("bob", "GET", "/apis/events.k8s.io/v1", "").Must(200)
	w.As("bob", "GET", "/openapi/v3", "").Must(200)
}

// TestContinueTokensCarryNoRights: the token of one client shows another only
// what it may list itself.
func TestContinueTokensCarryNoRights(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy())
	for _, namespace := range []string{"team-a", "team-b", "default"} {
		for _, name := range []string{"a", "b", "c"} {
			w.As("root", "POST", "/api/v1/namespaces/"+namespace+"/events", `{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"`+namespace+`"}}`).Must(201)
		}
	}
	token := func(path string) string {
		return w.As("root", "GET", path+"?limit=1", "").Must(200).At("metadata.continue").(string)
	}
	all, teamA, other := token("/api/v1/events"), token("/api/v1/namespaces/team-a/events"), token(apitest.CorePath)
	w.As("team", "GET", "/api/v1/events?limit=1&continue="+all, "").Must(403)
	w.As("team", "GET", apitest.CorePath+"?limit=1&continue="+other, "").Must(403)
	w.As("team", "GET", "/api/v1/namespaces/team-b/events?limit=1&continue="+teamA, "").Must(403)
	w.As("team", "GET", "/api/v1/namespaces/team-a/events?limit=1&continue="+all, "").Must(400)
	for _, mine := range []string{teamA, other} { // a token is a place in the caller's own list, whoever made it
		a := w.As("team", "GET", "/api/v1/namespaces/team-a/events?continue="+mine, "").Must(200)
		apitest.Equal(t, a.Names(), []string{"b", "c"})
		if strings.Contains(string(a.Body), `"namespace":"default"`) {
			t.Errorf("another namespace's events: %s", a.Body)
		}
	}
}

// TestReviewsFollowThePolicy: for every caller and verb, a self-subject review
// says what the matrix says.
func TestReviewsFollowThePolicy(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy())
	for _, caller := range []string{"root", "nobody", "x+events:read", "x+events:write", "team", "prefix", "only-delete"} {
		for _, namespace := range []string{"team-a", "team-b", "default", ""} {
			held := apitest.Rights(caller, namespace)
			for _, verb := range apitest.Verbs {
				a := w.As(caller, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
					`{"spec":{"resourceAttributes":{"verb":"`+verb+`","group":"events.k8s.io","resource":"events","namespace":"`+namespace+`"}}}`).Must(201)
				if got := a.At("status.allowed"); got != slices.Contains(held, verb) || a.At("status.reason") == nil {
					t.Errorf("%s %s %q: %s", caller, verb, namespace, a.Body)
				}
			}
			a := w.As(caller, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"`+namespace+`"}}`).Must(201)
			listed := map[string]bool{}
			for _, rule := range a.At("status.resourceRules").([]any) {
				if apitest.Field(rule, "resources").([]any)[0] == "events" {
					for _, verb := range apitest.Field(rule, "verbs").([]any) {
						listed[verb.(string)] = true
					}
				}
			}
			for _, verb := range apitest.Verbs {
				if listed[verb] != slices.Contains(held, verb) {
					t.Errorf("%s in %q: rules have %v, want %v", caller, namespace, listed, held)
				}
			}
		}
	}
	a := w.As("team", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		`{"spec":{"resourceAttributes":{"verb":"create","group":"events.k8s.io","resource":"events","namespace":"team-a"}}}`)
	if reason := a.At("status.reason").(string); !strings.HasPrefix(reason, `role "team", bound in line `) {
		t.Errorf("the rule is not named: %s", reason)
	}
}
