package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidings.example/shared/waittest"
)

// alertmanager is one that keeps what it is sent. deploy/test/alertmanager has the real one.
type alertmanager struct {
	*httptest.Server
	mu    sync.Mutex
	away  int              // requests to come that are refused
	taken map[string]taken // by alertname and pod; the last
	asked []*http.Request
}

type taken struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
}

func newAlertmanager(t *testing.T) *alertmanager {
	a := &alertmanager{taken: map[string]taken{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked = append(a.asked, r)
		if a.away > 0 {
			a.away--
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		var all []taken
		if err := json.NewDecoder(r.Body).Decode(&all); err != nil {
			t.Error(err)
		}
		for _, one := range all {
			a.taken[one.Labels["alertname"]+" "+one.Labels["pod"]] = one
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *alertmanager) has(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.taken[name]
	return ok
}

// last is the last that it was sent under a name. The alert is sent again while it goes on.
func (a *alertmanager) last(name string) taken {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taken[name]
}

// requests are those so far.
func (a *alertmanager) requests() []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// runAlerts sends alerts in this process until the returned function is called.
func runAlerts(t *testing.T, args ...string) (admin string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	p := &process{t: t, addrs: map[string]string{}}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		done <- run(ctx, append([]string{"alerts", "--listen-admin=127.0.0.1:0"}, args...), io.Discard, log, p.listening)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := waittest.Within(t, done); err != nil {
			t.Error(err)
		}
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("eventsvc alerts said:\n%s", said)
		}
	})
	t.Cleanup(stop)
	waittest.Until(t, "it listens", func() bool { return p.url("--listen-admin") != "" })
	waittest.Until(t, "it watches", func() bool { return ready(strings.TrimPrefix(p.url("--listen-admin"), "http://")) })
	return p.url("--listen-admin"), stop
}

const alertRules = "- {name: Broken, search: 'reason:Because', labels: {pod: '{{.Event}}'}, annotations: {link: '{{.Link}}'}}\n"

// TestAlertsResume: each alert is sent once it happens, and what happens while nobody watches with its own time, to
// each Alertmanager, also after one was away. The token for the server is sent to no Alertmanager.
func TestAlertsResume(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	p := start(t, t.TempDir(), i)
	a, b := newAlertmanager(t), newAlertmanager(t)
	b.away = 2
	cursor := filepath.Join(t.TempDir(), "new", "cursor.json")
	args := []string{"--server=" + p.url("--listen-http"), "--token-file=" + file(t, p.token), "--rules=" + file(t, alertRules),
		"--cursor-file=" + cursor, "--alertmanager=" + a.URL, "--alertmanager=" + strings.Replace(b.URL, "http://", "http://me:secret@", 1)}
	admin, stop := runAlerts(t, args...)
	p.do("POST", eventsPath, newEvent("first"))
	for _, to := range []*alertmanager{a, b} {
		waittest.Until(t, "the alert is sent", func() bool { return to.has("Broken first") })
	}
	first := a.last("Broken first")
	if want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC); !first.StartsAt.Equal(want) || !first.EndsAt.After(time.Now()) {
		t.Errorf("%+v, want it to begin at %s and to go on", first, want)
	}
	waittest.Until(t, "one is counted, when its answer has come", func() bool { return metric(t, admin, `eventsvc_alerts_told_total{rule="Broken"}`) == "1" })
	if n := metric(t, admin, fmt.Sprintf(`eventsvc_alerts_failures_total{code="503",to="%s"}`, strings.Replace(b.URL, "http://", "http://me:xxxxx@", 1))); n != "2" {
		t.Errorf("%s failures are counted", n)
	}
	for _, r := range append(a.requests(), b.requests()...) {
		user, password, _ := r.BasicAuth()
		if strings.Contains(r.Header.Get("Authorization"), p.token) || r.URL.Path != "/api/v2/alerts" || user != "" && password != "secret" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
	}
	stop()
	if info, err := os.Stat(cursor); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	p.do("POST", eventsPath, newEvent("second"))
	clear(a.taken)
	runAlerts(t, args...)
	waittest.Until(t, "what was missed is sent", func() bool { return a.has("Broken second") })
	if got := a.last("Broken second"); !got.StartsAt.Equal(first.StartsAt) || got.Annotations["over"] != "" {
		t.Errorf("%+v", got)
	}
}

