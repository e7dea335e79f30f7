package console_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	permissions "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/deploy/test/internal/testenv"
)

const ctrl = chromedp.ModifierCtrl

// some creates n events, a second apart up to now, of ten objects and two reasons.
func (s *services) some(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		ev := event("default", fmt.Sprintf("some-%04d", i))
		ev.EventTime = metav1.NewMicroTime(time.Now().Add(time.Duration(i-n) * time.Second))
		ev.Regarding.Name = fmt.Sprintf("web-%d", i%10)
		ev.Note = fmt.Sprintf("Number %d has happened", i)
		if i%5 == 0 {
			ev.Type, ev.Reason = "Warning", "Failed"
		}
		s.create(t, ev)
	}
}

// withEvents starts services with n events, and opens the list of these.
func withEvents(t *testing.T, n int) (*services, *tab) {
	t.Helper()
	s := startServices(t)
	s.some(t, n)
	b := openTab(t, s)
	b.open("/console/#/events?from=-1h")
	b.signIn(admin)
	b.waitText(".count", fmt.Sprintf("%d events", n))
	return s, b
}

// rows are the names of the events that a table shows, from the top.
func (b *tab) rows() []string {
	b.t.Helper()
	return evaluate[[]string](b, `[...document.querySelectorAll("main [data-row]")].sort((x, y) => x.ariaRowIndex - y.ariaRowIndex).map((e) => e.dataset.row)`)
}

// TestSearch: fields and values are completed, terms become chips, chips are turned round and removed, facets add them.
func TestSearch(t *testing.T) {
	t.Parallel()
	_, b := withEvents(t, 50)
	b.key("/")
	b.typing("rea")
	b.waitText("[role=option]", "reason:")
	b.key("ArrowDown")
	b.key("Enter")
	b.waitText("[role=option]", "Failed")
	b.shot("completion")
	b.typing("fai")
	b.key("Tab")
	b.waitText(".count", "10 events")
	b.waitText(".chip", "Failed")
	b.click(".chip-text") // turned round
	b.waitText(".count", "40 events")
	b.click(".chip-remove")
	b.waitText(".count", "50 events")
	b.click(`[data-facet="type:Warning"]`)
	b.waitText(".count", "10 events")
	b.key("/")
	b.typing(`"number 5 has" `)
	b.key("Enter")
	b.waitText(".count", "1 event")
	b.key("Backspace") // takes the last chip back, to be changed
	b.wait(`document.querySelector(".box input").value === '"number 5 has"'`)
	b.key("a", ctrl)
	b.typing(`-"number 5 has"`)
	b.key("Enter")
	b.waitText(".count", "9 events")
	b.typing("reason:")
	b.key("Escape")
	b.key("Enter")
	b.waitText(".wrong", "has no value")
	b.key("a", ctrl)
	b.key("Delete")
	b.expect("400") // the server says so too
	show(b, "events?q=reason%3AA%20reason%3AB")
	b.waitText("main", "an event has one reason")
}

// TestRange: a brush, a bar, presets and text choose the range; what is no time is refused with what to write.
func TestRange(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 60)
	b := openTab(t, s)
	b.open("/console/#/overview?from=-1h")
	b.signIn(admin)
	b.waitText(".readout", "60 occurrences")
	b.drag(".plot", 0.85, 0.999)
	b.wait(`location.hash.includes("from=2")`)
	b.waitText(".readout", "occurrences")
	b.key("-")
	b.wait(`document.querySelector(".readout").innerText.startsWith("60 occurrences")`)
	b.key("t")
	b.clickText(".presets button", "7 days")
	b.waitText(".range-text", "Last 7 days")
	b.key("t")
	b.fill(".absolute input[name=from]", "someday")
	b.key("Enter")
	b.waitText(".absolute .error", "Write it as 2026-03-04 12:00")
	b.fill(".absolute input[name=from]", "2001-02-03 04:05")
	b.fill(".absolute input[name=to]", "2001-02-03 03:05")
	b.key("Enter")
	b.waitText(".absolute .error", "ends 1h before it begins")
	b.fill(".absolute input[name=from]", "-2h")
	b.fill(".absolute input[name=to]", "now")
	b.key("Enter")
	b.waitText(".range-text", "Last 2 hours")
	b.key("t")
	b.expect("400") // it is before history
	b.fill(".absolute input[name=from]", "2001-02-03 02:00-03:00")
	b.key("Enter")
	b.waitText(".range-text", "02:00 – 03:00")
	b.click(".zone") // and back
	b.waitText(".zone", "UTC")
	b.click(".zone")
	show(b, "overview?from=-2h")
	b.settled()
	b.waitText(".readout", "60 occurrences")
	evaluate[bool](b, `(document.querySelector(".plot").focus(), true)`)
	b.key("End") // by keys: the last bar
	b.key("ArrowLeft", chromedp.ModifierShift)
	b.key("Enter")
	b.wait(`location.hash.includes("from=2")`)
}

