package console_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEntries: on both views that have them, eight changes are seen without scrolling, each with its sentence. A button
// shows how its place is computed.
func TestEntries(t *testing.T) {
	t.Parallel()
	s, facts := week(t)
	b := openTab(t, s)
	b.open("/console/")
	b.signIn(admin)
	for _, address := range []string{
		"overview?from=" + stamp(facts.Begin) + "&to=" + stamp(facts.End), "changes?window=1d&at=" + stamp(facts.End),
	} {
		show(b, address)
		b.wait(`document.querySelectorAll(".changes li").length >= 8`)
		if n := evaluate[int](b, `[...document.querySelectorAll(".changes li")].filter((e) => e.getBoundingClientRect().bottom <= innerHeight).length`); n < 8 {
			t.Errorf("%s: %d changes are on the screen, want 8", address, n)
		}
	}
	b.shot("entries")
	if text := b.text(".changes"); strings.Contains(text, "by chance") {
		t.Error("statistics are shown before anybody asks")
	}
	b.clickText(".changes button", "Why here")
	b.waitText(".statistics", "by chance")
}

// TestRepeats: warnings with the same reason, namespace and kind are one row, with the newest of them and their count.
func TestRepeats(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 50) // 10 of them Failed
	b := openTab(t, s)
	b.open("/console/#/overview?from=-1h")
	b.signIn(admin)
	b.waitText(".brief", "9 more events of Failed in default")
	if n := b.count(".brief [data-row]"); n != 1 {
		t.Errorf("%d rows of one reason", n)
	}
	b.click(".brief-more")
	b.waitText(".count", "10 events")
}

// TestTimes: the zone is named on every view and changed beside its name; the range box takes times as people write
// them.
func TestTimes(t *testing.T) {
	t.Parallel()
	s, facts := week(t)
	b := openTab(t, s)
	call(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	b.open("/console/#/overview")
	b.signIn(admin)
	for _, view := range []string{"overview", "events", "live", "groups", "changes", "object?kind=Pod&ns=" + facts.OOM.Namespace + "&name=" + facts.OOM.Pod} {
		show(b, view)
		b.waitText(".zone", "UTC+5:30")
	}
	want := facts.OOM.Begin.In(time.FixedZone("", 5.5*3600)).Format("01-02 15:04")
	show(b, "events?q=reason%3AOOMKilling&order=oldest&from=-8d")
	b.waitText("main [data-row]", want)
	b.click(".zone")
	b.waitText("main [data-row]", facts.OOM.Begin.UTC().Format("01-02 15:04"))
	now := time.Now().UTC()
	for text, title := range map[string]string{
		"-3h": "Last 3 hours", "yesterday 02:00-03:00": now.AddDate(0, 0, -1).Format("01-02") + " 02:00 – 03:00", "00:00": now.Format("01-02") + " 00:00",
		now.AddDate(0, 0, -1).Format("2.1.2006") + " 2:30am": now.AddDate(0, 0, -1).Format("01-02") + " 02:30",
	} {
		b.key("t")
		b.fill(".absolute input[name=to]", "now")
		b.fill(".absolute input[name=from]", text)
		b.key("Enter")
		b.waitText(".range-text", title)
		b.settled()
	}
}

// TestAxes: on a phone the axis has labels in each range, and they do not cover each other.
func TestAxes(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.size(390, 800)
	b.open("/console/#/overview")
	b.signIn(admin)
	for _, from := range []string{"-15m", "-1h", "-6h", "-24h", "-3d", "-7d", "-30d"} {
		show(b, "overview?from="+from)
		b.wait(`document.querySelectorAll(".ticks text").length >= 2`)
		if covered := evaluate[bool](b, `[...document.querySelectorAll(".ticks text")].map((e) => e.getBoundingClientRect()).some((r, i, all) => i && r.left < all[i - 1].right + 2)`); covered {
			t.Errorf("%s: labels cover each other: %q", from, b.texts(".ticks text"))
		}
	}
}

// TestLegend: the legend stays while the text about the bar below the pointer is shown beside it, and nothing moves.
func TestLegend(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/console/#/overview?from=-7d")
	b.signIn(admin)
	for _, width := range []int64{1280, 390} {
		b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 1, 1))
		b.size(width, 800)
		b.settled()
		b.wait(`document.querySelector(".pointed").innerText === ""`)
		b.waitText(".legend", "Warning")
		top := evaluate[float64](b, `document.querySelector(".plot").getBoundingClientRect().top`)
		b.hover(".plot", "")
		b.wait(`document.querySelector(".pointed").innerText !== ""`)
		b.waitText(".legend", "Warning")
		if now := evaluate[float64](b, `document.querySelector(".plot").getBoundingClientRect().top`); now != top {
			t.Errorf("at %d pixels the plot has moved from %.0f to %.0f", width, top, now)
		}
	}
}

