package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/api"
)

// gapReport is an event that reports a gap of the cluster east, until a minute of the hour of queries. Labels and more
// metadata are members in JSON.
func gapReport(name, minute, metadata string) string {
	return fmt.Sprintf(`{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":%q%s,"labels":{"tidings.example/cluster":"east"},
		"annotations":{"mirror.tidings.example/gap-from":"2026-03-04T12:20:00Z","mirror.tidings.example/gap-to":"2026-03-04T12:%s:00Z"}},
		"eventTime":"2026-03-04T12:30:00.000000Z","reportingController":"tidings.example/mirror","reportingInstance":"i","action":"Do",
		"type":"Warning","reason":"MirrorGap","note":"n","regarding":{"namespace":"team-a"}}`, name, metadata, minute)
}

// TestForgedGaps: a gap is believed if its writer may create in every namespace. A report of anybody else is an ordinary
// event, and none of its fields makes it more.
func TestForgedGaps(t *testing.T) {
	t.Parallel()
	const (
		all, core = "/apis/events.k8s.io/v1/namespaces/team-a/events", "/api/v1/namespaces/team-a/events"
		merge     = "application/merge-patch+json"
	)
	apply := func(w *world, caller string) { // that creates
		w.as(caller, "PATCH", all+"/gap?fieldManager=m", gapReport("gap", "30", ""), "Content-Type", "application/apply-patch+yaml").must(201)
	}
	post := func(caller, metadata string) func(*world) {
		return func(w *world) { w.as(caller, "POST", all, gapReport("gap", "30", metadata)).must(201) }
	}
	put := func(caller, minute string, code int) func(*world) {
		return func(w *world) { w.as(caller, "PUT", all+"/gap", gapReport("gap", minute, "")).must(code) }
	}
	patch := func(caller, body string) func(*world) {
		return func(w *world) { w.as(caller, "PATCH", all+"/gap", body, "Content-Type", merge).must(200) }
	}
	const (
		label  = `{"metadata":{"labels":{"seen":"yes"}}}`
		other  = `{"metadata":{"annotations":{"mirror.tidings.example/gap-to":"2026-03-04T12:40:00Z"}}}`
		moved  = `{"metadata":{"labels":{"tidings.example/cluster":"prod"}}}`
		nogap  = `{"metadata":{"annotations":{"mirror.tidings.example/gap-to":null}}}`
		marked = `,"finalizers":["example.com/f"]`
	)
	for name, c := range map[string]struct {
		writes []func(*world)
		until  string // minute of the gap that is believed; "": none is
	}{
		"root creates":               {[]func(*world){post("root", "")}, "30"},
		"a scope creates":            {[]func(*world){post("any+events:admin", "")}, "30"},
		"root creates by PUT":        {[]func(*world){put("root", "30", 201)}, "30"},
		"root creates by apply":      {[]func(*world){func(w *world) { apply(w, "root") }}, "30"},
		"team creates":               {[]func(*world){post("team", "")}, ""},
		"team creates by PUT":        {[]func(*world){put("team", "30", 201)}, ""},
		"team creates by apply":      {[]func(*world){func(w *world) { apply(w, "team") }}, ""},
		"root labels its own":        {[]func(*world){post("root", ""), patch("root", label)}, "30"},
		"team labels it":             {[]func(*world){post("root", ""), patch("team", label)}, "30"},
		"team sends it again":        {[]func(*world){post("root", ""), put("team", "30", 200)}, "30"},
		"team moves its end":         {[]func(*world){post("root", ""), patch("team", other)}, ""},
		"team replaces it":           {[]func(*world){post("root", ""), put("team", "40", 200)}, ""},
		"team moves it to prod":      {[]func(*world){post("root", ""), patch("team", moved)}, ""},
		"team moves it and back":     {[]func(*world){post("root", ""), patch("team", moved), put("team", "30", 200)}, ""},
		"root moves its end":         {[]func(*world){post("root", ""), patch("root", other)}, "40"},
		"root corrects a forged one": {[]func(*world){post("team", ""), patch("root", other)}, "40"},
		"root labels a forged one":   {[]func(*world){post("team", ""), patch("root", label)}, ""},
		"root reports a forged one":  {[]func(*world){post("team", ""), put("root", "30", 200)}, "30"},
		"root takes it back":         {[]func(*world){post("root", ""), patch("root", nogap)}, ""},
		"it waits for a finalizer": {[]func(*world){post("root", marked), func(w *world) {
			w.as("root", "DELETE", all+"/gap", "").must(200)
		}}, "30"},
		"a forged one waits for a finalizer": {[]func(*world){post("team", marked), func(w *world) {
			w.as("root", "DELETE", all+"/gap", "").must(200)
		}}, ""},
		"it is deleted": {[]func(*world){post("root", ""), func(w *world) { w.as("root", "DELETE", all+"/gap", "").must(200) }}, ""},
		"it is created after a deletion": {[]func(*world){post("root", ""), func(w *world) {
			w.as("root", "DELETE", all+"/gap", "").must(200)
		}, post("team", "")}, ""},
		"root only tries": {[]func(*world){func(w *world) { w.as("root", "POST", all+"?dryRun=All", gapReport("gap", "30", "")).must(201) }}, ""},
		"the core view": {[]func(*world){post("root", ""), func(w *world) {
			ev := w.as("team", "GET", core+"/gap", "").must(200).object()
			ev["message"] = "m"
			text, err := json.Marshal(ev)
			if err != nil {
				w.t.Fatal(err)
			}
			w.as("team", "PUT", core+"/gap", string(text)).must(200)
		}}, "30"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newPolicyWorld(t, fullMatrixPolicy(), func(c *api.Config) { c.Now = func() time.Time { return storyEnd } })
			w.as("root", "POST", all, newEvent("ordinary", `"metadata":{"name":"ordinary"}`, `"regarding":{"namespace":"team-a"}`)).must(201)
			for _, write := range c.writes {
				write(w)
			}
			want := []any{}
			if c.until != "" {
				want = append(want, map[string]any{"from": "2026-03-04T12:20:00Z", "to": "2026-03-04T12:" + c.until + ":00Z", "cluster": "east"})
			}
			for range 2 { // before and after a restart
				equal(t, w.as("root", "GET", queryPath("facets"), "").must(200).at("gaps"), any(want))
				w.stop()
				w.start()
			}
		})
	}
}

