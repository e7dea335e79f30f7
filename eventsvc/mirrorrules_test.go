package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/mirror/mirrortest"
	"tidings.example/shared/randtest"
	"tidings.example/shared/waittest"
)

// TestMirrorDrops: a mirror that is killed again and again, and whose rules change, copies what the rules leave and
// nothing else, and the events with the reason EventsDropped count exactly the changes that are missing.
func TestMirrorDrops(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	const quiet = "--log-level=warn"
	source, target := start(t, t.TempDir(), i, quiet), start(t, t.TempDir(), i, quiet)
	rulesFile := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		if err := os.WriteFile(rulesFile+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(rulesFile+".new", rulesFile); err != nil {
			t.Fatal(err)
		}
	}
	write(`
- {name: warnings, where: type=Warning, keep: 30d}
- {name: pulled, where: "reason in (Pulled,Created)", namespaces: ["ci-*"], drop: true}
- {name: killing, where: reason=Kill*, drop: true}
- {name: all, where: "reason=MirrorGap", drop: true}
`)
	naive := func(namespace, reason, kind string) string { // the rule that drops; "": none
		switch {
		case kind == "Warning":
		case (reason == "Pulled" || reason == "Created") && strings.HasPrefix(namespace, "ci-"):
			return "pulled"
		case strings.HasPrefix(reason, "Kill"):
			return "killing"
		}
		return ""
	}
	args := []string{"--kubeconfig=" + kubeconfigFor(t, source.url("--listen-http"), source.token), "--cluster=a", "--server=" + target.url("--listen-http"),
		"--token-file=" + file(t, source.token), "--rules-file=" + rulesFile, "--enrich="}
	mirror := &child{t: t, args: append([]string{"mirror", "--listen-admin="}, args...)}
	mirror.start()
	t.Cleanup(func() {
		mirror.kill()
		if t.Failed() {
			t.Logf("the mirror:\n%s", mirror.log.String())
		}
	})
	at := func(name string) (int, map[string]any) {
		return target.do("GET", "/api/v1/namespaces/kube-system/events/"+name, "")
	}
	waittest.Until(t, "the mirror has begun", func() bool {
		code, _ := at("eventsvc-mirror.a")
		return code == 200
	})
	wantCounts, missing, versions := map[string]int{}, map[string]bool{}, 0
	var last string
	type known struct{ path, rule, uid string }
	var all []known
	random := randtest.New(t)
	for n := range 240 {
		if n%40 == 39 {
			mirror.kill()
			mirror.start()
		}
		pick := func(of ...string) string { return of[random.IntN(len(of))] }
		namespace, reason, kind := pick("ci-a", "ci-b", "shop"), pick("Pulled", "Created", "Killing", "Started"), pick("Normal", "Normal", "Warning")
		path := "/api/v1/namespaces/" + namespace + "/events"
		code, ev := source.do("POST", path, fmt.Sprintf(`{"metadata":{"name":"e%d"},"involvedObject":{"kind":"Pod","name":"web","namespace":%q},`+
			`"reason":%q,"message":"m","type":%q,"count":1,"firstTimestamp":%q,"lastTimestamp":%[5]q,"source":{"component":"kubelet"}}`,
			n, namespace, reason, kind, time.Now().UTC().Format(time.RFC3339)))
		if code != 201 {
			t.Fatal(code, ev)
		}
		uid, version := metadata(ev, "uid"), metadata(ev, "resourceVersion")
		one := known{path + fmt.Sprintf("/e%d", n), naive(namespace, reason, kind), uid}
		all = append(all, one)
		missing[uid] = one.rule != ""
		count := func(rule string) {
			versions++
			if rule != "" {
				wantCounts[rule]++
			}
		}
		count(one.rule)
		if random.IntN(2) == 0 {
			other := all[random.IntN(len(all))]
			code, ev := source.do("PATCH", other.path, fmt.Sprintf(`{"count":%d}`, n+2))
			if code != 200 {
				t.Fatal(code, ev)
			}
			count(other.rule)
			version = metadata(ev, "resourceVersion")
		}
		last = version
	}
	reached := func() bool {
		_, cursor := at("eventsvc-mirror.a")
		got, _ := strconv.Atoi(mirrortest.Cursor(t, cursor))
		want, _ := strconv.Atoi(last)
		return got >= want
	}
	waittest.Until(t, "the mirror has come to the last change", reached)
	mirror.kill()
	write("[{name: later, where: type=Warning, drop: true}]")
	admin, stop := runMirror(t, args...)
	if code := statusFor(t, admin+"/metrics", "evil.example"); code != http.StatusForbidden {
		t.Errorf("the admin listener answers for another host: %d", code)
	}
	waittest.Until(t, "the other rules are told", func() bool {
		_, ev := at("eventsvc-mirror.a.rules")
		return strings.HasSuffix(fmt.Sprint(ev["message"]), "Now there are: later (drop)") && fmt.Sprint(ev["count"]) == "2"
	})
	code, ev := source.do("POST", "/api/v1/namespaces/shop/events", `{"metadata":{"name":"late"},"involvedObject":{"kind":"Pod","name":"web","namespace":"shop"},"reason":"Late","type":"Warning","source":{"component":"kubelet"}}`)
	if code != 201 {
		t.Fatal(code, ev)
	}
	missing[metadata(ev, "uid")], last = true, metadata(ev, "resourceVersion")
	wantCounts["later"]++
	waittest.Until(t, "the last event is dropped", func() bool { return metric(t, admin, `eventsvc_mirror_dropped_total{rule="later"}`) == "1" })
	waittest.Until(t, "the mirror has come to it", reached)
	stop()
	counts := map[string]int{}
	for name, ev := range coreEvents(t, target.url("--listen-http"), target.token, "fieldSelector=reason=EventsDropped") {
		n, err := strconv.Atoi(ev.Annotations["mirror.tidings.example/dropped-count"])
		if err != nil || ev.Namespace != "kube-system" || ev.ReportingController != "tidings.example/mirror" {
			t.Errorf("%s: %v, %v", name, ev, err)
		}
		counts[ev.Annotations["mirror.tidings.example/dropped-rule"]] += n
	}
	if diff := cmp.Diff(wantCounts, counts); diff != "" {
		t.Errorf("of %d changes (-want +got):\n%s", versions, diff)
	}
	code, answer := target.do("GET", "/query/v1/facets?from=-3h", "")
	told := map[string]int{}
	for _, d := range answer["dropped"].([]any) {
		one := d.(map[string]any)
		n, _ := strconv.Atoi(fmt.Sprint(one["count"]))
		told[fmt.Sprint(one["rule"])] = n
	}
	if diff := cmp.Diff(wantCounts, told); code != 200 || diff != "" {
		t.Errorf("queries are answered with %d and (-want +got):\n%s", code, diff)
	}
	copies := mirrortest.BySource(t, coreEvents(t, target.url("--listen-http"), target.token, "labelSelector=cluster=a"))
	for uid, dropped := range missing {
		if _, copied := copies[uid]; copied == dropped {
			t.Errorf("%s: copied %t, dropped %t", uid, copied, dropped)
		}
	}
	if len(copies) == 0 || len(wantCounts) != 3 {
		t.Errorf("%d copies, %v dropped", len(copies), wantCounts)
	}
}

