package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/ctl"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/cli"
	"tidings.example/shared/porttest"
	"tidings.example/shared/waittest"
)

// use runs the program and returns what it printed and its exit code.
func use(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	errors, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Close() }()
	var out bytes.Buffer
	code = exitCode(run(t.Context(), args, &out, errors, nil))
	printed, err := os.ReadFile(errors.Name())
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), string(printed), code
}

// file writes a file of the test and returns its name.
func file(t testing.TB, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// tokenEndpoint issues tokens with a lifetime in seconds and counts them.
func (i *issuer) tokenEndpoint(t *testing.T, life int) (string, *atomic.Int64) {
	t.Helper()
	var issued atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("grant_type") != "client_credentials" || r.FormValue("client_id") != "demo" || r.FormValue("client_secret") != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
			return
		}
		issued.Add(1)
		token := i.token(t, func(claims map[string]any) { claims["exp"] = time.Now().Unix() + int64(life) })
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, token, life)
	}))
	t.Cleanup(server.Close)
	return server.URL, &issued
}

// TestGetWaits: get --wait ends with the first event that it is about, or with exit code 1.
func TestGetWaits(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), newIssuer(t))
	access := []string{"get", "--server=" + p.url("--listen-http"), "--token-file=" + file(t, p.token), "-n", "shop", "-o", "ndjson"}
	if out, said, code := use(t, append(access, "--reason=Late", "--wait=1ms")...); code != 1 || out != "" || !strings.Contains(said, "no event within 1ms") {
		t.Errorf("%d %q %q", code, out, said)
	}
	if _, _, code := use(t, append(access, "--wait=-1s")...); code != 2 {
		t.Errorf("a negative wait: exit code %d", code)
	}
	done := make(chan string, 1)
	go func() {
		out, said, code := use(t, append(access, "--reason=Late", "--wait=1h")...)
		done <- fmt.Sprintf("%d %q %d", code, said, strings.Count(out, "\n"))
	}()
	body := `{"metadata":{"name":"late"},"eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"c","reportingInstance":"i",` +
		`"action":"A","reason":"Late","type":"Normal","regarding":{"kind":"Pod","name":"web","namespace":"shop"}}`
	if code, object := p.do("POST", "/apis/events.k8s.io/v1/namespaces/shop/events", body); code != 201 {
		t.Fatal(code, object)
	}
	if got := waittest.Within(t, done); got != `0 "" 1` {
		t.Error(got)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), newIssuer(t))
	now := time.Now()
	for i, ev := range []struct {
		hours                                             int // and a half ago, so that the age stays what it is
		namespace, reason, kind, object, by, labels, note string
	}{
		{30, "shop", "Pulled", "Pod", "web-0", "Normal", `{"app":"web"}`, "image pulled"},
		{29, "shop", "BackOff", "Pod", "web-1", "Warning", `{"app":"web"}`, "first line\nsecond \u001b[31mline"},
		{28, "mail", "Completed", "Job", "nightly", "Normal", `{}`, ""},
		{40, "mail", "Old", "Job", "nightly", "Normal", `{}`, "long ago"},
	} {
		at := now.Add(-time.Duration(ev.hours)*time.Hour - 30*time.Minute)
		note, err := json.Marshal(ev.note)
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"metadata":{"name":"e%d","labels":%s},"eventTime":%q,"reportingController":"c%d","reportingInstance":"i",`+
			`"action":"A","reason":%q,"type":%q,"note":%s,"regarding":{"kind":%q,"name":%q,"namespace":%q}}`,
			i, ev.labels, at.UTC().Format("2006-01-02T15:04:05.000000Z"), i, ev.reason, ev.by, note, ev.kind, ev.object, ev.namespace)
		if code, object := p.do("POST", "/apis/events.k8s.io/v1/namespaces/"+ev.namespace+"/events", body); code != 201 {
			t.Fatal(code, object)
		}
	}
	access := []string{"get", "--server=" + p.url("--listen-http"), "--token-file=" + file(t, p.token)}
	for _, c := range []struct {
		args string
		want string
	}{
		{"-A", "" +
			"LAST SEEN   NAMESPACE   TYPE      REASON      OBJECT        COUNT   NOTE\n" +
			"40h         mail        Normal    Old         job/nightly   1       long ago\n" +
			"30h         shop        Normal    Pulled      pod/web-0     1       image pulled\n" +
			"29h         shop        Warning   BackOff     pod/web-1     1       first line second \ufffd[31mline\n" +
			"28h         mail        Normal    Completed   job/nightly   1       -\n"},
		{"-n shop --type Warning", "" +
			"LAST SEEN   TYPE      REASON    OBJECT      COUNT   NOTE\n" +
			"29h         Warning   BackOff   pod/web-1   1       first line second \ufffd[31mline\n"},
		{"-A --last 1", "" +
			"LAST SEEN   NAMESPACE   TYPE     REASON      OBJECT        COUNT   NOTE\n" +
			"28h         mail        Normal   Completed   job/nightly   1       -\n"},
		{"-A --reason None", ""},
	} {
		out, _, code := use(t, append(access, strings.Fields(c.args)...)...)
		if diff := cmp.Diff(c.want, out); diff != "" || code != 0 {
			t.Errorf("%s: exit code %d (-want +got)\n%s", c.args, code, diff)
		}
	}
	for args, want := range map[string]string{ // in the server's order
		"-A":                       "e2 e3 e0 e1",
		"-A --last 3":              "e0 e1 e2",
		"-A --since 35h":           "e0 e1 e2",
		"-A --since 2d":            "e3 e0 e1 e2",
		"-A --since 2d IMAGE":      "e0",
		"-A --from=-35h --to=-29h": "e0 e1",
		"-A --to=-35h":             "e3",
		"-A --from=-30h -o ndjson": "e1 e2",
		"-A name:web-* --since 2d": "e0 e1",
		"-A --since 2d reason=BackOff OR kind:job": "e3 e1 e2",
		"-A ago long":                         "e3",
		"-n shop":                             "e0 e1",
		"-A --reason Pulled":                  "e0",
		"-A --type Normal --regarding Job":    "e2 e3",
		"-A --regarding Pod/web-1":            "e1",
		"-A --reporting-controller c2":        "e2",
		"-A -l app=web":                       "e0 e1",
		"-A --field-selector reason!=Old":     "e2 e0 e1",
		"-A -l app --field-selector reason=X": "",
	} {
		out, _, code := use(t, append(access, strings.Fields(args+" -o ndjson")...)...)
		var names []string
		for line := range strings.Lines(out) {
			var ev eventsv1.Event
			if err := json.Unmarshal([]byte(line), &ev); err != nil || ev.Kind != "Event" || ev.APIVersion != "events.k8s.io/v1" {
				t.Errorf("%s: %v in %s", args, err, line)
			}
			names = append(names, ev.Name)
		}
		if got := strings.Join(names, " "); got != want || code != 0 {
			t.Errorf("%s: %q, exit code %d, want %q", args, got, code, want)
		}
	}
	for args, n := range map[string]int{"-A": 4, "-n none": 0, "-A --last 2": 2} {
		out, _, _ := use(t, append(access, strings.Fields(args+" -o json")...)...)
		var list eventsv1.EventList
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != n || list.Kind != "EventList" {
			t.Errorf("%s: %v, %d events in\n%s", args, err, len(list.Items), out)
		}
	}
}

// TestErrorsSayWhatToDo: each failure names the server, the cause and what to do.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	policy := file(t, "bindings: []\n")
	p := start(t, t.TempDir(), i, "--policy-file="+policy, "--listen-https=127.0.0.1:0", "--tls-self-signed")
	plain := p.url("--listen-http")
	secure := strings.Replace(p.url("--listen-https"), "http:", "https:", 1)
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, `{"kind":"Status","status":"Failure","message":"too old","reason":"Expired","code":410}`)
	}))
	t.Cleanup(gone.Close)
	tokens, _ := i.tokenEndpoint(t, 300)
	token := "--token-file=" + file(t, p.token)
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"--server=" + plain}, 1, []string{plain, "Unauthorized", "--token-file", "--token-url"}},
		{[]string{"--server=" + plain, "--token=x.y.z"}, 1, []string{"Unauthorized"}},
		{[]string{"--server=" + plain, token}, 1, []string{plain, "forbidden", "can-i"}},
		{[]string{"--server=" + gone.URL}, 1, []string{gone.URL, "too old", "start over"}},
		{[]string{"--server=http://127.0.0.1:1"}, 1, []string{"http://127.0.0.1:1", "is it running"}},
		{[]string{"--server=" + secure, token}, 1, []string{"--ca-file"}},
		{[]string{"--server=" + strings.Replace(plain, "http:", "https:", 1)}, 1, []string{"http:// in --server"}},
		{[]string{"--server=" + strings.Replace(secure, "https:", "http:", 1)}, 1, []string{"https:// in --server"}},
		{[]string{"--server=" + plain, "--token-file=/none"}, 1, []string{"no token", "/none"}},
		{[]string{"--server=" + plain, "--token-command=false x"}, 1, []string{"no token", "false"}},
		{[]string{"--server=" + plain, "--token-command=echo two words"}, 1, []string{"something else than a token"}},
		{[]string{"--server=" + plain, "--token-url=" + tokens, "--client-id=demo", "--client-secret-file=" + file(t, "wrong")}, 1, []string{"invalid_client", `"demo"`}},
		{[]string{"--server=" + plain, "--token-url=http://127.0.0.1:1", "--client-id=demo", "--client-secret-file=" + file(t, "x")}, 1, []string{"token endpoint", "--token-url"}},
		{[]string{"--server=" + plain, "--token-url=" + tokens}, 2, []string{"--token-url", "--client-id"}},
		{[]string{"--server=" + plain, "--client-secret-file=x"}, 2, []string{"--client-secret-file", "--token-url"}},
		{[]string{"--server=" + plain, "--assertion-file=x"}, 2, []string{"--assertion-file", "--token-url"}},
		{[]string{"--server=" + plain, "--token-url=" + tokens, "--assertion-file=x", "--client-secret-file=x"}, 2, []string{"--client-secret-file and --assertion-file"}},
		{[]string{"--server=" + plain, "--token-url=" + tokens, "--assertion-file=" + file(t, "wrong")}, 1, []string{"invalid_client", "the assertion in"}},
		{[]string{"--server=" + plain, "--token=x", "--token-file=y"}, 2, []string{"--token and --token-file"}},
		{[]string{"--token-command= "}, 2, []string{"--token-command"}},
		{[]string{"--server=ftp://x"}, 2, []string{"--server"}},
		{[]string{"--ca-file=/none"}, 2, []string{"--ca-file"}},
		{[]string{"--kubeconfig=/none"}, 2, []string{"--kubeconfig"}},
		{[]string{"--kubeconfig=x", "--server=http://x"}, 2, []string{"--kubeconfig and --server"}},
		{[]string{"--context=x"}, 2, []string{"--context", "--kubeconfig"}},
		{[]string{"-A", "-n", "x"}, 2, []string{"--namespace and --all-namespaces"}},
		{[]string{"--since=-1h"}, 2, []string{"--since"}},
		{[]string{"--last=-1"}, 2, []string{"--last"}},
		{[]string{"--since=1h", "--from=-2h"}, 2, []string{"--since and --from"}},
		{[]string{"-l", "a=b=c"}, 2, []string{"--selector"}},
		{[]string{"--field-selector", "bogus"}, 2, []string{"--field-selector"}},
		{[]string{"-o", "xml"}, 2, []string{"--output"}},
	} {
		_, said, code := use(t, append([]string{"get"}, c.args...)...)
		if code != c.code {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, said)
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%v: %q is not in %s", c.args, want, said)
			}
		}
	}
}

// lineCollector collects what a running command prints.
type lineCollector struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lineCollector) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lineCollector) names(t *testing.T) []string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for line := range strings.Lines(l.buf.String()) {
		var ev eventsv1.Event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		names = append(names, ev.Name)
	}
	return names
}

// TestTailOverRestarts follows a server that is stopped and started again while events are written, with tokens that
// live for a few seconds: every event is shown once and in order.
func TestTailOverRestarts(t *testing.T) {
	t.Parallel()
	i, dir, addr := newIssuer(t), t.TempDir(), porttest.Addr(t)
	settings := []string{"--listen-http=" + addr, "--watch-after-expiry=0s", "--clock-skew=0s"}
	p := start(t, dir, i, settings...)
	endpoint, issued := i.tokenEndpoint(t, 5)
	p.do("POST", eventsPath, newEvent("before"))

	ctx, stop := context.WithCancel(t.Context())
	var out lineCollector
	done := make(chan error, 1)
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		done <- run(ctx, []string{"tail", "--server=http://" + addr, "--token-url=" + endpoint, "--client-id=demo",
			"--client-secret-file=" + file(t, "secret"), "-o", "ndjson", "--since=100000h"}, &out, said, nil)
	}()
	waittest.Until(t, "the tail begins", func() bool { return len(out.names(t)) == 1 })
	want := []string{"before"}
	says := func(text string, times int) {
		waittest.Until(t, fmt.Sprintf("the tail says %q the %d. time", text, times), func() bool {
			printed, err := os.ReadFile(said.Name())
			return err == nil && strings.Count(string(printed), text) >= times
		})
	}
	for round := range 2 {
		for n := range 20 { // some of them before the tail is back
			name := fmt.Sprintf("r%d-%02d", round, n)
			if code, object := p.do("POST", eventsPath, newEvent(name)); code != 201 {
				t.Fatal(code, object)
			}
			want = append(want, name)
			if n == 10 {
				says("connected again", round)
			}
		}
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		says("trying again", round+1)
		p = start(t, dir, i, settings...)
	}
	p.do("POST", eventsPath, newEvent("last"))
	want = append(want, "last")
	waittest.Until(t, "the last event is shown", func() bool { return slices.Contains(out.names(t), "last") })
	before := issued.Load()
	waittest.Until(t, "another token is fetched while nothing happens", func() bool { return issued.Load() > before })
	p.do("POST", eventsPath, newEvent("later"))
	want = append(want, "later")
	waittest.Until(t, "the event after that is shown", func() bool { return slices.Contains(out.names(t), "later") })
	stop()
	if err := waittest.Within(t, done); err != nil {
		t.Error(err) // a signal is the ordinary end
	}
	if diff := cmp.Diff(want, out.names(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTailWaitsFor(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), newIssuer(t))
	p.do("POST", eventsPath, newEvent("there"))
	tail := func(args ...string) []string {
		return append([]string{"tail", "--server=" + p.url("--listen-http"), "--token-file=" + file(t, p.token), "-o", "ndjson"}, args...)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{tail("--since=100000h", "--wait-for=reason=Because"), 0, ""},
		{tail("--since=100000h", "--wait-for=reason=Because,regarding.namespace!=x", "--timeout=1m"), 0, ""},
		{tail("--since=100000h", "--wait-for=reason=Other", "--timeout=50ms"), 3, "reason=Other"},
		{tail("--wait-for=reason=Because", "--timeout=50ms"), 3, "50ms"}, // it was before
		{tail("--timeout=50ms"), 0, ""},
		{tail("--wait-for=reasn=Because"), 2, "reportingController"},
		{tail("--wait-for=reason"), 2, "--wait-for"},
	} {
		_, said, code := use(t, c.args...)
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, said)
		}
	}
	var out lineCollector
	done := make(chan error, 1)
	go func() {
		done <- run(t.Context(), tail("--since=100000h", "--wait-for=metadata.name=awaited"), &out, os.Stderr, nil)
	}()
	waittest.Until(t, "it waits", func() bool { return len(out.names(t)) == 1 })
	for _, name := range []string{"other", "awaited", "after"} {
		p.do("POST", eventsPath, newEvent(name))
	}
	if err := waittest.Within(t, done); err != nil {
		t.Error(err)
	}
	if got := out.names(t); !slices.Equal(got, []string{"there", "other", "awaited"}) {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- run(ctx, tail("--wait-for=reason=Other"), io.Discard, os.Stderr, nil) }()
	cancel()
	if err := waittest.Within(t, done); exitCode(err) != 1 {
		t.Error(err)
	}
}

// lossy forwards requests and loses the answers of some that were carried out.
type lossy struct {
	*httputil.ReverseProxy
	posts atomic.Int64
}

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		l.ReverseProxy.ServeHTTP(w, r)
		return
	}
	switch n := l.posts.Add(1); {
	case n%8 == 0: // busy
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case n%3 == 1: // carried out, and then the line is cut
		l.ReverseProxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		l.ReverseProxy.ServeHTTP(w, r)
	}
}

// TestRecordWaits: while no server runs, record says once why it takes so long.
func TestRecordWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // whose clock waits for a slow machine
		_, stderr, code := use(t, "record", "--reason=Lonely", "--server=http://127.0.0.1:1", "--token=x", "--timeout=2m")
		if code != 1 || strings.Count(stderr, "trying again for 2m0s") != 1 || !strings.Contains(stderr, "is it running") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
}

// TestRecordOnce: with lost answers and busy servers, every event is still recorded exactly once.
func TestRecordOnce(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), newIssuer(t))
	target, err := url.Parse(p.url("--listen-http"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewUnstartedServer(&lossy{ReverseProxy: httputil.NewSingleHostReverseProxy(target)})
	proxy.Config.ErrorLog = nil
	proxy.Start()
	t.Cleanup(proxy.Close)
	record := []string{"record", "--server=" + proxy.URL, "--token-file=" + file(t, p.token), "--parallel=4"}
	count := func() int {
		_, list := p.do("GET", "/apis/events.k8s.io/v1/events", "")
		return len(list["items"].([]any))
	}

	out, said, code := use(t, append(record, "--regarding=Job/nightly", "--reason=Done", "--label=a=b", "--note=n")...)
	if code != 0 || count() != 1 || !strings.HasPrefix(out, "default/nightly.") {
		t.Fatalf("exit code %d, %d events: %s%s", code, count(), out, said)
	}
	var many strings.Builder
	for n := range 12 {
		fmt.Fprintf(&many, `{"eventTime":"2026-01-02T03:04:05.%06dZ","reason":"N%d","regarding":{"kind":"Pod","name":"web"}}`+"\n", n, n)
	}
	input := file(t, many.String())
	for range 2 { // again: what is there stays
		out, said, code = use(t, append(record, "-f", input)...)
		if code != 0 || count() != 13 || strings.Count(out, "default/web.") != 12 {
			t.Errorf("exit code %d, %d events: %s%s", code, count(), out, said)
		}
	}
	mixed := file(t, `{"reason":"Good","regarding":{"kind":"Pod","name":"web"}}
