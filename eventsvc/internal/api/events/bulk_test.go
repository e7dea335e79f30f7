package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/randtest"
)

func requireNamespaces(c *api.Config) {
	c.Namespaces = []string{"declared"}
}

func codes(results []apitest.Result) (all []int) {
	for _, r := range results {
		all = append(all, r.Code)
	}
	return all
}

// TestBulk: each line gets what a create would get, lines in one commit. A later version of a copy replaces it, and the
// same version or an earlier one is no error.
func TestBulk(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	w := apitest.Open(t, bolt.Options{Registry: registry}, func(c *api.Config) { c.Registry = registry })
	lines := []string{
		apitest.CoreEvent("shop", "a"), apitest.CoreEvent("other", "a"), apitest.CoreEvent("shop", "a"), apitest.CopyEvent("shop", "c", "u", "7"), apitest.CopyEvent("shop", "c", "u", "7"),
		apitest.CopyEvent("shop", "c", "u", "5"), apitest.CopyEvent("shop", "c", "u", "9"), apitest.CopyEvent("shop", "c", "other", "7"),
		strings.Replace(apitest.CopyEvent("shop", "c", "u", "7"), "east", "west", 1),
		`{"metadata":{"namespace":"shop","generateName":"g-"},"involvedObject":{"kind":"Pod","namespace":"shop"},"reason":"R","type":"Normal"}`,
		`not JSON`, ``, strings.Replace(apitest.CoreEvent("", "x"), `"namespace":"",`, ``, 1), apitest.CoreEvent("No_Namespace", "x"), apitest.CoreEvent("shop", "b", `"resourceVersion":"3"`),
		strings.Replace(apitest.CoreEvent("shop", "b"), `{"meta`, `{"kind":"Pod","meta`, 1), apitest.NewEvent("b", `"apiVersion":"events.k8s.io/v1"`),
		apitest.CoreEvent("shop", "b"),
	}
	before, commits := w.DB.Revision(), histogram(t, registry, "store_commit_writes")
	got := w.Bulk("good", "", lines...).Results(len(lines))
	apitest.Equal(t, codes(got), []int{201, 201, 409, 201, 200, 200, 200, 409, 409, 201, 400, 400, 400, 422, 400, 400, 400, 201})
	if got[3].ResourceVersion != got[4].ResourceVersion || w.DB.Revision() != before+6 || !got[6].Replaced || got[5].Replaced || !strings.HasPrefix(got[9].Name, "g-") || len(got[9].Name) != 7 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(got[12].Reason, "metadata.namespace") || !strings.Contains(got[2].Reason, `events "a" already exists`) {
		t.Errorf("the reasons are %q and %q", got[12].Reason, got[2].Reason)
	}
	apitest.Equal(t, w.Do("GET", "/api/v1/namespaces/shop/events/c", "").Must(200).At("metadata.resourceVersion"), any(got[6].ResourceVersion))
	if n := histogram(t, registry, "store_commit_writes") - commits; n != 2 {
		t.Errorf("%d commits", n)
	}
	for code, n := range map[string]float64{"201": 5, "200": 3, "409": 3, "400": 6, "422": 1} {
		if got := w.Metric("eventsvc_bulk_events_total", code); got != n {
			t.Errorf("%v lines are counted with %s, want %v", got, code, n)
		}
	}
	again := w.Bulk("good", "", lines...).Results(len(lines))
	apitest.Equal(t, codes(again)[:9], []int{409, 409, 409, 200, 200, 200, 200, 409, 409})
	commits = histogram(t, registry, "store_commit_writes")
	dry := w.Bulk("good", "?dryRun=All", apitest.CoreEvent("shop", "dry"), apitest.CoreEvent("shop", "a")).Results(2)
	apitest.Equal(t, codes(dry), []int{201, 409})
	w.Do("GET", "/api/v1/namespaces/shop/events/dry", "").Must(404)
	apitest.Equal(t, histogram(t, registry, "store_commit_writes"), commits)
	later := make([]string, 400)
	for i := range later {
		later[i] = apitest.CopyEvent("shop", fmt.Sprint("many-", i), fmt.Sprint("u", i), "1")
	}
	apitest.Equal(t, codes(w.Bulk("good", "", later...).Results(400)), slices.Repeat([]int{201}, 400))
	for i := range later {
		later[i] = strings.Replace(apitest.CopyEvent("shop", fmt.Sprint("many-", i), fmt.Sprint("u", i), "2"), `"reason"`, `"count":2,"reason"`, 1)
	}
	commits = histogram(t, registry, "store_commit_writes")
	dry = w.Bulk("good", "?dryRun=All", later...).Results(400)
	for _, got := range [][]apitest.Result{dry, w.Bulk("good", "", later...).Results(400)} {
		apitest.Equal(t, codes(got), slices.Repeat([]int{200}, 400))
		if slices.ContainsFunc(got, func(r apitest.Result) bool { return !r.Replaced }) {
			t.Error("a copy is not replaced")
		}
	}
	if n := histogram(t, registry, "store_commit_writes") - commits; n != 1 {
		t.Errorf("400 copies are replaced by %d commits", n)
	}
}

