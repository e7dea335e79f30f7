package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
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

// TestSignInWithToken: a token that is pasted is as good as a client, and a reload forgets it.
func TestSignInWithToken(t *testing.T) {
	t.Parallel()
	s, _ := week(t)
	b := openTab(t, s)
	b.open("/console/#/events")
	b.signInWithToken(s.token(t, admin))
	b.wait(`!document.querySelector("dialog.signin")`)
	b.reload()
	b.wait(`document.querySelector("dialog.signin[open]")`)
	if stored := evaluate[string](b, `JSON.stringify([localStorage, sessionStorage, document.cookie])`); strings.Contains(stored, "eyJ") {
		t.Errorf("a token is stored: %s", stored)
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