// TestScroll: rows go on without end, and only those that can be seen are in the document.
func TestScroll(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/console/#/events?from=-8d")
	b.signIn(admin)
	for range 12 {
		b.key("End")
		b.settled()
	}
	if loaded := evaluate[int](b, `Math.max(...[...document.querySelectorAll("[data-row]")].map((e) => Number(e.ariaRowIndex)))`); loaded < 2000 {
		t.Errorf("only %d rows after twelve times End", loaded)
	}
	if drawn := b.count("[data-row]"); drawn > 100 {
		t.Errorf("%d rows are in the document", drawn)
	}
	b.key("Home")
	b.settled()
	first := b.rows()[0]
	b.key("j")
	b.key("k")
	b.settled()
	if now := evaluate[string](b, `document.activeElement.dataset.row ?? ""`); now != first {
		t.Errorf("the focus is on %q, want the first row, %q", now, first)
	}
	b.click("button[aria-label=Columns]")
	b.clickText(".panel label", "Reporter")
	b.waitText("[role=columnheader]", "Reporter")
	b.reload()
	b.waitText("[role=columnheader]", "Reporter") // it is kept
	b.clickText(".choice button", "Oldest first")
	eventually(b, "the first row is another one", func() bool {
		rows := b.rows()
		return len(rows) > 0 && rows[0] != first
	})
}

// TestPermalink: a link shows the same rows in another browser, after more was written and a restart.
func TestPermalink(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 40)
	b := openTab(t, s)
	allowClipboard(b)
	b.open("/console/#/events?q=reason%3AFailed&from=-1h")
	b.signIn(admin)
	b.waitText(".count", "8 events")
	want := b.rows()
	b.key("c")
	b.waitText(".said", "Link copied")
	link := evaluate[string](b, `navigator.clipboard.readText()`)
	if !strings.Contains(link, "revision=") || strings.Contains(link, "now") || strings.Contains(link, "from=-") {
		t.Errorf("the link is not absolute: %s", link)
	}
	more := event("default", "more")
	more.Reason = "Failed"
	more.EventTime = metav1.NewMicroTime(time.Now().Add(-30 * time.Second))
	s.create(t, more)
	s.send(t, "DELETE", s.events+eventsPath("default")+"/some-0005", "", s.token(t, admin), nil, 200)
	s.restart(t, "eventsvc")
	other := openTab(t, s)
	other.expect("404") // the event that was deleted, before it is looked for in the state of the link
	other.open(strings.TrimPrefix(link, s.events))
	other.signIn(admin)
	other.waitText(".count", "8 events")
	if got := other.rows(); !slices.Equal(got, want) {
		t.Errorf("the link shows\n%v, want\n%v", got, want)
	}
	other.click(`[data-row="default/some-0005"]`) // of the state of the link
	other.waitText(".drawer", "deleted or has expired since")
	other.click(".pinned")
	other.wait(`document.querySelector('[data-row="default/more"]') && !document.querySelector('[data-row="default/some-0005"]')`)
}