// histogram returns how often a histogram was observed; 0 if there is none.
func histogram(t *testing.T, registry *prometheus.Registry, name string) (n uint64) {
	t.Helper()
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.GetName() == name {
			n = m.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	return n
}

// TestBulkIsManyCreates: random lines in random requests leave the same events, and get the same codes, as creates of
// each line one after the other, where a later version of a copy replaces it as a mirror does that writes events one by
// one.
func TestBulkIsManyCreates(t *testing.T) {
	t.Parallel()
	first := randtest.Seed(t)
	for round := range uint64(6) {
		seed := first + round
		random := rand.New(rand.NewPCG(seed, 40))
		many, single := apitest.New(t), apitest.New(t)
		for range 12 {
			lines := make([]string, 1+random.IntN(60))
			for i := range lines {
				lines[i] = randomLine(random)
			}
			got := many.Bulk("good", "", lines...).Results(len(lines))
			for i, line := range lines {
				if want := createLine(single, line); got[i].Code != want {
					t.Fatalf("seed %d: line %s gets %+v, alone %d", seed, line, got[i], want)
				}
			}
			if random.IntN(3) == 0 { // what was counted of a copy before it was deleted is not counted again
				for _, w := range []*apitest.World{many, single} {
					w.Do("DELETE", "/api/v1/namespaces/a/events", "").Must(200)
				}
			}
		}
		if diff := cmp.Diff(stored(single), stored(many)); diff != "" {
			t.Errorf("seed %d: (-single +bulk)\n%s", seed, diff)
		}
		counts := "/query/v1/groups?by=namespace,reason&from=2020-01-01T00:00:00Z"
		if diff := cmp.Diff(single.Do("GET", counts, "").Must(200).At("groups"), many.Do("GET", counts, "").Must(200).At("groups"), ignoreLinks); diff != "" {
			t.Errorf("seed %d: counts (-single +bulk)\n%s", seed, diff)
		}
	}
}

// ignoreLinks leaves out what differs between two servers: links, and in which seconds events came to them.
var ignoreLinks = cmp.FilterPath(func(p cmp.Path) bool {
	key, ok := p.Last().(cmp.MapIndex)
	return ok && slices.Contains([]string{"events", "sample", "first", "last", "every", "state"}, key.Key().String())
}, cmp.Ignore())

// randomLine makes an event of few names, so that lines meet; some break a rule.
func randomLine(random *rand.Rand) string {
	namespace, name := string("ab"[random.IntN(2)]), fmt.Sprint("e", random.IntN(12))
	line := apitest.CoreEvent(namespace, name)
	if random.IntN(2) == 0 {
		line = apitest.CopyEvent(namespace, name, fmt.Sprint("u", random.IntN(2)), strconv.Itoa(1+random.IntN(9)))
		for _, more := range []string{`"labels":{"app":"a",`, `"labels":{"app":"b","team":"x",`, `"labels":{"tidings.example/owner-name":"long",`} {
			if random.IntN(4) == 0 {
				line = strings.Replace(line, `"labels":{`, more, 1)
			}
		}
		if random.IntN(4) == 0 {
			line = strings.Replace(line, `"annotations":{`, fmt.Sprintf(`"annotations":{"note":"%d",`, random.IntN(3)), 1)
		}
		if random.IntN(2) == 0 {
			line = strings.Replace(line, `"reason"`, fmt.Sprintf(`"count":%d,"reason"`, 2+random.IntN(3)), 1)
		}
	}
	for from, to := range map[string]string{
		`"type":"Normal"`: `"type":"Normal","unknown":1`, `"reason":"R"`: `"reason":"R","count":3,"lastTimestamp":"2026-01-01T00:00:00Z"`,
		`"name":"e`: `"name":"E_`, `"kind":"Pod"`: `"kind":"Pod","kind":"Job"`, `"message":"m"`: `"message":7`,
		`{"metadata"`: `{"kind":"Lease","metadata"`, `"metadata":{`: `"metadata":{"ownerReferences":[{"uid":"x"}],`,
		`"involvedObject":{"kind":"Pod","namespace":"a"`: `"involvedObject":{"kind":"Pod","namespace":"c"`,
	} {
		if random.IntN(25) == 0 {
			line = strings.Replace(line, from, to, 1)
		}
	}
	return line
}

// createLine creates the event of a line alone and returns the code.
func createLine(w *apitest.World, line string) int {
	w.T.Helper()
	var ev struct {
		Metadata struct {
			Name, Namespace     string
			Labels, Annotations map[string]string
		}
	}
	if err := json.Unmarshal([]byte(line), &ev); err != nil {
		w.T.Fatal(err)
	}
	folder := "/api/v1/namespaces/" + ev.Metadata.Namespace + "/events"
	code := w.Do("POST", folder, line).Code
	annotations := ev.Metadata.Annotations
	uid := annotations["mirror.tidings.example/uid"]
	if code != 409 || uid == "" {
		return code
	}
	stored := w.Do("GET", folder+"/"+ev.Metadata.Name, "").Must(200)
	before, _ := stored.At("metadata.annotations").(map[string]any)
	is, _ := strconv.Atoi(fmt.Sprint(before["mirror.tidings.example/resource-version"]))
	sent, _ := strconv.Atoi(annotations["mirror.tidings.example/resource-version"])
	switch {
	case before["mirror.tidings.example/uid"] != any(uid):
		return code
	case is >= sent:
		return 200
	}
	var next map[string]any
	if err := json.Unmarshal([]byte(line), &next); err != nil {
		w.T.Fatal(err)
	}
	labels, metadata := stored.At("metadata.labels").(map[string]any), next["metadata"].(map[string]any)
	metadata["labels"], metadata["annotations"] = over(metadata["labels"], labels), over(before, metadata["annotations"])
	text, err := json.Marshal(next)
	if err != nil {
		w.T.Fatal(err)
	}
	return w.Do("PUT", folder+"/"+ev.Metadata.Name, string(text)).Code
}

// over returns the members of both objects. Where both have a member, it is taken from more.
func over(base, more any) map[string]any {
	all := maps.Clone(base.(map[string]any))
	maps.Copy(all, more.(map[string]any))
	return all
}

// stored returns all events without what a server sets.
func stored(w *apitest.World) map[string]any {
	w.T.Helper()
	all := map[string]any{}
	for _, item := range w.Do("GET", "/api/v1/events", "").Must(200).At("items").([]any) {
		metadata := apitest.Field(item, "metadata").(map[string]any)
		for _, set := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
			if metadata[set] == nil {
				w.T.Errorf("%v has no %s", metadata["name"], set)
			}
			delete(metadata, set)
		}
		all[fmt.Sprint(metadata["namespace"], "/", metadata["name"])] = item
	}
	return all
}

