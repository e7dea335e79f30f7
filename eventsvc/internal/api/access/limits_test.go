package access_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/access"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/store"
)

// TestLimits: every limit of a request accepts the largest allowed value, refuses
// more, and counts the refusal.
func TestLimits(t *testing.T) {
	t.Parallel()
	const merge, patch = "application/merge-patch+json", "application/json-patch+json"
	labelled := func(kind string, n int) string { // a label's value has at most 63 bytes
		var pairs []string
		for i := 10_000; n > 0; i++ {
			size := min(n, 65)
			if n > 65 && n < 75 {
				size = 60 // leaves room for another
			}
			pairs, n = append(pairs, fmt.Sprintf(`"%d":"%s"`, i, strings.Repeat("x", size-5))), n-size
		}
		return apitest.NewEvent("big", `"metadata":{"name":"big","`+kind+`":{`+strings.Join(pairs, ",")+`}}`)
	}
	nested := func(n int) string {
		return apitest.NewEvent("deep", `"x":`+strings.Repeat("[", n-1)+strings.Repeat("]", n-1))
	}
	// The values of an event beside those of one list.
	extra := strings.Count(apitest.NewEvent("deep"), ",") + strings.Count(apitest.NewEvent("deep"), "{") + len(`,[`)
	elements := func(n int) string { return apitest.NewEvent("deep", `"x":[`+strings.Repeat("1,", n)+"1]") }
	operations := func(n int) string {
		return "[" + strings.Repeat(`{"op":"test","path":"/type","value":"Normal"},`, n-1) + `{"op":"test","path":"/type","value":"Normal"}]`
	}
	lines := func(n int) string {
		return "{involvedObject: {namespace: default}, metadata: {name: a}}\n" + strings.Repeat("#\n", n-5)
	}
	w := apitest.New(t, func(c *api.Config) {
		c.MaxQuery, c.MaxSelectorTerms = 300, 5
		c.Registry = prometheus.NewRegistry()
	})
	w.Create("live")
	padded := func(n int) string { text := apitest.NewEvent("pad"); return text + strings.Repeat(" ", n-len(text)) }
	for _, c := range []struct{ limit, method, path, media, good, bad string }{
		{"body", "POST", apitest.EventsPath, "application/json", padded(3 << 20), padded(3<<20 + 1)},
		{"depth", "POST", apitest.EventsPath + "?dryRun=All", "application/json", nested(100), nested(101)},
		{"depth", "POST", apitest.EventsPath + "?dryRun=All", "application/yaml", nested(100), nested(101)},
		{"depth", "PATCH", apitest.EventsPath + "/live", merge, `{"metadata":{"labels":{"x":"{{{{{{{{{{{{[[[[["}}}`, `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}"},
		{"depth", "PATCH", apitest.EventsPath + "/live?fieldManager=m&fieldValidation=Ignore", "application/apply-patch+yaml",
			`{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"live"}}`, strings.Repeat("- ", 101) + "a"},
		{"depth", "DELETE", apitest.EventsPath + "/none", "application/json", "", strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101)},
		{"values", "POST", apitest.EventsPath + "?dryRun=All", "application/json", elements(50_000 - extra), elements(50_000 - extra + 1)},
		{"values", "POST", apitest.CorePath + "?dryRun=All", "application/yaml", lines(50_000), lines(50_001)},
		{"patch-operations", "PATCH", apitest.EventsPath + "/live", patch, operations(10_000), operations(10_001)},
		{"labels", "POST", apitest.EventsPath + "?dryRun=All", "", labelled("labels", 64<<10), labelled("labels", 64<<10+1)},
		{"annotations", "POST", apitest.EventsPath + "?dryRun=All", "", labelled("annotations", 256<<10), labelled("annotations", 256<<10+1)},
		{"annotations", "PATCH", apitest.EventsPath + "/live", merge, "{}", `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 256<<10) + `"}}}`},
	} {
		before := w.Metric("eventsvc_requests_refused_total", c.limit)
		good := w.Do(c.method, c.path, c.good, "Content-Type", c.media)
		bad := w.Do(c.method, c.path, c.bad, "Content-Type", c.media)
		if good.Code >= 300 && c.method != "DELETE" && !strings.Contains(string(good.Body), "labels") {
			t.Errorf("%s %s: what is allowed: %d %s", c.limit, c.method, good.Code, good.Body)
		}
		if bad.Code < 400 || bad.Code >= 500 || len(bad.Body) > 1000 {
			t.Errorf("%s %s: %d %.200s", c.limit, c.method, bad.Code, bad.Body)
		}
		if n := w.Metric("eventsvc_requests_refused_total", c.limit) - before; n != 1 {
			t.Errorf("%s %s: counted %v times", c.limit, c.method, n)
		}
	}
	for _, path := range []string{apitest.EventsPath, "/api/v1/namespaces"} {
		for limit, queries := range map[string][2]string{
			"selector": {"labelSelector=a,b,c,d&fieldSelector=metadata.name=a", "labelSelector=a+in+(b,c,d,e)&fieldSelector=metadata.name!=a,metadata.name!=b"},
			"query":    {"labelSelector=" + strings.Repeat("a", 286), "labelSelector=" + strings.Repeat("a", 287)},
		} {
			before := w.Metric("eventsvc_requests_refused_total", limit)
			w.Do("GET", path+"?"+queries[0], "")
			if n := w.Metric("eventsvc_requests_refused_total", limit) - before; n != 0 {
				t.Errorf("%s of %s: what is allowed is refused", limit, path)
			}
			w.Do("GET", path+"?"+queries[1], "").Must(400)
			if n := w.Metric("eventsvc_requests_refused_total", limit) - before; n != 1 {
				t.Errorf("%s of %s: counted %v times", limit, path, n)
			}
		}
	}
}

