package console_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// menu opens the menu of a button, if it is not open.
func (b *tab) menu(name string) {
	b.t.Helper()
	button := fmt.Sprintf(`button[aria-label=%s]`, quoted(name))
	b.wait(fmt.Sprintf(`document.querySelector(%s)`, quoted(button)))
	if evaluate[bool](b, fmt.Sprintf(`document.querySelector(%s).ariaExpanded !== "true"`, quoted(button))) {
		b.click(button)
	}
}

// keepFiles has the page keep the text and the name of a file that it would save.
func keepFiles(b *tab) {
	b.t.Helper()
	evaluate[bool](b, `(window.saved = undefined, URL.createObjectURL = (blob) => { blob.text().then((t) => (window.saved = t)); return "#" + Math.random(); }, HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; }, true)`)
}

// bulk creates an event in each of many namespaces, 500 in one request.
func (s *services) bulk(t testing.TB, namespaces []string) {
	t.Helper()
	token := s.token(t, admin)
	at := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	for part := range slices.Chunk(namespaces, 500) {
		var body bytes.Buffer
		for _, ns := range part {
			fmt.Fprintf(&body, `{"metadata":{"namespace":%q,"name":"one"},"involvedObject":{"kind":"Pod","namespace":%q,"name":"web"},"reason":"Pulled","type":"Normal","firstTimestamp":%q,"lastTimestamp":%q,"count":1}`+"\n", ns, ns, at, at)
		}
		if answer := s.send(t, http.MethodPost, s.events+"/bulk/v1/events", "application/x-ndjson", token, body.Bytes(), http.StatusOK); bytes.Count(answer, []byte(`"code":201`)) != len(part) {
			t.Fatalf("not all were created: %s", answer)
		}
	}
}

// TestChoose: each value in rows, the drawer, facets and groups has a button that shows only this value, and one that
// leaves it out.
func TestChoose(t *testing.T) {
	t.Parallel()
	_, b := withEvents(t, 50) // 10 Failed, 5 of each object
	for _, test := range []struct{ cell, only, out string }{
		{`[data-row="default/some-0045"] .c-reason`, "10 events", "40 events"}, {`[data-row="default/some-0045"] .c-object`, "5 events", "45 events"},
		{`[data-same="namespace"]`, "50 events", ""},
	} {
		show(b, "events?from=-1h")
		b.waitText(".count", "50 events")
		b.hover(test.cell, "")
		b.click(test.cell + " .plus")
		b.waitText(".count", test.only)
		show(b, "events?from=-1h")
		b.waitText(".count", "50 events")
		b.hover(test.cell, "")
		b.click(test.cell + " .minus")
		if test.out == "" {
			b.waitText(".message", "No events")
		} else {
			b.waitText(".count", test.out)
		}
	}
	if b.count(".drawer") != 0 {
		t.Error("a button on a row has opened it")
	}
	for _, test := range []struct{ title, only, out string }{{"Reason", "10 events", "40 events"}, {"Object", "5 events", "45 events"}, {"Type", "10 events", "40 events"}} {
		for i, button := range []string{"Only", "Leave out"} {
			show(b, "events?from=-1h&event=default%2Fsome-0045")
			b.click(`.drawer [aria-label^="` + button + ` ` + test.title + `"]`)
			b.waitText(".count", []string{test.only, test.out}[i])
		}
	}
	show(b, "events?from=-1h")
	b.hover(`[data-facet="reason:Failed"]`, "")
	b.click(`[aria-label="Leave out reason Failed"]`)
	b.waitText(".count", "40 events")
	b.hover(`[data-facet="type:Normal"]`, "")
	b.click(`[aria-label="Only type Normal"]`)
	b.waitText(".count", "40 events")
	show(b, "groups?from=-1h&by=object")
	b.click(`[aria-label="Leave out Pod/web-3"]`) // its kind, name and namespace together
	b.wait(`document.querySelectorAll("[data-group]").length === 9`)
	b.click(`[aria-label="Only Pod/web-4"]`)
	b.wait(`document.querySelectorAll("[data-group]").length === 1`)
	show(b, "groups?from=-1h&by=reason")
	b.click(`[aria-label="Leave out Failed"]`)
	b.wait(`document.querySelectorAll("[data-group]").length === 1`)
}