// TestBulkIsRefused: what concerns the whole request is answered as such, is counted, and nothing is stored.
func TestBulkIsRefused(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, func(c *api.Config) { c.Registry, c.MaxBody = prometheus.NewRegistry(), 200<<10 })
	before := w.DB.Revision()
	many := make([]string, 1001)
	for i := range many {
		many[i] = "{}"
	}
	for name, c := range map[string]struct {
		code  int
		limit string
		got   *apitest.Answer
	}{
		"no token":      {401, "", w.Do("POST", apitest.BulkPath, "{}", "Authorization", "")},
		"another media": {415, "", w.Do("POST", apitest.BulkPath, apitest.CoreEvent("a", "a"), "Content-Type", "application/json")},
		"no media":      {415, "", w.Do("POST", apitest.BulkPath, apitest.CoreEvent("a", "a"))},
		"no events":     {400, "", w.Bulk("good", "")},
		"an option":     {422, "", w.Bulk("good", "?fieldValidation=Perhaps", apitest.CoreEvent("a", "a"))},
		"a timeout":     {400, "", w.Bulk("good", "?timeout=soon", apitest.CoreEvent("a", "a"))},
		"many events":   {413, "bulk-events", w.Bulk("good", "", many...)},
		"many bytes":    {413, "body", w.Bulk("good", "", strings.Repeat(" ", 200<<10))},
		"a get":         {405, "", w.Do("GET", apitest.BulkPath, "")},
		"below it":      {404, "", w.Do("POST", apitest.BulkPath+"/x", "")},
	} {
		if c.got.Code != c.code || c.got.Status().Status != "Failure" {
			t.Errorf("%s: %d %s, want %d", name, c.got.Code, c.got.Body, c.code)
		}
		if c.limit != "" && w.Metric("eventsvc_requests_refused_total", c.limit) != 1 {
			t.Errorf("%s is not counted as %s", name, c.limit)
		}
	}
	w.Bulk("good", "", many[:1000]...).Results(1000)
	if w.DB.Revision() != before {
		t.Error("something was stored")
	}
	for _, c := range []struct {
		err  error
		code int
	}{
		{store.ErrBusy, 429}, {store.ErrFull, 503}, {store.ErrUnavailable, 503}, {store.ErrUnwritable, 503}, {store.ErrClosed, 503},
		{context.DeadlineExceeded, 200}, {errors.New("secret"), 200}, // of a line, 504 and 500
	} {
		w := apitest.New(t)
		w.Config.Store = &apitest.Broken{Err: c.err}
		var err error
		if w.Server, err = api.New(w.Config); err != nil {
			t.Fatal(err)
		}
		if got := w.Bulk("good", "", apitest.CoreEvent("a", "a")).Must(c.code); strings.Contains(string(got.Body), "secret") {
			t.Errorf("the answer is %s", got.Body)
		}
	}
}

