package main

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// incident stores events of a few hours: a rollout, after which pods do not start.
func incident(t *testing.T, p *process, now time.Time) {
	t.Helper()
	post := func(namespace, name, body string) {
		t.Helper()
		if code, object := p.do("POST", "/apis/events.k8s.io/v1/namespaces/"+namespace+"/events", body); code != 201 {
			t.Fatal(name, code, object)
		}
	}
	stamp := func(ago time.Duration) string { return now.Add(-ago).UTC().Format("2006-01-02T15:04:05.000000Z") }
	for n := range 130 {
		namespace, name := []string{"shop", "mail"}[n%2], fmt.Sprintf("pulled-%03d", n)
		post(namespace, name, fmt.Sprintf(`{"metadata":{"name":%q},"eventTime":%q,"reportingController":"kubelet","reportingInstance":"n1","action":"Pull",`+
			`"reason":"Pulled","type":"Normal","note":"Image pulled","regarding":{"kind":"Pod","name":"web-%d","namespace":%q,"uid":"u%d"}}`,
			name, stamp(3*time.Hour+30*time.Second-time.Duration(n)*time.Minute), n%7, namespace, n%7))
	}
	for n := range 12 {
		name := fmt.Sprintf("backoff-%d", n)
		post("shop", name, fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"tidings.example/cluster":"a"}},"eventTime":%q,"reportingController":"kubelet","reportingInstance":"n1",`+
			`"action":"Start","reason":"BackOff","type":"Warning","note":"Back-off restarting failed container %d","regarding":{"kind":"Pod","name":"web-%d","namespace":"shop","uid":"u%d"}}`,
			name, stamp(time.Duration(n+1)*time.Minute), n, n%3, n%3))
		if n%2 == 0 {
			p.do("PATCH", "/apis/events.k8s.io/v1/namespaces/shop/events/"+name, fmt.Sprintf(`{"series":{"count":%d,"lastObservedTime":%q}}`, n+2, stamp(30*time.Second)))
		}
	}
	p.do("DELETE", "/apis/events.k8s.io/v1/namespaces/shop/events/backoff-11", "")
	post("kube-system", "gap", fmt.Sprintf(`{"metadata":{"name":"gap","labels":{"tidings.example/cluster":"a"},"annotations":{"mirror.tidings.example/gap-from":%q,`+
		`"mirror.tidings.example/gap-to":%q}},"eventTime":%q,"reportingController":"tidings.example/mirror","reportingInstance":"m","action":"Mirror","reason":"MirrorGap",`+
		`"type":"Warning","note":"gap","regarding":{"kind":"Cluster","name":"a","namespace":"kube-system"}}`,
		now.Add(-50*time.Minute).UTC().Format(time.RFC3339), now.Add(-40*time.Minute).UTC().Format(time.RFC3339), stamp(40*time.Minute)))
}

// TestQueryCommand asks a service everything, and compares its CSV with the service's.
func TestQueryCommand(t *testing.T) {
	t.Parallel()
	p, now := start(t, t.TempDir(), newIssuer(t)), time.Now().Truncate(time.Second)
	incident(t, p, now)
	from, to := now.Add(-4*time.Hour).UTC().Format(time.RFC3339), now.Add(time.Minute).UTC().Format(time.RFC3339)
	const gap = "the mirror was away: a from"
	for args, c := range map[string]struct {
		path string
		asks url.Values
		rows int // at least
		said string
	}{
		"":                              {"events", url.Values{}, 141, gap},
		"reason=BackOff|-n|shop,mail":   {"events", url.Values{"fieldSelector": {"reason=BackOff"}, "namespace": {"shop", "mail"}}, 11, ""},
		"restarting|back-off":           {"events", url.Values{"search": {"restarting back-off"}}, 11, gap},
		"restarting failed":             {"events", url.Values{"search": {`"restarting failed"`}}, 11, gap},
		"failed restarting":             {"events", url.Values{"search": {`"failed restarting"`}}, 0, gap},
		"label:tidings.example/cluster": {"events", url.Values{"labelSelector": {"tidings.example/cluster"}}, 11, gap},
		"--order=oldest|kind=Pod":       {"events", url.Values{"order": {"oldest"}, "fieldSelector": {"kind=Pod"}}, 141, gap},
		"--group-by=reason,object":      {"groups", url.Values{"by": {"reason,object"}}, 10, gap},
		"--group-by=cluster":            {"groups", url.Values{"by": {"cluster"}}, 2, gap},
		"--facets":                      {"facets", url.Values{"limit": {"1000"}}, 10, gap},
		"--histogram|--step=10m":        {"histogram", url.Values{"by": {"type"}, "step": {"600s"}}, 10, gap},
		"--histogram|--by=kind,reason":  {"histogram", url.Values{"by": {"kind,reason"}}, 10, gap},
		"--changes|--window=15m":        {"changes", url.Values{"window": {"900s"}, "limit": {"100"}}, 1, ""},
		"--object=Pod/web-1|-n|shop":    {"object", url.Values{"kind": {"Pod"}, "name": {"web-1"}, "namespace": {"shop"}}, 5, ""},
		"--object=u2":                   {"object", url.Values{"uid": {"u2"}}, 10, gap},
	} {
		flags := []string{"query", "--server=" + p.url("--listen-http"), "--token-file=" + file(t, p.token), "-o", "csv"}
		if c.path != "histogram" {
			flags = append(flags, "--limit=0")
			c.asks.Set("limit", "1000")
		}
		switch {
		case c.path == "changes":
			flags = append(flags, "--at="+to)
			c.asks.Set("at", to)
			c.asks.Set("limit", "100")
		default:
			flags = append(flags, "--from="+from, "--to="+to)
			c.asks.Set("from", from)
			c.asks.Set("to", to)
		}
		if args != "" {
			flags = append(flags, strings.Split(args, "|")...)
		}
		printed, said, code := use(t, flags...)
		if code != 0 || !strings.Contains(said, c.said) || c.said == "" && strings.Contains(said, gap) {
			t.Errorf("%s: exit code %d: %s", args, code, said)
			continue
		}
		want := fetchCSV(t, p, c.path, c.asks)
		got, err := csv.NewReader(strings.NewReader(printed)).ReadAll()
		if diff := cmp.Diff(want, got); diff != "" || err != nil || len(got) <= c.rows {
			t.Errorf("%s: %d rows, %v (-service +command)\n%s", args, len(got), err, diff)
		}
		flags[slices.Index(flags, "csv")] = "table"
		if printed, said, code := use(t, flags...); code != 0 || (printed == "") != (c.rows == 0) {
			t.Errorf("%s as a table: exit code %d: %s%s", args, code, printed, said)
		}
	}
}

// fetchCSV asks a service itself.
func fetchCSV(t *testing.T, p *process, path string, q url.Values) [][]string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url("--listen-http")+"/query/v1/"+path+"?"+q.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Accept", "text/csv")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %s", path, resp.StatusCode, err, body)
	}
	rows, err := csv.NewReader(strings.NewReader(string(body))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// withoutQueries forwards to a service but for what a Kubernetes API server does not have, which it refuses like that
// one.
func withoutQueries(t *testing.T, p *process, refuse http.HandlerFunc) string {
	t.Helper()
	to, err := url.Parse(p.url("--listen-http"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/query/") {
			refuse(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestGetSearches: get finds by --since and by terms what a query finds. A server that answers no queries is an error
// that says so.
func TestGetSearches(t *testing.T) {
	t.Parallel()
	p, now := start(t, t.TempDir(), newIssuer(t)), time.Now().Truncate(time.Second)
	incident(t, p, now)
	forbidden := withoutQueries(t, p, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","status":"Failure","code":403,"message":"forbidden: User \"x\" cannot get path \"%s\""}`, r.URL.Path)
	})
	since := func(d time.Duration) string { return "--from=" + now.Add(-d).UTC().Format(time.RFC3339) } // of the incident, however long the test takes
	for args, rows := range map[string]int{
		"-A": 142, "-A " + since(time.Hour): 20, "-A --since 2d": 141, "-A --since 2d --reason MirrorGap": 1, "-A back-OFF": 11, "-n shop back-off": 11, "-n mail back-off": 0, "-A " + since(150*time.Minute) + " --type Warning note:7": 1,
		"-A --last 3 container": 3, "-A -l tidings.example/cluster=a " + since(time.Hour): 11, "-A --field-selector regarding.uid=u1 --since 2d": 23,
	} {
		for _, server := range []string{p.url("--listen-http"), forbidden, withoutQueries(t, p, http.NotFound)} {
			out, said, code := use(t, append([]string{"get", "--server=" + server, "--token-file=" + file(t, p.token), "-o", "ndjson"}, strings.Fields(args)...)...)
			if server != p.url("--listen-http") && args != "-A" {
				if code != 1 || !strings.Contains(said, "does not answer queries") {
					t.Errorf("%s: exit code %d: %s", args, code, said)
				}
			} else if n := strings.Count(out, "\n"); code != 0 || n != rows {
				t.Errorf("%s: exit code %d, %d events, not %d: %s", args, code, n, rows, said)
			}
		}
	}
	_, said, code := use(t, "query", "--server="+forbidden, "--token-file="+file(t, p.token))
	if code != 1 || !strings.Contains(said, "does not answer queries") || !strings.Contains(said, "eventsvc get") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// TestQueryRights: a caller who may see one namespace is told so, and gets nothing of others.