// TestCreateRates: the rates of new events are limited in all, by client and by
// namespace, however the events are created. Other requests are not limited. A
// refused request uses up no other rate.
func TestCreateRates(t *testing.T) {
	t.Parallel()
	const apply = `{"apiVersion":"v1","kind":"Event","metadata":{"name":"p"},"involvedObject":{"namespace":"default"}}`
	team := strings.Replace(apitest.CorePath, "default", "team", 1)
	old := func(namespace string) string {
		return `{"metadata":{"generateName":"x"},"involvedObject":{"namespace":"` + namespace + `"}}`
	}
	now := &apitest.Clock{Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w := apitest.New(t, func(c *api.Config) {
		c.Verify, c.Now, c.Registry = apitest.ByName, now.Read, prometheus.NewRegistry()
		c.CreateRates.Client = access.Rate{PerSecond: 0.5, Burst: 3}
		c.CreateRates.Namespace = access.Rate{PerSecond: 1, Burst: 4}
		c.CreateRates.All = access.Rate{PerSecond: 100, Burst: 6}
	})
	refused := func(limit, retry string, a *apitest.Answer) {
		t.Helper()
		a.Must(http.StatusTooManyRequests)
		if a.Header.Get("Retry-After") != retry || !strings.Contains(string(a.Body), "("+limit+")") {
			t.Errorf("%s: Retry-After %q: %s", limit, a.Header.Get("Retry-After"), a.Body)
		}
	}
	// Three ways to create, one burst.
	w.As("a", "POST", apitest.CorePath, old("default")).Must(201)
	w.As("a", "PUT", apitest.CorePath+"/p", strings.Replace(apply, "events.k8s.io/v1", "v1", 1)).Must(201)
	w.As("a", "PATCH", apitest.CorePath+"/q?fieldManager=m", strings.Replace(apply, `"p"`, `"q"`, 1), "Content-Type", "application/apply-patch+yaml").Must(201)
	refused("client-create-rate", "2", w.As("a", "POST", apitest.CorePath, old("default")))
	refused("client-create-rate", "2", w.As("a", "PUT", apitest.CorePath+"/new", strings.Replace(apply, `"p"`, `"new"`, 1)))
	refused("client-create-rate", "2", w.As("a", "PATCH", apitest.CorePath+"/r?fieldManager=m", strings.Replace(apply, `"p"`, `"r"`, 1), "Content-Type", "application/apply-patch+yaml"))
	// What is there can be changed and read.
	w.As("a", "PUT", apitest.CorePath+"/p", apply).Must(200)
	w.As("a", "PATCH", apitest.CorePath+"/p", `{"message":"x"}`, "Content-Type", "application/merge-patch+json").Must(200)
	w.As("a", "GET", apitest.CorePath, "").Must(200)
	w.As("a", "DELETE", apitest.CorePath+"/p", "").Must(200)
	// Another client has its own rate, the namespace has one left.
	w.As("b", "POST", apitest.CorePath, old("default")).Must(201)
	refused("namespace-create-rate", "1", w.As("b", "POST", apitest.CorePath, old("default")))
	w.As("b", "POST", team, old("team")).Must(201)
	w.As("b", "POST", team, old("team")).Must(201) // the refusal took none of b's three
	refused("create-rate", "1", w.As("c", "POST", team, old("team")))
	now.Add(2 * time.Second)
	w.As("a", "POST", apitest.CorePath, old("default")).Must(201)
	for limit, want := range map[string]float64{"client-create-rate": 3, "namespace-create-rate": 1, "create-rate": 1} {
		if n := w.Metric("eventsvc_requests_refused_total", limit); n != want {
			t.Errorf("%s: %v refusals are counted", limit, n)
		}
	}
}

// failing is a store whose writes end with an error.
type failing struct {
	store.Store
	err error
}

func (f *failing) Update(context.Context, store.Key, store.Expect, store.Decide) (store.Result, error) {
	return store.Result{}, f.err
}

// TestNoRetryAfterWrites: no answer asks to try again once a write may have happened,
// because a client would then write twice.
func TestNoRetryAfterWrites(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for err, want := range map[error]string{
		store.ErrBusy: "1", // was never begun
		store.ErrFull: "", store.ErrClosed: "", context.DeadlineExceeded: "", context.Canceled: "", errors.New("disk"): "",
	} {
		w.Config.Store = &failing{w.DB, err}
		var newErr error
		if w.Server, newErr = api.New(w.Config); newErr != nil {
			t.Fatal(newErr)
		}
		for _, c := range []struct{ method, path, body string }{
			{"POST", apitest.EventsPath, apitest.NewEvent("a")}, {"PUT", apitest.EventsPath + "/a", apitest.NewEvent("a")}, {"DELETE", apitest.EventsPath + "/a", ""}, {"PATCH", apitest.EventsPath + "/a", "{}"},
		} {
			a := w.Do(c.method, c.path, c.body, "Content-Type", map[bool]string{true: "application/merge-patch+json"}[c.method == "PATCH"])
			if a.Code < 400 || a.Header.Get("Retry-After") != want || strings.Contains(string(a.Body), "retryAfterSeconds") != (want != "") {
				t.Errorf("%v, %s: %d, Retry-After %q: %s", err, c.method, a.Code, a.Header.Get("Retry-After"), a.Body)
			}
		}
	}
}