// TestTopMessages: the overview leads to the warnings by message pattern, whose placeholders are told apart from their
// text, and a pattern to its events; patterns are completed.
func TestTopMessages(t *testing.T) {
	t.Parallel()
	s, b := withEvents(t, 50) // 10 warnings: Number N has happened
	written := `Said "<b>no</b>, \" to <num> ` + strings.Repeat("*", 20)
	ev := event("default", "quoted")
	ev.Note = strings.Replace(written, "<num>", "17", 1)
	s.create(t, ev)
	show(b, "overview?from=-1h")
	b.clickText(".panel-box a", "Top messages")
	b.waitText(`[data-group="Number <num> has happened"] th`, "Number <num> has happened")
	b.waitText(`[data-group] .number`, "10")
	b.waitText(`[data-group] .placeholder`, "<num>")
	if n := b.count("[data-group]"); n != 1 {
		t.Errorf("%d patterns of one", n)
	}
	b.clickText("[data-group] th a", "")
	b.waitText(".count", "10 events")
	b.waitText(".chip .placeholder", "<num>")
	for _, test := range []struct{ button, count string }{{"", "1 event"}, {"Only", "1 event"}, {"Leave out", "50 events"}} {
		show(b, "groups?from=-1h&by=pattern")
		b.waitText(`[data-group^="Said"] th`, written)
		if test.button == "" {
			b.click(`[data-group^="Said"] th a`)
		} else {
			b.click(`[aria-label^="` + test.button + ` Said"]`)
			b.wait(`document.querySelectorAll("[data-group]").length === 1`)
			b.clickText(".views a", "Events")
		}
		b.waitText(".count", test.count)
	}
	show(b, "events?from=-1h")
	b.key("/")
	b.typing("pattern:said")
	b.waitText("[role=option]", written)
	b.key("Tab")
	b.waitText(".count", "1 event")
	for _, width := range []int64{390, 1024, 1440} {
		b.size(width, 900)
		show(b, "groups?from=-1h&by=pattern")
		b.wait(`document.querySelectorAll("[data-group]").length === 2`)
		b.settled()
		if hidden := evaluate[float64](b, `document.querySelector(".scroll-x").scrollWidth - document.querySelector(".scroll-x").clientWidth`); hidden > 0 {
			t.Errorf("at %d pixels %.0f of the groups are hidden", width, hidden)
		}
	}
}

// TestRowsAreLinks: a row opens in another tab by the middle button or with Ctrl, as a link does, and its text can be
// selected.
func TestRowsAreLinks(t *testing.T) {
	t.Parallel()
	s, b := withEvents(t, 20)
	if href := evaluate[string](b, `document.querySelector('[data-row="default/some-0004"] a').getAttribute("href")`); !strings.Contains(href, "event=default%2Fsome-0004") {
		t.Errorf("the row leads to %q", href)
	}
	opened := func() (n int) {
		t.Helper()
		infos := call(b, target.GetTargets, target.GetTargetsParams{}).TargetInfos
		for _, info := range infos {
			if info.Type == "page" && strings.HasPrefix(info.URL, s.events) && strings.Contains(info.URL, "some-0004") {
				n++
			}
		}
		return n
	}
	for i, option := range []chromedp.MouseOption{chromedp.ButtonMiddle, chromedp.ButtonModifiers(ctrl)} {
		for j, cell := range []string{".c-reason a", ".c-note"} {
			b.clickText(`[data-row="default/some-0004"] `+cell, "", option)
			want := 2*i + j + 1
			eventually(b, fmt.Sprintf("%d other tabs", want), func() bool { return opened() == want })
		}
	}
	if b.count(".drawer") != 0 {
		t.Error("the row was opened here too")
	}
	box := evaluate[struct{ X, Y, Width, Height float64 }](b, `document.querySelector('[data-row="default/some-0004"] .c-note').getBoundingClientRect().toJSON()`)
	b.do(chromedp.DragAndDropXY(box.X+2, box.Y+box.Height/2, box.X+150, box.Y+box.Height/2, 10))
	if text := evaluate[string](b, `String(getSelection())`); !strings.HasPrefix(text, "Number 4") {
		t.Errorf("dragging has selected %q", text)
	}
	if b.count(".drawer") != 0 {
		t.Error("selecting has opened the row")
	}
}

