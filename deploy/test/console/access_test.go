package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
)

// screens are the addresses of all main states, on the services of the week.
func screens(t *testing.T) (*services, map[string]string) {
	t.Helper()
	s, facts := week(t)
	day := "&from=" + stamp(facts.End.AddDate(0, 0, -1)) + "&to=" + stamp(facts.End)
	return s, map[string]string{
		"overview": "overview?from=-7d",
		"events":   "events?q=type%3AWarning%20-reason%3ABackOff" + day,
		"drawer":   "events?q=reason%3AOOMKilling&from=-8d",
		"live":     "live",
		"groups":   "groups?by=object" + day,
		"patterns": "groups?by=pattern" + day,
		"changes":  "changes?window=1h&at=" + stamp(facts.NotReady.End),
		"compare":  "changes?window=1h&at=" + stamp(facts.NotReady.End) + "&other=" + stamp(facts.NotReady.Begin),
		"object":   fmt.Sprintf("object?kind=Pod&ns=%s&name=%s", facts.OOM.Namespace, facts.OOM.Pod),
	}
}

// visit shows one of the screens.
func visit(b *tab, name, address string) {
	b.t.Helper()
	show(b, address)
	if name == "drawer" {
		b.key("j")
		b.key("Enter")
		b.waitText(".drawer", "Observed")
	}
	b.settled()
}

// TestAccessible: on every screen and in both themes everything that can be used has a name and a role, headings are in
// order, and texts have the contrast that WCAG 2.2 AA asks for.
func TestAccessible(t *testing.T) {
	t.Parallel()
	s, all := screens(t)
	b := openTab(t, s)
	b.open("/console/")
	b.wait(`document.querySelector("dialog.signin[open]")`)
	named(b, "sign-in")
	contrast(b, "sign-in")
	b.signIn(admin)
	for name, address := range all {
		visit(b, name, address)
		named(b, name)
		for _, dark := range []bool{false, true} {
			b.dark(dark)
			contrast(b, fmt.Sprintf("%s, dark %v", name, dark))
		}
		b.dark(false)
	}
	b.key("?")
	named(b, "keys")
	contrast(b, "keys")
}

// interactive are the roles of what a person uses, which need a name (WCAG 4.1.2).
var interactive = []string{"button", "link", "textbox", "combobox", "checkbox", "radio", "slider", "dialog", "option", "img", "table", "navigation", "group", "search"}

// named fails the test for what has no name in the accessibility tree.
func named(b *tab, where string) {
	b.t.Helper()
	mains, headings := 0, 0
	for _, n := range b.tree() {
		if n.Ignored || n.Role == nil {
			continue
		}
		role, name := valueOf(n.Role), valueOf(n.Name)
		switch role {
		case "main":
			mains++
		case "heading":
			headings++
		}
		if slices.Contains(interactive, role) && strings.TrimSpace(name) == "" && role != "group" {
			b.t.Errorf("%s: a %s has no name", where, role)
		}
	}
	if mains > 1 || headings == 0 {
		b.t.Errorf("%s: %d main landmarks, %d headings", where, mains, headings)
	}
}

func valueOf(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	return strings.Trim(string(v.Value), `"`)
}

// contrast fails the test for texts that differ too little from what is behind them: 4.5 to 1, or 3 to 1 if they are
// large (WCAG 1.4.3).
func contrast(b *tab, where string) {
	b.t.Helper()
	for _, bad := range evaluate[[]string](b, "("+lowContrast+")()") {
		b.t.Errorf("%s: %s", where, bad)
	}
}

const lowContrast = `() => {
	const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return c.startsWith("color(srgb") ? [m[0] * 255, m[1] * 255, m[2] * 255, m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
	const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
	const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const canvas = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 21, 25, 1] : [245, 246, 248, 1];
	const behind = (e) => { const layers = []; for (let p = e; p; p = p.parentElement) { const c = parse(getComputedStyle(p).backgroundColor); if (c[3] > 0) { layers.push(c); if (c[3] === 1) break; } } return layers.reduceRight((under, c) => over(c, under), canvas); };
	const bad = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.nodeValue.trim() || !e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) || e.closest("[disabled], noscript, .unseen, .skip, option")) continue;
		const style = getComputedStyle(e);
		const colour = parse(e.namespaceURI.endsWith("svg") ? style.fill : style.color);
		const ground = behind(e.namespaceURI.endsWith("svg") ? e.closest("div") : e);
		const [a, b] = [light(over(colour, ground)), light(ground)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
		if (ratio < (large ? 3 : 4.5)) bad.add(e.tagName + "." + (e.getAttribute("class") ?? "") + " " + JSON.stringify(walk.currentNode.nodeValue.slice(0, 30)) + " has a contrast of " + ratio.toFixed(2) + ": " + style.color + " on " + ground.map(Math.round));
	}
	return [...bad];
}`

