package console_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/deploy/test/internal/incidents"
)

// TestGroups: events are put together by each dimension, with counts, first, last and course, and lead on.
func TestGroups(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 60)
	b := openTab(t, s)
	b.open("/console/#/groups?from=-1h")
	b.signIn(admin)
	b.waitText(`[data-group="Tested"]`, "48")
	b.waitText(`[data-group="Failed"]`, "12")
	if n := b.count(".sparkline rect"); n == 0 {
		t.Error("there are no courses")
	}
	b.clickText(".choice button", "Object")
	b.wait(`document.querySelectorAll("[data-group] .sparkline").length === 10`)
	b.clickText(".choice button", "Newest")
	b.waitText("tbody tr:first-child th", "Pod/web-9")
	b.clickText(".choice button", "Reporter")
	b.waitText("[data-group]", "example.com/test")
	b.clickText(".choice button", "Namespace")
	b.clickText("[data-group] th a", "default")
	b.waitText(".count", "60 events")
	b.waitText(".chip", "default")
}

// TestSameNames: objects of one name in two namespaces, of which no UID is known, are two groups. Each leads to its own
// events.
func TestSameNames(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	for i, namespace := range []string{"mail", "mail", "shop"} {
		ev := event(namespace, fmt.Sprintf("same-%d", i))
		ev.Note = "It was in " + namespace
		s.create(t, ev)
	}
	b := openTab(t, s)
	b.open("/console/#/groups?by=object&from=-1h")
	b.signIn(admin)
	b.wait(`document.querySelectorAll("[data-group='Pod/web-0']").length === 2`)
	b.click("[data-group]:last-child th a")
	b.waitText(".count", "1 event")
	b.waitText("main [data-row]", "It was in shop")
	show(b, "object?kind=Pod&ns=shop&name=web-0")
	b.clickText("main a", "As a list")
	b.waitText(".count", "1 event")
	b.waitText("main [data-row]", "It was in shop")
}

// TestLife: the life of a pod is drawn with those of its owners and its node, also when its events are deleted.
func TestLife(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	pod, set, deployment, node := "web-7d5fb757db-x2x7q", "web-7d5fb757db", "web", "node-3"
	add := func(name, kind, object, reason, note string, ago time.Duration) {
		ev := event("shop", name)
		ev.EventTime = metav1.NewMicroTime(time.Now().Add(-ago))
		ev.Regarding.Kind, ev.Regarding.Name, ev.Reason, ev.Note = kind, object, reason, note
		if kind == "Node" {
			ev.Namespace, ev.Regarding.Namespace = "default", ""
		}
		s.create(t, ev)
	}
	add("a", "Deployment", deployment, "ScalingReplicaSet", "Scaled up", 9*time.Minute)
	add("b", "ReplicaSet", set, "SuccessfulCreate", "Created pod", 8*time.Minute)
	add("c", "Pod", pod, "Scheduled", "Successfully assigned shop/"+pod+" to "+node, 7*time.Minute)
	add("d", "Pod", pod, "Started", "Started container", 6*time.Minute)
	add("e", "Pod", pod, "Killing", "Stopping container", time.Minute)
	add("f", "Node", node, "NodeNotReady", "Node is not ready", 2*time.Minute)
	b := openTab(t, s)
	b.expect("404") // the event that was deleted, before it is looked for in the life
	b.open("/console/#/events")
	b.signIn(admin)
	b.click(`[data-row="shop/d"]`)
	b.clickText(".asks a", "Life of the object")
	lanes := func() {
		t.Helper()
		for _, lane := range []string{"Pod/" + pod, "ReplicaSet/" + set, "Deployment/" + deployment, "Node/" + node} {
			b.waitText(".lane-name", lane)
		}
		b.wait(`document.querySelectorAll(".lane:first-child .mark").length >= 3`)
	}
	lanes()
	b.shot("life")
	for _, name := range []string{"c", "d", "e"} {
		s.send(t, "DELETE", s.events+eventsPath("shop")+"/"+name, "", s.token(t, admin), nil, 200)
	}
	b.key("r")
	b.waitText("main [data-row]", "event deleted")
	lanes()
	b.clickText(`[data-row="shop/d"]`, "event deleted")
	b.waitText(".drawer", "It was deleted")
	b.waitText(".drawer", "Started container")
	b.key("Escape")
	b.clickText(".lane-name a", "Deployment/web")
	b.waitText("h1", "Deployment/web")
	b.clickText("main a", "As a list")
	b.waitText(".count", "1 event")
	show(b, "object?kind=Pod&name=nosuch&ns=shop")
	b.waitText("main .message", "No events about it")
}