// TestSameElsewhere: the commands that are offered find the same events.
func TestSameElsewhere(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 40)
	b := openTab(t, s)
	b.open("/console/#/events?from=-1h&q=" + "reason%3AFailed%20name%3Aweb-5%20-%22number%2015%20has%22%20happened")
	b.signIn(admin)
	b.waitText(".count", "3 events")
	want := b.rows()
	b.click(`[aria-label="Link to this, and the same elsewhere"]`)
	b.waitText(".same h3", "LogQL")
	b.shot("links")
	commands := map[string]string{}
	for _, c := range evaluate[[][]string](b, `[...document.querySelectorAll(".same")].map((e) => [e.querySelector("h3").innerText, e.querySelector("code").innerText])`) {
		commands[c[0]] = c[1]
	}
	token := s.token(t, admin)
	for _, program := range []string{"curl", "eventsvc"} {
		line := commands[program]
		if program == "eventsvc" {
			line = strings.Replace(line, "query", "query -o json", 1)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Env = append(os.Environ(), "TOKEN="+token, "EVENTSVC_TOKEN="+token, "EVENTSVC_SERVER="+s.events, "PATH="+filepath.Dir(s.programs["eventsvc"].path)+":"+os.Getenv("PATH"))
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var list struct {
			Items []metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal(out, &list); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		var got []string
		for _, item := range list.Items {
			got = append(got, item.Namespace+"/"+item.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s finds %v, the page %v", line, got, want)
		}
	}
	query := s.events + "/loki/api/v1/query_range?since=1h&query=" + queryEscape(commands["LogQL"])
	logs := string(s.send(t, "GET", query, "", token, nil, 200))
	if n := strings.Count(logs, "has happened"); n != 3 {
		t.Errorf("%s finds %d: %s", commands["LogQL"], n, logs)
	}
	kubectl := commands["kubectl"]
	if !strings.Contains(kubectl, "--field-selector") || !strings.Contains(kubectl, "regarding.name=web-5") {
		t.Errorf("kubectl is %s", kubectl)
	}
}

// queryEscape is a value within a query, with %20 for a blank.
func queryEscape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// eventually waits until a condition holds.
func eventually(b *tab, what string, holds func() bool) {
	b.t.Helper()
	testenv.Eventually(b.t, what, deadline, func() error {
		if !holds() {
			return errors.New("it does not hold")
		}
		return nil
	})
}

// allowClipboard lets the page read and write the clipboard, as a person would.
func allowClipboard(b *tab) {
	b.t.Helper()
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		call(b, permissions.SetPermission, permissions.SetPermissionParams{
			Permission: &permissions.PermissionDescriptor{Name: name, AllowWithoutSanitization: name == "clipboard-read"}, Setting: permissions.PermissionSettingGranted,
			BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
		})
	}
}

// TestOwner: the controller at the top of an object, as a mirror labels it, is a column and a facet, and selects.
func TestOwner(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	for name, owner := range map[string]string{"a": "web", "b": "web", "c": "db"} {
		ev := event("default", name)
		ev.Labels = map[string]string{"tidings.example/owner-kind": "Deployment", "tidings.example/owner-name": owner}
		s.create(t, ev)
	}
	s.create(t, event("default", "none"))
	b := openTab(t, s)
	b.open("/console/#/events?from=-1h")
	b.signIn(admin)
	b.waitText(".count", "4 events")
	b.waitText(`[data-facet="owner:Deployment/web"] .n`, "2")
	b.waitText(`[data-facet="owner:Deployment/db"] .n`, "1")
	b.click(`[title="Columns"]`)
	b.waitText(".columns label", "Owner")
	b.clickText(".columns label", "Owner")
	b.waitText("[role=columnheader]", "Owner")
	b.waitText("main [data-row]", "Deployment/web")
	b.key("Escape")
	b.click(`[data-facet="owner:Deployment/web"]`)
	b.waitText(".count", "2 events")
	b.waitText(".chip", "Deployment/web")
}

// TestLanguage: words find reasons, objects and nodes; fields, lists, OR, NOT and parentheses choose in any case; a
// term that fits nothing says so, with what was probably meant; the server says where a mistake is.
func TestLanguage(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 50)
	for i := range 3 {
		ev := event("default", fmt.Sprintf("mount-%d", i))
		ev.EventTime, ev.Reason, ev.Type, ev.Note = metav1.NewMicroTime(time.Now().Add(-time.Minute)), "FailedMount", "Warning", "timed out"
		ev.ReportingController, ev.ReportingInstance, ev.Regarding.Name = "kubelet", fmt.Sprintf("node-%d", i%2), "cassandra-3"
		s.create(t, ev)
	}
	b := openTab(t, s)
	b.open("/console/#/events?from=-1h")
	b.signIn(admin)
	for _, test := range []struct{ text, count string }{
		{"FailedMount", "3 events"}, {"failedmount", "3 events"}, {"cassandra-3", "3 events"}, {"node-1", "1 event"}, {"node:NODE-0", "2 events"},
		{"type:warning", "13 events"}, {"type=Warning reason!=FailedMount", "10 events"}, {"reason:failed*", "13 events"}, {"reason:Failed,FailedMount", "13 events"},
		{"ns:default -kind:job", "53 events"}, {"name:web-1 OR node-1", "6 events"}, {"(name:web-1 OR node-1) NOT type:warning", "5 events"},
	} {
		show(b, "events?from=-1h&q="+url.QueryEscape(test.text))
		b.waitText(".count", test.count)
	}
	show(b, "events?from=-1h&q="+url.QueryEscape("reason:FailedMuont"))
	b.waitText(".message", "reason:FailedMuont fits nothing in this range: probably FailedMount was meant.")
	b.shot("hint")
	show(b, "events?from=-1h&q=FailedMuont")
	b.waitText(".message", "perhaps a mistyped FailedMount")
	b.expect("400")
	show(b, "events?from=-1h&q="+url.QueryEscape("a OR"))
	b.waitText("main", "at character 5: OR has nothing behind it")
}

