package ctl

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/cli"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: run with -update if this is right (-want +got)\n%s", name, diff)
	}
}

// stub answers each path with a text, another one if a table is asked for, and keeps the parameters it was asked with.
type stub struct {
	*httptest.Server
	mu    sync.Mutex
	asked []url.Values
}

func newStub(t *testing.T, answers, tables map[string]string) *stub {
	t.Helper()
	s := &stub{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.Query())
		s.mu.Unlock()
		name := strings.TrimPrefix(r.URL.Path, "/query/v1/") + r.URL.Query().Get("continue")
		text, ok := answers[name]
		if r.Header.Get("Accept") == mediaTable {
			text, ok = tables[name]
		}
		switch {
		case !ok:
			http.NotFound(w, r)
		case strings.HasPrefix(text, "{\"kind\":\"Status\""):
			var status struct{ Code int }
			_ = json.Unmarshal([]byte(text), &status)
			w.WriteHeader(status.Code)
			fallthrough
		default:
			_, _ = w.Write([]byte(text))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// ask runs the command with flags as the program does.
func (s *stub) ask(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var commands struct {
		Query queryCmd `cmd:""`
	}
	var out bytes.Buffer
	if _, err = cli.Parse("eventsvc", "CTLTEST", "", &commands, append([]string{"query", "--server=" + s.URL}, args...), &out, file); err == nil {
		err = commands.Query.Run(t.Context(), IO{Out: &out, Err: file})
	}
	said, readErr := os.ReadFile(file.Name())
	if readErr != nil {
		t.Fatal(readErr)
	}
	return out.String(), string(said), err
}

const head = `"range":{"from":"2026-11-20T10:00:00Z","to":"2026-11-20T16:00:00Z"},"revision":"77","historyFrom":"2026-11-01T00:00:00Z","permalink":"/x",`

// answers are those of a small cluster with an incident.
var answers = map[string]string{
	"events": `{` + head + `"gaps":[],"partial":false,"continue":"2","items":[
		{"metadata":{"name":"web-0.1","namespace":"shop","resourceVersion":"70","labels":{"tidings.example/cluster":"a"}},"type":"Warning","reason":"BackOff",
		 "regarding":{"kind":"Pod","name":"web-0","namespace":"shop","uid":"u-1"},"note":"Back-off restarting\nfailed \u001b[31mcontainer, with a note that is too long for a line of eighty columns",
		 "eventTime":"2026-11-20T15:00:00.000001Z","series":{"count":7,"lastObservedTime":"2026-11-20T15:59:01.000002Z"},"reportingController":"kubelet"},
		{"metadata":{"name":"web-1.1","namespace":"shop","resourceVersion":"69"},"type":"Normal","reason":"Pulled",
		 "regarding":{"kind":"Pod","name":"web-1","namespace":"shop"},"deprecatedLastTimestamp":"2026-11-20T15:30:00Z","deprecatedSource":{"component":"kubelet"}}]}`,
	"events2": `{` + head + `"gaps":[],"partial":true,"partialReason":"the rest would take too long","items":[
		{"metadata":{"name":"=1+1","namespace":"mail","resourceVersion":"5"},"type":"Normal","reason":"界","regarding":{"kind":"Job"},"eventTime":"2026-11-20T10:00:01.000000Z","note":"a, \"b\""}]}`,
	"groups": `{` + head + `"gaps":[],"partial":false,"counted":"occurrences","groups":[
		{"by":{"reason":"BackOff","object":{"kind":"Pod","namespace":"shop","name":"web-0","uid":"u-1"}},"count":9223372036854775807,
		 "first":"2026-11-20T10:00:00Z","last":"2026-11-20T15:59:01Z","every":10,"state":"ongoing","events":"/query/v1/events?x","sample":{"metadata":{"name":"e"},"note":"Back-off"}},
		{"by":{"reason":"","object":{"kind":"","namespace":"","name":"","uid":""}},"count":1,"first":"2026-11-20T10:00:00Z","last":"2026-11-20T10:00:00Z","state":"once","events":""}]}`,
	"facets": `{` + head + `"gaps":[{"from":"2026-11-20T11:00:00Z","to":"2026-11-20T11:30:30Z","cluster":"a"}],"dropped":[{"from":"2026-11-20T10:00:00Z","to":"2026-11-20T12:00:00Z","cluster":"a","rule":"noise","count":1200},{"from":"2026-11-20T10:00:00Z","to":"2026-11-20T12:00:00Z","cluster":"","rule":"calm","count":1}],"namespaces":["shop","mail"],"partial":false,"total":1000,
		"facets":{"type":[{"value":"Warning","count":700},{"value":"Normal","count":300}],"reason":[{"value":"BackOff","count":600}],"cluster":[{"value":"","count":1000}],"new":[{"value":"x","count":1}]},
		"other":{"type":0,"reason":400,"cluster":0}}`,
	"histogram": `{` + head + `"gaps":[{"from":"2026-11-20T11:20:00Z","to":"2026-11-20T11:40:00Z","cluster":"a"}],"partial":false,"step":"10m","by":["type"],"total":151,"buckets":[
		{"start":"2026-11-20T10:00:00Z","count":40,"counts":{"Warning":10,"Normal":30}},
		{"start":"2026-11-20T10:10:00Z","count":1,"counts":{"Normal":1}},
		{"start":"2026-11-20T10:40:00Z","count":100,"counts":{"Warning":99,"Normal":1}},
		{"start":"2026-11-20T11:50:00Z","count":10,"counts":{"Normal":4,"":3,"Odd":1,"Odder":1},"other":1}]}`,
	"changes": `{` + head + `"gaps":[],"scope":"shop; and elsewhere what names it","partial":false,
		"verdict":{"text":"BackOff of Pod web-* in shop: 120 times since 2026-11-20T15:31:00Z, goes on.","state":"ongoing"},"changes":[
		{"by":{"namespace":"shop","kind":"Pod","reason":"BackOff","type":"Warning"},"object":"web-*","kind":"new","now":120,"before":0,"score":512.5,"first":"2026-11-20T15:31:00Z","last":"2026-11-20T15:59:50Z","every":10,"state":"ongoing","why":"never seen before in shop","statistics":"evidence 12","events":"/query/v1/events?x","sample":{"metadata":{"name":"e"},"note":"Back-off"}},
		{"by":{"reason":"Pulled"},"namespaces":["shop","mail"],"kind":"more","now":12,"before":2.45,"score":7,"state":"over","why":"5 times as often","statistics":"evidence 3","events":""}]}`,
	"object": `{` + head + `"gaps":[],"partial":false,"items":[
		{"time":"2026-11-20T15:00:00.000001Z","revision":"60","count":1,"event":{"metadata":{"name":"web-0.1","namespace":"shop","resourceVersion":"60"},"type":"Warning","reason":"BackOff","regarding":{"kind":"Pod","name":"web-0"},"note":"Back-off"}},
		{"time":"2026-11-20T15:59:00Z","revision":"61","count":1,"deleted":true,"event":{"metadata":{"name":"web-0.1","namespace":"shop","resourceVersion":"60"},"type":"Warning","reason":"BackOff","regarding":{"kind":"Pod","name":"web-0"},"note":"Back-off"}}]}`,
	"deleted": `{` + head + `"gaps":[],"partial":false,"total":2,"items":[
		{"time":"2026-11-20T15:59:00Z","revision":"61","by":{"user":"ann","client":"console","audit":"id-1"},"event":{"metadata":{"name":"web-0.1","namespace":"shop","resourceVersion":"61"},"type":"Warning","reason":"BackOff","regarding":{"kind":"Pod","name":"web-0"},"note":"Back-off"}},
		{"time":"2026-11-20T15:59:00Z","revision":"62","by":{"audit":"=\u001b[31m"},"event":{"metadata":{"name":"web-0.2","namespace":"shop","resourceVersion":"62"},"type":"Normal","reason":"Pulled","regarding":{"kind":"Pod","name":"web-0"}}}]}`,
	"clusters": `{` + head + `"gaps":[],"late":[{"from":"2026-11-20T14:00:00Z","to":"2026-11-20T16:00:00Z","cluster":"=w\u001b[31m"}],"partial":false,"items":[
		{"name":"east","completeUntil":"2026-11-20T15:59:30Z","lag":30,"every":10,"late":false,"lastEvent":"2026-11-20T15:59:01Z","gaps":0,"mirror":"v1.2.0"},
		{"name":"=w\u001b[31m","completeUntil":"2026-11-20T14:00:00Z","lag":7200,"late":true,"gaps":2}]}`,
}

// tables are the same answers as tables.
var tables = map[string]string{
	"events": `{` + head + `"gaps":[],"partial":false,"continue":"2","columns":["observed", "type", "reason", "kind", "object_namespace", "object", "uid", "note", "count", "namespace", "name", "reporter", "cluster", "owner", "node", "revision"],"rows":[
		["2026-11-20T15:59:01.000002Z", "Warning", "BackOff", "Pod", "shop", "web-0", "u-1", "Back-off restarting\nfailed \u001b[31mcontainer, with a note that is too long for a line of eighty columns", "7", "shop", "web-0.1", "kubelet", "a", "", "", "70"],
		["2026-11-20T15:30:00Z", "Normal", "Pulled", "Pod", "shop", "web-1", "", "", "1", "shop", "web-1.1", "kubelet", "", "", "", "69"]]}`,
	"events2": `{` + head + `"gaps":[],"partial":true,"partialReason":"the rest would take too long","columns":["observed", "type", "reason", "kind", "object_namespace", "object", "uid", "note", "count", "namespace", "name", "reporter", "cluster", "owner", "node", "revision"],"rows":[
		["2026-11-20T10:00:01Z", "Normal", "界", "Job", "", "", "", "a, \"b\"", "1", "mail", "=1+1", "", "", "", "", "5"]]}`,
	"groups": `{` + head + `"gaps":[],"partial":false,"columns":["reason", "object_kind", "object_namespace", "object_name", "object_uid", "count", "first", "last", "state", "events", "note"],"rows":[
		["BackOff", "Pod", "shop", "web-0", "u-1", "9223372036854775807", "2026-11-20T10:00:00Z", "2026-11-20T15:59:01Z", "ongoing", "/query/v1/events?x", "Back-off"],
		["", "", "", "", "", "1", "2026-11-20T10:00:00Z", "2026-11-20T10:00:00Z", "once", "", ""]]}`,
	"facets": `{` + head + `"gaps":[{"from":"2026-11-20T11:00:00Z","to":"2026-11-20T11:30:30Z","cluster":"a"}],"dropped":[{"from":"2026-11-20T10:00:00Z","to":"2026-11-20T12:00:00Z","cluster":"a","rule":"noise","count":1200},{"from":"2026-11-20T10:00:00Z","to":"2026-11-20T12:00:00Z","cluster":"","rule":"calm","count":1}],"namespaces":["shop","mail"],"partial":false,"columns":["dimension", "value", "count", "other"],"rows":[
		["type", "Warning", "700", "false"],
		["type", "Normal", "300", "false"],
		["reason", "BackOff", "600", "false"],
		["reason", "", "400", "true"],
		["cluster", "", "1000", "false"],
		["new", "x", "1", "false"]]}`,
	"histogram": `{` + head + `"gaps":[{"from":"2026-11-20T11:20:00Z","to":"2026-11-20T11:40:00Z","cluster":"a"}],"partial":false,"columns":["start", "type", "count", "other"],"rows":[
		["2026-11-20T10:00:00Z", "Normal", "30", "false"],
		["2026-11-20T10:00:00Z", "Warning", "10", "false"],
		["2026-11-20T10:10:00Z", "Normal", "1", "false"],
		["2026-11-20T10:40:00Z", "Warning", "99", "false"],
		["2026-11-20T10:40:00Z", "Normal", "1", "false"],
		["2026-11-20T11:50:00Z", "Normal", "4", "false"],
		["2026-11-20T11:50:00Z", "", "3", "false"],
		["2026-11-20T11:50:00Z", "Odd", "1", "false"],
		["2026-11-20T11:50:00Z", "Odder", "1", "false"],
		["2026-11-20T11:50:00Z", "", "1", "true"]]}`,
	"changes": `{` + head + `"gaps":[],"scope":"shop; and elsewhere what names it","partial":false,"verdict":{"text":"BackOff of Pod web-* in shop: 120 times since 2026-11-20T15:31:00Z, goes on.","state":"ongoing"},"columns":["change", "type", "reason", "kind", "namespace", "reporter", "cluster", "owner", "node", "object", "now", "before", "score", "first", "last", "state", "why", "statistics", "events", "namespaces", "note"],"rows":[
		["new", "Warning", "BackOff", "Pod", "shop", "", "", "", "", "web-*", "120", "0", "512.5", "2026-11-20T15:31:00Z", "2026-11-20T15:59:50Z", "ongoing", "never seen before in shop", "evidence 12", "/query/v1/events?x", "", "Back-off"],
		["more", "", "Pulled", "", "", "", "", "", "", "", "12", "2.45", "7", "", "", "over", "5 times as often", "evidence 3", "", "shop mail", ""]]}`,
	"object": `{` + head + `"gaps":[],"partial":false,"columns":["observed", "type", "reason", "kind", "object_namespace", "object", "uid", "note", "count", "namespace", "name", "reporter", "cluster", "owner", "node", "revision", "deleted"],"rows":[
		["2026-11-20T15:00:00.000001Z", "Warning", "BackOff", "Pod", "", "web-0", "", "Back-off", "1", "shop", "web-0.1", "", "", "", "", "60", "false"],
		["2026-11-20T15:59:00Z", "Warning", "BackOff", "Pod", "", "web-0", "", "Back-off", "1", "shop", "web-0.1", "", "", "", "", "60", "true"]]}`,
	"deleted": `{` + head + `"gaps":[],"partial":false,"columns":["deleted", "type", "reason", "kind", "object_namespace", "object", "uid", "note", "count", "namespace", "name", "reporter", "cluster", "owner", "node", "revision", "user", "client", "audit"],"rows":[
		["2026-11-20T15:59:00Z", "Warning", "BackOff", "Pod", "", "web-0", "", "Back-off", "1", "shop", "web-0.1", "", "", "", "", "61", "ann", "console", "id-1"],
		["2026-11-20T15:59:00Z", "Normal", "Pulled", "Pod", "", "web-0", "", "", "1", "shop", "web-0.2", "", "", "", "", "62", "", "", "=\u001b[31m"]]}`,
	"clusters": `{` + head + `"gaps":[],"late":[{"from":"2026-11-20T14:00:00Z","to":"2026-11-20T16:00:00Z","cluster":"=w\u001b[31m"}],"partial":false,"columns":["name", "completeUntil", "lag", "every", "late", "lastEvent", "gaps", "mirror"],"rows":[
		["east", "2026-11-20T15:59:30Z", "30", "10", "false", "2026-11-20T15:59:01Z", "0", "v1.2.0"],
		["=w\u001b[31m", "2026-11-20T14:00:00Z", "7200", "0", "true", "", "2", ""]]}`,
}

// empty are answers without a row.
var empty = map[string]string{
	"events": `{` + head + `"gaps":[],"partial":false,"items":[]}`, "groups": `{` + head + `"gaps":[],"partial":false,"groups":[]}`,
	"facets":    `{` + head + `"gaps":[],"partial":false,"facets":{"type":[]},"other":{"type":0},"total":0}`,
	"histogram": `{` + head + `"gaps":[],"partial":false,"step":"5m","buckets":[],"total":0}`,
	"changes":   `{` + head + `"gaps":[],"partial":false,"verdict":{"text":"Nothing differs.","state":"usual"},"changes":[]}`, "object": `{` + head + `"gaps":[],"partial":false,"items":[]}`,
	"clusters": `{` + head + `"gaps":[],"late":[{"from":"2026-11-20T14:00:00Z","to":"2026-11-20T16:00:00Z","cluster":"=w\u001b[31m"}],"partial":false,"items":[]}`, "deleted": `{` + head + `"gaps":[],"partial":false,"items":[]}`,
}

// emptyTables are tables without a row.
var emptyTables = map[string]string{
	"events":    `{` + head + `"gaps":[],"partial":false,"columns":["observed", "type", "reason", "kind", "object_namespace", "object", "uid", "note", "count", "namespace", "name", "reporter", "cluster", "owner", "node", "revision"],"rows":[]}`,
	"groups":    `{` + head + `"gaps":[],"partial":false,"columns":["reason", "object_kind", "object_namespace", "object_name", "object_uid", "count", "first", "last", "state", "events", "note"],"rows":[]}`,
	"facets":    `{` + head + `"gaps":[],"partial":false,"columns":["dimension", "value", "count", "other"],"rows":[]}`,
	"histogram": `{` + head + `"gaps":[],"partial":false,"columns":["start", "type", "count", "other"],"rows":[]}`,
	"changes":   `{` + head + `"gaps":[],"partial":false,"verdict":{"text":"Nothing differs.","state":"usual"},"columns":["change", "type", "reason", "kind", "namespace", "reporter", "cluster", "owner", "node", "object", "now", "before", "score", "first", "last", "state", "why", "statistics", "events", "namespaces", "note"],"rows":[]}`,
	"object":    `{` + head + `"gaps":[],"partial":false,"columns":["observed", "type", "reason", "kind", "object_namespace", "object", "uid", "note", "count", "namespace", "name", "reporter", "cluster", "owner", "node", "revision", "deleted"],"rows":[]}`,
	"deleted":   `{` + head + `"gaps":[],"partial":false,"columns":["deleted", "type", "reason", "kind", "object_namespace", "object", "uid", "note", "count", "namespace", "name", "reporter", "cluster", "owner", "node", "revision", "user", "client", "audit"],"rows":[]}`,
	"clusters":  `{` + head + `"gaps":[],"partial":false,"columns":["name", "completeUntil", "lag", "every", "late", "lastEvent", "gaps", "mirror"],"rows":[]}`,
}

// TestQueryOutput has each form of each answer.
func TestQueryOutput(t *testing.T) {
	t.Setenv("TZ", "UTC")
	full, none := newStub(t, answers, tables), newStub(t, empty, emptyTables)
	for name, args := range map[string][]string{
		"events": nil, "groups": {"--group-by=reason,object"}, "facets": {"--facets"}, "histogram": {"--histogram"}, "changes": {"--changes"}, "object": {"--object=Pod/web-0"},
		"clusters": {"--clusters"}, "deleted": {"--deleted"},
	} {
		for _, form := range []string{"table", "wide", "json", "csv"} {
			for file, s := range map[string]*stub{name: full, name + "-empty": none} {
				stdout, stderr, err := s.ask(t, append(args, "-o", form)...)
				if err != nil {
					t.Errorf("%s as %s: %v", file, form, err)
				}
				golden(t, file+"."+form, []byte(stdout+"\n--- standard error\n"+stderr))
			}
		}
	}
}

// TestQueryFormulas: a spreadsheet takes no cell of CSV for a formula, if that is asked for.
func TestQueryFormulas(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil, map[string]string{"facets": `{` + head + `"gaps":[],"partial":false,"columns":["dimension","value","count","other"],"rows":[["reason","=1+1","2","false"]]}`})
	for flag, want := range map[string]string{"--limit=5": "reason,=1+1,2", "--escape-formulas": "reason,'=1+1,2"} {
		stdout, stderr, err := s.ask(t, "--facets", "--output=csv", flag)
		if err != nil || !strings.Contains(stdout, want) {
			t.Errorf("%s: %q lacks %q; %v %s", flag, stdout, want, err, stderr)
		}
	}
}

// TestQueryPages reads pages up to the limit.
func TestQueryPages(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		limits  string // of the requests
		rows    int
		notices []string
	}{
		"":            {"100 98", 3, []string{"not complete: the rest would take too long"}},
		"--limit=0":   {"500 500", 3, []string{"not complete"}},
		"--limit=2":   {"2", 2, []string{"there are more than these 2"}},
		"--limit=700": {"500 500", 3, []string{"not complete"}},
	} {
		s := newStub(t, answers, tables)
		stdout, stderr, err := s.ask(t, append(strings.Fields(args), "-o", "json")...)
		var got struct {
			Items    []json.RawMessage
			Partial  bool
			Continue string
		}
		if err != nil || json.Unmarshal([]byte(stdout), &got) != nil || len(got.Items) != want.rows {
			t.Errorf("%s: %v, %d rows", args, err, len(got.Items))
		}
		var limits []string
		for _, q := range s.asked {
			limits = append(limits, q.Get("limit"))
		}
		if got := strings.Join(limits, " "); got != want.limits {
			t.Errorf("%s: pages of %s, not %s", args, got, want.limits)
		}
		for _, notice := range want.notices {
			if !strings.Contains(stderr, notice) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s: %q is not the only line of %q", args, notice, stderr)
			}
		}
		if got.Partial == (got.Continue != "") {
			t.Errorf("%s: partial %t, continue %q", args, got.Partial, got.Continue)
		}
	}
}

