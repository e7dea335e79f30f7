package dump_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/dump"
)

// TestOddFiles: what people send is read, or a line says what is not read and what to ask for. Nothing that only looks
// like an event becomes one.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	const askFor = "ask the sender for the output of kubectl get events -A -o json"
	one := strings.TrimSuffix(anEvent, "\n")
	block := func(name string) string {
		return "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Event\n  metadata: {name: " + name + ", namespace: shop, uid: u-" + name + "}\n" +
			"  involvedObject:\n    kind: Pod\n    namespace: shop\n  firstTimestamp: 2026-02-03T04:05:06Z\n"
	}
	indented := "    " + strings.ReplaceAll(strings.TrimSuffix(block("a"), "\n"), "\n", "\n    ") + "\n"
	quoted := strings.ReplaceAll(indented, "    ", "> ")
	configMap := func(members string) string { return `{"apiVersion":"v1",` + members + `,"metadata":{"name":"x"}}` }
	escaped := strings.ReplaceAll(one, `"`, `\"`)
	for name, tt := range map[string]struct {
		text   string
		events string   // their names
		notes  []string // what is said, in parts
	}{
		"two blocks of YAML, one behind a prompt": {"Hello,\n\n```\n$ kubectl get events -o yaml\n" + block("a") + "```\nand\n```yaml\n" + block("b") + "```\nBye\n", "a b", nil},
		"the second one behind a prompt":          {"```yaml\n" + block("a") + "```\nand\n```\nroot@node:~# kubectl get events \\\n    -o yaml\n" + block("b") + "root@node:~# exit\n```\n", "a b", nil},
		"a prompt of Windows":                     {"PS C:\\> kubectl get events -o yaml\n" + block("a") + "PS C:\\> exit\n", "a", nil},
		"two commands without a fence":            {"% kubectl get events -o yaml\n" + block("a") + "% kubectl get events -n b -o yaml\n" + block("b"), "a b", nil},
		"YAML below a sentence":                   {"This is what we have:\n" + block("a"), "a", nil},
		"YAML that is indented":                   {"Hello:\n\n" + indented, "", []string{"line 9: an event within other text is not read", askFor}},
		"YAML that is quoted":                     {"Hello:\n\n" + quoted, "", []string{"an event within other text is not read", askFor}},
		"flow style that is indented":             {"Hello:\n\n" + block("a") + "```\n1. Step\n   ```yaml\n   kind: Event\n   involvedObject: {kind: Pod, name: p}\n   ```\n", "a", []string{"an event within other text is not read"}},
		"JSON that is quoted":                     {"Hello:\n\n> {\n>   \"kind\": \"Event\",\n>   \"involvedObject\": {\n>     \"kind\": \"Pod\"\n>   }\n> }\n", "", []string{"an event within other text is not read", askFor}},
		"fences of tildes":                        {"Hello,\n\n~~~yaml\n" + block("a") + "~~~\nand\n```yaml\n" + block("b") + "```\nBye\n", "a b", nil},
		"Windows-1252":                            {strings.Replace(one, `"firstTimestamp"`, "\"message\":\"Ger\xe4t \x84voll\x93 \x80\",\"firstTimestamp\"", 1), "e1: Gerät „voll“ €", []string{"the text is not all UTF-8: what is not was read as Windows-1252"}},
		"UTF-8 across a read":                     {strings.Replace(one, `"firstTimestamp"`, `"message":"`+strings.Repeat("ä", 40_000)+`","firstTimestamp"`, 1), "e1: " + strings.Repeat("ä", 40_000), nil},
		"a ConfigMap":                             {configMap(`"data":{"e.json":"` + escaped + `"},"kind":"ConfigMap"`), "", []string{"1 ConfigMap: not events"}},
		"a ConfigMap, its kind first":             {configMap(`"kind":"ConfigMap","data":{"e.json":` + one + `}`), "", []string{"1 ConfigMap: not events"}},
		"a ConfigMap in a list":                   {`{"apiVersion":"v1","items":[` + configMap(`"data":{"e.json":"`+escaped+`"},"kind":"ConfigMap"`) + "," + one + `],"kind":"List"}`, "e1", []string{"1 ConfigMap: not events"}},
		"a ConfigMap in YAML":                     {"apiVersion: v1\nkind: ConfigMap\ndata:\n  e: |\n    involvedObject:\n      name: x\n", "", []string{"1 ConfigMap: not events"}},
		"an object with a list of events":         {`{"apiVersion":"example.com/v1","kind":"Report","events":[` + one + `]}`, "", []string{"1 Report: not events"}},
		"a line of a log that says Event":         {`{"kind":"Event","note":"x"}` + "\n" + one, "e1", []string{"line 1: what calls itself an Event has no object that it is about"}},
		"a line of a log with words of events":    {`{"regarding":"your pear","reason":"x"}` + "\n" + `{"involvedObject":[],"message":"x"}` + "\n" + one, "e1", []string{"2 objects without a kind: not events"}},
		"an Event of another system":              {`{"apiVersion":"v1","kind":"Event","message":"x"}`, "", []string{"has no object that it is about"}},
		"Metricbeat":                              {`{"hits":{"hits":[{"_source":{"kubernetes":{"event":{"involved_object":{"kind":"Pod"},"reason":"R"}}}}]}}`, "", []string{"a record of Metricbeat or the Elastic Agent", askFor}},
		"Metricbeat, flat":                        {`{"kubernetes.event.reason":"R","message":"m"}`, "", []string{"a record of Metricbeat or the Elastic Agent", askFor}},
		"the receiver k8s_events":                 {`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"m"},"attributes":[{"key":"k8s.event.reason","value":{"stringValue":"R"}}]}]}]}]}`, "", []string{"a record of the receiver k8s_events of OpenTelemetry", askFor}},
		"the same as text":                        {"LogRecord #0\nAttributes:\n     -> k8s.event.reason: Str(BackOff)\n", "", []string{"a record of the receiver k8s_events of OpenTelemetry", "text without events: " + askFor}},
		"any text":                                {"hello\n", "", []string{"text without events: " + askFor}},
	} {
		file := filepath.Join(t.TempDir(), "dump")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		items, report := readAll(t, dump.Options{}, file)
		var got []string
		for _, it := range items {
			says := it.Event.Name
			if by := it.Event.ReportingController; by != "" {
				says += " by " + by
			}
			if note := it.Event.Note; note != "" {
				says += ": " + note
			}
			got = append(got, says)
		}
		lines := strings.Join(report.Lines(), "\n")
		if strings.Join(got, " ") != tt.events || lines != "" && tt.notes == nil {
			t.Errorf("%s: %.200q, want %.200q; %s", name, got, tt.events, lines)
		}
		for _, part := range tt.notes {
			if !strings.Contains(lines, part) {
				t.Errorf("%s: %q is not said: %s", name, part, lines)
			}
		}
	}
}

// TestFilesWithoutEvents: of several files, those without events are named.
func TestFilesWithoutEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	empty, pods, good := write("empty", `{"kind":"List","items":[]}`), write("pods", `{"kind":"Pod","apiVersion":"v1"}`), write("good", anEvent)
	_, report := readAll(t, dump.Options{}, empty, good, pods)
	if lines := strings.Join(report.Lines(), "\n"); report.Events != 1 || !strings.Contains(lines, "no events are in "+empty+", "+pods) {
		t.Errorf("%d events: %s", report.Events, lines)
	}
	if _, report := readAll(t, dump.Options{}, good); len(report.Lines()) > 0 {
		t.Error(report.Lines())
	}
}