// TestColumns: a column is sorted by its title once all rows are here, is made wider by its edge and by keys, and is
// hidden. Widths are kept.
func TestColumns(t *testing.T) {
	t.Parallel()
	_, b := withEvents(t, 30)
	b.waitText(`[data-same="namespace"]`, "default") // said once, as it is the same in all rows
	b.clickText(".head .title", "Object")
	b.clickText(".head .title", "Object")
	b.wait(`document.querySelector('[aria-sort="ascending"]')?.innerText.includes("Object")`)
	names := evaluate[[]string](b, `[...document.querySelectorAll(".tbody .tr")].sort((x, y) => x.ariaRowIndex - y.ariaRowIndex).map((e) => e.querySelector(".c-object").innerText)`)
	if !slices.IsSorted(names) || len(names) < 15 {
		t.Errorf("sorted by object: %v", names)
	}
	first := b.rows()[0]
	b.key("j") // keys act on the row that is shown
	b.key("k")
	b.key("Enter")
	b.wait(fmt.Sprintf(`location.hash.includes(encodeURIComponent(%s))`, quoted(first)))
	b.key("Escape")
	b.clickText(".head .title", "Time")
	b.wait(`document.querySelector('[aria-sort="descending"]')?.innerText.includes("Time")`)
	width := func() float64 {
		t.Helper()
		return evaluate[float64](b, `document.querySelector(".head .c-reason").getBoundingClientRect().width`)
	}
	before := width()
	edge := evaluate[struct{ X, Y, Width, Height float64 }](b, `document.querySelector(".head .c-reason .edge").getBoundingClientRect().toJSON()`)
	b.do(chromedp.DragAndDropXY(edge.X+edge.Width/2, edge.Y+8, edge.X+edge.Width/2+90, edge.Y+8, 10))
	b.settled()
	wider := width()
	if wider < before+80 || wider > before+100 {
		t.Errorf("90 pixels wider: %.0f, before %.0f", wider, before)
	}
	evaluate[bool](b, `(document.querySelector(".head .c-reason .title").focus(), true)`)
	b.key("ArrowLeft")
	b.key("ArrowLeft")
	b.settled()
	kept := width()
	if kept > wider-16 {
		t.Errorf("narrower by two keys: %.0f, before %.0f", kept, wider)
	}
	evaluate[bool](b, `(document.querySelector(".head .c-count .title").focus(), true)`)
	b.key("Delete")
	b.wait(`!document.querySelector(".head .c-count")`)
	b.reload()
	b.waitText(".count", "30 events")
	if now := width(); now != kept || b.count(".head .c-count") != 0 {
		t.Errorf("after a reload the width is %.0f, want %.0f, and %d counts", now, kept, b.count(".head .c-count"))
	}
	w, _ := week(t) // more rows than are loaded: only by time
	other := openTab(t, w)
	other.open("/console/#/events?from=-8d")
	other.signIn(admin)
	other.waitText(".count", "more as you scroll")
	other.waitText(".count", "occurrences match")
	if can := evaluate[string](other, `document.querySelector(".head .c-object .title").ariaDisabled`); can != "true" {
		t.Error("an answer that is not all here can be sorted by object")
	}
}

// TestManyNamespaces: with 3,000 namespaces the facet says how many there are, and a part of a name is looked for by
// the server.
func TestManyNamespaces(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	all := make([]string, 3000)
	for i := range all {
		all[i] = fmt.Sprintf("team-%04d", i)
	}
	s.bulk(t, all)
	b := openTab(t, s)
	b.open("/console/#/events?from=-1h")
	b.signIn(admin)
	b.waitText("#facet-namespace", "3,000")
	b.waitText(".facet .more", "2,992 more values")
	b.fill(`[aria-label="Find a namespace"]`, "2718")
	b.wait(`document.querySelectorAll('[data-facet^="namespace:"]').length === 1`)
	b.waitText("#facet-namespace", "1 of 3,000")
	b.fill(`[aria-label="Find a namespace"]`, "29")
	b.waitText("#facet-namespace", "159 of 3,000")
	b.waitText(".facet", "109 more: write more of the name")
	b.fill(`[aria-label="Find a namespace"]`, "2718")
	b.waitText("#facet-namespace", "1 of 3,000") // until then the value may still move
	b.click(`[data-facet="namespace:team-2718"]`)
	b.waitText(".count", "1 event")
	b.key("/")
	b.typing("-namespace:team-19")
	b.waitText("[role=option]", "team-19")
}