// TestAlertsMissed: that the server has lost its history is an alert, besides those of what it still has.
func TestAlertsMissed(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	p := start(t, t.TempDir(), i)
	for n := range 5 {
		p.do("POST", eventsPath, newEvent(fmt.Sprint("before-", n)))
	}
	a := newAlertmanager(t)
	cursor := filepath.Join(t.TempDir(), "cursor.json")
	args := []string{"--token-file=" + file(t, p.token), "--rules=" + file(t, alertRules), "--cursor-file=" + cursor, "--alertmanager=" + a.URL}
	_, stop := runAlerts(t, append(args, "--server="+p.url("--listen-http"))...)
	stop()
	again := start(t, t.TempDir(), i) // with nothing in it
	again.do("POST", eventsPath, strings.Replace(newEvent("new"), "2026-01-02T03:04:05.000006Z", time.Now().Add(time.Minute).UTC().Format("2006-01-02T15:04:05.000000Z"), 1))
	admin, _ := runAlerts(t, append(args, "--server="+again.url("--listen-http"))...)
	waittest.Until(t, "both are told", func() bool { return a.has("EventsMissed ") && a.has("Broken new") })
	if n := metric(t, admin, "eventsvc_alerts_gaps_total"); n != "1" {
		t.Errorf("%s gaps are counted", n)
	}
	if got := a.last("EventsMissed "); !strings.Contains(got.Annotations["summary"], "Nobody was told of what came and went between ") || got.Annotations["description"] == "" {
		t.Errorf("%+v", got)
	}
}

// TestAlertsTry: what would be sent is printed, and nothing is sent.
func TestAlertsTry(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), newIssuer(t))
	now := time.Now().UTC()
	for name, ago := range map[string]time.Duration{"old": 48 * time.Hour, "new": time.Minute} {
		p.do("POST", eventsPath, strings.Replace(newEvent(name), "2026-01-02T03:04:05.000006Z", now.Add(-ago).Format("2006-01-02T15:04:05.000000Z"), 1))
	}
	args := []string{"alerts", "--try", "--server=" + p.url("--listen-http"), "--token-file=" + file(t, p.token), "--rules=" + file(t, alertRules)}
	for since, want := range map[string]string{"24h": "goes on  Broken pod=new", "7d": "Broken pod=old"} {
		out, said, code := use(t, append(args, "--since="+since)...)
		if code != 0 || !strings.Contains(out, want) || strings.Contains(out, "pod=old") != (since == "7d") {
			t.Errorf("%s: exit code %d: %s\n%s", since, code, said, out)
		}
	}
}

func TestAlertsSettings(t *testing.T) {
	t.Parallel()
	to := "--alertmanager=http://127.0.0.1:1"
	damaged := file(t, "{")
	for want, args := range map[string][]string{
		"--alertmanager is not set":                          {},
		`"alertmanager:9093" is no http(s) URL`:              {"--alertmanager=alertmanager:9093"},
		`"events.example" is no http(s) URL`:                 {to, "--console-url=events.example"},
		"--since 1h0m0s is for --try":                        {to, "--since=1h"},
		"--wait 1s must be a minute":                         {to, "--wait=1s"},
		"--selector":                                         {to, "-l", "a=b=c"},
		"line 2: serch: is unknown: a rule has name, search": {to, "--rules=" + file(t, "- name: A\n  serch: x\n")},
		"--rules: open /nowhere":                             {to, "--rules=/nowhere"},
		"exclude each other":                                 {to, "--token=a", "--token-file=b"},
	} {
		if _, said, code := use(t, append([]string{"alerts"}, args...)...); code != 2 || !strings.Contains(said, want) {
			t.Errorf("%v: exit code %d: %s, want %s", args, code, said, want)
		}
	}
	if _, said, code := use(t, "alerts", to, "--cursor-file="+damaged); code != 1 || !strings.Contains(said, "without the file, eventsvc alerts begins") {
		t.Errorf("a damaged cursor: exit code %d: %s", code, said)
	}
	if out, _, code := use(t, "alerts", "--show-rules"); code != 0 || !strings.Contains(out, "- name: CrashLoop") {
		t.Errorf("the ready rules: exit code %d: %s", code, out)
	}
}
