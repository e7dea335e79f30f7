package dump_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/dump"
)

// readAll reads files, and returns their events and what was left out.
func readAll(t *testing.T, o dump.Options, files ...string) ([]dump.Item, *dump.Report) {
	t.Helper()
	var all []dump.Item
	report, err := dump.Read(t.Context(), files, o, func(items []dump.Item) error {
		all = append(all, items...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, report
}

// TestForms: every form has the events that another reader finds in it, with the same times, counts and contents.
func TestForms(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("testdata/dumps")
	if err != nil || len(entries) < 45 {
		t.Fatal(len(entries), err)
	}
	found := 0
	for _, e := range entries {
		name := filepath.Join("testdata/dumps", e.Name())
		items, report := readAll(t, dump.Options{}, name)
		if e.Name() == "incomplete.json" { // see TestMadeUp
			continue
		}
		var got []string
		for _, it := range items {
			got = append(got, essence(it))
		}
		want := reference(t, name)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", name, diff, strings.Join(report.Lines(), "\n"))
		}
		if int(report.Events) != len(items) {
			t.Errorf("%s: %d events reported, %d read", name, report.Events, len(items))
		}
		found += len(got)
	}
	if found < 100 {
		t.Errorf("only %d events in all", found)
	}
}

// TestReports: what is no event, or is not whole, is named with its place.
func TestReports(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"list.json":       nil,
		"mixed-list.json": {"2 Deployments, 1 Pod: not events"},
		"incomplete.json": {
			`incomplete.json: line 63, item 3: orchard/picker-3.17c0ffee00000003: it cannot be read as an event: json: cannot unmarshal string into Go struct field Event.count of type int32; mend it in the file`,
			`incomplete.json: line 33, item 2: orchard/picker-2.17c0ffee00000002: it has no time at all: give one with --time`,
		},
		"old-fields.json": {
			`old-fields.json: line 5, item 1: the field metadata.clusterName is not kept: events have it no more, or never had it`,
			`old-fields.json: line 39, item 2: the field series.state is not kept: events have it no more, or never had it`,
		},
		"exporter.log": {
			`exporter.log: line 2 and 2 more: the field clusterName is not kept: events have it no more, or never had it`,
			`exporter.log: line 2 and 2 more: the field involvedObject.deleted is not kept: events have it no more, or never had it`,
			`exporter.log: line 2 and 2 more: the field involvedObject.labels is not kept: events have it no more, or never had it`,
			`1 object without a kind: not events`,
		},
		"table.txt":    {"table.txt: the table of kubectl get events, which lacks uids and exact times: ask the sender for the output of kubectl get events -A -o json"},
		"describe.txt": {"describe.txt: the text of kubectl describe, whose events lack names and exact times: ask the sender for the output of kubectl get events -A -o json"},
		"bundle.tgz": {
			"1 Pod, 1 SupportBundle: not events",
			"1 file: no text, and no archive that is known",
		},
		"folder":                {"2 Pods: not events", "2 files: text without events: ask the sender for the output of kubectl get events -A -o json"},
		"cluster-info-dump.txt": {"2 Nodes, 1 object without a kind: not events"},
		"table.json":            {"1 PartialObjectMetadata: not events"},
		"gke.json":              {"1 object without a kind: not events"},
	} {
		_, report := readAll(t, dump.Options{}, filepath.Join("testdata/dumps", name))
		var got []string
		for _, line := range report.Lines() {
			got = append(got, strings.TrimPrefix(line, "testdata/dumps/"))
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOldFields: what events had in old versions is stored, or reported by its name, in whatever version and form it
// comes.
func TestOldFields(t *testing.T) {
	t.Parallel()
	const core = `{"kind":"Event","apiVersion":"v1","metadata":{"name":"e","namespace":"n","uid":"u","clusterName":"north","selfLink":"/x"},"involvedObject":{"namespace":"n"},"firstTimestamp":"2026-02-03T04:05:06Z","reason":"r","message":"m","series":{"count":2,"lastObservedTime":"2026-02-03T05:05:06.000000Z","state":"Ongoing"}}`
	const beta = `{"kind":"Event","apiVersion":"events.k8s.io/v1beta1","metadata":{"name":"e","namespace":"n","uid":"u","clusterName":"north","selfLink":"/x"},"regarding":{"namespace":"n"},"eventTime":"2026-02-03T04:05:06.000000Z","reason":"r","note":"m","series":{"count":2,"lastObservedTime":"2026-02-03T05:05:06.000000Z","state":"Ongoing"}}`
	for name, text := range map[string]string{
		"core/v1":              core,
		"v1beta1":              beta,
		"a list of core/v1":    `{"kind":"List","items":[` + core + `]}`,
		"a list of v1beta1":    `{"kind":"EventList","items":[` + beta + `]}`,
		"core/v1 without kind": strings.Replace(core, `"kind":"Event","apiVersion":"v1",`, "", 1),
		"v1beta1 without kind": strings.Replace(beta, `"kind":"Event","apiVersion":"events.k8s.io/v1beta1",`, "", 1),
		"a frame of a watch":   `{"type":"ADDED","object":` + beta + `}`,
		"YAML":                 "kind: List\nitems:\n- " + core + "\n",
	} {
		file := filepath.Join(t.TempDir(), "dump")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		items, report := readAll(t, dump.Options{}, file)
		lines := strings.ToLower(strings.Join(report.Lines(), "\n"))
		if len(items) != 1 || !report.Noted() || !strings.Contains(lines, "clustername is not kept") || !strings.Contains(lines, "series.state is not kept") {
			t.Errorf("%s: %d events: %s", name, len(items), lines)
			continue
		}
		if ev := items[0].Event; ev.Name != "e" || ev.SelfLink != "/x" || ev.Series == nil || ev.Series.Count != 2 {
			t.Errorf("%s: %v", name, ev)
		}
	}
}

// TestWrapped: an event is found once, whatever is around it.
func TestWrapped(t *testing.T) {
	t.Parallel()
	one := strings.TrimSuffix(anEvent, "\n")
	quoted := strconv.Quote(one)
	pod := `{"kind":"Pod","apiVersion":"v1","metadata":{}}`
	for name, tt := range map[string]struct{ text, says string }{
		"a line as it was and decoded":     {`{"date":1.5,"log":` + quoted + `,"log_processed":` + one + `}`, ""},
		"its version before":               {`{"old_event":` + strings.Replace(one, "e1", "e0", 1) + `,"event":` + one + `}`, ""},
		"a table":                          {`{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":["x"],"object":` + one + `}]}`, ""},
		"lists of other objects":           {`{"kind":"List","items":[{"kind":"Report","results":[{},{"a":1}]},{"kind":"ConfigMap","data":{"a":"b"}},{"kind":"ConfigMap","data":{}},` + one + `]}`, "2 ConfigMaps, 1 Report: not events"},
		"other objects in the same list":   {`{"data":[{"attributes":{"attributes":` + one + `}},{"attributes":{}}]}`, "1 object without a kind: not events"},
		"an unknown list":                  {`{"found":[["x",1,[` + one + `]]]}`, ""},
		"many brackets":                    {"2026 {a} {b} [c] " + strings.Repeat("{", 20) + one, ""},
		"labels before it":                 {`x {"job":"a"} ` + one + ` {"b":1}`, ""},
		"an audit log":                     {one + "\n" + strings.Repeat(strings.Replace(one, `"v1"`, `"audit.k8s.io/v1"`, 1)+"\n", 2), "2 Events of audit.k8s.io/v1: not events"},
		"YAML behind JSON":                 {pod + "\n---\n# x\nkind: List\nitems:\n- " + one + "\n", "1 Pod: not events"},
		"JSON behind YAML":                 {"kind: Pod\napiVersion: v1\n" + one + "\n", "1 Pod: not events"},
		"YAML in Markdown":                 {"Hello,\n```\nx\n```\n```yaml\nkind: List\nitems:\n- " + one + "\n```\nBye: bye\n", ""},
		"words of events in other objects": {`{"msg":"regarding your pear"}` + "\n" + `{"involvedObject":"x"}` + "\n" + one, "2 objects without a kind: not events"},
		"OpenTelemetry without an event":   {`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}` + one, "1 object without a kind: not events"},
	} {
		file := filepath.Join(t.TempDir(), "dump")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		items, report := readAll(t, dump.Options{}, file)
		if lines := strings.Join(report.Lines(), "\n"); len(items) != 1 || items[0].Event.Name != "e1" || lines != tt.says {
			t.Errorf("%s: %d events: %q", name, len(items), lines)
		}
	}
}

// TestTextForPeople: what kubectl prints for people is named in one line, together with what to ask for.
func TestTextForPeople(t *testing.T) {
	t.Parallel()
	pod := "Name:             picker-1\nNamespace:        orchard\nPriority:         0\nService Account:  default\nNode:             row-1/10.0.0.1\n" +
		strings.Repeat("    Mounts:\n      /var/run from pears (ro)\n", 30)
	for name, text := range map[string]string{
		"get":                   "LAST SEEN   TYPE      REASON    OBJECT         MESSAGE\n5m          Normal    Pulled    pod/picker-1   Basket is full\n",
		"get -A":                "NAMESPACE   LAST SEEN   TYPE      REASON    OBJECT         MESSAGE\norchard     5m          Normal    Pulled    pod/picker-1   Basket is full\n",
		"get -o wide":           "LAST SEEN   TYPE     REASON   OBJECT         SUBOBJECT                 SOURCE           MESSAGE          FIRST SEEN   COUNT   NAME\n5m          Normal   Pulled   pod/picker-1   spec.containers{basket}   kubelet, row-1   Basket is full   9m           3       picker-1.17c0\n",
		"get --no-headers":      "5m      Normal    Pulled    pod/picker-1   Basket is full\n3m20s   Warning   BackOff   pod/picker-2   Basket [x] {y}\n",
		"get -A --no-headers":   "orchard   <unknown>   Warning   Evicted   deployment.apps/cart   gone\n",
		"get, old":              "LASTSEEN   FIRSTSEEN   COUNT     NAME            KIND      SUBOBJECT   TYPE      REASON    SOURCE    MESSAGE\n1m         9m          3         picker-1.17c0   Pod                   Normal    Pulled    kubelet   Basket\n",
		"events":                "LAST SEEN               TYPE      REASON    OBJECT         MESSAGE\n5m (x3 over 9m)         Normal    Pulled    Pod/picker-1   Basket\n",
		"a terminal":            "$ kubectl get events -n orchard\n\nLAST SEEN   TYPE      REASON    OBJECT         MESSAGE\n",
		"a table of CRLF":       "LAST SEEN   TYPE      REASON    OBJECT         MESSAGE\r\n5m          Normal    Pulled    pod/picker-1   Basket is full\r\n",
		"describe":              pod + "Events:\n  Type    Reason  Age  From     Message\n  ----    ------  ---  ----     -------\n  Normal  Pulled  5m   kubelet  Basket is full\n",
		"describe, no event":    pod + "Events:                      <none>\n",
		"describe, old":         pod + "Events:\n  FirstSeen\tLastSeen\tCount\tFrom\tSubObjectPath\tType\tReason\tMessage\n",
		"describe of two":       pod + "Events:  <none>\n\n\n" + pod + "Events:  <none>\n",
		"a part of describe":    "  Type    Reason  Age  From     Message\n  ----    ------  ---  ----     -------\n  Normal  Pulled  5m   kubelet  Basket is full\n",
		"describe of resources": "Name:  cart\nKind:  Cart\nAPI Version:  example.com/v1\nMetadata:\n  UID: x\nEvents:\n  Type    Reason  Age  From     Message\n",
	} {
		file := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		items, report := readAll(t, dump.Options{}, file)
		if lines := report.Lines(); len(items) != 0 || report.Failed != 1 || len(lines) != 1 || !strings.HasSuffix(lines[0], "ask the sender for the output of kubectl get events -A -o json") {
			t.Errorf("%s: %d events, %q", name, len(items), lines)
		}
	}
}

// TestMadeUp: an event without a name, a uid or a time gets the same each time.
func TestMadeUp(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 3, 9, 0, 0, 0, time.UTC)
	file := "testdata/dumps/incomplete.json"
	items, report := readAll(t, dump.Options{Time: at, Labels: map[string]string{"a": "b"}}, file)
	again, _ := readAll(t, dump.Options{Time: at, Labels: map[string]string{"a": "b"}}, file, file)
	if len(items) != 3 || report.Failed != 1 || len(again) != 6 {
		t.Fatalf("%d and %d events: %s", len(items), len(again), report.Lines())
	}
	for i, it := range items {
		if diff := cmp.Diff(it.Event, again[i+3].Event); diff != "" || it.Event.Labels["a"] != "b" {
			t.Errorf("%s", diff)
		}
	}
	if ev := items[0].Event; !strings.HasPrefix(ev.Name, "picker-1.") || ev.UID == "" {
		t.Errorf("made %s, %s", ev.Name, ev.UID)
	}
	if ev := items[1].Event; !ev.CreationTimestamp.Time.Equal(at) {
		t.Errorf("time %s", ev.CreationTimestamp)
	}
}

// TestBroken: what is before and behind a broken part is read, and the message says where it is.
func TestBroken(t *testing.T) {
	t.Parallel()
	event := func(i int) string {
		return fmt.Sprintf(`{"kind":"Event","apiVersion":"v1","metadata":{"name":"e%d","namespace":"n","uid":"u%d"},"involvedObject":{"namespace":"n"},"firstTimestamp":"2026-02-03T04:05:06Z"}`, i, i)
	}
	large := strings.Repeat("x", 5<<20)
	for name, tt := range map[string]struct {
		text string
		want string // names of the events
		says string
	}{
		"a line that is cut":               {event(1) + "\n" + event(2)[:50] + "\n" + event(3) + "\n" + event(4) + "\n", "e1 e3 e4", "line 2"},
		"a line that is cut at a :":        {event(1) + "\n{\"kind\":\n" + event(3) + "\n" + event(4) + "\n", "e1 e3 e4", "line 4"},
		"a list that breaks off":           {`{"kind":"List","items":[` + event(1) + ",\n" + event(2) + ",\n" + event(3)[:80], "e1 e2", "line 3: the file breaks off here"},
		"a list with a broken item":        {`{"kind":"List","items":[` + "\n  " + event(1) + ",\n  " + event(2)[:80] + ",\n  " + event(3) + "\n]}\n", "e1 e3", "line 3"},
		"text within":                      {"# events\n" + event(1) + "\nnote: {}\n[x] y\n{z}\n" + event(2), "e1 e2", ""},
		"too deep":                         {event(1) + "\n" + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\n" + event(2) + "\n", "e1 e2", "line 2: not JSON: objects and lists are nested deeper than 100"},
		"too large":                        {event(1) + "\n" + `{"kind":"Secret","data":"` + strings.Repeat("x", 5<<20) + `"}` + "\n" + event(2) + "\n", "e1 e2", ""},
		"too large, with its kind behind":  {`{"apiVersion":"v1","data":"` + strings.Repeat("x", 5<<20) + `","kind":"Secret"}` + "\n" + event(2) + "\n", "e2", ""},
		"an event that is too large":       {event(1) + "\n" + strings.Replace(event(2), `"uid"`, `"annotations":{"a":"`+large+`"},"uid"`, 1) + "\n" + event(3) + "\n", "e1 e3", "line 2: it is larger than 4 MiB"},
		"an item that is too large":        {`{"kind":"List","items":[` + event(1) + ",\n" + strings.Replace(event(2), `"uid"`, `"annotations":{"a":"`+large+`"},"uid"`, 1) + ",\n" + event(3) + "]}\n", "e1 e3", "line 2, item 2: it is larger than 4 MiB"},
		"a large one with its kind behind": {`{"metadata":{"name":"e1","annotations":{"a":"` + large + `"}},"kind":"Event","apiVersion":"v1"}` + "\n" + event(2) + "\n", "e2", "line 1: it is larger than 4 MiB"},
		"a large one without a kind":       {`{"metadata":{"name":"e1","annotations":{"a":"` + strings.Repeat("x", 12<<20) + `"}},"involvedObject":{},"reason":"r"}` + "\n" + event(2) + "\n", "e2", "line 1: it is larger than 4 MiB"},
		"a large frame of a watch":         {`{"type":"ADDED","object":` + strings.Replace(event(1), `"uid"`, `"annotations":{"a":"`+large+`"},"uid"`, 1) + "}\n" + event(2) + "\n", "e2", "line 1: it is larger than 4 MiB"},
		"a large frame of something else":  {`{"type":"ADDED","object":{"kind":"Secret","data":"` + large + `"}}` + "\n" + event(2) + "\n", "e2", ""},
		"a large line of a log":            {"a F " + strings.Replace(event(1), `"note"`, `"x"`, 1)[:60] + `"involvedObject":{},"a":"` + large + "\"}\n" + event(2) + "\n", "e2", "line 1: it is larger than 4 MiB"},
		"a YAML event that is too large":   {"kind: Event\napiVersion: v1\nmessage: " + strings.Repeat("x", 2<<20) + "\nreason: " + strings.Repeat("x", 2<<20) + "\n---\n" + event(2) + "\n", "e2", "line 1: not YAML that can be read: it has more than 50000 values or 3 MiB"},
		"an audit log":                     {strings.Replace(event(1), `"v1"`, `"audit.k8s.io/v1"`, 1) + "\n" + event(2), "e2", ""},
		"a frame within a log":             {`{"log":"{\"type\":\"ADDED\",\"object\":` + strings.ReplaceAll(event(5), `"`, `\"`) + `}\n"}`, "e5", ""},
		"a name twice":                     {strings.Replace(event(1), `"name":"e1"`, `"name":"e0","name":"e1"`, 1), "e1", "is there twice"},
		"YAML with an unknown anchor":      {"kind: List\nitems:\n- kind: Event\n  a: *x\n- {kind: Event, apiVersion: v1, metadata: {name: e2, namespace: shop, creationTimestamp: 2026-02-03T04:05:06Z}}\n", "e2", "line 3, item 1"},
		"YAML with many aliases":           {"kind: Event\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", "", "excessive aliasing"},
		"YAML that is deep":                {"kind: Event\na: " + strings.Repeat("[", 20000) + "\n", "", "depth"},
		"YAML of many values":              {"kind: Event\na: [" + strings.Repeat("1,", 60000) + "]\n", "", "more than 50000 values"},
	} {
		file := filepath.Join(t.TempDir(), "dump")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		items, report := readAll(t, dump.Options{}, file)
		var names []string
		for _, it := range items {
			names = append(names, it.Event.Name)
		}
		lines := strings.Join(report.Lines(), "\n")
		if got := strings.Join(names, " "); got != tt.want || !strings.Contains(lines, tt.says) || tt.says == "" && report.Failed > 0 {
			t.Errorf("%s: events %q, want %q: %s", name, got, tt.want, lines)
		}
	}
}

// TestStops: the reading ends with its context, and with an error of who takes the events.
func TestStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dump.Read(ctx, []string{"testdata/dumps"}, dump.Options{}, func([]dump.Item) error { return nil }); err == nil {
		t.Error("a context that has ended is not noticed")
	}
	if _, err := dump.Read(t.Context(), []string{"testdata/dumps"}, dump.Options{}, func([]dump.Item) error { return os.ErrClosed }); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error %v", err)
	}
}
