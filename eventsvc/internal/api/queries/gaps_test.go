package queries_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
)

// TestForgedGaps: a gap is believed if its writer may create in every namespace. A report of anybody else is an
// ordinary event, and none of its fields makes it more.
func TestForgedGaps(t *testing.T) {
	t.Parallel()
	const (
		all, core = "/apis/events.k8s.io/v1/namespaces/team-a/events", "/api/v1/namespaces/team-a/events"
		merge     = "application/merge-patch+json"
	)
	apply := func(w *apitest.World, caller string) { // that creates
		w.As(caller, "PATCH", all+"/gap?fieldManager=m", apitest.GapReport("gap", "30", ""), "Content-Type", "application/apply-patch+yaml").Must(201)
	}
	post := func(caller, metadata string) func(*apitest.World) {
		return func(w *apitest.World) { w.As(caller, "POST", all, apitest.GapReport("gap", "30", metadata)).Must(201) }
	}
	put := func(caller, minute string, code int) func(*apitest.World) {
		return func(w *apitest.World) {
			w.As(caller, "PUT", all+"/gap", apitest.GapReport("gap", minute, "")).Must(code)
		}
	}
	patch := func(caller, body string) func(*apitest.World) {
		return func(w *apitest.World) { w.As(caller, "PATCH", all+"/gap", body, "Content-Type", merge).Must(200) }
	}
	const (
		label  = `{"metadata":{"labels":{"seen":"yes"}}}`
		other  = `{"metadata":{"annotations":{"mirror.tidings.example/gap-to":"2026-03-04T12:40:00Z"}}}`
		moved  = `{"metadata":{"labels":{"tidings.example/cluster":"prod"}}}`
		nogap  = `{"metadata":{"annotations":{"mirror.tidings.example/gap-to":null}}}`
		marked = `,"finalizers":["example.com/f"]`
	)
	for name, c := range map[string]struct {
		writes []func(*apitest.World)
		until  string // minute of the gap that is believed; "": none is
	}{
		"root creates":               {[]func(*apitest.World){post("root", "")}, "30"},
		"a scope creates":            {[]func(*apitest.World){post("any+events:admin", "")}, "30"},
		"root creates by PUT":        {[]func(*apitest.World){put("root", "30", 201)}, "30"},
		"root creates by apply":      {[]func(*apitest.World){func(w *apitest.World) { apply(w, "root") }}, "30"},
		"team creates":               {[]func(*apitest.World){post("team", "")}, ""},
		"team creates by PUT":        {[]func(*apitest.World){put("team", "30", 201)}, ""},
		"team creates by apply":      {[]func(*apitest.World){func(w *apitest.World) { apply(w, "team") }}, ""},
		"root labels its own":        {[]func(*apitest.World){post("root", ""), patch("root", label)}, "30"},
		"team labels it":             {[]func(*apitest.World){post("root", ""), patch("team", label)}, "30"},
		"team sends it again":        {[]func(*apitest.World){post("root", ""), put("team", "30", 200)}, "30"},
		"team moves its end":         {[]func(*apitest.World){post("root", ""), patch("team", other)}, ""},
		"team replaces it":           {[]func(*apitest.World){post("root", ""), put("team", "40", 200)}, ""},
		"team moves it to prod":      {[]func(*apitest.World){post("root", ""), patch("team", moved)}, ""},
		"team moves it and back":     {[]func(*apitest.World){post("root", ""), patch("team", moved), put("team", "30", 200)}, ""},
		"root moves its end":         {[]func(*apitest.World){post("root", ""), patch("root", other)}, "40"},
		"root corrects a forged one": {[]func(*apitest.World){post("team", ""), patch("root", other)}, "40"},
		"root labels a forged one":   {[]func(*apitest.World){post("team", ""), patch("root", label)}, ""},
		"root reports a forged one":  {[]func(*apitest.World){post("team", ""), put("root", "30", 200)}, "30"},
		"root takes it back":         {[]func(*apitest.World){post("root", ""), patch("root", nogap)}, ""},
		"it waits for a finalizer": {[]func(*apitest.World){post("root", marked), func(w *apitest.World) {
			w.As("root", "DELETE", all+"/gap", "").Must(200)
		}}, "30"},
		"a forged one waits for a finalizer": {[]func(*apitest.World){post("team", marked), func(w *apitest.World) {
			w.As("root", "DELETE", all+"/gap", "").Must(200)
		}}, ""},
		"it is deleted": {[]func(*apitest.World){post("root", ""), func(w *apitest.World) { w.As("root", "DELETE", all+"/gap", "").Must(200) }}, ""},
		"it is created after a deletion": {[]func(*apitest.World){post("root", ""), func(w *apitest.World) {
			w.As("root", "DELETE", all+"/gap", "").Must(200)
		}, post("team", "")}, ""},
		"root only tries": {[]func(*apitest.World){func(w *apitest.World) {
			w.As("root", "POST", all+"?dryRun=All", apitest.GapReport("gap", "30", "")).Must(201)
		}}, ""},
		"the core view": {[]func(*apitest.World){post("root", ""), func(w *apitest.World) {
			ev := w.As("team", "GET", core+"/gap", "").Must(200).Object()
			ev["message"] = "m"
			text, err := json.Marshal(ev)
			if err != nil {
				w.T.Fatal(err)
			}
			w.As("team", "PUT", core+"/gap", string(text)).Must(200)
		}}, "30"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy(), func(c *api.Config) { c.Now = func() time.Time { return apitest.StoryEnd } })
			w.As("root", "POST", all, apitest.NewEvent("ordinary", `"metadata":{"name":"ordinary"}`, `"regarding":{"namespace":"team-a"}`)).Must(201)
			for _, write := range c.writes {
				write(w)
			}
			want := []any{}
			if c.until != "" {
				want = append(want, map[string]any{"from": "2026-03-04T12:20:00Z", "to": "2026-03-04T12:" + c.until + ":00Z", "cluster": "east"})
			}
			for range 2 { // before and after a restart
				apitest.Equal(t, w.As("root", "GET", apitest.QueryPath("facets"), "").Must(200).At("gaps"), any(want))
				w.Stop()
				w.Start()
			}
		})
	}
}