// TestOneFailure: whatever fails is said once on each view, with a way to ask again, and nothing says that it loads
// meanwhile. Before anybody is signed in nothing is wrong.
func TestOneFailure(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 10)
	b := openTab(t, s)
	b.expect("net::ERR_|403")
	views := []string{"overview", "events", "live", "groups", "changes", "object?kind=Pod&ns=default&name=web-1"}
	b.open("/console/#/overview")
	b.wait(`document.querySelector("dialog.signin[open]")`)
	for _, view := range views {
		show(b, view)
		if n := b.count("main .message, main [role=alert], main .loading, .note"); n != 0 {
			t.Errorf("%s: %d messages behind the sign-in", view, n)
		}
	}
	b.signIn(reader)
	for _, view := range []string{"overview?q=namespace%3Adefault", "events?q=namespace%3Adefault", "groups?q=namespace%3Adefault", "live?q=namespace%3Adefault", "changes?ns=default", "object?kind=Pod&ns=default&name=web-1"} {
		show(b, view)
		b.waitText("main .message", "You may see shop")
		once(b, view)
	}
	show(b, "overview?from=-2h")
	b.signOut()
	b.signIn(admin)
	b.waitText(".readout", "10 occurrences")
	s.stop(t, "eventsvc")
	for _, view := range views {
		show(b, view+map[bool]string{true: "&", false: "?"}[strings.Contains(view, "?")]+"from=-3h&window=2h")
		b.wait(`document.querySelector("main [role=alert]")`)
		once(b, view)
	}
	b.shot("state-one-failure")
	s.start(t, "eventsvc")
	show(b, "overview?from=-3h")
	b.key("r")
	b.waitText(".readout", "10 occurrences")
	b.wait(`!document.querySelector("main [role=alert]")`)
	s.stop(t, "eventsvc")
	b.key("r")
	b.waitText("main [role=alert]", "What you see is the last answer")
	once(b, "an overview that has answers")
	s.start(t, "eventsvc")
	show(b, "events?from=-3h")
	b.key("r")
	b.waitText(".count", "10 events")
	s.stop(t, "eventsvc")
	b.key("r")
	b.waitText(".histogram [role=alert]", "What you see is the last answer")
	once(b, "events that have answers")
	if b.count("main .message") != 0 || b.count("main [data-row]") != 10 {
		t.Errorf("the last answer is not there: %q", b.text("main"))
	}
	s.start(t, "eventsvc")
	b.clickText("main [role=alert] button", "Ask again")
	b.wait(`!document.querySelector("main [role=alert]")`)
}