// TestDrawer: an event is shown in full and in both forms, can be copied, and leads to what belongs to it.
func TestDrawer(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 20)
	long := event("default", "long")
	long.Note = "A note: with \"quotes\" and\nlines"
	long.Annotations = map[string]string{"example.com/a": "b"}
	long.Reason = "Odd reason"
	s.create(t, long)
	b := openTab(t, s)
	allowClipboard(b)
	b.open("/console/#/events")
	b.signIn(admin)
	b.click(`[data-row="default/long"]`)
	b.waitText(".drawer", "example.com/a")
	b.click(".full-note .copy")
	b.waitText(".said", "copied")
	if got := evaluate[string](b, `navigator.clipboard.readText()`); got != long.Note {
		t.Errorf("%q was copied, want %q", got, long.Note)
	}
	b.clickText(".drawer .choice button", "YAML")
	b.waitText(".drawer pre", "reason: Odd reason")
	if strings.Contains(b.text(".drawer pre"), "managedFields") {
		t.Error("managed fields are not folded")
	}
	b.clickText(".drawer .check", "Managed fields")
	b.waitText(".drawer pre", "managedFields:")
	b.clickText(".drawer .choice button", "JSON")
	b.waitText(".drawer pre", `"reason": "Odd reason"`)
	b.clickText(".drawer .choice button", "Details")
	b.shot("drawer")
	b.clickText(".asks a", "Same reason")
	b.waitText(".count", "1 event")
	b.waitText(".chip", "Odd reason")
	b.click(`[data-row="default/long"]`)
	b.clickText(".asks a", "Five minutes around it")
	b.waitText(".count", "21 events")
	b.click(`[data-row="default/some-0003"]`)
	b.clickText(".asks a", "Same object")
	b.waitText(".count", "2 events")
	b.click(`[data-row="default/some-0003"]`)
	b.clickText(".asks a", "What changed before this")
	b.waitText("main", "against all history before")
	b.back()
	b.waitText(".drawer", "Number 3 has happened")
	b.key("Escape")
	b.wait(`!document.querySelector(".drawer")`)
	if at := evaluate[string](b, `document.activeElement.dataset.row ?? document.activeElement.tagName`); at != "default/some-0003" && at != "BODY" {
		t.Errorf("the focus is on %s", at)
	}
}

// TestChanges: what is new in a window is named with its reason, and two windows are compared value by value.
func TestChanges(t *testing.T) {
	t.Parallel()
	s, facts := week(t)
	b := openTab(t, s)
	b.open("/console/#/changes")
	b.signIn(admin)
	at := stamp(facts.OOM.Begin.Add(30 * time.Minute))
	show(b, "changes?window=1h&at="+at)
	b.waitText(".changes", "OOMKilling")
	b.clickText(".change-head a", "OOMKilling")
	b.waitText(".chip", "OOMKilling")
	b.waitText(".same-in-all, main [data-row]", "OOMKilling")
	show(b, "changes?window=1h&at="+at)
	b.clickText(".choice button", "a day before")
	b.waitText("table.two", "OOMKilling")
	b.waitText("table.two .up", "only here")
	b.waitText(".overlay figcaption", "at most")
	if b.count(".overlay rect") == 0 || b.count(".overlay polyline") != 1 {
		t.Error("the two windows are not in one plot")
	}
	b.shot("compare")
	b.wait(`[...document.querySelectorAll("table.two :is(.up, .down)")].some((e) => /^[−+]\d+ %$/.test(e.innerText))`)
	show(b, "changes?window=6h&q=type%3Awarning&at="+at)
	b.clickText(".choice button", "a day before")
	b.wait(`location.hash.includes("other=") && location.hash.includes("window=6h") && location.hash.includes("type%3Awarning")`)
	b.settled()
	if texts := b.texts("table.two th"); slices.Contains(texts, "Normal") {
		t.Errorf("the comparison is of other types than the search: %q", texts)
	}
	// From its namespace the kills are seen too, which are events of a node; a search chooses; the range that was
	// chosen is explained.
	show(b, "changes?window=1h&ns="+facts.OOM.Namespace+"&at="+at)
	b.waitText("main", "Looked at "+facts.OOM.Namespace+"; and elsewhere")
	b.waitText(".changes", "OOMKilling")
	show(b, "changes?window=1h&q=kind%3Anode&at="+at)
	b.waitText(".changes", "OOMKilling")
	b.wait(`[...document.querySelectorAll(".change-why")].every((e) => e.title.includes("Node"))`)
	show(b, "overview?from="+stamp(facts.OOM.Begin.Add(-30*time.Minute))+"&to="+at)
	b.clickText("nav.views a", "Changes")
	b.wait(`location.hash.includes("window=1h") && location.hash.includes("at=2")`)
	b.waitText(".changes", "OOMKilling")
	b.clickText(".choice button", "a day before")
	b.waitText("table.two", "OOMKilling")
	b.fill("input[name=at]", "whenever")
	b.key("Enter")
	b.waitText(".change-form .error", "Write it as")
}

