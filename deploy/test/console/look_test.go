package console_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
)

// TestColumnsFit: the columns of a table fit beside the facets or the drawer without scrolling sideways, and the note
// has room.
func TestColumnsFit(t *testing.T) {
	t.Parallel()
	s, all := screens(t)
	b := openTab(t, s)
	b.open("/console/")
	b.signIn(admin)
	for _, width := range []int64{1024, 1280, 1440} {
		b.size(width, 900)
		for _, name := range []string{"events", "live", "object", "drawer"} {
			visit(b, name, all[name])
			b.wait(`document.querySelector(".tbody .c-note")`)
			table := evaluate[struct{ Hidden, Note float64 }](b, `(() => {
				const t = document.querySelector(".table");
				return { hidden: t.scrollWidth - t.clientWidth, note: document.querySelector(".tbody .c-note").offsetWidth };
			})()`)
			if table.Hidden > 0 || table.Note < 130 {
				t.Errorf("%s at %d pixels: %.0f pixels of the table are hidden, and notes have %.0f", name, width, table.Hidden, table.Note)
			}
		}
	}
}

// TestNotes: a note is read where it stands. It is the widest column, takes up to three lines and, when asked by a key
// or a click, all that it needs; hashes are dimmed, and what all rows share is said once.
func TestNotes(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	long := event("default", "long")
	long.Note = strings.Repeat("The image could not be pulled from the registry. ", 16) + "It is the end."
	long.Regarding.Name = "web-7d9f8b6c5-x2xk9"
	middle, brief := event("default", "middle"), event("default", "brief")
	middle.Note, brief.Reason = strings.Repeat("Two lines are needed for this note, which says more. ", 3), "Other"
	s.create(t, brief, middle, long)
	b := openTab(t, s)
	b.size(1440, 900)
	b.open("/console/#/events")
	b.signIn(admin)
	b.waitText(`[data-same="namespace"]`, "default")
	if n := b.count(".head .c-namespace"); n != 0 {
		t.Error("a column says the same in all rows")
	}
	if dim := b.texts(`[data-row="default/long"] .c-object .dim`); !slices.Equal(dim, []string{"-7d9f8b6c5-x2xk9"}) {
		t.Errorf("dimmed: %q", dim)
	}
	height := func(name string) int {
		t.Helper()
		return evaluate[int](b, fmt.Sprintf(`document.querySelector('[data-row="default/%s"]').offsetHeight`, name))
	}
	fits := func(name string) bool {
		t.Helper()
		return evaluate[bool](b, fmt.Sprintf(`((e) => e.scrollHeight <= e.clientHeight + 2)(document.querySelector('[data-row="default/%s"] .text'))`, name))
	}
	one, three := height("brief"), height("long")
	if two := height("middle"); two <= one || three <= two || fits("long") || !fits("middle") {
		t.Errorf("rows are %d, %d and %d high", one, two, three)
	}
	b.key("End")
	b.key("e")
	b.wait(fmt.Sprintf(`document.querySelector('[data-row="default/long"]').offsetHeight > %d`, three))
	if !fits("long") {
		t.Error("the note that was asked for does not fit")
	}
	b.click(`[data-row="default/long"] [aria-expanded=true]`)
	b.wait(fmt.Sprintf(`document.querySelector('[data-row="default/long"]').offsetHeight === %d`, three))
	if b.count(".drawer") != 0 {
		t.Error("the note has opened the drawer")
	}
	b.click("[aria-label=Columns]")
	b.clickText("fieldset button", "All")
	b.wait(fmt.Sprintf(`document.querySelector('[data-row="default/long"]').offsetHeight > %d`, three))
	b.clickText("fieldset button", "One")
	b.wait(fmt.Sprintf(`document.querySelector('[data-row="default/long"]').offsetHeight === %d`, one))
}

// TestGroupsFit: groups fit without scrolling sideways, each in at most two lines.
func TestGroupsFit(t *testing.T) {
	t.Parallel()
	s, all := screens(t)
	b := openTab(t, s)
	b.open("/console/")
	b.signIn(admin)
	for _, width := range []int64{1024, 1440} {
		b.size(width, 900)
		show(b, all["groups"])
		b.wait(`document.querySelector("[data-group]")`)
		b.settled()
		table := evaluate[struct{ Hidden, Highest float64 }](b, `(() => {
			const t = document.querySelector(".scroll-x");
			return { hidden: t.scrollWidth - t.clientWidth, highest: Math.max(...[...document.querySelectorAll("[data-group]")].map((e) => e.offsetHeight)) };
		})()`)
		if table.Hidden > 0 || table.Highest > 60 {
			t.Errorf("at %d pixels %.0f of the table are hidden, and a group is %.0f high", width, table.Hidden, table.Highest)
		}
	}
}