func TestQueryRights(t *testing.T) {
	t.Parallel()
	path := file(t, "bindings:\n- role: events:write\n  subjects: [{clientID: admin}]\n- role: events:read\n  namespaces: [mail]\n  subjects: [{clientID: some}]\n")
	i := newIssuer(t)
	p := start(t, t.TempDir(), i, "--policy-file="+path)
	p.token = i.token(t, func(claims map[string]any) { claims["client_id"] = "admin" })
	incident(t, p, time.Now())
	token := "--token-file=" + file(t, i.token(t, func(claims map[string]any) { claims["client_id"] = "some" }))
	out, said, code := use(t, "query", "--server="+p.url("--listen-http"), token, "--since=4h", "--group-by=namespace", "-o", "csv")
	if code != 0 || !strings.Contains(said, "only what you may list is shown: namespaces mail") || strings.Count(out, "\n") != 2 || !strings.Contains(out, "\nmail,65,") {
		t.Errorf("exit code %d: %s%s", code, out, said)
	}
	if out, said, code := use(t, "query", "--server="+p.url("--listen-http"), token, "-n", "shop"); code != 1 || out != "" || !strings.Contains(said, "forbidden") {
		t.Errorf("exit code %d: %s%s", code, out, said)
	}
	if _, said, code := use(t, "query", "--server="+p.url("--listen-http"), token, "--from=soon"); code != 1 || !strings.Contains(said, "from") || !strings.Contains(said, "RFC 3339") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// TestQueryOnATerminal: a table fits the terminal and has colours there, unless NO_COLOR is set. Control characters of
// events do not reach it.
func TestQueryOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	const events = `{"range":{"from":"2026-11-20T10:00:00Z","to":"2026-11-20T11:00:00Z"},"gaps":[],"columns":["observed","namespace","type","reason","kind","object","note"],` +
		`"rows":[["2026-11-20T10:30:00.000001Z","shop","Warning","Odd\u001b[2J","Pod","web-0","a note that is longer than the line has room for, by far"]]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, events) }))
	t.Cleanup(server.Close)
	draw := func() string {
		const end = "\x00"
		person, program := newTerminal(t, 110)
		if err := run(t.Context(), []string{"query", "--server=" + server.URL}, program, program, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(program, end); err != nil {
			t.Fatal(err)
		}
		drawn, err := bufio.NewReader(person).ReadString(end[0])
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(strings.ReplaceAll(drawn, "\r\n", "\n"), end)
	}
	t.Setenv("NO_COLOR", "")
	colours := draw()
	t.Setenv("NO_COLOR", "1")
	plain := draw()
	if !strings.Contains(colours, "\x1b[33mWarning\x1b[0m") || strings.Contains(colours, "\x1b[2J") || strings.Contains(plain, "\x1b") {
		t.Errorf("with colours:\n%q\nwithout:\n%q", colours, plain)
	}
	for line := range strings.Lines(plain) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 110 {
			t.Errorf("%d columns are wider than the terminal: %s", n, line)
		}
	}
	if !strings.Contains(plain, "a note that is") || !strings.Contains(plain, "…") {
		t.Errorf("the note is not cut:\n%s", plain)
	}
}