// TestQueryParameters checks what is asked for each form of the command line.
func TestQueryParameters(t *testing.T) {
	t.Setenv("TZ", "UTC")
	for args, want := range map[string]string{
		"":                                                  "limit=100",
		"--since|6h|reason=BackOff|back-off":                "from=-21600s&limit=100&search=reason=BackOff back-off",
		"--since=7d|-n|shop,mail":                           "from=-604800s&limit=100&namespace=shop&namespace=mail",
		"no space left|on|\"a b\" c":                        `limit=100&search="no space left" on ("a b" c)`,
		"kind==Pod|name!=web-0|uid=u|cluster=":              "limit=100&search=kind==Pod name!=web-0 uid=u cluster=",
		"namespace=a,b|namespace!=c":                        "limit=100&search=namespace=a,b namespace!=c",
		"type:warning a OR kind:pod":                        "limit=100&search=(type:warning a OR kind:pod)",
		"namespace=team-*|name=web-*|name!=*-0|name=*-x":    "limit=100&search=namespace=team-* name=web-* name!=*-0 name=*-x",
		"label:app=web|label:tier!=test|-l|x":               "labelSelector=x&limit=100&search=label:app=web label:tier!=test",
		"reason=a,b|--field-selector=type=Warning":          "fieldSelector=type=Warning&limit=100&search=reason=a,b",
		"--from|2026-11-20 14:05|--to=2026-11-20T14:05:06":  "from=2026-11-20T14:05:00Z&limit=100&to=2026-11-20T14:05:06Z",
		"--from=-2h|--to=now":                               "from=-2h&limit=100&to=now",
		"--histogram|--step=1h30m":                          "by=type&step=5400s",
		"--histogram|--by=kind,reason":                      "by=kind,reason",
		"--facets|--by=reason":                              "by=reason",
		"--facets|--limit=0":                                "limit=1000",
		"--facets|--limit=7":                                "limit=7",
		"--group-by=reason,object|--order=newest|--limit=5": "by=reason,object&limit=5&order=newest",
		"--object=Pod/web-0|-n|shop":                        "kind=Pod&limit=100&name=web-0&namespace=shop",
		"--object=u-1":                                      "limit=100&uid=u-1",
		"--changes|--at=2026-11-20 14:05|--window=2d":       "at=2026-11-20T14:05:00Z&window=172800s",
		"--changes|--object=Pod/web-0|--limit=3":            "kind=Pod&limit=3&name=web-0",
		"--changes|type:warning|ns:shop":                    "search=type:warning ns:shop",
		"--deleted|--since=2h|-n|shop|-l|app=web":           "from=-7200s&labelSelector=app=web&limit=500&namespace=shop",
		"--clusters|--since=24h|-n|shop":                    "from=-86400s&namespace=shop",
	} {
		s := newStub(t, empty, emptyTables)
		var list []string
		if args != "" {
			list = strings.Split(args, "|")
		}
		if _, _, err := s.ask(t, list...); err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if got, err := url.QueryUnescape(s.asked[0].Encode()); err != nil || got != want {
			t.Errorf("%s asks for\n%s, not\n%s", args, got, want)
		}
	}
}