// TestLateBody: a body that does not come in time is no fault of what is in it. Its client may send it again, and a
// mirror does: it would leave out an event that is refused with 400.
func TestLateBody(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for path, media := range map[string]string{apitest.BulkPath: "application/x-ndjson", apitest.EventsPath: "application/json"} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, iotest.ErrReader(os.ErrDeadlineExceeded))
		req.Header.Set("Authorization", "Bearer good")
		req.Header.Set("Content-Type", media)
		rec := httptest.NewRecorder()
		w.Handler().ServeHTTP(rec, req)
		a := &apitest.Answer{T: t, Code: rec.Code, Header: rec.Header(), Body: rec.Body.Bytes()}
		if reason := a.Must(http.StatusRequestTimeout).At("reason"); reason != "Timeout" {
			t.Errorf("%s: %v", path, reason)
		}
	}
}

// TestBulkLineLimits: limits of single events hold for each line, and are counted for each.
func TestBulkLineLimits(t *testing.T) {
	t.Parallel()
	now := &apitest.Clock{Now: time.Unix(1000, 0)}
	w := apitest.New(t, func(c *api.Config) {
		c.Registry, c.Now = prometheus.NewRegistry(), now.Read
		c.CreateRates = api.Rates{Namespace: api.Rate{PerSecond: 1, Burst: 2}}
	})
	got := w.Bulk("good", "", apitest.CoreEvent("a", "1"), apitest.CoreEvent("a", "2"), apitest.CoreEvent("a", "3"), apitest.CoreEvent("a", "4"), apitest.CoreEvent("b", "1"),
		strings.Repeat("[", 200)).Results(6)
	apitest.Equal(t, codes(got), []int{201, 201, 429, 429, 201, 400})
	if !strings.Contains(got[2].Reason, "namespace-create-rate") {
		t.Errorf("the reason is %q", got[2].Reason)
	}
	for limit, n := range map[string]float64{"namespace-create-rate": 2, "depth": 1} {
		if counted := w.Metric("eventsvc_requests_refused_total", limit); counted != n {
			t.Errorf("%v are refused for %s, want %v", counted, limit, n)
		}
	}
	now.Add(2 * time.Second)
	got = w.Bulk("good", "", apitest.CopyEvent("c", "1", "u", "1"), apitest.CopyEvent("c", "1", "u", "2"), apitest.CopyEvent("c", "1", "u", "3"), apitest.CopyEvent("c", "1", "u", "3"), apitest.CoreEvent("c", "2"),
		apitest.CoreEvent("c", "3")).Results(6)
	apitest.Equal(t, codes(got), []int{201, 200, 200, 200, 201, 429}) // only creates count
	now.Add(2 * time.Second)
	for range 3 {
		apitest.Equal(t, codes(w.Bulk("good", "", apitest.CopyEvent("c", "1", "u", "3")).Results(1)), []int{200})
	}
	apitest.Equal(t, codes(w.Bulk("good", "", apitest.CoreEvent("c", "4"), apitest.CoreEvent("c", "5")).Results(2)), []int{201, 201})
	declared := apitest.New(t, requireNamespaces)
	got = declared.Bulk("good", "", apitest.CoreEvent("declared", "a"), apitest.CoreEvent("unknown", "a")).Results(2)
	apitest.Equal(t, codes(got), []int{201, 404})
}