// TestNoAnswer: a question that is not answered for a minute, or by a proxy with its sign-in page, ends with one
// message on each view, and a way to ask again, also below rows that are there. Such a page is no file of events.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 150) // more than the first page of Live
	to, err := url.Parse(s.events)
	if err != nil {
		t.Fatal(err)
	}
	var silent, signsIn atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if silent.Load() && strings.HasPrefix(r.URL.Path, "/query/") {
			<-r.Context().Done() // the page gives up
			return
		}
		if signsIn.Load() && !strings.HasPrefix(r.URL.Path, "/console/") {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<!doctype html><title>Sign in</title><p>Sign in to go on.</p>")
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	b := openTab(t, &services{tokens: s.tokens, events: front.URL})
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{ // so that nobody waits for a minute
		Source: `{ const later = setTimeout; window.setTimeout = (f, ms, ...more) => later(f, ms === 60000 ? window.minute ?? ms : ms, ...more); }`,
	})
	b.open("/console/#/overview?from=-1h")
	b.signInWithToken(s.token(t, admin))
	b.waitText(".readout", "150 occurrences")
	show(b, "live?from=-4h")
	b.waitText(".phase", "Live")
	silent.Store(true)
	evaluate[int](b, `window.minute = 200`)
	for _, key := range []string{"End", "r"} { // the next page, and the first one again
		b.key(key)
		b.waitText("main [role=alert]", "there was no answer for a minute")
		once(b, "Live with rows, "+key)
		silent.Store(false)
		b.clickText("main [role=alert] button", "Ask again")
		b.waitText(".phase", "Live")
		b.wait(`!document.querySelector("main [role=alert]")`)
		silent.Store(true)
	}
	each := func(hours int, message string) {
		t.Helper()
		for _, view := range []string{"events?from=-%dh", "groups?from=-%dh", "changes?window=%dh", "object?kind=Pod&ns=default&name=web-%d", "live?from=-%dh", "overview?from=-%dh"} {
			view = fmt.Sprintf(view, hours)
			show(b, view)
			b.waitText("main [role=alert]", message)
			once(b, view)
		}
	}
	each(3, "there was no answer for a minute")
	b.shot("state-no-answer")
	evaluate[int](b, `window.minute = 60000`)
	silent.Store(false)
	signsIn.Store(true)
	each(2, "a web page came in the place of events")
	b.shot("state-foreign")
	b.menu("Link to this, and the same elsewhere")
	b.clickText(".take button", "CSV")
	b.waitText(".said", "Nothing was saved: a web page came in the place of events")
	b.key("Escape")
	signsIn.Store(false)
	b.clickText("main [role=alert] button", "Ask again")
	b.wait(`!document.querySelector("main [role=alert]")`)
	b.waitText(".readout", "150 occurrences")
}

// once fails the test unless one thing is wrong on the page, and nothing says that it loads.
func once(b *tab, view string) {
	b.t.Helper()
	b.settled()
	if n := b.count("main [role=alert], main .note.warn"); n != 1 {
		b.t.Errorf("%s: %d messages: %q", view, n, b.texts("main [role=alert], main .note.warn"))
	}
	if n := b.count("main .loading"); n != 0 || strings.Contains(b.text("main"), "Loading") || strings.Contains(b.text("main"), "Connecting") {
		b.t.Errorf("%s: something says that it loads: %q", view, b.text("main"))
	}
}

// TestSmall: on a phone and at twice the size the facets can be reached, groups and comparisons need no scrolling
// sideways, and the settings stay within their panel; at 1024 pixels no word is broken over three lines.
func TestSmall(t *testing.T) {
	t.Parallel()
	s, all := screens(t)
	b := openTab(t, s)
	b.size(390, 800)
	b.open("/console/#/events?from=-7d")
	b.signIn(admin)
	for _, zoomed := range []bool{false, true} {
		if zoomed {
			b.zoom(2, 1280, 800)
		}
		for _, view := range []string{"overview", "events"} {
			show(b, view+"?from=-7d")
			b.settled()
			if evaluate[bool](b, `document.querySelector("button[aria-label=Facets]").ariaPressed !== "true"`) {
				b.click("button[aria-label=Facets]")
			}
			b.click(`[data-facet="type:Warning"]`)
			b.waitText(".chip", "Warning")
			b.click("button[aria-label=Facets]")
			b.wait(`!document.querySelector(".facets")`)
		}
	}
	b.size(390, 800)
	for view, table := range map[string]string{"groups": "table.groups [data-group]", "compare": "table.two .pair"} {
		show(b, all[view])
		b.wait(`document.querySelector("` + table + `")`)
		if wide := evaluate[bool](b, `[...document.querySelectorAll(".scroll-x")].some((e) => e.scrollWidth > e.clientWidth)`); wide {
			t.Errorf("%s has to be scrolled sideways on a phone", view)
		}
		b.shot(view + "-phone")
	}
	b.size(1440, 900)
	show(b, "overview?from=-7d")
	b.wait(`document.querySelectorAll(".changes li").length >= 8`)
	b.settled()
	if n := evaluate[int](b, `[...document.querySelectorAll(".changes li")].filter((e) => e.getBoundingClientRect().bottom <= innerHeight).length`); n < 7 {
		t.Errorf("%d changes are on the overview, want 7", n)
	}
	for _, width := range []int64{390, 1024, 1440} {
		b.size(width, 800)
		show(b, "overview")
		b.menu("Settings")
		b.wait(`document.querySelector(".corner .panel") !== null`)
		if out := evaluate[[]string](b, `(() => { const p = document.querySelector(".corner .panel").getBoundingClientRect(); return [...document.querySelectorAll(".corner .panel *")].filter((e) => { const r = e.getBoundingClientRect(); return r.right > p.right + 0.5 || r.left < p.left - 0.5 || r.right > innerWidth; }).map((e) => e.outerHTML.slice(0, 80)); })()`); len(out) > 0 {
			t.Errorf("at %d the settings leave their panel: %q", width, out)
		}
		b.shot(fmt.Sprintf("settings-%d", width))
		b.key("Escape")
	}
	b.size(1024, 800)
	for name, address := range all {
		visit(b, name, address)
		if broken := evaluate[[]string](b, "("+brokenWords+")()"); len(broken) > 0 {
			t.Errorf("%s at 1024 pixels: words over three lines: %q", name, broken)
		}
	}
}

