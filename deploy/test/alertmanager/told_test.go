package alertmanager_test

import (
	"path/filepath"
	"strings"
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
- name: Loops
  search: reason:Restarted
  occurrences: 3
  within: 10m
  labels: {namespace: "{{.Namespace}}", name: "{{.Name}}"}
`

// TestTold: what arrives is told once, by either of two Alertmanagers, with the name of the pod, the note and a link to the
// revision; also with two processes that have the same rules.
func TestTold(t *testing.T) {
	w := start(t)
	for range 2 {
		w.alerts(rules, filepath.Join(t.TempDir(), "cursor.json")).launch(t)
	}
	at := time.Now().Truncate(time.Second)
	revision := w.create("web-0", "Broken", "it <b>broke</b>", at)
	w.create("web-1", "Other", "nobody is told", at)
	until(t, "the message arrives", func() bool { return len(w.of("web-0")) > 0 })
	w.flushed(1)
	once(t, w.names("firing"), "web-0")
	got := w.of("web-0")[0].Alerts[0]
	if got.Annotations["summary"] != "Pod shop/web-0: it ‹b›broke‹/b›" || got.Labels["alertname"] != "Breaks" || !got.StartsAt.Equal(at) ||
		!strings.HasPrefix(got.GeneratorURL, w.url+"/console/#/events?") || !strings.Contains(got.GeneratorURL, "revision="+revision) {
		t.Errorf("%+v", got)
	}
}
