package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// trial serves a page with a script, under a policy as strict as the console's.
func trial(t *testing.T, body, script string) *tab {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; img-src data:; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'")
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><head><title>Trial</title><link rel="icon" href="data:,"></head><body>%s<script src="script.js"></script></body></html>`, body)
		case "/script.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = fmt.Fprint(w, script)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	b := openTab(t, &services{events: server.URL})
	b.open("/")
	return b
}

// TestTabNoticesTrouble: what a page should not do is seen, unless it is expected.
func TestTabNoticesTrouble(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, script, want string }{
		{"an error in the console", `console.error("broken")`, "console error: .*broken"},
		{"a warning in the console", `console.warn("doubtful")`, "console warning: .*doubtful"},
		{"an exception", `throw new Error("thrown")`, "exception: .*thrown"},
		{"a promise that is rejected", `Promise.reject(new Error("rejected"))`, "exception: .*rejected"},
		{"a request that is refused", `fetch("/none")`, "request answered with 404"},
		{"a request that fails", `fetch("http://127.0.0.1:1/").catch(() => {})`, "request failed|policy violated"},
		{"an inline style", `document.body.setAttribute("style", "color: red")`, "policy violated:.*style-src"},
		{"text as markup", `try { document.body.innerHTML = "<b>bold</b>" } catch {}`, "policy violated:.*trusted-types"},
		{"code from text", `try { eval("1") } catch {}`, "policy violated:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := trial(t, "<p>Text</p>", c.script)
			b.wait(`document.querySelector("p")`)
			b.settled()
			if len(b.unexpected()) == 0 {
				t.Errorf("%s is not noticed", c.name)
			}
			b.expect(c.want)
			b.expect("^(security|network|javascript|recommendation) (error|warning): ") // the browser's own words for the same
		})
	}
}

// TestTabDoesWhatPersonsDo: mouse, keys, sizes and colours reach the page.
func TestTabDoesWhatPersonsDo(t *testing.T) {
	t.Parallel()
	b := trial(t, `<button id="first">First</button> <button id="second">Second</button> <button disabled>Never</button>
<input id="name" value="old"> <label><input type="checkbox" id="box"> Box</label> <hr id="line"> <p id="said"></p>`, `
		const said = document.getElementById("said");
		const say = (text) => { said.textContent += text + " "; };
		for (const b of document.querySelectorAll("button")) b.addEventListener("click", () => say(b.textContent));
		document.addEventListener("keydown", (e) => { if (e.target === document.body) say((e.ctrlKey ? "Ctrl+" : "") + (e.shiftKey ? "Shift+" : "") + e.key); });
		const line = document.getElementById("line");
		line.addEventListener("pointerdown", (e) => { line.setPointerCapture(e.pointerId); say("down"); });
		line.addEventListener("pointerup", () => say("up"));
		document.getElementById("box").addEventListener("change", (e) => say("box:" + e.target.checked));`)
	b.key("ArrowDown")
	b.key("Enter", chromedp.ModifierCtrl)
	b.typing("a?")
	b.drag("#line", 0.2, 0.7)
	b.click("#first")
	b.clickText("button", "Second")
	b.clickText("label", "Box")
	b.waitText("#said", "box:true")
	if got, want := strings.TrimSpace(b.text("#said")), "ArrowDown Ctrl+Enter a Shift+? down up First Second box:true"; got != want && got != strings.Replace(want, "Shift+?", "?", 1) {
		t.Errorf("%q, want %q", got, want)
	}
	b.fill("#name", "new")
	if got := evaluate[string](b, `document.getElementById("name").value`); got != "new" {
		t.Errorf("the field has %q", got)
	}
	b.fill("#name", "")
	if got := evaluate[string](b, `document.getElementById("name").value`); got != "" {
		t.Errorf("the field has %q", got)
	}
	if n, texts := b.count("button"), b.texts("button"); n != 3 || !slices.Equal(texts, []string{"First", "Second", "Never"}) {
		t.Errorf("%d buttons, %q", n, texts)
	}
	b.size(360, 700)
	b.dark(true)
	if got := evaluate[string](b, `innerWidth + " " + matchMedia("(prefers-color-scheme: dark)").matches + " " + new Date(0).getHours()`); got != "360 true 0" {
		t.Errorf("width, dark, hour: %s", got)
	}
	b.zoom(2, 1280, 800)
	if got := evaluate[string](b, `innerWidth + " " + devicePixelRatio`); got != "640 2" {
		t.Errorf("width and scale: %s", got)
	}
	var names []string
	for _, node := range b.tree() {
		if node.Role != nil && string(node.Role.Value) == `"button"` {
			names = append(names, string(node.Name.Value))
		}
	}
	if !slices.Equal(names, []string{`"First"`, `"Second"`, `"Never"`}) {
		t.Errorf("a screen reader is told of the buttons %s", names)
	}
	b.shot("trial")
	b.reload()
	if text := b.text("#said"); text != "" {
		t.Errorf("%q is left after the page was loaded again", text)
	}
}