const brokenWords = `() => {
	const found = [], walk = document.createTreeWalker(document.querySelector("#app"), NodeFilter.SHOW_TEXT), range = document.createRange();
	while (walk.nextNode()) {
		const node = walk.currentNode;
		if (!node.parentElement.checkVisibility()) continue;
		for (const m of node.nodeValue.matchAll(/[^\s]{2,40}/g)) {
			range.setStart(node, m.index);
			range.setEnd(node, m.index + m[0].length);
			if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 2) found.push(m[0]);
		}
	}
	return found;
}`

// TestForcedColours: where the system chooses the colours, the tab that is shown, what is pressed and the types can
// still be told.
func TestForcedColours(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/console/#/events?from=-7d")
	b.signIn(admin)
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}, {Name: "prefers-color-scheme", Value: "dark"}}})
	b.wait(`matchMedia("(forced-colors: active)").matches`)
	b.shot("forced-colours")
	for _, test := range []struct{ what, one, other string }{
		{"the tab", `.views a[aria-current="page"]`, `.views a[aria-current="false"]`}, {"what is pressed", `.choice button[aria-pressed="true"]`, `.choice button[aria-pressed="false"]`},
	} {
		look := func(selector string) string {
			return evaluate[string](b, fmt.Sprintf(`(() => { const s = getComputedStyle(document.querySelector(%s)); return [s.borderBottomColor, s.backgroundColor, s.textDecorationLine].join(" "); })()`, quoted(selector)))
		}
		if look(test.one) == look(test.other) {
			t.Errorf("%s looks like the others: %s", test.what, look(test.one))
		}
	}
	border := func(selector string) string {
		return evaluate[string](b, fmt.Sprintf(`getComputedStyle(document.querySelector(%s)).borderBottomColor`, quoted(selector)))
	}
	if ground := evaluate[string](b, `getComputedStyle(document.body).backgroundColor`); border(`.views a[aria-current="page"]`) == ground || border(`.views a[aria-current="false"]`) != ground {
		t.Errorf("the line below the tab is %s, below others %s, on %s", border(`.views a[aria-current="page"]`), border(`.views a[aria-current="false"]`), ground)
	}
	if ground := evaluate[string](b, `getComputedStyle(document.querySelector("main .type.warning"), "::before").backgroundColor`); strings.HasPrefix(ground, "rgba(0, 0, 0, 0)") || ground == "rgb(0, 0, 0)" {
		t.Errorf("the mark of a warning is %s", ground)
	}
}