// TestQueryMistakes: what cannot be meant is a usage error that names the setting and what would be right.
func TestQueryMistakes(t *testing.T) {
	t.Parallel()
	s := newStub(t, empty, emptyTables)
	for args, want := range map[string]string{
		`"open`:                             "at character 1: the quotation mark has no second one",
		"a OR":                              "at character 6: OR has nothing behind it",
		"reason=a|reason=b":                 "an event has one reason",
		"label:=":                           "label:key=value",
		"label:":                            "label:key=value",
		"--deleted|--order=newest":          "--order has no effect with --deleted",
		"--deleted|reason=a":                "--deleted takes no terms",
		"--facets|--histogram":              "--facets and --histogram exclude each other",
		"--group-by=type|--changes":         "--group-by and --changes exclude each other",
		"--since=1h|--from=-2h":             "--since and --from",
		"--since=-1h":                       "--since -1h0m0s",
		"--since=soon":                      "such as 90s, 1h30m, 30d or 2w",
		"--since=7":                         "--since",
		"--changes|--since=1h":              "set --at and --window",
		"--at=now":                          "without --changes",
		"--window=1h|--histogram":           "without --changes",
		"--step=1h":                         "without --histogram",
		"--by=type":                         "--group-by",
		"--escape-formulas|-o|json":         "--escape-formulas has no effect without --output csv",
		"--order=newest|--facets":           "--order has no effect with --facets",
		"--limit=-1":                        "--limit -1",
		"--limit=3|--histogram":             "--step",
		"--limit=3|--clusters":              "all are shown",
		"--clusters|reason=a":               "leave out terms and selectors",
		"--clusters|--changes":              "exclude each other",
		"-ns:dev":                           "write -- before a term that begins with -",
		"-notready":                         "-notready is -n otready: write that, or write -- before a term that begins with -",
		"-n=shop":                           "-n=shop is -n shop: write that",
		"--limit=many":                      "--limit",
		"--object=Pod/web-0|reason=BackOff": "leave out terms",
		"--changes|--field-selector=a=b":    "--namespace says where",
		"--from=2026-13-20 14:05":           "--from",
		"-l|a=b=c":                          "--selector",
		"-o|xml":                            "--output",
		"--context=x":                       "--kubeconfig",
	} {
		_, stderr, err := s.ask(t, strings.Split(args, "|")...)
		if cli.ExitCode(err) != 2 || !strings.Contains(fmt.Sprint(err)+stderr, want) {
			t.Errorf("%s: exit code %d of %v", args, cli.ExitCode(err), err)
		}
	}
	if len(s.asked) > 0 {
		t.Errorf("%d requests were sent", len(s.asked))
	}
}

