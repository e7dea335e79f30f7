package console_test

import (
	"fmt"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"tidings.example/deploy/test/internal/testenv"
)

// click clicks on the middle of the first visible element that a selector finds, with the mouse.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.clickText(selector, "")
}

// clickText clicks on the first visible one of the elements that have a text.
func (b *tab) clickText(selector, text string, options ...chromedp.MouseOption) {
	b.t.Helper()
	b.aim(selector, text, "clicked", func(x, y float64) { b.do(chromedp.MouseClickXY(x, y, options...)) })
}

// drag presses the mouse at one share of an element's width, moves it to another and lets it go.
func (b *tab) drag(selector string, from, to float64) {
	b.t.Helper()
	b.aim(selector, "", "pressed", func(x, y float64) {
		box := evaluate[struct{ X, Width float64 }](b, `(({ x, width }) => ({ X: x, Width: width }))(aim.element.getBoundingClientRect())`)
		b.do(chromedp.DragAndDropXY(box.X+from*box.Width, y, box.X+to*box.Width, y, 10))
	})
}

// hover moves the mouse over an element.
func (b *tab) hover(selector, text string) {
	b.t.Helper()
	b.aim(selector, text, "", func(_, _ float64) {})
}

// aim points at the middle of an element and acts there, until the page has heard of it that the element was "pressed"
// or "clicked", or "" if nothing is pressed. A press that hits something else, because the page has moved in between,
// is kept from the page, so that an act has no effect or the one that it should have.
func (b *tab) aim(selector, text, want string, act func(x, y float64)) {
	b.t.Helper()
	type point struct {
		X, Y float64
		Why  string
	}
	expression := fmt.Sprintf(`aim.at(%s, %s, %t)`, quoted(selector), quoted(text), want != "")
	var before point
	acted := false
	testenv.Eventually(b.t, fmt.Sprintf("%s %q is %s", selector, text, want), deadline, func() error {
		if !acted {
			at, err := tryEvaluate[point](b, expression)
			switch {
			case err != nil:
				return err
			case at.Why != "":
				return fmt.Errorf("%s%s", at.Why, b.trouble())
			case at != before: // the mouse has to be there first, as what it is over may change
				before = at
				b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at.X, at.Y))
				return fmt.Errorf("it moves")
			}
			act(at.X, at.Y)
			acted = true
		}
		heard, err := tryEvaluate[string](b, `aim.end()`)
		if err != nil {
			return err // the click has led to another page, which begins
		}
		if want != "" && heard != "" && heard != want && heard != "clicked" { // "" of another page
			acted, before = false, point{}
			return fmt.Errorf("%s", heard)
		}
		return nil
	})
}

// aiming is a script of each page, for aim: aim.at finds the middle of an element that is in view, has stopped moving,
// is not disabled and covered by nothing, or says why there is none. Then aim.heard says what became of a press there.
// A field that is not drawn itself, as a radio button is, stands for its label.
const aiming = `globalThis.aim = { element: null, heard: "" };
aim.end = () => {
	const { element, heard } = aim;
	aim.element = null;
	return heard === "pressed" && !element?.isConnected ? "clicked" : heard; // which has acted when it was pressed
};
aim.part = (node) => {
	const { element } = aim;
	if (!element || !(node instanceof Node)) return false;
	const inner = (node instanceof Element ? node : node.parentElement)?.closest("button, input, select, textarea");
	if (inner && inner !== element && element.contains(inner) && element.tagName !== "LABEL") return false; // it does something else
	return element.contains(node) || [...(element.labels ?? [])].some((l) => l.contains(node)) || node instanceof HTMLSelectElement && node.contains(element);
};
aim.at = async (selector, text, press) => {
	aim.element = null;
	aim.heard = "";
	const none = (Why) => ({ X: 0, Y: 0, Why });
	let found = [...document.querySelectorAll(selector)].filter((e) => e.innerText?.includes(text) || e.value?.includes?.(text) || text === "");
	if (!found.length) return none("there is none");
	const seen = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && e.getBoundingClientRect().width > 0;
	const e = found.map((e) => (seen(e) ? e : e.labels?.[0] ?? e)).find(seen);
	if (!e) return none("none is visible");
	if (e.disabled) return none("it is disabled");
	e.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
	const place = () => { const box = e.getClientRects()[0]; return box ? { X: box.x + box.width / 2, Y: box.y + box.height / 2, Why: "" } : none("it is gone"); };
	const before = place();
	await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
	const at = place();
	if (before.X !== at.X || before.Y !== at.Y) return none("it moves");
	const top = document.elementFromPoint(at.X, at.Y);
	aim.element = e;
	if (press ? !aim.part(top) : !e.contains(top)) return none("it is covered by " + (top?.outerHTML.slice(0, 200) ?? "nothing"));
	aim.heard = "no press is heard";
	return at;
};
for (const type of ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick"]) addEventListener(type, (e) => {
	if (!aim.element || !e.isTrusted || aim.heard === "clicked") return;
	if (type === "pointerdown") aim.heard = aim.part(e.target) ? "pressed" : "missed, hit " + e.target.outerHTML?.slice(0, 200);
	if (type.endsWith("click") && aim.heard === "pressed") aim.heard = aim.part(e.target) ? "clicked" : "pressed, and moved away before it was let go";
	if (type === "click" && aim.heard.startsWith("pressed,") || aim.heard.startsWith("missed")) {
		if (type !== "pointerdown") e.preventDefault();
		e.stopImmediatePropagation();
	}
}, true);`