// TestYoungNamespace: what changed before an event is found although nothing is known of its namespace before that day.
func TestYoungNamespace(t *testing.T) {
	t.Parallel()
	s := newServices(t, t.TempDir())
	t.Cleanup(s.stopAll)
	s.record(t, incidents.Week{Seed: 3, Events: 3000, End: time.Now().Add(-time.Hour)})
	s.startAll(t)
	for i := range 20 {
		ev := event("young", fmt.Sprintf("young-%02d", i))
		ev.EventTime = metav1.NewMicroTime(time.Now().Add(time.Duration(i-20) * 20 * time.Second))
		ev.Type, ev.Reason, ev.Note = "Warning", "BackOff", "Back-off restarting failed container app"
		if i < 4 {
			ev.Reason, ev.Note = "FailedMount", `configmap "settings" not found`
		}
		s.create(t, ev)
	}
	b := openTab(t, s)
	b.open("/console/#/events?q=namespace%3Ayoung&from=-1h")
	b.signIn(admin)
	b.click(`[data-row="young/young-19"]`)
	b.clickText(".asks a", "What changed before this")
	b.waitText("main", "Looked at young")
	b.waitText(".changes", "BackOff")
	b.waitText(".changes", "FailedMount")
}

// TestGaps: times in which a mirror was away, and those before history began, are drawn as such. What its rules dropped
// is said once.
func TestGaps(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 30)
	from, to := time.Now().Add(-20*time.Minute).UTC(), time.Now().Add(-10*time.Minute).UTC()
	gap := event("default", "gap")
	gap.Reason, gap.ReportingController = "MirrorGap", "tidings.example/mirror"
	gap.Annotations = map[string]string{"mirror.tidings.example/gap-from": from.Format(time.RFC3339), "mirror.tidings.example/gap-to": to.Format(time.RFC3339)}
	s.create(t, gap)
	drop := event("default", "drop")
	drop.Reason, drop.ReportingController, drop.Annotations = "EventsDropped", "tidings.example/mirror", maps.Clone(gap.Annotations)
	drop.Annotations["mirror.tidings.example/dropped-rule"], drop.Annotations["mirror.tidings.example/dropped-count"] = "noise", "1204"
	s.create(t, drop)
	b := openTab(t, s)
	b.open("/console/#/overview?from=-1h")
	b.signIn(admin)
	b.waitText(".readout", "occurrences")
	b.wait(`document.querySelector(".before") || document.querySelector(".gap")`)
	b.shot("gaps")
	b.waitText(".histogram .note", "by noise")
	if n := b.count(".histogram .note"); n != 1 {
		t.Errorf("%d notes", n)
	}
	if n := b.count(".gap"); n != 1 {
		t.Errorf("%d gaps are drawn", n)
	}
	if n := b.count(".before"); n != 1 {
		t.Errorf("the time before history is drawn %d times", n)
	}
}

// TestEdits: a change of an object has a mark on each plot and in the life of the object, and the mark leads to its
// event.
func TestEdits(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 30)
	edit := event("shop", "edit")
	edit.EventTime = metav1.NewMicroTime(time.Now().Add(-5 * time.Minute))
	edit.Regarding.Kind, edit.Regarding.Name, edit.Reason, edit.Note = "Deployment", "web", "ObjectChanged", "spec.replicas: 3 → 5; by kubectl"
	edit.ReportingController = "tidings.example/mirror"
	s.create(t, edit)
	b := openTab(t, s)
	b.open("/console/#/overview?from=-1h")
	b.signIn(admin)
	b.wait(`document.querySelectorAll(".edits a").length === 1`)
	show(b, "events?from=-1h")
	b.wait(`document.querySelectorAll(".edits a").length === 1`)
	b.waitText(".legend", "Changes")
	if got := evaluate[string](b, `(({ title, offsetWidth, offsetHeight }) => [title.replace(/, .*?:.*?:.*?:/, ":"), offsetWidth, offsetHeight].join())(document.querySelector(".edits a"))`); got != "Deployment web: spec.replicas: 3 → 5; by kubectl,16,16" {
		t.Errorf("the mark has the title and the size %q", got)
	}
	b.click(".edits a")
	b.waitText(".drawer", "3 → 5; by kubectl")
	show(b, "object?kind=Deployment&name=web&ns=shop")
	b.wait(`document.querySelectorAll(".mark.edit").length === 1`)
	show(b, "overview?from=-2m")
	b.waitText(".legend", "Warning")
	b.settled()
	if text := b.text(".legend"); strings.Contains(text, "Changes") {
		t.Errorf("without marks the legend is %q", text)
	}
}

// back goes back, as a person does.
func (b *tab) back() {
	b.t.Helper()
	evaluate[bool](b, `(history.back(), true)`)
	b.settled()
}
