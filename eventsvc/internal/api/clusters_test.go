package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/shared/randtest"
)

// matches is the model of a pattern.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return p == name || p == "*" || name != "" && strings.HasSuffix(p, "*") && strings.HasPrefix(name, p[:len(p)-1])
	})
}

// may is the model of a policy: whether some right is for a verb in a namespace, on events of a cluster; nil: of any.
func may(rights []apitest.Right, verb, namespace string, cluster *string) bool {
	return slices.ContainsFunc(rights, func(r apitest.Right) bool {
		return (r.Verbs == "*" || slices.Contains(strings.Split(r.Verbs, ","), verb)) && matches(r.Namespaces, namespace) &&
			(cluster == nil || r.Clusters == nil || matches(r.Clusters, *cluster))
	})
}

// marked is an event of the model. Its mark is in every text of it.
type marked struct{ namespace, name, cluster, mark string }

func (e marked) body() string {
	labels := ""
	if e.cluster != "" {
		labels = fmt.Sprintf(`,"labels":{"tidings.example/cluster":%q}`, e.cluster)
	}
	return fmt.Sprintf(`{"metadata":{"name":%q%s},"eventTime":%q,"reportingController":"%s.example/c","reportingInstance":"i","action":"Do","type":"Warning",
		"reason":%q,"note":"about %s","regarding":{"kind":%q,"namespace":%q,"name":%q,"uid":"uid"}}`, e.name, labels,
		apitest.StoryEnd.Add(-time.Minute).Format("2006-01-02T15:04:05.000000Z07:00"), e.mark, e.mark, e.mark, e.mark, e.namespace, e.mark)
}

var (
	clusterPool   = []string{"", "a", "b", "eu-1", "eu-2"}
	namespacePool = []string{"shop", "mail", "team-a", "team-b"}
	marks         = regexp.MustCompile(`mark\d+x`)
)

// randomRights are those of one caller, nearly always limited to some clusters.
func randomRights(r *rand.Rand, verbs ...string) (rights []apitest.Right) {
	pick := func(from ...[]string) []string { return from[r.IntN(len(from))] }
	for range 1 + r.IntN(3) {
		rights = append(rights, apitest.Right{
			Verbs:      verbs[r.IntN(len(verbs))],
			Namespaces: pick([]string{"*"}, []string{"*"}, []string{"team-*"}, []string{"shop", "mail"}, []string{"team-a"}),
			Clusters:   pick([]string{"a"}, []string{"eu-*"}, []string{""}, []string{"b", "eu-1"}, []string{"a", ""}, []string{"nowhere"}, nil),
		})
	}
	return rights
}

// TestClusterReads: whatever a caller asks, the answer is as from a store that holds only the events its rules are for:
// no mark of another is in any answer, and none that it may see is missing.
func TestClusterReads(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := randtest.New(t)
			rights := map[string][]apitest.Right{}
			for i := range 6 {
				rights[fmt.Sprintf("c%d", i)] = randomRights(r, "*", "*", "list,watch", "get,list", "watch")
			}
			w, _ := apitest.NewPolicyWorld(t, apitest.ClusteredPolicy(rights), apitest.WithMCP, func(c *api.Config) { c.Now = func() time.Time { return apitest.StoryEnd } })
			var events []marked
			for i := range 40 {
				mark := fmt.Sprintf("mark%dx", i)
				e := marked{namespacePool[r.IntN(len(namespacePool))], mark, clusterPool[r.IntN(len(clusterPool))], mark}
				events = append(events, e)
				w.As("root", "POST", "/apis/events.k8s.io/v1/namespaces/"+e.namespace+"/events", e.body()).Must(201)
			}
			srv := w.Serve()
			for client, rights := range rights {
				m := &readModel{w: w, t: t, srv: srv, client: client, rights: rights, events: events}
				m.gets()
				m.lists()
				m.watches()
				m.questions()
				m.namespaces()
				m.reviews()
			}
		})
	}
}

