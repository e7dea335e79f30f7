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
)

// TestClusterWrites: random writes of random callers get the answers of the model, and change what it says: no caller writes,
// moves or deletes an event of another cluster, and one such event looks as if it were not there.
func TestClusterWrites(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := &writeModel{t: t, r: rand.New(rand.NewPCG(seed, 42)), rights: map[string][]right{}, events: map[string]marked{}}
			for i := range 8 {
				m.rights[fmt.Sprintf("c%d", i)] = randomRights(m.r, "*", "create,update", "update,patch", "create", "delete,deletecollection", "create,patch,delete")
			}
			m.w, _ = newPolicyWorld(t, clusteredPolicy(m.rights))
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
	w      *world
	r      *rand.Rand
	rights map[string][]right
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
	var a *answer
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
			a = m.w.as(client, "POST", path+query, e.body())
			break
		}
		core := strings.NewReplacer(`{"metadata":{`, fmt.Sprintf(`{"metadata":{"namespace":%q,`, namespace), "reportingController", "reportingComponent", `"note"`, `"message"`,
			`"regarding"`, `"involvedObject"`, "\n", "", "\t", "").Replace(e.body())
		if a = m.w.bulk(client, query, core); a.code == 200 { // 403 if it may create nowhere
			a.code = a.results(1)[0].Code
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
		a = m.w.as(client, "PUT", path+"/"+e.name+query, e.body())
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
		a = m.w.as(client, "PATCH", path+"/"+e.name+"?force=true&fieldManager=m"+strings.Replace(query, "?", "&", 1), m.applied(e), "Content-Type", "application/apply-patch+yaml")
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
		a = m.w.as(client, "PATCH", path+"/"+e.name+query, `{"metadata":{"labels":{"tidings.example/cluster":`+label+`}}}`, "Content-Type", "application/merge-patch+json")
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
		a = m.w.as(client, "DELETE", path+"/"+e.name+query, "")
	case 5: // delete a collection, which is not often enough to empty the store
		if m.r.IntN(8) > 0 {
			return
		}
		m.deleteMany(client, namespace, path+query, dry)
		return
	}
	what := fmt.Sprintf("%s of %s with %+v on %+v", a.t.Name(), client, rights, current)
	if a.code != want {
		m.t.Fatalf("%s as %+v: %d, want %d: %s", what, e, a.code, want, a.body)
	}
	if (want == 404 || want == 403) && there && strings.Contains(string(a.body), current.mark) {
		m.t.Fatalf("%s: %s", what, a.body)
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
	a := m.w.as(client, "DELETE", path, "")
	if !may(m.rights[client], "deletecollection", namespace, nil) {
		a.must(403)
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
	if got := a.must(200).at("message"); got != fmt.Sprintf("deleted %d events.events.k8s.io", n) {
		m.t.Fatalf("%v, want %d", got, n)
	}
}

// compare compares what is stored with the model.
func (m *writeModel) compare() {
	got := map[string]string{}
	for _, item := range m.w.as("root", "GET", "/apis/events.k8s.io/v1/events", "").must(200).at("items").([]any) {
		labels, _ := field(item, "metadata.labels").(map[string]any)
		cluster, _ := labels["tidings.example/cluster"].(string)
		got[field(item, "metadata.namespace").(string)+"/"+field(item, "metadata.name").(string)] = cluster
	}
	want := map[string]string{}
	for key, e := range m.events {
		want[key] = e.cluster
	}
	equal(m.t, got, want)
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

// TestClusterRefusals: a refusal says which label is wrong and what is allowed; a name that is taken by another cluster's event is
// a 409 that says nothing else of it.
func TestClusterRefusals(t *testing.T) {
	t.Parallel()
	w, _ := newPolicyWorld(t, clusterPolicy)
	b := marked{"default", "x", "b", "mark1x"}
	w.as("root", "POST", eventsPath, strings.Replace(b.body(), `"labels"`, `"finalizers":["example.com/f"],"labels"`, 1)).must(201)
	w.as("root", "DELETE", eventsPath+"/x", "").must(200)
	if got := w.as("b", "POST", eventsPath, b.body()).must(409).at("message"); !strings.HasPrefix(got.(string), "object is being deleted") {
		t.Error(got)
	}
	own := marked{"default", "x", "a", "mark2x"}
	equal(t, w.as("a", "POST", eventsPath, own.body()).must(409).at("message"), any(`events.events.k8s.io "x" already exists`))
	foreign := marked{"default", "y", "b", "mark3x"}
	equal(t, w.as("mirror-a", "POST", eventsPath, foreign.body()).must(403).at("message"), any(`events.events.k8s.io "y" is forbidden: `+
		`User "mirror-a" cannot create resource "events" in API group "events.k8s.io" in the namespace "default": `+
		`the label tidings.example/cluster is "b", and the policy allows this client the events of the clusters ["a"]`))
	w.as("mirror-a", "POST", eventsPath, newEvent("none")).must(403)
	w.as("a", "DELETE", eventsPath+"?fieldSelector=metadata.name%3Dx", "").must(200)
	w.as("root", "GET", eventsPath+"/x", "").must(200)
}

// TestClusterNamespaces: where events can be created only in namespaces that are there, those of another cluster are not.
func TestClusterNamespaces(t *testing.T) {
	t.Parallel()
	w, _ := newPolicyWorld(t, clusterPolicy, func(c *api.Config) { c.Namespaces = []string{"shop"} })
	w.as("root", "POST", "/apis/events.k8s.io/v1/namespaces/shop/events", marked{"shop", "x", "a", "mark1x"}.body()).must(201)
	w.config.Namespaces = []string{"mail"}
	var err error
	if w.server, err = api.New(w.config); err != nil {
		t.Fatal(err)
	}
	path := "/apis/events.k8s.io/v1/namespaces/shop/events"
	w.as("a", "POST", path, marked{"shop", "y", "a", "mark2x"}.body()).must(201)
	got := w.as("b", "POST", path, marked{"shop", "z", "b", "mark3x"}.body()).must(404)
	absent := w.as("b", "POST", strings.Replace(path, "shop", "none", 1), marked{"none", "z", "b", "mark3x"}.body()).must(404)
	equal(t, string(got.body), strings.ReplaceAll(string(absent.body), "none", "shop"))
}

// TestClusterPages: a page that is full says that there may be more, whether what is behind it may be seen or not.
func TestClusterPages(t *testing.T) {
	t.Parallel()
	w, _ := newPolicyWorld(t, clusterPolicy)
	for i, cluster := range []string{"a", "a", "b", "a", "b", "b"} {
		w.as("root", "POST", eventsPath, marked{"default", fmt.Sprintf("e%d", i), cluster, "mark1x"}.body()).must(201)
	}
	for _, limit := range []int{1, 2, 3} {
		a := w.as("a", "GET", fmt.Sprintf("%s?limit=%d", eventsPath, limit), "").must(200)
		if n := len(a.names()); n != limit || a.at("metadata.continue") == nil || a.at("metadata.remainingItemCount") != nil {
			t.Errorf("limit %d: %s", limit, a.body)
		}
	}
	rest := w.as("a", "GET", eventsPath+"?limit=3&continue="+w.as("a", "GET", eventsPath+"?limit=3", "").at("metadata.continue").(string), "").must(200)
	if len(rest.names()) != 0 || rest.at("metadata.continue") != nil {
		t.Errorf("%s", rest.body)
	}
	if a := w.as("root", "GET", eventsPath+"?limit=2", ""); a.at("metadata.remainingItemCount") != 4.0 {
		t.Errorf("%s", a.body)
	}
}

// TestClusterWatches: a watch shows events that come to its clusters and leave them, and nothing of others; it ends when the policy
// names other clusters, and not when the policy changes in other ways.
func TestClusterWatches(t *testing.T) {
	t.Parallel()
	w, current := newPolicyWorld(t, clusterPolicy)
	srv := w.serve()
	rv := w.as("root", "GET", eventsPath, "").at("metadata.resourceVersion").(string)
	tail := w.tail(t, srv, "a", `{namespace="default"}`)
	s := w.watch(srv, eventsPath+"?watch=1&resourceVersion="+rv, "Authorization", "Bearer a")
	put := func(name, cluster string) {
		e := marked{"default", name, cluster, "mark1x"}
		if w.as("root", "PUT", eventsPath+"/"+name, e.body()).code >= 300 {
			t.Fatal(name)
		}
	}
	put("theirs", "b")
	put("moves", "a")
	put("moves", "b")
	put("own", "a")
	equal(t, s.take(3), []change{{"ADDED", "moves", "about mark1x"}, {"DELETED", "moves", "about mark1x"}, {"ADDED", "own", "about mark1x"}})
	if got := tail.next(); strings.Count(got, "mark1x") < 1 {
		t.Error(got)
	}
	current.Store(parsePolicy(t, clusterPolicy+"- {role: events:read, clusters: [c], subjects: [{clientID: c}]}\n"))
	w.server.PolicyChanged()
	put("more", "a")
	equal(t, s.take(1), []change{{"ADDED", "more", "about mark1x"}})
	current.Store(parsePolicy(t, clusterPolicy+"- {role: events:read, clusters: [b], subjects: [{clientID: a}]}\n"))
	w.server.PolicyChanged()
	if s.scan() {
		t.Errorf("%s", s.lines.Bytes())
	}
}

// TestClusterGaps: a mirror is believed about its own cluster, and a caller learns of gaps in the clusters that it may see.
func TestClusterGaps(t *testing.T) {
	t.Parallel()
	w, _ := newPolicyWorld(t, clusterPolicy, func(c *api.Config) { c.Now = func() time.Time { return storyEnd } })
	report := func(cluster string) string {
		return fmt.Sprintf(`{"metadata":{"name":"gap-%[1]s","labels":{"tidings.example/cluster":%[1]q},"annotations":{
			"mirror.tidings.example/gap-from":"2026-03-04T12:00:00Z","mirror.tidings.example/gap-to":"2026-03-04T12:10:00Z"}},
			"eventTime":"2026-03-04T12:10:00.000000Z","reportingController":"tidings.example/mirror","reportingInstance":"i","action":"Mirror",
			"type":"Warning","reason":"MirrorGap","note":"n","regarding":{"kind":"Cluster","namespace":"default","name":"c"}}`, cluster)
	}
	w.as("mirror-a", "POST", eventsPath, report("a")).must(201)
	w.as("mirror-a", "POST", eventsPath, report("b")).must(403)
	w.as("b", "POST", eventsPath, report("b")).must(201)
	for caller, want := range map[string][]string{"a": {"a"}, "b": {"b"}, "root": {"a", "b"}} {
		a := w.as(caller, "GET", queryPath("events", "from", "2026-03-04T11:00:00Z"), "").must(200)
		got := []string{}
		for _, g := range a.at("gaps").([]any) {
			got = append(got, field(g, "cluster").(string))
		}
		slices.Sort(got)
		equal(t, got, want)
		if restricted, _ := a.at("clusters").([]any); (restricted == nil) != (caller == "root") {
			t.Errorf("%s: %s", caller, a.body)
		}
	}
}

// TestClusterReviews: the answers of reviews name the clusters, which Kubernetes' forms have no place for.
func TestClusterReviews(t *testing.T) {
	t.Parallel()
	w, _ := newPolicyWorld(t, clusterPolicy)
	review := func(kind, body string) *answer {
		return w.as("a", "POST", "/apis/authorization.k8s.io/v1/"+kind, body).must(201)
	}
	equal(t, review("selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"list","resource":"events","namespace":"shop"}}}`).at("status"),
		any(map[string]any{"allowed": true, "reason": `role "events:admin", bound in line 6, for events of the clusters ["a"]`}))
	equal(t, review("selfsubjectrulesreviews", `{"spec":{"namespace":"shop"}}`).at("status.evaluationError"),
		any(`role "events:admin", bound in line 6, for events of the clusters ["a"]`))
	if e := w.as("root", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"shop"}}`).at("status.evaluationError"); e != nil {
		t.Error(e)
	}
}

// TestClusterMoved: what was observed of an event while it was of another cluster is neither shown nor counted.
func TestClusterMoved(t *testing.T) {
	t.Parallel()
	w, _ := newPolicyWorld(t, clusterPolicy, func(c *api.Config) { c.Now = func() time.Time { return storyEnd } })
	series := func(cluster string, count int, at string) string {
		return strings.Replace(marked{"default", "e", cluster, "mark1x"}.body(), `"action"`,
			fmt.Sprintf(`"series":{"count":%d,"lastObservedTime":"2026-03-04T%s.000000Z"},"action"`, count, at), 1)
	}
	w.as("root", "PUT", eventsPath+"/e", series("b", 5, "12:30:00")).must(201)
	w.as("root", "PUT", eventsPath+"/e", series("a", 7, "12:40:00")).must(200)
	if got := w.as("a", "GET", queryPath("object", "uid", "uid"), "").must(200).at("items").([]any); len(got) != 1 {
		t.Errorf("%v", got)
	}
	for _, path := range []string{queryPath("histogram", "from", "2026-03-04T12:00:00Z"), queryPath("histogram", "from", "2026-03-04T12:00:00Z", "search", "about")} {
		if total := w.as("a", "GET", path, "").must(200).at("total"); total != 2.0 {
			t.Errorf("%s: %v", path, total)
		}
	}
}