// TestKeysOnRows: a key opens no row that is not on the screen, and none of a list that is empty.
func TestKeysOnRows(t *testing.T) {
	t.Parallel()
	_, b := withEvents(t, 90)
	b.key("j")
	evaluate[bool](b, `(document.querySelector(".table").scrollTop = 2000, true)`)
	b.settled()
	b.key("Enter") // shows the row first
	b.wait(`document.querySelector(".table").scrollTop < 100`)
	b.key("Enter")
	b.wait(`document.querySelector(".drawer") !== null`)
	b.key("Escape")
	show(b, "events?from=-1h&q=nothing-like-it")
	b.waitText(".message", "No events")
	b.key("j")
	b.key("Enter")
	b.settled()
	if b.count(".drawer") != 0 {
		t.Error("a key opened a row of an empty list")
	}
}

// TestNodes: on which nodes something failed is one choice, in the facets and in the groups.
func TestNodes(t *testing.T) {
	t.Parallel()
	s, facts := week(t)
	b := openTab(t, s)
	b.open("/console/#/events?from=" + stamp(facts.Pulls.Begin) + "&to=" + stamp(facts.Pulls.End) + "&q=reason%3AFailed%20" + facts.Pulls.Registry)
	b.signIn(admin)
	for _, node := range facts.Pulls.Nodes {
		b.waitText(".facets", node)
		b.wait(`document.querySelector('[data-facet="node:` + node + `"]') !== null`)
	}
	if n := b.count(`[data-facet^="node:"]`); n != len(facts.Pulls.Nodes) {
		t.Errorf("%d nodes in the facet, want %d", n, len(facts.Pulls.Nodes))
	}
	show(b, "groups?by=node&from="+stamp(facts.Pulls.Begin)+"&to="+stamp(facts.Pulls.End)+"&q=reason%3AFailed%20"+facts.Pulls.Registry)
	for _, node := range facts.Pulls.Nodes {
		b.waitText(`[data-group="`+node+`"]`, node)
	}
}