// TestBulkPolicy: each line needs the right to create in its namespace, and who has it in none is refused before the
// body. The audit log has one entry, which says what was written where.
func TestBulkPolicy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	log, err := audit.Open(audit.Config{Path: path, MaxBytes: 1 << 20, Files: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := apitest.NewPolicyWorld(t, `bindings:
- {role: "events:admin", namespaces: ["team-*"], subjects: [{clientID: team}]}
- {role: "events:read", subjects: [{clientID: reader}]}`, func(c *api.Config) { c.Audit = log })
	lines := []string{apitest.CoreEvent("team-a", "1"), apitest.CoreEvent("team-b", "1"), apitest.CoreEvent("team-a", "1"), apitest.CoreEvent("shop", "1"), "{}",
		apitest.CopyEvent("team-a", "c", "u", "1"), apitest.CopyEvent("team-a", "c", "u", "2")}
	got := w.Bulk("team", "", lines...).Results(len(lines))
	apitest.Equal(t, codes(got), []int{201, 201, 409, 403, 400, 201, 200})
	if !strings.Contains(got[3].Reason, `in the namespace "shop"`) {
		t.Errorf("the reason is %q", got[3].Reason)
	}
	w.As("reader", "POST", apitest.BulkPath, "not read", "Content-Type", "application/x-ndjson").Must(403)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := log.Run(ctx); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var entries []audit.Entry
	for line := range strings.Lines(string(text)) {
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	want := audit.Wrote{"team-a": {Created: 2, Replaced: 1, Refused: 1}, "team-b": {Created: 1}, "shop": {Refused: 1}, "": {Refused: 1}}
	if len(entries) != 2 || entries[0].Verb != "create" || entries[0].User != "team" || !*entries[0].Allowed || *entries[1].Allowed {
		t.Fatalf("the audit log has %s", text)
	}
	apitest.Equal(t, entries[0].Wrote, want)
}

// TestBulkReplaces: a line replaces a copy of its own cluster only, if the writer may update it. A name is taken if the
// writer may not see its event. Stored labels stay, but for those that the event has in its cluster, and the annotation
// with an owner's whole name stays with the label of that owner. Other events are not replaced.
func TestBulkReplaces(t *testing.T) {
	t.Parallel()
	w, _ := apitest.NewPolicyWorld(t, `
roles:
- {name: create, rules: [{verbs: [create], namespaces: ["*"]}]}
- {name: mixed, rules: [{verbs: [create], namespaces: ["*"]}, {verbs: [update], namespaces: ["*"], clusters: [west]}]}
bindings:
- {role: "events:admin", subjects: [{clientID: root}]}
- {role: create, subjects: [{clientID: recorder}]}
- {role: mixed, subjects: [{clientID: mixed}]}
- {role: "events:admin", clusters: [west], subjects: [{clientID: west}]}`)
	line := func(version, labels, annotations string) string {
		text := strings.Replace(apitest.CopyEvent("shop", "c", "u", version), `"labels":{`, `"labels":{`+labels, 1)
		return strings.Replace(text, `"annotations":{`, `"annotations":{`+annotations, 1)
	}
	send := func(as, text string, code int) apitest.Result {
		t.Helper()
		got := w.Bulk(as, "", text).Results(1)[0]
		if got.Code != code {
			t.Errorf("%s gets %+v, want %d", as, got, code)
		}
		return got
	}
	send("root", line("1", `"app":"a","tidings.example/owner-name":"short",`, `"note":"1",`), 201)
	for as, text := range map[string]string{"recorder": "cannot update resource", "mixed": `the label tidings.example/cluster is "east"`} {
		if got := send(as, line("2", "", ""), 403); !strings.Contains(got.Reason, text) {
			t.Errorf("%s is told %q", as, got.Reason)
		}
	}
	send("recorder", line("1", "", ""), 200)
	send("west", strings.Replace(line("2", "", ""), "east", "west", 1), 409)
	send("root", line("2", `"app":"b","team":"x","tidings.example/owner-name":"long-1",`, `"tidings.example/owner-name":"long","more":"2",`), 200)
	stored := w.As("root", "GET", "/api/v1/namespaces/shop/events/c", "").Must(200)
	apitest.Equal(t, stored.At("metadata.labels"), any(map[string]any{"app": "a", "team": "x", "tidings.example/cluster": "east", "tidings.example/owner-name": "short"}))
	apitest.Equal(t, stored.At("metadata.annotations"), any(map[string]any{"note": "1", "more": "2", "mirror.tidings.example/uid": "u", "mirror.tidings.example/resource-version": "2"}))
	uid, created := stored.At("metadata.uid"), stored.At("metadata.creationTimestamp")
	send("root", line("3", `"app":"c","team":"y","new":"z",`, `"mirror.tidings.example/labels":"app,gone,new",`), 200)
	apitest.Equal(t, w.As("root", "GET", "/api/v1/namespaces/shop/events/c", "").Must(200).At("metadata.labels"),
		any(map[string]any{"app": "c", "new": "z", "team": "x", "tidings.example/cluster": "east", "tidings.example/owner-name": "short"}))
	send("root", line("3.5", "", ""), 409)
	send("root", line("4", "", ""), 200)
	stored = w.As("root", "GET", "/api/v1/namespaces/shop/events/c", "").Must(200)
	if stored.At("metadata.uid") != uid || stored.At("metadata.creationTimestamp") != created {
		t.Error("it has another identity")
	}
	owned := func(version, owner string) string {
		text := line(version, "", "")
		if owner != "" {
			text = line(version, `"tidings.example/owner-name":"`+owner+`-1",`, `"tidings.example/owner-name":"`+owner+`",`)
		}
		return strings.Replace(text, `"name":"c"`, `"name":"owned"`, 1)
	}
	send("root", owned("1", "long"), 201)
	for i, owner := range []string{"", "other", "long"} {
		send("root", owned(strconv.Itoa(i+2), owner), 200)
		stored := w.As("root", "GET", "/api/v1/namespaces/shop/events/owned", "").Must(200)
		apitest.Equal(t, stored.At("metadata.annotations").(map[string]any)["tidings.example/owner-name"], any("long"))
	}
	send("root", apitest.CoreEvent("shop", "plain"), 201)
	send("root", strings.Replace(line("9", "", ""), `"name":"c"`, `"name":"plain"`, 1), 409)
	send("root", line("soon", "", ""), 409)
	w.As("root", "PATCH", "/api/v1/namespaces/shop/events/c", `{"metadata":{"finalizers":["example.com/f"]}}`, "Content-Type", apitest.MergePatch).Must(200)
	w.As("root", "DELETE", "/api/v1/namespaces/shop/events/c", "").Must(200)
	send("root", line("5", "", ""), 200) // as a PUT without the last finalizer
	w.As("root", "GET", "/api/v1/namespaces/shop/events/c", "").Must(404)
}

// eventList is a list of events in protobuf, of the lines that are events.
func eventList(t *testing.T, lines ...string) (body string, events int) {
	t.Helper()
	var list corev1.EventList
	for _, line := range lines {
		var ev corev1.Event
		if json.Unmarshal([]byte(line), &ev) == nil {
			list.Items = append(list.Items, ev)
		}
	}
	message, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return inEnvelope(t, "v1", "EventList", message), len(list.Items)
}

// inEnvelope returns a message as an object of Kubernetes in protobuf.
func inEnvelope(t *testing.T, version, kind string, message []byte) string {
	t.Helper()
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: kind}, Raw: message}
	body, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return "k8s\x00" + string(body)
}