// TestFits: nothing is cut off or has to be scrolled sideways in 360 pixels, nor at twice the size (WCAG 1.4.4,
// 1.4.10), and what is tapped has 24 pixels each way (2.5.8).
func TestFits(t *testing.T) {
	t.Parallel()
	s, all := screens(t)
	b := openTab(t, s)
	b.open("/console/")
	b.signIn(admin)
	for name, address := range all {
		for _, width := range []int64{360, 640} {
			b.size(width, 740)
			visit(b, name, address)
			fits(b, fmt.Sprintf("%s at %d", name, width), width)
		}
		b.zoom(2, 1280, 800)
		visit(b, name, address)
		fits(b, name+" at 200 %", 640)
	}
}

func fits(b *tab, where string, width int64) {
	b.t.Helper()
	if got := evaluate[int64](b, `document.documentElement.scrollWidth`); got > width {
		b.t.Errorf("%s: the page is %d pixels wide, the window %d", where, got, width)
	}
	for _, small := range evaluate[[]string](b, `[...document.querySelectorAll("button, .views a, .button, select, input:not([type=radio], [type=checkbox])")]
		.filter((e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && !e.disabled).map((e) => [e, e.getBoundingClientRect()])
		.filter(([e, box]) => box.width > 0 && (box.width < 23.5 || box.height < 23.5)).map(([e, box]) => e.outerHTML.slice(0, 90) + " " + Math.round(box.width) + "×" + Math.round(box.height))`) {
		b.t.Errorf("%s: too small to tap: %s", where, small)
	}
}

// TestKeyboard: everything can be reached and left by keys alone, and the focus can be seen.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.some(t, 30)
	b := openTab(t, s)
	b.open("/console/")
	b.wait(`document.activeElement.name === "id"`)
	b.typing(admin)
	b.key("Tab")
	b.typing(clientSecret)
	b.key("Enter")
	b.wait(`!document.querySelector("dialog")`)
	b.settled()
	b.waitText(".readout", "occurrences")
	walk := walkByTab(b)
	for _, want := range []string{"A Overview", "INPUT Search", "BUTTON Range of time (t)", "DIV Histogram", "BUTTON Normal"} {
		if !slices.ContainsFunc(walk, func(at string) bool { return strings.HasPrefix(at, want) }) {
			t.Errorf("Tab does not reach %q: %v", want, walk)
		}
	}
	b.key("2")
	b.wait(`document.title.startsWith("Events")`)
	b.settled()
	b.key("j")
	b.key("j")
	b.key("j")
	b.key("k")
	b.key("Enter")
	b.waitText(".drawer", "Number 28 has happened")
	b.key("Tab")
	if in := evaluate[bool](b, `document.querySelector(".drawer").contains(document.activeElement)`); !in {
		t.Error("Tab does not lead into the drawer")
	}
	b.key("Escape")
	b.wait(`!document.querySelector(".drawer")`)
	b.wait(`document.activeElement.dataset.row === "default/some-0028"`)
	b.key("s")
	b.waitText(".chip", "Tested")
	b.key("?")
	b.wait(`document.querySelector("dialog.keys[open]")`)
	b.shot("keys")
	b.key("Escape")
	b.wait(`!document.querySelector("dialog")`)
	b.key("t")
	b.wait(`document.activeElement.name === "from"`)
	b.key("Escape")
	b.wait(`document.activeElement.classList.contains("range-text")`)
	for view, title := range map[string]string{"1": "Overview", "3": "Live", "4": "Groups", "5": "Changes"} {
		b.key(view)
		b.wait(fmt.Sprintf(`document.title.startsWith(%q)`, title))
	}
	b.key("2")
	b.settled()
	b.key("j")
	b.key("o")
	b.wait(`document.querySelector(".mark")`)
	b.clickText(".corner button", "")
	b.clickText(".panel label", "Keys of one letter")
	b.key("Escape")
	b.key("1")
	b.settled()
	if title := evaluate[string](b, `document.title`); strings.HasPrefix(title, "Overview") {
		t.Error("a key that is switched off does something")
	}
}

// walkByTab presses Tab through the whole page, and returns what had the focus. What has it without being seen to have
// it fails the test (WCAG 2.4.7).
func walkByTab(b *tab) (walk []string) {
	b.t.Helper()
	evaluate[bool](b, `(document.activeElement.blur(), document.querySelector(".brand").focus(), true)`)
	for range 200 {
		at := evaluate[string](b, `(() => { const e = document.activeElement; if (e === document.body) return "";
			const style = getComputedStyle(e), box = e.closest(".box");
			const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1 || box && getComputedStyle(box).outlineStyle !== "none" || e.type === "radio";
			return (seen ? "" : "UNSEEN ") + e.tagName + " " + (e.ariaLabel ?? e.title ?? "").concat(" ", e.innerText ?? "").trim(); })()`)
		if strings.HasPrefix(at, "UNSEEN") {
			b.t.Errorf("the focus cannot be seen on %s", at)
		}
		if at == "" || len(walk) > 1 && at == walk[0] {
			return walk
		}
		walk = append(walk, at)
		b.key("Tab")
	}
	b.t.Error("Tab does not come to an end")
	return walk
}