// dropReport is an event that reports what a rule of the cluster east dropped in an hour of the day of queries.
func dropReport(name, rule string, hour, count int) string {
	at := func(hour int) string { return fmt.Sprintf("2026-03-04T%02d:00:00Z", hour) }
	return strings.NewReplacer("MirrorGap", "EventsDropped", "12:30:00.000000", fmt.Sprintf("%02d:59:59.000000", hour),
		`"annotations":{`, fmt.Sprintf(`"annotations":{"mirror.tidings.example/dropped-rule":%q,"mirror.tidings.example/dropped-count":"%d",`, rule, count),
		"2026-03-04T12:20:00Z", at(hour), "2026-03-04T12:30:00Z", at(hour+1)).Replace(gapReport(name, "30", ""))
}

// TestForgedDropped: what a rule dropped is told as gaps are: of writers who may create in every namespace, and to those who may
// list the namespace. Any number of forged reports changes nothing of that.
func TestForgedDropped(t *testing.T) {
	t.Parallel()
	const all = "/apis/events.k8s.io/v1/namespaces/team-a/events"
	w, _ := newPolicyWorld(t, fullMatrixPolicy(), withMCP, func(c *api.Config) { c.Now = func() time.Time { return storyEnd } })
	dropped := func(caller, path string) any {
		answer := w.as(caller, "GET", path, "").must(200)
		if answer.at("partial") != false || len(answer.at("gaps").([]any)) > 0 {
			t.Errorf("partial %v, gaps %v", answer.at("partial"), answer.at("gaps"))
		}
		return answer.object()["dropped"]
	}
	sum := func(rule, from, to string, count int) any {
		return map[string]any{"from": "2026-03-04T" + from + ":00:00Z", "to": "2026-03-04T" + to + ":00:00Z", "cluster": "east", "rule": rule, "count": float64(count)}
	}
	put := func(caller, name, rule string, hour, count int) {
		if r := w.as(caller, "PUT", all+"/"+name, dropReport(name, rule, hour, count)); r.code != 200 && r.code != 201 {
			t.Fatal(r.code, string(r.body))
		}
	}
	w.as("root", "POST", all, newEvent("ordinary", `"metadata":{"name":"ordinary"}`, `"eventTime":"2026-03-04T08:00:00.000000Z"`, `"regarding":{"namespace":"team-a"}`)).must(201)
	put("team", "forged", "killing", 12, 5)
	equal(t, dropped("root", queryPath("facets")), nil)
	put("root", "a", "noise", 12, 5)
	for i := range 300 {
		put("team", fmt.Sprint("forged-", i), "killing", 12, 5)
	}
	for range 2 { // before and after a restart
		equal(t, dropped("root", queryPath("facets")), any([]any{sum("noise", "12", "13", 5)}))
		w.stop()
		w.start()
	}
	put("root", "a", "noise", 12, 7)
	put("root", "b", "noise", 11, 30)
	put("root", "c", "calm", 11, 1)
	put("root", "d", "early", 9, 1)
	want := []any{sum("calm", "11", "12", 1), sum("noise", "11", "13", 37)}
	equal(t, dropped("root", queryPath("events", "from", "-90m")), any(want))
	equal(t, dropped("team", queryPath("histogram", "from", "-90m", "namespace", "team-a")), any(want))
	equal(t, dropped("root", queryPath("facets", "from", "-10m")), any([]any{sum("noise", "12", "13", 7)}))
	equal(t, dropped("root", queryPath("facets", "from", "-90m", "namespace", "default")), nil)
	text, failed := w.tool("root", "events_search", `{"from":"-10m"}`)
	if line, _, _ := strings.Cut(text, "\n"); failed || !strings.Contains(line, "; DROPPED by rule noise: 7 in 2026-03-04T12:00:00Z..2026-03-04T13:00:00Z east (not stored); all namespaces; ") {
		t.Error(line)
	}
	w.as("team", "PATCH", all+"/a", `{"metadata":{"labels":{"seen":"yes"}}}`, "Content-Type", "application/merge-patch+json").must(200)
	equal(t, dropped("root", queryPath("facets")), any([]any{sum("noise", "12", "13", 7)}))
	put("team", "a", "noise", 12, 8)
	equal(t, dropped("root", queryPath("facets")), nil)
}

