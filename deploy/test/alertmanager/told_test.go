package alertmanager_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rules have one for each way in which an alert begins.
const rules = `
- name: Breaks
  search: reason:Broken
  endedBy: reason:Mended
  silence: 1h
  labels: {severity: warning, namespace: "{{.Namespace}}", name: "{{.Name}}"}
  annotations: {summary: "{{.Kind}} {{.Namespace}}/{{.Name}}: {{.Note}}", link: "{{.Link}}"}
`

// TestTold: what arrives is told once, by either of two Alertmanagers, with the name of the pod, the note and a link to
// the revision; also with three processes that have the same rules, two of them on one cursor.
func TestTold(t *testing.T) {
	w := start(t)
	shared := filepath.Join(t.TempDir(), "cursor.json")
	for _, cursor := range []string{shared, shared, filepath.Join(t.TempDir(), "cursor.json")} {
		w.alerts(rules, cursor).launch(t)
	}
	at := time.Now().Truncate(time.Second)
	revision := w.create("web-0", "Broken", "it <b>broke</b>", at)
	w.create("web-1", "Other", "nobody is told", at)
	w.told("web-0")
	w.settled(1)
	w.once("firing", "web-0")
	got := w.of("web-0")[0].Alerts[0]
	if got.Annotations["summary"] != "Pod shop/web-0: it ‹b›broke‹/b›" || got.Labels["alertname"] != "Breaks" || !got.StartsAt.Equal(at) ||
		!strings.HasPrefix(got.GeneratorURL, w.url+"/console/#/events?") || !strings.Contains(got.GeneratorURL, "revision="+revision) {
		t.Errorf("%+v", got)
	}
}

// TestKills: each part is killed while events are recorded. In the end each pod was told of once, with the time of its
// event.
func TestKills(t *testing.T) {
	w := start(t)
	watcher := w.alerts(rules, filepath.Join(t.TempDir(), "cursor.json")).launch(t)
	var all []string
	at := map[string]time.Time{}
	record := func(name string) {
		at[name] = time.Now().Truncate(time.Second)
		all = append(all, name)
		w.create(name, "Broken", "it broke", at[name])
	}
	record("a-nothing")
	w.told("a-nothing")
	w.settled(len(all))
	for i, part := range []*process{w.alertmanagers[0], watcher, w.events, w.alertmanagers[1], watcher} {
		name := fmt.Sprintf("%c-%s", 'b'+i, part.name)
		if part == w.events {
			record(name)
		}
		part.kill()
		if part != w.events {
			record(name)
		}
		if part != watcher && part != w.events {
			w.told(name) // by the other one
		}
		part.start(t)
		part.wait(t)
		w.told(name)
		w.settled(len(all))
	}
	w.once("firing", all...)
	for name, want := range at {
		if got := w.of(name)[0].Alerts[0].StartsAt; !got.Equal(want) {
			t.Errorf("%s began at %s, want %s", name, got, want)
		}
	}
}

// TestAway: what came and went while nobody listened is told of, once, with its own times; and the end of an alert is
// told when it is over.
func TestAway(t *testing.T) {
	w := start(t)
	cursor := filepath.Join(t.TempDir(), "cursor.json")
	watcher := w.alerts(rules, cursor).launch(t)
	w.create("a", "Broken", "it broke", time.Now())
	w.told("a")
	w.settled(1)
	for _, a := range w.alertmanagers { // they keep what they told
		_ = a.cmd.Process.Signal(syscall.SIGTERM)
		_ = a.cmd.Wait()
	}
	began := time.Now().Add(-20 * time.Minute).Truncate(time.Second)
	w.create("b", "Broken", "it broke", began)
	seen(t, cursor, w.create("b", "Mended", "it works", began.Add(5*time.Minute)))
	watcher.kill()
	for _, a := range w.alertmanagers {
		a.start(t)
	}
	for _, a := range w.alertmanagers {
		a.wait(t)
	}
	watcher.start(t)
	watcher.wait(t)
	w.told("b")
	w.settled(2)
	w.once("firing", "a", "b")
	if got := w.of("b")[0].Alerts[0]; !got.StartsAt.Equal(began) || got.Annotations["over"] != began.Add(5*time.Minute).UTC().Format(time.RFC3339) {
		t.Errorf("%+v, want the time of the event", got)
	}
	watcher.kill()
	earlier(t, cursor)
	watcher.start(t)
	ended := time.Now().Truncate(time.Second)
	w.create("a", "Mended", "it works", ended)
	until(t, "both ends are told", func() bool { return len(w.names("resolved")) == 2 })
	w.once("resolved", "a", "b")
	for name, want := range map[string]time.Time{"a": ended, "b": began.Add(5 * time.Minute)} {
		if all := w.of(name); !all[1].Alerts[0].EndsAt.Equal(want) {
			t.Errorf("%s ended at %s, want %s", name, all[1].Alerts[0].EndsAt, want)
		}
	}
}

// TestPage: Alertmanager takes the routes and receivers of the page "Tell somebody".
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "deploy/docs/how-to/tell-somebody.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "```yaml\nroute:\n")
	block, _, ended := strings.Cut(block, "```")
	file := filepath.Join(t.TempDir(), "alertmanager.yml")
	if err := os.WriteFile(file, []byte("route:\n"+block), 0o600); err != nil || !found || !ended {
		t.Fatalf("found %v, ended %v, %v", found, ended, err)
	}
	web := free(t)
	(&process{name: "alertmanager", ready: "http://" + web + "/-/ready", args: []string{
		"--config.file=" + file, "--storage.path=" + t.TempDir(), "--web.listen-address=" + web, "--cluster.listen-address=",
	}}).launch(t)
}

// seen waits until a file of the cursor has a revision.
func seen(t *testing.T, cursor, revision string) {
	t.Helper()
	until(t, "the cursor is at "+revision, func() bool {
		text, err := os.ReadFile(cursor)
		return err == nil && strings.Contains(string(text), `"Version":"`+revision+`"`)
	})
}

// earlier makes a file of the cursor say that alerts were told of ten minutes ago, after which their ends are told at
// once.
func earlier(t *testing.T, cursor string) {
	t.Helper()
	var state map[string]any
	text, err := os.ReadFile(cursor)
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range state["Alerts"].(map[string]any) {
		a.(map[string]any)["Told"] = time.Now().Add(-10 * time.Minute)
	}
	if text, err = json.Marshal(state); err == nil {
		err = os.WriteFile(cursor, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(cursor); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// BenchmarkTold measures the time from the record of an event to its message at the receiver, of which Alertmanager's
// group_wait is 10 ms.
func BenchmarkTold(b *testing.B) {
	w := start(b)
	w.alerts(rules, filepath.Join(b.TempDir(), "cursor.json")).launch(b)
	w.create("first", "Broken", "it broke", time.Now())
	w.told("first")
	var most time.Duration
	i := 0
	for b.Loop() {
		name := fmt.Sprintf("web-%d", i)
		i++
		begun := time.Now()
		w.create(name, "Broken", "it broke", begun)
		w.told(name)
		most = max(most, w.of(name)[0].at.Sub(begun))
	}
	b.ReportMetric(float64(most.Milliseconds()), "most-ms")
}
