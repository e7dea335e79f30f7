package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/shared/randtest"
)

// TestClusterWrites: random writes of random callers get the answers of the model, and change what it says: no caller
// writes, moves or deletes an event of another cluster, and one such event looks as if it were not there.
func TestClusterWrites(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			m := &writeModel{t: t, r: randtest.New(t), rights: map[string][]apitest.Right{}, events: map[string]marked{}}
			for i := range 8 {
				m.rights[fmt.Sprintf("c%d", i)] = randomRights(m.r, "*", "create,update", "update,patch", "create", "delete,deletecollection", "create,patch,delete")
			}
			m.w, _ = apitest.NewPolicyWorld(t, apitest.ClusteredPolicy(m.rights))
			for range 600 {
				m.write()
			}
			m.compare()
		})
	}
}

// writeModel knows what is stored, by namespace and name, and who may write what.
type writeModel struct {
	t      *testing.T
	w      *apitest.World
	r      *rand.Rand
	rights map[string][]apitest.Right
	events map[string]marked
}

// write does one write, and checks its answer.
func (m *writeModel) write() {
	client := fmt.Sprintf("c%d", m.r.IntN(len(m.rights)))
	namespace := namespacePool[m.r.IntN(len(namespacePool))]
	n := m.r.IntN(8)
	e := marked{namespace, fmt.Sprintf("e%d", n), clusterPool[m.r.IntN(len(clusterPool))], fmt.Sprintf("mark%dx", n)}
	key := e.namespace + "/" + e.name
	current, there := m.events[key]
	rights := m.rights[client]
	can := func(verb, cluster string) bool { return may(rights, verb, namespace, &cluster) }
	path := "/apis/events.k8s.io/v1/namespaces/" + namespace + "/events"
	query, dry := "", m.r.IntN(6) == 0
	if dry {
		query = "?dryRun=All"
	}
	visible := func(verb string) bool { return there && can(verb, current.cluster) }
	// creates is the answer to a write of something that is not there for the caller.
	creates := func(verb string) int {
		switch {
		case !may(rights, "create", namespace, nil), !can("create", e.cluster), !can(verb, e.cluster):
			return 403
		case there:
			return 404
		}
		return 201
	}
	var a *apitest.Answer
	want, after := 0, &e
	switch op := m.r.IntN(7); op {
	case 0, 6: // create, alone or in bulk
		want = 201
		switch {
		case !can("create", e.cluster):
			want = 403
		case there:
			want = 409
		}
		if op == 0 {
			a = m.w.As(client, "POST", path+query, e.body())
			break
		}
		core := strings.NewReplacer(`{"metadata":{`, fmt.Sprintf(`{"metadata":{"namespace":%q,`, namespace), "reportingController", "reportingComponent", `"note"`, `"message"`,
			`"regarding"`, `"involvedObject"`, "\n", "", "\t", "").Replace(e.body())
		if a = m.w.Bulk(client, query, core); a.Code == 200 { // 403 if it may create nowhere
			a.Code = a.Results(1)[0].Code
		}
	case 1: // replace
		switch {
		case !may(rights, "update", namespace, nil):
			want = 403
		case !visible("update"):
			want = creates("update")
		case !can("update", e.cluster):
			want = 403
		default:
			want = 200
		}
		a = m.w.As(client, "PUT", path+"/"+e.name+query, e.body())
	case 2: // apply
		switch {
		case !may(rights, "patch", namespace, nil):
			want = 403
		case !visible("patch"):
			want = creates("patch")
		case !can("patch", e.cluster):
			want = 403
		default:
			want = 200
		}
		a = m.w.As(client, "PATCH", path+"/"+e.name+"?force=true&fieldManager=m"+strings.Replace(query, "?", "&", 1), m.applied(e), "Content-Type", "application/apply-patch+yaml")
	case 3: // patch the label
		switch {
		case !may(rights, "patch", namespace, nil):
			want = 403
		case !visible("patch"):
			want = 404
		case !can("patch", e.cluster):
			want = 403
		default:
			want = 200
		}
		label := "null"
		if e.cluster != "" {
			label = fmt.Sprintf("%q", e.cluster)
		}
		after = &marked{namespace, e.name, e.cluster, current.mark}
		a = m.w.As(client, "PATCH", path+"/"+e.name+query, `{"metadata":{"labels":{"tidings.example/cluster":`+label+`}}}`, "Content-Type", "application/merge-patch+json")
	case 4: // delete
		switch {
		case !may(rights, "delete", namespace, nil):
			want = 403
		case !visible("delete"):
			want = 404
		default:
			want = 200
		}
		after = nil
		a = m.w.As(client, "DELETE", path+"/"+e.name+query, "")
	case 5: // delete a collection, which is not often enough to empty the store
		if m.r.IntN(8) > 0 {
			return
		}
		m.deleteMany(client, namespace, path+query, dry)
		return
	}
	what := fmt.Sprintf("%s of %s with %+v on %+v", a.T.Name(), client, rights, current)
	if a.Code != want {
		m.t.Fatalf("%s as %+v: %d, want %d: %s", what, e, a.Code, want, a.Body)
	}
	if (want == 404 || want == 403) && there && strings.Contains(string(a.Body), current.mark) {
		m.t.Fatalf("%s: %s", what, a.Body)
	}
	if want >= 400 || dry {
		return
	}
	if delete(m.events, key); after != nil {
		m.events[key] = *after
	}
}