// readModel knows what one caller may read.
type readModel struct {
	w      *apitest.World
	t      *testing.T
	srv    *apitest.Running
	client string
	rights []apitest.Right
	events []marked
}

// sees returns the marks of the events that a verb shows: in one namespace, or across all by rules for all; with
// within, by any rule.
func (m *readModel) sees(verb, namespace string, within bool) []string {
	seen := []string{}
	for _, e := range m.events {
		decided := namespace
		if within {
			decided = e.namespace
		}
		if (namespace == "" || e.namespace == namespace) && may(m.rights, verb, decided, &e.cluster) {
			seen = append(seen, e.mark)
		}
	}
	slices.Sort(seen)
	return seen
}

// shows compares the marks in a text with those that are expected.
func (m *readModel) shows(what, text string, want []string) {
	m.t.Helper()
	got := marks.FindAllString(text, -1)
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		m.t.Fatalf("%s by %s with %+v shows %v, want %v: %s", what, m.client, m.rights, got, want, text)
	}
}

func (m *readModel) get(path string, headers ...string) *apitest.Answer {
	return m.w.As(m.client, "GET", path, "", headers...)
}

func (m *readModel) gets() {
	for _, e := range m.events {
		want := 200
		switch {
		case !may(m.rights, "get", e.namespace, nil):
			want = 403
		case !may(m.rights, "get", e.namespace, &e.cluster):
			want = 404
		}
		for _, view := range []string{"/api/v1", "/apis/events.k8s.io/v1"} {
			a := m.get(view + "/namespaces/" + e.namespace + "/events/" + e.name).Must(want)
			if want == 404 { // in the very words for an event that is not there
				absent := m.get(view + "/namespaces/" + e.namespace + "/events/none").Must(404)
				apitest.Equal(m.t, strings.ReplaceAll(string(a.Body), e.name, "none"), string(absent.Body))
			}
		}
	}
}

func (m *readModel) lists() {
	for _, namespace := range append([]string{""}, namespacePool...) {
		for _, view := range []string{"/api/v1", "/apis/events.k8s.io/v1"} {
			path := view + "/events"
			if namespace != "" {
				path = view + "/namespaces/" + namespace + "/events"
			}
			if !may(m.rights, "list", namespace, nil) {
				m.get(path).Must(403)
				continue
			}
			want := m.sees("list", namespace, false)
			m.shows("list", string(m.get(path).Must(200).Body), want)
			m.shows("table", string(m.get(path, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Must(200).Body), want)
			m.shows("protobuf", string(m.get(path, "Accept", "application/vnd.kubernetes.protobuf").Must(200).Body), want)
			m.shows("of a type", string(m.get(path+"?fieldSelector=type%3DWarning").Must(200).Body), want)
			of := []string{}
			for _, e := range m.events {
				if e.cluster == "eu-1" && slices.Contains(want, e.mark) {
					of = append(of, e.mark)
				}
			}
			slices.Sort(of)
			m.shows("of a label", string(m.get(path+"?labelSelector=tidings.example/cluster%3Deu-1").Must(200).Body), of)
			for _, limit := range []int{1, 3, max(1, len(want)), 100} {
				m.pages(path, limit, want)
			}
		}
	}
}

// pages reads a list page by page. Neither the number of what is left nor a token tells of anything else.
func (m *readModel) pages(path string, limit int, want []string) {
	text, next := "", ""
	for {
		a := m.get(fmt.Sprintf("%s?limit=%d&continue=%s", path, limit, url.QueryEscape(next))).Must(200)
		text += string(a.Body)
		n := len(a.Names())
		next, _ = a.At("metadata.continue").(string)
		whole := slices.ContainsFunc(m.rights, func(r apitest.Right) bool { return r.Clusters == nil })
		if a.At("metadata.remainingItemCount") != nil && !whole {
			m.t.Fatalf("%s: %s", path, a.Body)
		}
		token, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(next, "="))
		if err != nil {
			m.t.Fatal(err)
		}
		text += string(token)
		if next == "" {
			break
		}
		if n != limit {
			m.t.Fatalf("%s: a page of %d, limit %d", path, n, limit)
		}
	}
	m.shows("pages", text, want)
}