not json

{"reason":"Bad","type":"Odd"}
{"kind":"Pod","apiVersion":"v1"}
{"metadata":{"name":"taken"},"reason":"A"}
`)
	if code, object := p.do("POST", eventsPath, newEvent("taken")); code != 201 {
		t.Fatal(code, object)
	}
	out, said, code = use(t, append(record, "-f", mixed)...)
	for _, want := range []string{"line 2:", "line 4:", "has invalid value: Odd", "line 5:", "line 6:", "already exists", "4 of 5 events"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}
	if code != 1 || count() != 15 || strings.Count(out, "\n") != 1 {
		t.Errorf("exit code %d, %d events: %s", code, count(), out)
	}
	for want, args := range map[string][]string{
		"--reason":           {"--regarding=Pod/x"},
		"--name and --file":  {"-f", input, "--name=x"},
		"--file: open /none": {"-f", "/none"},
		"--parallel 0 must":  {"-f", input, "--parallel=0"},
	} {
		_, said, code := use(t, append([]string{"record", "--server=" + proxy.URL}, args...)...)
		if code != 2 || !strings.Contains(said, want) {
			t.Errorf("%v: exit code %d: %s", args, code, said)
		}
	}
}

// TestRecordWhatWasGot: the output of get can be recorded on another server.
func TestRecordWhatWasGot(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	from, to := start(t, t.TempDir(), i), start(t, t.TempDir(), i)
	for n := range 3 {
		from.do("POST", eventsPath, newEvent(fmt.Sprint("e", n)))
	}
	token := "--token-file=" + file(t, from.token)
	got, _, _ := use(t, "get", "--server="+from.url("--listen-http"), token, "-o", "ndjson")
	if _, said, code := use(t, "record", "--server="+to.url("--listen-http"), token, "-f", file(t, got), "-o", "ndjson"); code != 0 {
		t.Fatal(said)
	}
	again, _, _ := use(t, "get", "--server="+to.url("--listen-http"), token, "-o", "ndjson")
	strip := func(text string) (events []eventsv1.Event) {
		for line := range strings.Lines(text) {
			var ev eventsv1.Event
			if err := json.Unmarshal([]byte(line), &ev); err != nil {
				t.Fatal(err)
			}
			ev.UID, ev.ResourceVersion, ev.ManagedFields = "", "", nil
			ev.CreationTimestamp.Reset()
			events = append(events, ev)
		}
		return events
	}
	if diff := cmp.Diff(strip(got), strip(again)); diff != "" || len(strip(got)) != 3 {
		t.Error(diff)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../deploy/docs/reference/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, 0}, {errors.New("x"), 1}, {errNo, 1}, {cli.Usagef("x"), 2}, {errFindings, 3}, {fmt.Errorf("x: %w", ctl.ErrTimedOut), 3},
		{fmt.Errorf("x: %w", store.ErrUnwritable), 4},
	} {
		if code := exitCode(c.err); code != c.code {
			t.Errorf("%v: %d, want %d", c.err, code, c.code)
		}
		if !strings.Contains(string(page), fmt.Sprintf("\n| %d | ", c.code)) {
			t.Errorf("the page of reference does not have the exit code %d", c.code)
		}
	}
}