// TestFindStays: the field in which a value is looked for stays while the same question is asked again, with however
// many values, and goes with another question.
func TestFindStays(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	for i := range 21 {
		e := event("default", fmt.Sprintf("reason-%d", i))
		e.Reason = fmt.Sprintf("Reason%d", i)
		s.create(t, e)
	}
	b := openTab(t, s)
	b.open("/console/#/overview?from=-1h")
	b.signIn(admin)
	b.wait(`document.querySelector("[aria-label='Find a reason']")`)
	evaluate[bool](b, `(window.fetch = ((real) => async (what, ...more) => {
		const answer = await real(what, ...more);
		return String(what).includes("/query/v1/overview") ? new Response((await answer.text()).replace(/"reason":21\b/, '"reason":20'), answer) : answer;
	})(window.fetch), true)`)
	b.key("r")
	b.waitText("#facet-reason", "20")
	b.settled()
	if b.count(`[aria-label="Find a reason"]`) != 1 {
		t.Error("the field is gone, and what is below it has moved")
	}
	show(b, "overview?from=-2h")
	b.wait(`!document.querySelector("[aria-label='Find a reason']")`)
}

// TestOneElsewhere: the lines for one event find that event, in each of the programs.
func TestOneElsewhere(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 20)
	b := openTab(t, s)
	b.open("/console/#/events?from=-1h&event=default%2Fsome-0005")
	b.signIn(admin)
	b.waitText(".elsewhere .same h3", "LogQL")
	lines := map[string]string{}
	for _, c := range evaluate[[][]string](b, `[...document.querySelectorAll(".elsewhere .same")].map((e) => [e.querySelector("h3").innerText, e.querySelector("code").innerText])`) {
		lines[c[0]] = c[1]
	}
	token := s.token(t, admin)
	shell := func(line string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Env = append(os.Environ(), "TOKEN="+token, "EVENTSVC_TOKEN="+token, "EVENTSVC_SERVER="+s.events, "PATH="+filepath.Dir(s.programs["eventsvc"].path)+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	for _, program := range []string{"curl", "eventsvc"} {
		out := shell(lines[program])
		if !strings.Contains(out, "Number 5 has happened") || strings.Contains(out, "Number 6 has happened") {
			t.Errorf("%s: %s", lines[program], out)
		}
	}
	query := s.events + "/loki/api/v1/query_range?since=1h&query=" + queryEscape(lines["LogQL"])
	if logs := string(s.send(t, "GET", query, "", token, nil, 200)); strings.Count(logs, "has happened") < 1 || strings.Contains(logs, "Number 6 has happened") || !strings.Contains(logs, "Number 5 has happened") {
		t.Errorf("%s: %s", lines["LogQL"], logs)
	}
	if want := "kubectl get events.events.k8s.io -n default some-0005 -o yaml"; lines["kubectl"] != want {
		t.Errorf("kubectl: %s, want %s", lines["kubectl"], want)
	}
}

// TestTakeAway: what each view shows is saved as CSV and as JSON, and there is a link to each.
func TestTakeAway(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 30)
	b := openTab(t, s)
	allowClipboard(b)
	b.open("/console/#/events?from=-1h")
	b.signIn(admin)
	for _, test := range []struct {
		view, file string
		lines      int // of the CSV
		list       string
	}{
		{"events?from=-1h&q=type%3Awarning", "events", 7, "items"}, {"overview?from=-1h&q=type%3Awarning", "events", 7, "items"}, {"groups?from=-1h&by=object", "groups", 11, "groups"},
		{"object?kind=Pod&ns=default&name=web-3", "observations", 4, "items"}, {"changes?window=1h", "changes", 1, "changes"}, {"live?q=type%3Awarning", "events", 7, "items"},
	} {
		for _, form := range []string{"CSV", "JSON"} {
			show(b, test.view)
			keepFiles(b)
			b.menu("Link to this, and the same elsewhere")
			b.clickText(".take button", form)
			b.waitText(".said", test.file+"."+strings.ToLower(form)+" has all of them")
			b.wait(`window.saved !== undefined`)
			text := evaluate[string](b, `window.saved`)
			if as := evaluate[string](b, `window.savedAs`); as != test.file+"."+strings.ToLower(form) {
				t.Errorf("%s is saved as %s", test.view, as)
			}
			if form == "CSV" {
				if n := strings.Count(strings.ReplaceAll(text, "\r\n", "\n"), "\n"); n != test.lines {
					t.Errorf("%s: %d lines, want %d:\n%s", test.view, n, test.lines, text)
				}
				continue
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%s: %v: %s", test.view, err, text)
			}
			if list, _ := got[test.list].([]any); len(list) != test.lines-1 {
				t.Errorf("%s: %d %s, want %d", test.view, len(list), test.list, test.lines-1)
			}
		}
		b.menu("Link to this, and the same elsewhere")
		b.click(`[aria-label="Copy link"]`)
		b.waitText(".said", "Link copied")
		if link := evaluate[string](b, `navigator.clipboard.readText()`); !strings.HasPrefix(link, s.events+"/console/#/"+strings.SplitN(test.view, "?", 2)[0]) {
			t.Errorf("the link of %s is %s", test.view, link)
		}
	}
}