// TestDates: on a phone a row that is not of today has its date.
func TestDates(t *testing.T) {
	t.Parallel()
	s, facts := week(t)
	b := openTab(t, s)
	b.size(390, 800)
	b.open("/console/#/events?q=reason%3AOOMKilling&order=oldest&from=-8d")
	b.signIn(admin)
	b.waitText(".card-line time", facts.OOM.Begin.UTC().Format("01-02 15:04"))
}

// TestNamed: a change in many namespaces names some of them; only its sentence has their number, as the answer lists
// ten at most.
func TestNamed(t *testing.T) {
	t.Parallel()
	s, facts := week(t)
	b := openTab(t, s)
	b.open("/console/#/changes?window=1h&at=" + stamp(facts.NotReady.End))
	b.signIn(admin)
	b.waitText(".change-why", "namespaces")
	heads := b.texts(".change-head")
	if !slices.ContainsFunc(heads, func(head string) bool { return strings.Contains(head, " …") && !strings.Contains(head, "namespaces") }) {
		t.Errorf("no change in many namespaces names some: %q", heads)
	}
}

// TestNothingMoves: answers that come one after the other move nothing that is seen already. The sum of the shifts is
// what browsers call cumulative layout shift, of which 0.1 is the most that is called good.
func TestNothingMoves(t *testing.T) {
	t.Parallel()
	s, facts := week(t)
	b := openTab(t, s)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `globalThis.shifts = []; new PerformanceObserver((list) => shifts.push(...list.getEntries())).observe({ type: "layout-shift", buffered: true })`,
	})
	b.open("/console/")
	b.signIn(admin)
	for name, address := range map[string]string{
		"overview": "overview?from=-8d", "events": "events?from=-8d", "groups": "groups?from=-8d",
		"changes": "changes?window=1h&at=" + stamp(facts.OOM.Begin.Add(30*time.Minute)),
		"object":  "object?kind=Node&name=" + facts.OOM.Node,
	} {
		b.open("/console/#/" + address)
		b.reload() // as somebody who opens a link
		b.wait(`document.querySelector("main :is(.plot, [data-group], .changes, [data-row])")`)
		b.settled()
		moved := evaluate[[]string](b, `shifts.filter((e) => !e.hadRecentInput).map((e) => e.value.toFixed(4) + " " + e.sources.map((s) => s.node?.className || s.node?.nodeName).join(", "))`)
		sum := 0.0
		for _, shift := range moved {
			value, _, _ := strings.Cut(shift, " ")
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += v
		}
		t.Logf("%s: %.3f", name, sum)
		if sum > 0.1 {
			t.Errorf("%s moves by %.3f: %s", name, sum, strings.Join(moved, "; "))
		}
	}
}

// TestOverviewFits: in no width of the page, with a drawer and without, does anything stand out of its card, and chips
// take no line more than they need.
func TestOverviewFits(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/console/#/overview?from=-7d")
	b.signIn(admin)
	b.wait(`document.querySelector(".changes li") && document.querySelector(".brief li")`)
	for _, open := range []bool{false, true} {
		if open {
			b.size(1380, 900)
			b.click(".brief a")
			b.waitText(".drawer", "Details")
		}
		for _, width := range []int64{1380, 1280, 1000, 800} {
			b.size(width, 900)
			b.settled()
			if out := evaluate[[]string](b, `[...document.querySelectorAll(".panel-box")].flatMap((p) => [...p.querySelectorAll(".change-facts > *, .brief-head > time")].filter((e) => e.getBoundingClientRect().right > p.getBoundingClientRect().right).map((e) => e.innerText))`); len(out) > 0 {
				t.Errorf("at %d, drawer %t, these stand out of their cards: %q", width, open, out)
			}
		}
	}
	show(b, "overview?from=-7d&q=namespace%3Acheckout%20type%3AWarning%20kind%3APod%20reason%3ABackOff%20name%3Apayments-api")
	b.size(1380, 900)
	b.wait(`document.querySelectorAll(".chip").length === 5`)
	if lines := evaluate[int](b, `new Set([...document.querySelectorAll(".chip, .box input")].map((e) => e.offsetTop + e.offsetHeight / 2 >> 4)).size`); lines != 1 {
		t.Errorf("five chips and the empty input take %d lines", lines)
	}
}