// applied is an event as the body of an apply.
func (m *writeModel) applied(e marked) string {
	var ev map[string]any
	if err := json.Unmarshal([]byte(e.body()), &ev); err != nil {
		m.t.Fatal(err)
	}
	ev["apiVersion"], ev["kind"] = "events.k8s.io/v1", "Event"
	if e.cluster == "" { // a label of another manager would stay
		ev["metadata"].(map[string]any)["labels"] = map[string]any{"tidings.example/cluster": ""}
	}
	b, _ := json.Marshal(ev)
	return string(b)
}

// deleteMany deletes all of a namespace that the caller sees.
func (m *writeModel) deleteMany(client, namespace, path string, dry bool) {
	a := m.w.As(client, "DELETE", path, "")
	if !may(m.rights[client], "deletecollection", namespace, nil) {
		a.Must(403)
		return
	}
	n := 0
	for key, e := range m.events {
		if e.namespace == namespace && may(m.rights[client], "deletecollection", namespace, &e.cluster) {
			if n++; !dry {
				delete(m.events, key)
			}
		}
	}
	if got := a.Must(200).At("message"); got != fmt.Sprintf("deleted %d events.events.k8s.io", n) {
		m.t.Fatalf("%v, want %d", got, n)
	}
}

// compare compares what is stored with the model.
func (m *writeModel) compare() {
	got := map[string]string{}
	for _, item := range m.w.As("root", "GET", "/apis/events.k8s.io/v1/events", "").Must(200).At("items").([]any) {
		labels, _ := apitest.Field(item, "metadata.labels").(map[string]any)
		cluster, _ := labels["tidings.example/cluster"].(string)
		got[apitest.Field(item, "metadata.namespace").(string)+"/"+apitest.Field(item, "metadata.name").(string)] = cluster
	}
	want := map[string]string{}
	for key, e := range m.events {
		want[key] = e.cluster
	}
	apitest.Equal(m.t, got, want)
}

// clusterPolicy lets a mirror of each cluster write its events, and "a" and "b" do everything with theirs.
const clusterPolicy = `
roles:
- {name: mirror, rules: [{verbs: [get, create, update], namespaces: ["*"]}]}
bindings:
- {role: mirror, clusters: [a], subjects: [{clientID: mirror-a}]}
- {role: events:admin, clusters: [a], subjects: [{clientID: a}]}
- {role: events:admin, clusters: [b], subjects: [{clientID: b}]}
- {role: events:admin, subjects: [{clientID: root}]}
`

// TestClusterRefusals: a refusal says which label is wrong and what is allowed; a name that is taken by another
// cluster's event is a 409 that says nothing else of it.
func TestClusterRefusals(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, clusterPolicy)
	b := marked{"default", "x", "b", "mark1x"}
	w.As("root", "POST", apitest.EventsPath, strings.Replace(b.body(), `"labels"`, `"finalizers":["example.com/f"],"labels"`, 1)).Must(201)
	w.As("root", "DELETE", apitest.EventsPath+"/x", "").Must(200)
	if got := w.As("b", "POST", apitest.EventsPath, b.body()).Must(409).At("message"); !strings.HasPrefix(got.(string), "object is being deleted") {
		t.Error(got)
	}
	own := marked{"default", "x", "a", "mark2x"}
	apitest.Equal(t, w.As("a", "POST", apitest.EventsPath, own.body()).Must(409).At("message"), any(`events.events.k8s.io "x" already exists`))
	foreign := marked{"default", "y", "b", "mark3x"}
	apitest.Equal(t, w.As("mirror-a", "POST", apitest.EventsPath, foreign.body()).Must(403).At("message"), any(`events.events.k8s.io "y" is forbidden: `+
		`User "mirror-a" cannot create resource "events" in API group "events.k8s.io" in the namespace "default": `+
		`the label tidings.example/cluster is "b", and the policy allows this client the events of the clusters ["a"]`))
	w.As("mirror-a", "POST", apitest.EventsPath, apitest.NewEvent("none")).Must(403)
	w.As("a", "DELETE", apitest.EventsPath+"?fieldSelector=metadata.name%3Dx", "").Must(200)
	w.As("root", "GET", apitest.EventsPath+"/x", "").Must(200)
}