// TestMCPGaps: the first line of each tool has the gaps in its range that the caller may know of, and counts those beyond five.
func TestMCPGaps(t *testing.T) {
	t.Parallel()
	w, _ := newPolicyWorld(t, fullMatrixPolicy(), withMCP, func(c *api.Config) { c.Now = func() time.Time { return storyEnd } })
	report := func(name, minute string) {
		w.as("root", "POST", "/apis/events.k8s.io/v1/namespaces/team-a/events", gapReport(name, minute, "")).must(201)
	}
	head := func(caller, tool, arguments string) string {
		text, failed := w.tool(caller, tool, arguments)
		line, _, _ := strings.Cut(text, "\n")
		if failed || !strings.HasPrefix(line, "range ") {
			t.Errorf("%s: %s", tool, text)
		}
		return line
	}
	const said = "; GAP 2026-03-04T12:20:00Z..2026-03-04T12:30:00Z east (events may be missing); "
	report("gap", "30")
	for _, tool := range mcpTools {
		arguments := `{"from":"-1h"}`
		if tool == "events_object" {
			arguments = `{"from":"-1h","uid":"none"}`
		}
		if line := head("root", tool, arguments); !strings.Contains(line, said) || strings.Contains(line, "no known gaps") {
			t.Errorf("%s: %s", tool, line)
		}
	}
	if line := head("team", "events_search", "{}"); !strings.Contains(line, said+"you may list: ") {
		t.Error(line)
	}
	if line := head("root", "events_search", `{"from":"-10m"}`); !strings.Contains(line, "; no known gaps; ") {
		t.Errorf("another range: %s", line)
	}
	elsewhere := strings.NewReplacer("team-a", "default", "east", "west").Replace(gapReport("gap", "30", ""))
	w.as("root", "POST", "/apis/events.k8s.io/v1/namespaces/default/events", elsewhere).must(201)
	for caller, knows := range map[string]bool{"root": true, "team": false} {
		if line := head(caller, "events_search", "{}"); strings.Contains(line, " west ") != knows || !strings.Contains(line, " east ") {
			t.Errorf("a gap of a namespace that %s may list: %v: %s", caller, knows, line)
		}
	}
	for i := range 5 {
		report(fmt.Sprint("gap-", i), fmt.Sprint(40+i))
	}
	line := head("root", "events_search", "{}")
	if strings.Count(line, "; GAP ") != 5 || !strings.Contains(line, "and 2 GAPS more, the last until 2026-03-04T12:44:00Z; all namespaces; ") {
		t.Error(line)
	}
}