// TestCut: a file has at most 20,000 rows, and the page says that there are more.
func TestCut(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/console/#/events?from=-8d")
	b.signIn(admin)
	b.waitText(".count", "more as you scroll")
	keepFiles(b)
	b.menu("Link to this, and the same elsewhere")
	b.clickText(".take button", "CSV")
	b.waitText(".said", "The first 20,000 events are in events.csv. There are more: narrow the search or the range.")
	b.wait(`window.saved !== undefined`)
	if n := evaluate[int](b, `window.saved.match(/^observed,type,reason/gm).length`); n != 1 {
		t.Errorf("%d heads", n)
	}
}

// TestSearches: searches that were made are offered again, and one is saved with its name; both stay in the browser,
// without anything secret, and signing out forgets the searches that were not saved.
func TestSearches(t *testing.T) {
	t.Parallel()
	_, b := withEvents(t, 30)
	for _, text := range []string{"reason:Failed", "web-3"} {
		show(b, "events?from=-1h")
		b.click(".box input")
		b.typing(text + " ")
		b.key("Enter")
		b.settled()
	}
	const menu = "Saved and recent searches"
	b.menu(menu)
	b.fill(".tools .panel input[name=name]", "pods of night")
	b.key("Enter")
	b.waitText(".said", "Saved as pods of night")
	show(b, "overview")
	b.menu(menu)
	b.clickText(".kept a", "reason:Failed")
	b.waitText(".chip", "Failed")
	b.wait(`location.hash.startsWith("#/overview")`) // of the view that is shown
	b.reload()
	b.menu(menu)
	b.clickText(".kept a", "pods of night")
	b.waitText(".count", "3 events")
	if kept := evaluate[string](b, `JSON.stringify([localStorage, sessionStorage])`); strings.Contains(kept, "eyJ") || strings.Contains(kept, clientSecret) {
		t.Errorf("the browser keeps %s", kept)
	}
	b.click("button[aria-label=Settings]")
	b.clickText(".panel button", "Sign out")
	b.signIn(admin)
	b.menu(menu)
	b.waitText(".kept a", "pods of night")
	if texts := b.texts(".kept a"); len(texts) != 1 {
		t.Errorf("after signing out there are %q", texts)
	}
	b.click(`[aria-label="Remove pods of night"]`)
	b.wait(`document.querySelectorAll(".kept a").length === 0 && localStorage.getItem("tidings.searches") === null`)
}