// TestClusterNamespaces: where events can be created only in namespaces that are there, those of another cluster are
// not.
func TestClusterNamespaces(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, clusterPolicy, func(c *api.Config) { c.Namespaces = []string{"shop"} })
	w.As("root", "POST", "/apis/events.k8s.io/v1/namespaces/shop/events", marked{"shop", "x", "a", "mark1x"}.body()).Must(201)
	w.Config.Namespaces = []string{"mail"}
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
	path := "/apis/events.k8s.io/v1/namespaces/shop/events"
	w.As("a", "POST", path, marked{"shop", "y", "a", "mark2x"}.body()).Must(201)
	got := w.As("b", "POST", path, marked{"shop", "z", "b", "mark3x"}.body()).Must(404)
	absent := w.As("b", "POST", strings.Replace(path, "shop", "none", 1), marked{"none", "z", "b", "mark3x"}.body()).Must(404)
	apitest.Equal(t, string(got.Body), strings.ReplaceAll(string(absent.Body), "none", "shop"))
}

// TestClusterPages: a page that is full says that there may be more, whether what is behind it may be seen or not.
func TestClusterPages(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, clusterPolicy)
	for i, cluster := range []string{"a", "a", "b", "a", "b", "b"} {
		w.As("root", "POST", apitest.EventsPath, marked{"default", fmt.Sprintf("e%d", i), cluster, "mark1x"}.body()).Must(201)
	}
	for _, limit := range []int{1, 2, 3} {
		a := w.As("a", "GET", fmt.Sprintf("%s?limit=%d", apitest.EventsPath, limit), "").Must(200)
		if n := len(a.Names()); n != limit || a.At("metadata.continue") == nil || a.At("metadata.remainingItemCount") != nil {
			t.Errorf("limit %d: %s", limit, a.Body)
		}
	}
	rest := w.As("a", "GET", apitest.EventsPath+"?limit=3&continue="+w.As("a", "GET", apitest.EventsPath+"?limit=3", "").At("metadata.continue").(string), "").Must(200)
	if len(rest.Names()) != 0 || rest.At("metadata.continue") != nil {
		t.Errorf("%s", rest.Body)
	}
	if a := w.As("root", "GET", apitest.EventsPath+"?limit=2", ""); a.At("metadata.remainingItemCount") != 4.0 {
		t.Errorf("%s", a.Body)
	}
}

// TestClusterWatches: a watch shows events that come to its clusters and leave them, and nothing of others; it ends
// when the policy names other clusters, and not when the policy changes in other ways.
func TestClusterWatches(t *testing.T) {
	t.Parallel()
	w, current := apitest.NewPolicyWorld(t, clusterPolicy)
	srv := w.Serve()
	rv := w.As("root", "GET", apitest.EventsPath, "").At("metadata.resourceVersion").(string)
	tail := w.Tail(t, srv, "a", `{namespace="default"}`)
	s := w.Watch(srv, apitest.EventsPath+"?watch=1&resourceVersion="+rv, "Authorization", "Bearer a")
	put := func(name, cluster string) {
		e := marked{"default", name, cluster, "mark1x"}
		if w.As("root", "PUT", apitest.EventsPath+"/"+name, e.body()).Code >= 300 {
			t.Fatal(name)
		}
	}
	put("theirs", "b")
	put("moves", "a")
	put("moves", "b")
	put("own", "a")
	apitest.Equal(t, s.Take(3), []apitest.Change{{"ADDED", "moves", "about mark1x"}, {"DELETED", "moves", "about mark1x"}, {"ADDED", "own", "about mark1x"}})
	if got := tail.Next(); strings.Count(got, "mark1x") < 1 {
		t.Error(got)
	}
	current.Store(apitest.ParsePolicy(t, clusterPolicy+"- {role: events:read, clusters: [c], subjects: [{clientID: c}]}\n"))
	w.Server.PolicyChanged()
	put("more", "a")
	apitest.Equal(t, s.Take(1), []apitest.Change{{"ADDED", "more", "about mark1x"}})
	current.Store(apitest.ParsePolicy(t, clusterPolicy+"- {role: events:read, clusters: [b], subjects: [{clientID: a}]}\n"))
	w.Server.PolicyChanged()
	if s.Scan() {
		t.Errorf("%s", s.Lines.Bytes())
	}
}