// TestBulkInProtobuf: a list in protobuf stores the same events with the same codes as the same events in lines.
func TestBulkInProtobuf(t *testing.T) {
	t.Parallel()
	media := []string{"Content-Type", "application/vnd.kubernetes.protobuf"}
	lines, proto := apitest.New(t), apitest.New(t)
	random := randtest.New(t)
	for range 20 {
		var some []string
		for range 40 {
			line := randomLine(random)
			if json.Unmarshal([]byte(line), new(corev1.Event)) == nil && !strings.Contains(line, "Lease") && strings.Count(line, `"kind"`) == 1 { // items have no kind
				some = append(some, line)
			}
		}
		body, n := eventList(t, some...)
		want, got := lines.Bulk("good", "", some...).Results(n), proto.Do("POST", apitest.BulkPath, body, media...).Results(n)
		apitest.Equal(t, codes(got), codes(want))
	}
	if diff := cmp.Diff(stored(lines), stored(proto)); diff != "" {
		t.Errorf("(-lines +protobuf)\n%s", diff)
	}
	one, _ := eventList(t, apitest.CoreEvent("shop", "a"))
	many, _ := eventList(t, slices.Repeat([]string{apitest.CoreEvent("shop", "a")}, 1001)...)
	for name, c := range map[string]struct {
		body string
		code int
	}{
		"no body": {"", 400}, "no envelope": {"{}", 400}, "no events": {inEnvelope(t, "v1", "EventList", nil), 400}, "an event": {inEnvelope(t, "v1", "Event", nil), 400},
		"another version": {inEnvelope(t, "events.k8s.io/v1", "EventList", nil), 400}, "a part": {inEnvelope(t, "v1", "EventList", []byte("\x12\x7f")), 400},
		"many events": {many, 413}, "one event": {one, 200},
	} {
		if got := proto.Do("POST", apitest.BulkPath, c.body, media...); got.Code != c.code {
			t.Errorf("%s: %d %s, want %d", name, got.Code, got.Body, c.code)
		}
	}
	got := proto.Do("POST", apitest.BulkPath, inEnvelope(t, "v1", "EventList", []byte("\x12\x02\x0a\x7f")), media...).Results(1)
	apitest.Equal(t, codes(got), []int{400})
}

