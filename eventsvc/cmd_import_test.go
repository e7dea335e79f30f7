package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dumpFile writes lines to a file, and returns its name.
func dumpFile(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dump")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// dumped is an event of a cluster, in a version.
func dumped(name, uid string, count, version int) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"v1","metadata":{"name":%q,"namespace":"shop","uid":%q,"resourceVersion":"%d","creationTimestamp":"2026-02-03T04:00:00Z"},`+
		`"involvedObject":{"kind":"Pod","namespace":"shop","name":"web"},"reason":"R","type":"Normal","message":"m","count":%d,"firstTimestamp":"2026-02-03T04:00:00Z","lastTimestamp":"2026-02-03T04:%02d:00Z"}`,
		name, uid, version, count, count)
}

func framed(kind, object string) string { return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object) }

// exported returns what a store has: each event with its name, uid and count.
func exported(t *testing.T, dir string) (all []string) {
	t.Helper()
	for line := range strings.Lines(command(t, 0, "export", "-", "--data-dir="+dir)) {
		ev := decoded[struct {
			Type   string
			Object struct {
				Metadata struct {
					Name, UID string
					Labels    map[string]string
				}
				DeprecatedCount int
			}
		}](t, line)
		if ev.Type != "BOOKMARK" {
			all = append(all, fmt.Sprint(ev.Object.Metadata.Name, " ", ev.Object.Metadata.UID, " ", ev.Object.DeprecatedCount, " ", ev.Object.Metadata.Labels["cluster"]))
		}
	}
	return all
}

// TestImportVersions: of several versions of an event the newest stays, in whatever files and order they come.
// Deletions are applied on demand.
func TestImportVersions(t *testing.T) {
	t.Parallel()
	first, second, third := dumped("e", "u", 1, 101), dumped("e", "u", 4, 104), dumped("e", "u", 9, 109)
	label := strings.Replace(third, `"uid"`, `"labels":{"cluster":"x"},"uid"`, 1) // nothing was observed, but the version is newer
	label = strings.Replace(label, `"109"`, `"110"`, 1)
	for name, tt := range map[string]struct {
		files [][]string
		args  []string
		want  []string
	}{
		"in order":                      {[][]string{{framed("ADDED", first), framed("MODIFIED", second), framed("MODIFIED", third)}}, nil, []string{"e u 9 "}},
		"backwards":                     {[][]string{{third}, {second}, {first}}, nil, []string{"e u 9 "}},
		"only a label":                  {[][]string{{label}, {third}, {first}}, nil, []string{"e u 9 x"}},
		"without versions":              {[][]string{{strings.Replace(third, `"109"`, `""`, 1)}, {strings.Replace(first, `"101"`, `""`, 1)}}, nil, []string{"e u 9 "}},
		"one version, told twice":       {[][]string{{framed("ADDED", first), framed("MODIFIED", dumped("e", "u", 4, 101))}}, nil, []string{"e u 4 "}},
		"a deletion":                    {[][]string{{framed("ADDED", first), framed("DELETED", second)}}, nil, []string{"e u 4 "}},
		"a deletion that counts":        {[][]string{{framed("ADDED", first), framed("DELETED", second)}}, []string{"--apply-deletions"}, nil},
		"another of the name":           {[][]string{{first, dumped("e", "v", 2, 7)}, {dumped("e", "v", 3, 8)}}, nil, []string{"e u 1 ", "e.1f807e6b8d v 3 "}},
		"another of the name, clusters": {[][]string{{first, dumped("e", "v", 2, 7)}}, []string{"--cluster=north"}, []string{"e u 1 north", "e.e441e3abe3 v 2 north"}},
	} {
		dir := t.TempDir()
		var files []string
		for _, lines := range tt.files {
			files = append(files, dumpFile(t, lines...))
		}
		args := append(append([]string{"import", "--data-dir=" + dir}, files...), tt.args...)
		command(t, 0, args...)
		if diff := cmp.Diff(tt.want, exported(t, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		digest := command(t, 0, "digest", "--data-dir="+dir)
		if said := command(t, 0, args...); len(tt.args) == 0 && !strings.HasPrefix(said, "0 created, 0 changed, 0 deleted") {
			t.Errorf("%s, again: %s", name, said)
		}
		if again := command(t, 0, "digest", "--data-dir="+dir); again != digest {
			t.Errorf("%s, again: %s, was %s", name, again, digest)
		}
	}
}

// TestImportTellsClusters: dumps of two clusters without colliding names get a warning if an object that lives long has
// different uids in them, in one command or one after the other, unless a label tells them apart.
func TestImportTellsClusters(t *testing.T) {
	t.Parallel()
	about := func(name, kind, object, uid string) string {
		return strings.Replace(dumped(name, "u-"+name, 1, 1), `"kind":"Pod","namespace":"shop","name":"web"`, fmt.Sprintf(`"kind":%q,"namespace":"shop","name":%q,"uid":%q`, kind, object, uid), 1)
	}
	north := dumpFile(t, about("a", "Deployment", "cart", "1"), about("b", "Pod", "web-0", "2"), about("c", "Node", "row", "row"))
	south := dumpFile(t, about("d", "Deployment", "cart", "3"), about("e", "Node", "row", "4"))
	const want = "Deployment shop/cart has one uid in "
	for name, tt := range map[string]struct {
		files [][]string // of each command
		args  []string
		want  string // of the last one
	}{
		"in one command":        {[][]string{{north, south}}, nil, want + north + " and another in " + south + ": "},
		"one after the other":   {[][]string{{north}, {south}}, nil, want + "the store and another in " + south + ": "},
		"in a folder":           {[][]string{{north}, {filepath.Dir(south)}}, nil, want + "the store and another in " + filepath.Dir(south) + ": "},
		"the same again":        {[][]string{{north}, {north}}, nil, ""},
		"of one cluster":        {[][]string{{north, north}}, []string{"--cluster=north"}, ""},
		"with another label":    {[][]string{{north, south}}, []string{"--label=team=a"}, ""},
		"a Pod that came again": {[][]string{{north, dumpFile(t, about("f", "Pod", "web-0", "5"))}}, nil, ""},
		"a kubelet's Node":      {[][]string{{dumpFile(t, about("g", "Node", "row", "row")), dumpFile(t, about("h", "Node", "row", "4"))}}, nil, ""},
		"made anew":             {[][]string{{north, dumpFile(t, about("i", "Deployment", "cart", "1"), about("j", "Deployment", "cart", "6"))}}, nil, ""},
		"two of them": {[][]string{{dumpFile(t, about("k", "Node", "x", "1"), about("l", "Namespace", "y", "2"))},
			{dumpFile(t, about("m", "Node", "x", "3"), about("n", "Namespace", "y", "4"))}}, nil, "Namespace shop/y has one uid in the store"},
	} {
		dir, said := t.TempDir(), ""
		for _, files := range tt.files {
			said = command(t, 0, append(append([]string{"import", "--data-dir=" + dir}, files...), tt.args...)...)
		}
		if tt.want == "" && strings.Contains(said, "uid") || !strings.Contains(said, tt.want) || tt.want != "" && !strings.Contains(said, "--cluster NAME") {
			t.Errorf("%s: %s", name, said)
		}
		if name == "two of them" && !strings.Contains(said, ", and so have 1 more: ") {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// TestImportCountsOnce: a watch that is imported twice, into a running service, counts each observation once, and does
// not move the revisions of the service.
func TestImportCountsOnce(t *testing.T) {
	t.Parallel()
	i, dir := newIssuer(t), t.TempDir()
	p := start(t, dir, i)
	p.do("POST", eventsPath, newEvent("own"))
	_, list := p.do("GET", eventsPath, "")
	known := list["metadata"].(map[string]any)["resourceVersion"].(string)
	file := dumpFile(t, framed("ADDED", dumped("e", "u", 1, 900001)), framed("MODIFIED", dumped("e", "u", 4, 900004)), framed("MODIFIED", dumped("e", "u", 9, 900009)))
	for range 2 {
		said := command(t, 0, "import", file, "--data-dir="+dir, "--listen-admin="+p.addrs["--listen-admin"])
		if strings.Contains(said, "continues after") {
			t.Error(said)
		}
		code, histogram := p.do("GET", "/query/v1/histogram?from=2026-02-03T00:00:00Z&to=2026-02-04T00:00:00Z&step=24h", "")
		if total := histogram["total"]; code != 200 || total != 9.0 {
			t.Errorf("%d: %v were observed, want 9", code, total)
		}
	}
	if code, answer := p.do("GET", eventsPath+"?resourceVersionMatch=Exact&resourceVersion="+known, ""); code != 200 {
		t.Errorf("a revision from before the import: %d %v", code, answer)
	}
}

// TestImportKeepsClusters: an import does not move an event to another cluster unless it is told to, and loses none.
func TestImportKeepsClusters(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), dumpFile(t, dumped("e", "u", 1, 1))
	labelled := dumpFile(t, strings.Replace(dumped("f", "v", 1, 1), `"uid"`, `"labels":{"tidings.example/cluster":"north"},"uid"`, 1))
	bare := dumpFile(t, strings.Replace(dumped("e", "u", 1, 1), `"resourceVersion":"1",`, "", 1))
	for _, step := range []struct {
		args []string
		code int
		says string
		want string
	}{
		{[]string{bare}, 0, "1 created", "e u 1 "},
		{[]string{bare, "--cluster=north"}, 0, "1 changed", "e u 1 north"},
		{[]string{bare}, 0, "1 unchanged", "e u 1 north"},
		{[]string{file, "--cluster=north"}, 0, "1 unchanged", "e u 1 north"},
		{[]string{file}, 0, "1 unchanged", "e u 1 north"},
		{[]string{dumpFile(t, dumped("e", "u", 3, 3))}, 0, "1 changed", "e u 3 north"},
		{[]string{file, "--cluster=south"}, 3, "it is stored as one of cluster north: import it with --cluster north, or say --relabel", "e u 3 north"},
		{[]string{labelled, "--cluster=south"}, 3, "it is of cluster north: leave out --cluster, or say --relabel", "e u 3 north"},
		{[]string{dumpFile(t, dumped("e", "u", 3, 3)), "--cluster=south", "--relabel"}, 0, "1 changed", "e u 3 south"},
	} {
		said := command(t, step.code, append([]string{"import", "--data-dir=" + dir}, step.args...)...)
		if got := strings.Join(exported(t, dir), ", "); !strings.Contains(said, step.says) || got != step.want {
			t.Errorf("%v: %s, want %s: %s", step.args, got, step.want, said)
		}
	}
}

// TestImportStrict: nothing of a file is stored in which anything is wrong, or has a field that would not be kept.
func TestImportStrict(t *testing.T) {
	t.Parallel()
	good := dumpFile(t, dumped("good", "u1", 1, 1))
	for says, bad := range map[string]string{
		"metadata.clusterName": dumpFile(t, dumped("a", "u2", 1, 1), strings.Replace(dumped("b", "u3", 1, 1), `"uid"`, `"clusterName":"x","uid"`, 1)),
		"series.state": dumpFile(t, dumped("a", "u2", 1, 1), `{"kind":"Event","apiVersion":"events.k8s.io/v1beta1","metadata":{"name":"b","namespace":"shop"},"regarding":{"namespace":"shop"},"reason":"R",`+
			`"eventTime":"2026-02-03T04:00:00.000000Z","series":{"count":2,"lastObservedTime":"2026-02-03T04:00:00.000000Z","state":"Ongoing"}}`),
		"it is larger than 4 MiB": dumpFile(t, dumped("a", "u2", 1, 1), strings.Replace(dumped("b", "u3", 1, 1), `"uid"`, `"annotations":{"a":"`+strings.Repeat("x", 5<<20)+`"},"uid"`, 1)),
		"not JSON":                dumpFile(t, dumped("a", "u2", 1, 1), `{"kind":"Event",]`),
		"no time at all":          dumpFile(t, dumped("a", "u2", 1, 1), `{"kind":"Event","apiVersion":"v1","metadata":{"name":"b"}}`),
	} {
		dir := t.TempDir()
		said := command(t, 3, "import", bad, good, "--strict", "--data-dir="+dir)
		if !strings.Contains(said, says) || !strings.Contains(said, "--strict: nothing of it is stored") {
			t.Errorf("%s is not said: %s", says, said)
		}
		if diff := cmp.Diff([]string{"good u1 1 "}, exported(t, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", says, diff)
		}
	}
}

// TestImportFindsNothing: a file without events is a failure with a code of its own, and says what it is.
func TestImportFindsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for says, file := range map[string]string{
		"ask the sender for the output of kubectl get events -A -o json": dumpFile(t, "LAST SEEN   TYPE     REASON   OBJECT   MESSAGE", "5m          Normal   Pulled   pod/a    x"),
		"1 Pod: not events":            dumpFile(t, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`),
		"there are no events: ask for": dumpFile(t, `{"kind":"List","apiVersion":"v1","items":[]}`),
		"no such file":                 filepath.Join(dir, "none"),
	} {
		if said := command(t, 3, "import", file, "--data-dir="+dir); !strings.Contains(said, says) {
			t.Errorf("%q is not said: %s", says, said)
		}
	}
	command(t, 2, "import", "x", "--cluster=no label", "--data-dir="+dir)
	command(t, 2, "import", "x", "--label=a/b/c=d", "--data-dir="+dir)
	command(t, 2, "import", "--data-dir="+dir)
}