// TestClusterGaps: a mirror is believed about its own cluster, and a caller learns of gaps in the clusters that it may
// see.
func TestClusterGaps(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, clusterPolicy, func(c *api.Config) { c.Now = func() time.Time { return apitest.StoryEnd } })
	report := func(cluster string) string {
		return fmt.Sprintf(`{"metadata":{"name":"gap-%[1]s","labels":{"tidings.example/cluster":%[1]q},"annotations":{
			"mirror.tidings.example/gap-from":"2026-03-04T12:00:00Z","mirror.tidings.example/gap-to":"2026-03-04T12:10:00Z"}},
			"eventTime":"2026-03-04T12:10:00.000000Z","reportingController":"tidings.example/mirror","reportingInstance":"i","action":"Mirror",
			"type":"Warning","reason":"MirrorGap","note":"n","regarding":{"kind":"Cluster","namespace":"default","name":"c"}}`, cluster)
	}
	w.As("mirror-a", "POST", apitest.EventsPath, report("a")).Must(201)
	w.As("mirror-a", "POST", apitest.EventsPath, report("b")).Must(403)
	w.As("b", "POST", apitest.EventsPath, report("b")).Must(201)
	for caller, want := range map[string][]string{"a": {"a"}, "b": {"b"}, "root": {"a", "b"}} {
		a := w.As(caller, "GET", apitest.QueryPath("events", "from", "2026-03-04T11:00:00Z"), "").Must(200)
		got := []string{}
		for _, g := range a.At("gaps").([]any) {
			got = append(got, apitest.Field(g, "cluster").(string))
		}
		slices.Sort(got)
		apitest.Equal(t, got, want)
		if restricted, _ := a.At("clusters").([]any); (restricted == nil) != (caller == "root") {
			t.Errorf("%s: %s", caller, a.Body)
		}
	}
}

// TestClusterReviews: the answers of reviews name the clusters, which Kubernetes' forms have no place for.
func TestClusterReviews(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, clusterPolicy)
	review := func(kind, body string) *apitest.Answer {
		return w.As("a", "POST", "/apis/authorization.k8s.io/v1/"+kind, body).Must(201)
	}
	apitest.Equal(t, review("selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"list","resource":"events","namespace":"shop"}}}`).At("status"),
		any(map[string]any{"allowed": true, "reason": `role "events:admin", bound in line 6, for events of the clusters ["a"]`}))
	apitest.Equal(t, review("selfsubjectrulesreviews", `{"spec":{"namespace":"shop"}}`).At("status.evaluationError"),
		any(`role "events:admin", bound in line 6, for events of the clusters ["a"]`))
	if e := w.As("root", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"shop"}}`).At("status.evaluationError"); e != nil {
		t.Error(e)
	}
}

// TestClusterMoved: what was observed of an event while it was of another cluster is neither shown nor counted.
func TestClusterMoved(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, clusterPolicy, func(c *api.Config) { c.Now = func() time.Time { return apitest.StoryEnd } })
	series := func(cluster string, count int, at string) string {
		return strings.Replace(marked{"default", "e", cluster, "mark1x"}.body(), `"action"`,
			fmt.Sprintf(`"series":{"count":%d,"lastObservedTime":"2026-03-04T%s.000000Z"},"action"`, count, at), 1)
	}
	w.As("root", "PUT", apitest.EventsPath+"/e", series("b", 5, "12:30:00")).Must(201)
	w.As("root", "PUT", apitest.EventsPath+"/e", series("a", 7, "12:40:00")).Must(200)
	if got := w.As("a", "GET", apitest.QueryPath("object", "uid", "uid"), "").Must(200).At("items").([]any); len(got) != 1 {
		t.Errorf("%v", got)
	}
	for _, path := range []string{apitest.QueryPath("histogram", "from", "2026-03-04T12:00:00Z"), apitest.QueryPath("histogram", "from", "2026-03-04T12:00:00Z", "search", "about")} {
		if total := w.As("a", "GET", path, "").Must(200).At("total"); total != 2.0 {
			t.Errorf("%s: %v", path, total)
		}
	}
}