// TestQueryRefusals: a server that cannot be asked is told apart from a question that it refuses.
func TestQueryRefusals(t *testing.T) {
	t.Parallel()
	status := func(code int, message string) string {
		return `{"kind":"Status","status":"Failure","code":` + strconv.Itoa(code) + `,"message":"` + message + `"}`
	}
	for text, want := range map[string]string{
		"": "does not answer queries",
		status(404, "the server could not find the requested resource"):           "does not answer queries",
		status(403, `forbidden: User \"x\" cannot get path \"/query/v1/events\"`): "does not answer queries",
		status(403, `events is forbidden: User \"x\" cannot list resource`):       "cannot list resource",
		status(400, "query parameter text: has 300 bytes"):                        "has 300 bytes",
		`{"items":[]}`: "did not answer as an event server does",
		`<html>`:       "did not answer as an event server does",
		`{` + head + `"columns":["observed"],"rows":[["a","b"]]}`: "a row that cannot be read",
		`{` + head + `"columns":["observed"],"rows":[[7]]}`:       "a row that cannot be read",
	} {
		all := map[string]string{"events": text}
		if text == "" {
			all = nil
		}
		s := newStub(t, all, all)
		_, _, err := s.ask(t)
		if err == nil || cli.ExitCode(err) != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