// TestImportRoundTrip: an export of everything that the dumps of the tests have is imported to the same.
func TestImportRoundTrip(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	command(t, 3, "import", "internal/dump/testdata/dumps", "--data-dir="+one) // some are not whole
	file := filepath.Join(t.TempDir(), "export")
	command(t, 0, "export", file, "--data-dir="+one)
	command(t, 0, "import", file, "--data-dir="+two)
	rest := filepath.Join(t.TempDir(), "rest")
	_, after, _ := strings.Cut(command(t, 0, "export", filepath.Join(t.TempDir(), "again"), "--data-dir="+one), "--after ")
	command(t, 0, "export", rest, "--after="+strings.TrimSpace(after), "--data-dir="+one)
	if said := command(t, 0, "import", rest, "--data-dir="+two); !strings.Contains(said, "0 created") {
		t.Errorf("an export of nothing: %s", said)
	}
	a, b := command(t, 0, "digest", "--data-dir="+one), command(t, 0, "digest", "--data-dir="+two)
	if a != b || strings.HasPrefix(a, "0 ") {
		t.Errorf("the digests are %q and %q", a, b)
	}
}

// TestUndo: the service lists what was deleted since a time, in whatever way, and by whom, but nothing that is there.
// An import of the list brings exactly these events back, with their uids, while a watch goes on and sees them.
func TestUndo(t *testing.T) {
	t.Parallel()
	i, dir := newIssuer(t), t.TempDir()
	p := start(t, dir, i)
	here := []string{"--data-dir=" + dir, "--listen-admin=" + p.addrs["--listen-admin"]}
	for n := range 13 {
		p.do("POST", eventsPath, strings.Replace(newEvent(fmt.Sprint("e", n)), `"metadata":{`, fmt.Sprintf(`"metadata":{"labels":{"part":"p%d"},`, n/4), 1))
	}
	before := p.items(0)
	p.do("DELETE", eventsPath+"/e1", "")
	p.do("POST", eventsPath, newEvent("e1")) // another one of the name
	p.do("DELETE", eventsPath+"/e1", "")
	p.do("DELETE", eventsPath+"?labelSelector=part%3Dp1", "")
	p.do("PATCH", eventsPath+"/e12", `{"metadata":{"labels":{"since":"then"}}}`)
	deleted := func() (file string, names []string) {
		t.Helper()
		code, answer := p.do("GET", "/query/v1/deleted?namespace=default&from=-1h", "")
		if code != 200 || answer["partial"] == true && answer["partialReason"] == "" {
			t.Fatal(code, answer)
		}
		for _, item := range answer["items"].([]any) {
			item := item.(map[string]any)
			names = append(names, item["event"].(map[string]any)["metadata"].(map[string]any)["name"].(string))
			if by := item["by"].(map[string]any); by["client"] != "demo" || by["audit"] == "" {
				t.Errorf("deleted by %v", by)
			}
		}
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		return dumpFile(t, string(text)), names
	}
	if _, names := deleted(); !cmp.Equal(names, []string{"e1", "e1", "e4", "e5", "e6", "e7"}) {
		t.Errorf("deleted by name and label: %v", names)
	}
	p.do("DELETE", eventsPath, "")
	file, names := deleted()
	if len(names) != 14 {
		t.Fatalf("deleted: %v", names)
	}
	watch, err := p.send("GET", eventsPath+"?watch=1", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	if said := command(t, 1, append([]string{"import", file, "--expect", "13"}, here...)...); !strings.Contains(said, "the files have 14 events: none is stored") {
		t.Error(said)
	}
	if said := command(t, 0, append([]string{"import", file, "--expect", "14"}, here...)...); !strings.HasPrefix(said, "14 created, 0 changed, 0 deleted, 0 unchanged, 0 left out\n") {
		t.Error(said)
	}
	// What is there is left as it is, in whatever form it is told: without managed fields, as kubectl prints it, or
	// otherwise spelled.
	_, list := p.do("GET", eventsPath, "")
	whole, _ := json.MarshalIndent(list, "", "    ")
	for _, item := range list["items"].([]any) {
		delete(item.(map[string]any)["metadata"].(map[string]any), "managedFields")
	}
	bare, _ := json.Marshal(list)
	listed, _ := os.ReadFile(file)
	for form, text := range map[string]string{"indented": string(whole), "without managed fields": string(bare), "the list of deletions": string(listed)} {
		if said := command(t, 0, append([]string{"import", dumpFile(t, text)}, here...)...); !strings.HasPrefix(said, "0 created, 0 changed, 0 deleted, 14 unchanged, 0 left out\n") {
			t.Errorf("%s: %s", form, said)
		}
	}
	if _, names := deleted(); len(names) != 0 {
		t.Errorf("deleted, after they came back: %v", names)
	}
	uids := func(items []any) map[string]bool {
		all := map[string]bool{}
		for _, item := range items {
			all[fmt.Sprint(item.(map[string]any)["metadata"].(map[string]any)["uid"])] = true
		}
		return all
	}
	after := uids(p.items(0))
	for uid := range uids(before) {
		if !after[uid] {
			t.Errorf("uid %s is not back", uid)
		}
	}
	frames := json.NewDecoder(watch.Body)
	for range 14 {
		var frame struct{ Type string }
		if err := frames.Decode(&frame); err != nil || frame.Type != "ADDED" {
			t.Fatalf("the watch has %+v: %v", frame, err)
		}
	}
}

// TestOwnOutput: what get prints in any form is imported unchanged.
func TestOwnOutput(t *testing.T) {
	t.Parallel()
	i, dir := newIssuer(t), t.TempDir()
	p := start(t, dir, i)
	command(t, 3, "import", "internal/dump/testdata/dumps", "--data-dir="+dir, "--listen-admin="+p.addrs["--listen-admin"])
	p.do("POST", eventsPath, strings.Replace(newEvent("odd"), `"reason"`, `"note":"a: |\n\u001b[2J \u202e --- # 'x'\n\n- y\t","reason"`, 1))
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(p.token), 0o600); err != nil {
		t.Fatal(err)
	}
	want := command(t, 0, "digest", "--data-dir="+dir, "--listen-admin="+p.addrs["--listen-admin"])
	for _, form := range []string{"json", "yaml", "ndjson"} {
		out := command(t, 0, "get", "-A", "-o", form, "--server", "http://"+p.addrs["--listen-http"], "--token-file", token)
		if strings.ContainsAny(out, "\x1b\u202e") {
			t.Errorf("%s has control characters", form)
		}
		copied := t.TempDir()
		command(t, 0, "import", dumpFile(t, out), "--strict", "--data-dir="+copied)
		if got := command(t, 0, "digest", "--data-dir="+copied); got != want {
			t.Errorf("%s: %s, want %s", form, got, want)
		}
	}
	for _, form := range []string{"json", "yaml"} {
		out := command(t, 0, "get", "-n", "none", "-o", form, "--server", "http://"+p.addrs["--listen-http"], "--token-file", token)
		if !strings.Contains(out, "[]") {
			t.Errorf("an empty list in %s: %q", form, out)
		}
	}
}