// TestSkip: the plot is at most ten stops of Tab away, on the views that have one.
func TestSkip(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/console/#/overview?from=-7d")
	b.signIn(admin)
	for _, view := range []string{"overview", "events"} {
		show(b, view+"?from=-7d")
		b.settled()
		evaluate[bool](b, `(document.activeElement.blur(), document.getSelection().removeAllRanges(), document.querySelector(".skip").focus(), true)`)
		stops := 1
		for evaluate[string](b, `document.activeElement.innerText`) != "Skip to the histogram" {
			b.key("Tab")
			if stops++; stops > 10 {
				t.Fatalf("%s: no way to the plot", view)
			}
		}
		b.key("Enter")
		b.wait(`document.activeElement.classList.contains("plot")`)
	}
}

// TestUnseenCharacters: what turns the direction of a text, or cannot be seen, is shown as such wherever the text
// stands.
func TestUnseenCharacters(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	ev := event("default", "turned")
	ev.Type, ev.Reason, ev.Note = "Warning", "Turned\u202eoff", "invoice\u202egnp.exe and \u200bzero"
	ev.EventTime = metav1.NewMicroTime(time.Now().Add(-time.Minute))
	s.create(t, ev)
	b := openTab(t, s)
	b.open("/console/#/events?from=-1h")
	b.signIn(admin)
	for view, selectors := range map[string][]string{
		"overview?from=-1h": {".brief", ".facets"}, "events?from=-1h&event=default%2Fturned": {"main [data-row]", ".drawer h2", ".full-note", ".details"},
		"groups?from=-1h": {"[data-group]"}, "live": {"main [data-row]"},
	} {
		show(b, view)
		for _, selector := range selectors {
			b.waitText(selector, "[U+202E]")
		}
		if evaluate[bool](b, `/[\u202a-\u202e\u200b]/.test(document.querySelector("#app").innerText)`) {
			t.Errorf("%s has what cannot be seen: %q", view, b.text("#app"))
		}
	}
}

// TestAutoRefresh: the page asks again by itself, marks what is new, and waits while somebody reads.
func TestAutoRefresh(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 40)
	b := openTab(t, s)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `{ const real = setInterval; window.setInterval = (f, ms, ...rest) => real(f, ms === 10000 ? 200 : ms, ...rest); }`, // ten seconds are short
	})
	b.open("/console/#/events?from=-1h")
	b.signIn(admin)
	b.waitText(".count", "40 events")
	more := func(name string) {
		t.Helper()
		ev := event("default", name)
		ev.EventTime = metav1.NewMicroTime(time.Now().Add(-time.Second))
		s.create(t, ev)
	}
	more("first")
	for _, option := range []string{"Off", "10 s", "1 min"} {
		b.waitText(".auto option", option)
	}
	choose := func(seconds string) {
		t.Helper()
		evaluate[bool](b, fmt.Sprintf(`((e) => { e.value = %s; e.onchange({ target: e }); e.blur(); return true; })(document.querySelector(".auto select"))`, quoted(seconds)))
	}
	// A row is new until the page asks again, which may be before anybody looks.
	evaluate[bool](b, `(window.marked = new Set(), new MutationObserver(() => document.querySelectorAll(".tr.new").forEach((row) => marked.add(row.dataset.row)))
		.observe(document.body, { subtree: true, childList: true, attributes: true }), true)`)
	choose("10")
	b.wait(`marked.has("default/first")`)
	evaluate[bool](b, `(document.querySelector(".table").scrollTop = 200, true)`)
	b.waitText(".auto", "Paused")
	b.settled() // the turn before may be under way
	before := b.rows()
	more("second")
	asked := evaluate[int](b, `performance.getEntriesByType("resource").length`)
	evaluate[bool](b, `new Promise((done) => { let n = 0; const timer = setInterval(() => { if (++n > 4) { clearInterval(timer); done(true); } }, 10000); })`) // five turns
	if now := b.rows(); strings.Join(now, " ") != strings.Join(before, " ") {
		t.Errorf("rows have moved while somebody read: %v", now)
	}
	if now := evaluate[int](b, `performance.getEntriesByType("resource").length`); now != asked {
		t.Errorf("%d requests while somebody read", now-asked)
	}
	evaluate[bool](b, `(document.querySelector(".table").scrollTop = 0, true)`)
	b.wait(`marked.has("default/second")`)
	choose("0")
	show(b, "overview?from=-1h")
	b.hover(".brief a", "")
	choose("10")
	b.waitText(".auto", "Paused")
}
