package console_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "make the pictures of the docs again")

// stamp is an instant as the address has it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TestPictures makes screenshots of all main states, in both themes and three widths, where CONSOLE_SCREENSHOTS names a
// directory; with -update also those of the docs.
func TestPictures(t *testing.T) {
	t.Parallel()
	if os.Getenv("CONSOLE_SCREENSHOTS") == "" && !*update {
		t.Skip("makes pictures for people to look at: set CONSOLE_SCREENSHOTS=DIR, or use -update for those of the docs")
	}
	s, all := screens(t)
	b := openTab(t, s)
	b.open("/console/")
	b.signIn(admin)
	for name, address := range all {
		b.inEachLook(func(look string) {
			visit(b, name, address)
			b.shot(name + "-" + look)
			if want, ok := pictured[name]; *update && ok && look == want {
				b.save(filepath.Join(root, "deploy/docs/images", "console-"+name+".webp"))
			}
		})
	}
}

// pictured are the screens that the docs show, and how.
var pictured = map[string]string{"overview": "wide", "events": "wide-dark", "object": "wide", "changes": "wide"}

// TestPicturesOfAbsence makes screenshots of what is shown in place of events: nothing that matches, no answer yet, no
// right, no server, a token that has expired.
func TestPicturesOfAbsence(t *testing.T) {
	t.Parallel()
	if os.Getenv("CONSOLE_SCREENSHOTS") == "" {
		t.Skip("makes pictures for people to look at: set CONSOLE_SCREENSHOTS=DIR")
	}
	s, _ := week(t)
	b := openTab(t, s)
	b.expect("403")
	b.open("/console/")
	b.signIn(admin)
	show(b, "events?from=-2d")
	b.inEachLook(func(look string) {
		show(b, "events?q=reason%3AFailedMuont&from=-2d")
		b.waitText("main .message", "No events")
		b.shot("empty-" + look)
	})
	const fetches = "{ window.asks ??= window.fetch; window.fetch = (...all) => { %s }; window.fetch.name }"
	days := 10 // a range that has no answer yet
	b.inEachLook(func(look string) {
		days++
		evaluate[string](b, fmt.Sprintf(fetches, "return new Promise((_, give) => all[1]?.signal?.addEventListener(`abort`, () => give(all[1].signal.reason)))"))
		show(b, "overview?q=kind%3APod&from="+fmt.Sprintf("-%dd", days))
		b.shot("loading-" + look)
		evaluate[string](b, fmt.Sprintf(fetches, "return window.asks(...all)"))
		show(b, "events?q=kind%3APod&from="+fmt.Sprintf("-%dd", days))
		b.wait(`document.querySelector("main [data-row]")`)
		evaluate[string](b, fmt.Sprintf(fetches, `return Promise.reject(new TypeError("away"))`))
		b.key("r")
		b.wait(`document.querySelector("main [role=alert]")`)
		b.shot("unreachable-" + look)
		evaluate[string](b, fmt.Sprintf(fetches, "return window.asks(...all)"))
	})
	b.signOut()
	b.signIn(reader)
	b.inEachLook(func(look string) {
		show(b, "events?q=namespace%3Apayments")
		b.waitText("main .message", "You may see shop")
		b.shot("forbidden-" + look)
	})
	b.signOut()
	b.signInWithToken(s.token(t, admin)) // which nothing renews
	show(b, "events")
	evaluate[string](b, fmt.Sprintf(fetches, `return Promise.resolve(new Response("{}", { status: 401 }))`))
	b.key("r")
	b.wait(`document.querySelector("dialog.signin[open]")`)
	b.inEachLook(func(look string) { b.shot("expired-" + look) })
}

// inEachLook does something in both themes and three widths, with the pointer where it changes nothing.
func (b *tab) inEachLook(do func(look string)) {
	b.t.Helper()
	for _, theme := range []string{"", "-dark"} {
		b.dark(theme != "")
		for size, width := range map[string]int64{"wide": 1440, "middle": 1024, "narrow": 390} {
			b.size(width, 900)
			b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 1, 1))
			do(size + theme)
		}
	}
}