// busyLater is a store that is busy after its first batch.
type busyLater struct {
	store.Store
	batches int
}

func (s *busyLater) UpdateMany(
	ctx context.Context, keys []store.Key, expect func(i int) store.Expect, decide func(i int, current *store.Record) (store.Decision, error),
) []store.Outcome {
	if s.batches++; s.batches > 1 {
		return slices.Repeat([]store.Outcome{{Err: store.ErrBusy}}, len(keys))
	}
	return s.Store.UpdateMany(ctx, keys, expect, decide)
}

// TestBulkFailsLater: what a request has stored before it fails is counted.
func TestBulkFailsLater(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	w.Config.Registry, w.Config.Store = prometheus.NewRegistry(), &busyLater{Store: w.DB}
	var err error
	if w.Server, err = api.New(w.Config); err != nil {
		t.Fatal(err)
	}
	w.Bulk("good", "", apitest.CoreEvent("a", "1"), apitest.CoreEvent("a", "2"), apitest.CoreEvent("a", "1")).Must(429)
	w.Do("GET", "/api/v1/namespaces/a/events/2", "").Must(200)
	if n := w.Metric("eventsvc_bulk_events_total", "201"); n != 2 {
		t.Errorf("%v lines are counted as created, want 2", n)
	}
}

// TestBulkAnswersAreShort: a long name and a long reason are cut in the answer, because the room that is reserved for
// an answer allows each line a fixed number of bytes.
func TestBulkAnswersAreShort(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	long := strings.Repeat("n", 200<<10)
	a := w.Bulk("good", "", apitest.CoreEvent("default", long), apitest.CoreEvent(long, "b"), apitest.CoreEvent("default", "c"))
	if got := codes(a.Results(3)); got[0] < 400 || got[1] < 400 || got[2] != 201 || len(a.Body) > 8<<10 {
		t.Errorf("%v in %d bytes", got, len(a.Body))
	}
}