func (m *readModel) watches() {
	for _, namespace := range append([]string{""}, namespacePool[:2]...) {
		path := "/api/v1/events"
		if namespace != "" {
			path = "/api/v1/namespaces/" + namespace + "/events"
		}
		query := "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
		if !may(m.rights, "watch", namespace, nil) {
			m.get(path + query).Must(403)
			continue
		}
		want := m.sees("watch", namespace, false)
		for _, q := range []string{query, "?watch=1&resourceVersion=1&allowWatchBookmarks=true"} {
			s := m.w.Watch(m.srv, path+q, "Authorization", "Bearer "+m.client)
			var text strings.Builder
			for range len(want) {
				kind, object := s.Next()
				one, _ := json.Marshal(object)
				if kind != "ADDED" {
					m.t.Fatalf("%s: %s", kind, one)
				}
				text.Write(one)
			}
			if q == query {
				if kind, _ := s.Next(); kind != "BOOKMARK" {
					m.t.Fatalf("%s", kind)
				}
			}
			s.Close()
			m.shows("watch", text.String(), want)
		}
	}
}

// questions asks all that counts or finds events, by the rules for all namespaces together.
func (m *readModel) questions() {
	const whole = "2026-03-04T00:00:00Z"
	want := m.sees("list", "", true)
	for what, path := range map[string]string{
		"events": apitest.QueryPath("events", "limit", "1000"), "by text": apitest.QueryPath("events", "search", "about", "limit", "1000"),
		"of a type": apitest.QueryPath("events", "fieldSelector", "type=Warning", "limit", "1000"), "facets": apitest.QueryPath("facets", "by", "reason", "limit", "1000"),
		"facets by events": apitest.QueryPath("facets", "by", "kind", "limit", "1000", "search", "about"),
		"groups":           apitest.QueryPath("groups", "by", "reporter", "limit", "1000"), "objects": apitest.QueryPath("groups", "by", "object", "limit", "1000"),
		"object":      apitest.QueryPath("object", "uid", "uid", "limit", "1000"),
		"loki":        "/loki/api/v1/query_range?" + url.Values{"query": {`{type="Warning"}`}, "start": {whole}, "end": {"2026-03-05T00:00:00Z"}, "limit": {"1000"}}.Encode(),
		"loki values": "/loki/api/v1/label/reason/values?" + url.Values{"start": {whole}, "end": {"2026-03-05T00:00:00Z"}}.Encode(),
		"loki series": "/loki/api/v1/series?" + url.Values{"match[]": {`{type="Warning"}`}, "start": {whole}, "end": {"2026-03-05T00:00:00Z"}}.Encode(),
		"loki volume": "/loki/api/v1/index/volume?" + url.Values{"query": {`{type="Warning"}`}, "targetLabels": {"reason"}, "limit": {"1000"}, "start": {whole}, "end": {"2026-03-05T00:00:00Z"}}.Encode(),
		"loki metric": "/loki/api/v1/query?" + url.Values{"query": {`sum by (reason) (count_over_time({type="Warning"}[1d]))`}, "time": {"2026-03-05T00:00:00Z"}}.Encode(),
	} {
		a := m.get(path)
		if !slices.ContainsFunc(m.rights, func(r apitest.Right) bool { return may([]apitest.Right{r}, "list", r.Namespaces[0], nil) }) {
			a.Must(403)
			continue
		}
		if a.Must(200); what == "loki" && len(want) == 0 {
			continue
		}
		m.shows(what, string(a.Body), want)
		if total, ok := a.At("total").(float64); ok && int(total) != len(want) {
			m.t.Fatalf("%s counts %v, want %d", what, total, len(want))
		}
	}
	if !slices.ContainsFunc(m.rights, func(r apitest.Right) bool { return strings.Contains(r.Verbs, "list") || r.Verbs == "*" }) {
		return
	}
	for _, mark := range marks.FindAllString(string(m.get(apitest.QueryPath("changes", "at", "2026-03-04T13:00:01Z", "limit", "100")).Must(200).Body), -1) {
		if !slices.Contains(want, mark) { // not all that happened is a change
			m.t.Fatalf("changes by %s with %+v show %s", m.client, m.rights, mark)
		}
	}
	for _, e := range m.events[:5] { // what may have been meant is one of the values that the caller sees
		hints, _ := json.Marshal(m.get(apitest.QueryPath("events", "search", "reason="+strings.TrimSuffix(e.mark, "x")+"y")).Must(200).At("hints"))
		if strings.Contains(string(hints), e.mark) && !slices.Contains(want, e.mark) {
			m.t.Fatalf("hints for %s with %+v: %s", m.client, m.rights, hints)
		}
	}
	h := m.get(apitest.QueryPath("histogram", "by", "cluster")).Must(200)
	if total := h.At("total").(float64); int(total) != len(want) {
		m.t.Fatalf("the histogram counts %v, want %d: %s", total, len(want), h.Body)
	}
	clusters := map[string]bool{}
	for _, e := range m.events {
		if slices.Contains(want, e.mark) {
			clusters[e.cluster] = true
		}
	}
	values := []string{}
	for _, v := range m.get(apitest.QueryPath("facets", "by", "cluster", "limit", "100")).Must(200).At("facets.cluster").([]any) {
		values = append(values, apitest.Field(v, "value").(string))
	}
	slices.Sort(values)
	if !slices.Equal(values, slices.Sorted(maps.Keys(clusters))) {
		m.t.Fatalf("the facet has the clusters %q, want %v", values, clusters)
	}
	stats := m.get("/loki/api/v1/index/stats?" + url.Values{"query": {`{type="Warning"}`}, "start": {whole}, "end": {"2026-03-05T00:00:00Z"}}.Encode()).Must(200)
	if n := stats.At("entries").(float64); int(n) != len(want) {
		m.t.Fatalf("loki counts %v, want %d", n, len(want))
	}
	text, failed := m.w.Tool(m.client, "events_search", `{"from":"-1h","limit":100,"detail":"full"}`)
	if failed {
		m.t.Fatal(text)
	}
	m.shows("search", text, want)
}

