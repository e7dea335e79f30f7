package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// TestSettings: appearance and zone are chosen on the page, hold at once, and are kept; who is signed in is said, and
// can sign out.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	ev := event("default", "first")
	s.create(t, ev)
	b := openTab(t, s)
	b.open("/console/#/events")
	b.signIn(admin)
	b.waitText("main [data-row]", ev.Note)
	ground := func() string {
		t.Helper()
		return evaluate[string](b, `getComputedStyle(document.body).backgroundColor`)
	}
	light := ground()
	b.click("button[aria-label=Settings]")
	b.waitText(".panel", "Signed in as "+admin)
	b.clickText(".panel .segment", "Dark")
	b.wait(fmt.Sprintf(`getComputedStyle(document.body).backgroundColor !== %q`, light))
	dark := ground()
	b.clickText(".panel .segment", "UTC")
	b.reload()
	if now := ground(); now != dark {
		t.Errorf("after a reload the page is %s, not %s", now, dark)
	}
	want := ev.EventTime.UTC().Format("01-02 15:04")
	b.waitText("main [data-row]", want)
	b.click("button[aria-label=Settings]")
	b.clickText(".panel button", "Sign out")
	b.wait(`document.querySelector("dialog.signin[open]")`)
	if kept := evaluate[string](b, `JSON.stringify(localStorage)`); strings.Contains(kept, admin) || strings.Contains(kept, "Tested") {
		t.Errorf("the browser keeps %s", kept)
	}
}

// TestClock: where the clock of the machine is wrong, the page says so and tells times by the server's.
func TestClock(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.create(t, event("default", "first"))
	b := openTab(t, s)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `{ const now = Date.now; Date.now = () => now() - 2 * 3600 * 1000; }`, // two hours behind
	})
	b.open("/console/#/overview?from=-15m")
	b.signIn(admin)
	b.waitText(".note", "differs from the server's by 2h")
	b.waitText(".readout", "1 occurrence")
	b.clickText("nav.views a", "Events")
	b.wait(`document.querySelector("[data-row] time")`)
	if ago := evaluate[string](b, `document.querySelector("[data-row] time").title`); !strings.HasSuffix(ago, " ago") && !strings.HasSuffix(ago, ", now") {
		t.Errorf("what has just happened is %q", ago)
	}
	b.shot("state-clock")
}