// dropReport is an event that reports what a rule of the cluster east dropped in an hour of the day of queries.
func dropReport(name, rule string, hour, count int) string {
	at := func(hour int) string { return fmt.Sprintf("2026-03-04T%02d:00:00Z", hour) }
	return strings.NewReplacer("MirrorGap", "EventsDropped", "12:30:00.000000", fmt.Sprintf("%02d:59:59.000000", hour),
		`"annotations":{`, fmt.Sprintf(`"annotations":{"mirror.tidings.example/dropped-rule":%q,"mirror.tidings.example/dropped-count":"%d",`, rule, count),
		"2026-03-04T12:20:00Z", at(hour), "2026-03-04T12:30:00Z", at(hour+1)).Replace(apitest.GapReport(name, "30", ""))
}

// TestForgedDropped: what a rule dropped is told as gaps are: of writers who may create in every namespace, and to
// those who may list the namespace. Any number of forged reports changes nothing of that.
func TestForgedDropped(t *testing.T) {
	t.Parallel()
	const all = "/apis/events.k8s.io/v1/namespaces/team-a/events"
	w, _ := apitest.NewPolicyWorld(t, apitest.FullMatrixPolicy(), apitest.WithMCP, func(c *api.Config) { c.Now = func() time.Time { return apitest.StoryEnd } })
	dropped := func(caller, path string) any {
		answer := w.As(caller, "GET", path, "").Must(200)
		if answer.At("partial") != false || len(answer.At("gaps").([]any)) > 0 {
			t.Errorf("partial %v, gaps %v", answer.At("partial"), answer.At("gaps"))
		}
		return answer.Object()["dropped"]
	}
	sum := func(rule, from, to string, count int) any {
		return map[string]any{"from": "2026-03-04T" + from + ":00:00Z", "to": "2026-03-04T" + to + ":00:00Z", "cluster": "east", "rule": rule, "count": float64(count)}
	}
	put := func(caller, name, rule string, hour, count int) {
		if r := w.As(caller, "PUT", all+"/"+name, dropReport(name, rule, hour, count)); r.Code != 200 && r.Code != 201 {
			t.Fatal(r.Code, string(r.Body))
		}
	}
	w.As("root", "POST", all, apitest.NewEvent("ordinary", `"metadata":{"name":"ordinary"}`, `"eventTime":"2026-03-04T08:00:00.000000Z"`, `"regarding":{"namespace":"team-a"}`)).Must(201)
	put("team", "forged", "killing", 12, 5)
	apitest.Equal(t, dropped("root", apitest.QueryPath("facets")), nil)
	put("root", "a", "noise", 12, 5)
	for i := range 300 {
		put("team", fmt.Sprint("forged-", i), "killing", 12, 5)
	}
	for range 2 { // before and after a restart
		apitest.Equal(t, dropped("root", apitest.QueryPath("facets")), any([]any{sum("noise", "12", "13", 5)}))
		w.Stop()
		w.Start()
	}
	put("root", "a", "noise", 12, 7)
	put("root", "b", "noise", 11, 30)
	put("root", "c", "calm", 11, 1)
	put("root", "d", "early", 9, 1)
	want := []any{sum("calm", "11", "12", 1), sum("noise", "11", "13", 37)}
	apitest.Equal(t, dropped("root", apitest.QueryPath("events", "from", "-90m")), any(want))
	apitest.Equal(t, dropped("team", apitest.QueryPath("histogram", "from", "-90m", "namespace", "team-a")), any(want))
	apitest.Equal(t, dropped("root", apitest.QueryPath("facets", "from", "-10m")), any([]any{sum("noise", "12", "13", 7)}))
	apitest.Equal(t, dropped("root", apitest.QueryPath("facets", "from", "-90m", "namespace", "default")), nil)
	text, failed := w.Tool("root", "events_search", `{"from":"-10m"}`)
	if line, _, _ := strings.Cut(text, "\n"); failed || !strings.Contains(line, "; DROPPED by rule noise: 7 in 2026-03-04T12:00:00Z..2026-03-04T13:00:00Z east (not stored); all namespaces; ") {
		t.Error(line)
	}
	w.As("team", "PATCH", all+"/a", `{"metadata":{"labels":{"seen":"yes"}}}`, "Content-Type", "application/merge-patch+json").Must(200)
	apitest.Equal(t, dropped("root", apitest.QueryPath("facets")), any([]any{sum("noise", "12", "13", 7)}))
	put("team", "a", "noise", 12, 8)
	apitest.Equal(t, dropped("root", apitest.QueryPath("facets")), nil)
}