// TestDropCounts: what is dropped is counted once for each namespace that is copied apart, also if a source is listed
// again because it no longer keeps the changes, or because its versions have started over.
func TestDropCounts(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	target := start(t, t.TempDir(), i, "--log-level=warn")
	cluster := &simulated{name: "one"}
	for _, reason := range []string{"Noise", "Real", "Noise"} {
		cluster.record("a", reason)
	}
	cluster.record("b", "Noise")
	source := httptest.NewServer(cluster)
	t.Cleanup(func() { source.CloseClientConnections(); source.Close() })
	rules := writeFile(t, "rules.yaml", "[{name: noise, where: reason=Noise, drop: true}]")
	args := []string{"--kubeconfig=" + kubeconfigFor(t, source.URL, "t"), "--cluster=a", "--cluster-label=", "--namespace=a,b", "--server=" + target.url("--listen-http"),
		"--token-file=" + file(t, target.token), "--rules-file=" + rules, "--enrich="}
	admin, stop := runMirror(t, args...)
	dropped := func(step, want string) {
		t.Helper()
		waittest.Until(t, step, func() bool { return metric(t, admin, `eventsvc_mirror_dropped_total{rule="noise"}`) == want })
	}
	lists := func(reason string) (n int) {
		for _, namespace := range []string{"a", "b"} {
			of, _ := strconv.Atoi(metric(t, admin, fmt.Sprintf(`eventsvc_mirror_lists_total{namespace=%q,reason=%q}`, namespace, reason)))
			n += of
		}
		return n
	}
	dropped("the first lists", "3")
	cluster.record("a", "Noise")
	dropped("a change", "4")
	stop() // it saves the cursor
	watched := func(n int32) {
		t.Helper()
		waittest.Until(t, fmt.Sprintf("%d watches are open", n), func() bool { return cluster.watches.Load() == n })
	}
	watched(0)

	cluster.record("a", "Noise")
	cluster.record("b", "Real")
	cluster.record("a", "Noise")
	cluster.gone.Store(2) // of both namespaces
	admin, stop = runMirror(t, args...)
	waittest.Until(t, "both are listed after 410", func() bool { return lists("gone") == 2 })
	dropped("lists after 410 count what came since", "2")

	watched(2) // one that is opened later is not cut off, and asks for the version half a minute later
	cluster.startOver("two", "b", "Noise", "Real")
	source.CloseClientConnections()
	waittest.Until(t, "both are listed after the versions started over", func() bool { return lists("rewound") == 2 })
	dropped("these lists count everything", "3")
	cluster.record("a", "Noise")
	dropped("a change behind that", "4")
	stop()
	counts := map[string]int{}
	for _, ev := range coreEvents(t, target.url("--listen-http"), target.token, "fieldSelector=reason=EventsDropped") {
		n, _ := strconv.Atoi(ev.Annotations["mirror.tidings.example/dropped-count"])
		counts[ev.Annotations["mirror.tidings.example/gap-namespace"]] += n
	}
	if diff := cmp.Diff(map[string]int{"a": 6, "b": 2}, counts); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// metadata returns a text of an object's metadata.
func metadata(object map[string]any, field string) string {
	m, _ := object["metadata"].(map[string]any)
	return fmt.Sprint(m[field])
}

// TestDryRunRules: the events that the source has are shown by rule, and nothing is written anywhere.
func TestDryRunRules(t *testing.T) {
	t.Parallel()
	source := start(t, t.TempDir(), newIssuer(t), "--log-level=warn")
	for n, reason := range []string{"Pulled", "Killing", "Pulled", "Started"} {
		at := time.Now().UTC().Format(time.RFC3339)
		if code, object := source.do("POST", "/api/v1/namespaces/shop/events", fmt.Sprintf(`{"metadata":{"name":"e%d"},"involvedObject":{"namespace":"shop"},"reason":%q,"type":"Normal",`+
			`"firstTimestamp":%q,"lastTimestamp":%[3]q,"source":{"component":"kubelet"}}`, n, reason, at)); code != 201 {
			t.Fatal(code, object)
		}
	}
	rules := writeFile(t, "rules.yaml", "- {name: pulled, where: reason=Pulled, drop: true}\n- {name: kept, where: reason=Killing, keep: 1h}\n- {name: never, where: reason=Killing, keep: 2h}\n")
	var out strings.Builder
	err := run(t.Context(), []string{"mirror", "--kubeconfig=" + kubeconfigFor(t, source.url("--listen-http"), source.token), "--cluster=a", "--dry-run-rules", "--rules-file=" + rules},
		&out, os.Stderr, nil)
	want := "RULE    DOES         EVENTS\npulled  drop         2\nkept    keep 1h0m0s  1\nnever   keep 2h0m0s  0\n\n" +
		"of 4 events of the last hour, 2 would be dropped\n" +
		"warning: --rules-file: never never counts, because kept before it fits the same events: put it first, or take it out\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}
