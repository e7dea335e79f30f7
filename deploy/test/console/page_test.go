package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
)

// TestPage: a browser that opens the service's address finds the page, signs in with client and secret, sees every
// view, and the page does nothing that it should not.
func TestPage(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/")
	b.shot("sign-in")
	b.signIn(admin)
	for _, view := range []string{"Overview", "Events", "Live", "Groups", "Changes"} {
		b.clickText("nav.views a", view)
		b.wait(fmt.Sprintf(`document.title.startsWith(%s)`, quoted(view)))
		b.settled()
		if text := b.text("main"); strings.TrimSpace(text) == "" {
			t.Errorf("%s is empty", view)
		}
		b.shot(strings.ToLower(view))
	}
}

// TestBelowPath: the page works behind a proxy that serves eventsvc below a path, and removes that path.
func TestBelowPath(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	to, err := url.Parse(s.events)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.StripPrefix("/events", httputil.NewSingleHostReverseProxy(to)))
	t.Cleanup(proxy.Close)
	b := openTab(t, &services{tokens: s.tokens, events: proxy.URL + "/events"})
	b.open("/console/#/events?from=-8d")
	b.signInWithToken(s.token(t, admin))
	b.wait(`document.querySelector("main [data-row]")`)
	b.open("/console/help/")
	b.wait(`document.title`)
}

// TestSession: who has signed in with a token or as a client is signed in after a reload and in a new tab. Storage has
// nothing of it, requests for events have no cookie, and signing out in one tab ends it in all, for good.
func TestSession(t *testing.T) {
	t.Parallel()
	for way, life := range map[string]string{"token": "1h", "client": "20s"} { // a client's tokens are renewed
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := startServices(t, "TOKENSVC_TOKEN_LIFETIME="+life)
			s.create(t, event("default", "first"))
			b := openTab(t, s)
			b.open("/console/#/events")
			if way == "token" {
				b.signInWithToken(s.token(t, admin))
			} else {
				b.signIn(admin)
			}
			b.waitText("main [data-row]", "This is a test.")
			b.reload()
			b.waitText("main [data-row]", "This is a test.")
			other := b.beside()
			other.open("/console/#/live")
			other.waitText("main [data-row]", "This is a test.")
			for _, what := range []string{`JSON.stringify([localStorage, sessionStorage, document.cookie])`, `JSON.stringify(performance.getEntries())`} {
				if text := evaluate[string](b, what); strings.Contains(text, "eyJ") || strings.Contains(text, clientSecret) {
					t.Errorf("%s has a secret: %s", what, text)
				}
			}
			kept := call(b, network.GetCookies, network.GetCookiesParams{URLs: []string{s.events + "/console/session/mine"}}).Cookies
			if len(kept) != 1 || !kept[0].HTTPOnly || kept[0].SameSite != network.CookieSameSiteStrict || !kept[0].Session || kept[0].Path != "/console/session" || strings.Contains(kept[0].Value, "eyJ") {
				t.Errorf("%+v", kept)
			}
			if way == "client" {
				tokens := `performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/token")).length`
				other.wait(tokens + " > 1")
				b.reload()
				b.waitText("main [data-row]", "This is a test.")
			}
			other.signOut()
			b.waitText("dialog.signin", "You have signed out in another tab")
			for _, tab := range []*tab{b, other, b.beside()} {
				tab.open("/console/#/events")
				tab.wait(`document.querySelector("dialog.signin[open]")`)
			}
		})
	}
}

// TestLiveOverRestart: an event appears as it is created, also after the service was away.
func TestLiveOverRestart(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	b := openTab(t, s)
	b.expect("^request failed with net::ERR_|^network error: Failed to load resource: net::ERR_") // while the service is away
	b.open("/console/#/live")
	b.signIn(admin)
	first, second := event("default", "first"), event("default", "second")
	first.Note, second.Note = "Before the restart.", "After the restart."
	s.create(t, first)
	b.waitText("main", first.Note)
	s.restart(t, "eventsvc")
	s.create(t, second)
	b.waitText("main", second.Note)
	if n := strings.Count(b.text("main"), first.Note); n != 1 {
		t.Errorf("the first event is there %d times", n)
	}
}