// namespaces lists those of the events that the caller may see, besides the well-known ones.
func (m *readModel) namespaces() {
	a := m.get("/api/v1/namespaces")
	if !may(m.rights, "list", "", nil) {
		a.Must(403)
		return
	}
	want := map[string]bool{"default": true, "kube-node-lease": true, "kube-public": true, "kube-system": true}
	for _, e := range m.events {
		if may(m.rights, "list", "", &e.cluster) {
			want[e.namespace] = true
		}
	}
	apitest.Equal(m.t, a.Must(200).Names(), slices.Sorted(maps.Keys(want)))
	for _, namespace := range namespacePool {
		code := 404
		switch {
		case !may(m.rights, "get", namespace, nil):
			code = 403
		case slices.ContainsFunc(m.events, func(e marked) bool { return e.namespace == namespace && may(m.rights, "get", namespace, &e.cluster) }):
			code = 200
		}
		m.get("/api/v1/namespaces/" + namespace).Must(code)
	}
}

// reviews asks about each cluster by the label.
func (m *readModel) reviews() {
	for _, namespace := range append([]string{""}, namespacePool...) {
		for _, cluster := range clusterPool {
			spec, _ := json.Marshal(map[string]any{"spec": authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "list", Resource: "events", Namespace: namespace,
			}}})
			body := strings.Replace(string(spec), `"verb"`, fmt.Sprintf(`"labelSelector":{"requirements":[{"key":"tidings.example/cluster","operator":"In","values":[%q]}]},"verb"`, cluster), 1)
			a := m.w.As(m.client, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body).Must(201)
			if got, want := a.At("status.allowed").(bool), may(m.rights, "list", namespace, &cluster); got != want {
				m.t.Fatalf("list in %q of %q: %v, want %v", namespace, cluster, got, want)
			}
		}
	}
}
