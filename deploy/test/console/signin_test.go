package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRenewal: the token of a client is renewed before it expires, and the view stays as it is.
func TestRenewal(t *testing.T) {
	t.Parallel()
	s := startServices(t, "TOKENSVC_TOKEN_LIFETIME=3s", "EVENTSVC_CLOCK_SKEW=0s")
	b := openTab(t, s)
	b.open("/console/#/live")
	b.signIn(admin)
	s.create(t, event("default", "first"))
	b.waitText("main", "This is a test.")
	evaluate[bool](b, `Boolean(document.querySelector(".tbody").mark = true)`)
	b.wait(`performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/oauth2/token")).length >= 3`)
	late := event("default", "late")
	late.Note = "Three tokens later."
	s.create(t, late)
	b.waitText("main", late.Note)
	b.wait(`document.querySelector(".tbody").mark === true && !document.querySelector("dialog")`)
	s.some(t, 60)
	show(b, "events")
	b.waitText(".count", "62 events")
	b.wait(`(document.querySelector(".table").scrollTop = 300, document.querySelector(".table").scrollTop === 300)`)
	const tokens, asked = `performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/oauth2/token")).length`, `performance.getEntriesByType("resource").filter((e) => e.name.includes("/query/v1/")).length`
	b.wait(fmt.Sprintf("%s > %d", tokens, evaluate[int](b, tokens))) // what waits for a token is no question that a token asks again
	b.settled()
	now, before := evaluate[int](b, tokens), evaluate[int](b, asked)
	b.wait(fmt.Sprintf("%s >= %d", tokens, now+2))
	if after := evaluate[int](b, asked); after != before {
		t.Errorf("a new token has made %d questions be asked again", after-before)
	}
	if top := evaluate[int](b, `document.querySelector(".table").scrollTop`); top != 300 {
		t.Errorf("a new token has scrolled the table to %d", top)
	}
}

// TestExpiry: a token that was pasted and has expired leaves what is seen, and signing in goes on from there.
func TestExpiry(t *testing.T) {
	t.Parallel()
	s := startServices(t, "TOKENSVC_TOKEN_LIFETIME=20s", "EVENTSVC_CLOCK_SKEW=0s")
	s.create(t, event("default", "first"))
	b := openTab(t, s)
	b.expect("401") // this is what the test is about
	b.open("/console/#/events?q=reason%3ATested")
	token := s.token(t, admin)
	b.signInWithToken(token)
	b.waitText("main [data-row]", "This is a test.")
	b.wait(expired(token))
	b.key("r")
	b.wait(`document.querySelector("dialog.signin[open]")`)
	b.waitText("dialog.signin", "has expired or is no longer accepted")
	if rows := b.count("main [data-row]"); rows != 1 {
		t.Errorf("%d rows are left behind the form", rows)
	}
	b.shot("state-expired")
	b.signIn(admin)
	b.waitText("main [data-row]", "This is a test.")
	if at := evaluate[string](b, `location.hash`); !strings.Contains(at, "reason%3ATested") {
		t.Errorf("the address has become %s", at)
	}
}

// TestLiveExpiry: the live view goes on with what arrives after a new sign-in.
func TestLiveExpiry(t *testing.T) {
	t.Parallel()
	s := startServices(t, "TOKENSVC_TOKEN_LIFETIME=20s", "EVENTSVC_CLOCK_SKEW=0s")
	s.create(t, event("default", "first"))
	b := openTab(t, s)
	b.expect("401") // this is what the test is about
	b.open("/console/#/live")
	token := s.token(t, admin)
	b.signInWithToken(token)
	b.waitText("main [data-row]", "This is a test.")
	b.wait(expired(token))
	b.key("r")
	b.wait(`document.querySelector("dialog.signin[open]")`)
	late := event("default", "late")
	late.Note = "While nobody was signed in."
	s.create(t, late)
	b.signIn(admin)
	b.waitText("main [data-row]", late.Note)
	later := event("default", "later")
	later.Note = "After it."
	s.create(t, later)
	b.waitText("main [data-row]", later.Note)
	if rows := b.count("main [data-row]"); rows != 3 {
		t.Errorf("%d rows of 3 events", rows)
	}
}

// expired is true once a token is past its end.
func expired(token string) string {
	return fmt.Sprintf(`Date.now() / 1000 > JSON.parse(atob(%q.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).exp + 1`, token)
}

// TestSignInRefused: who cannot sign in is told why, and what to do.
func TestSignInRefused(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	b := openTab(t, s)
	b.expect("401|net::ERR_|CORS") // the refusals of this test
	b.open("/console/")
	b.fill("dialog.signin input[name=id]", admin)
	b.fill("dialog.signin input[name=secret]", "wrong")
	b.key("Enter")
	b.waitText("dialog.signin .error", "not accepted")
	b.click("dialog.signin input[name=mode][value=token]")
	for token, want := range map[string]string{"a b": "no blanks", "Bearer ": "There is no token"} {
		b.fill("dialog.signin textarea", token)
		b.click("dialog.signin button[type=submit]")
		b.waitText("dialog.signin .error", want)
	}
	b.fill("dialog.signin textarea", "eyJhbGciOiJSUzI1NiJ9.e30.eA")
	b.click("dialog.signin button[type=submit]")
	b.waitText("dialog.signin", "has expired or is no longer accepted")
	b.key("Escape")
	b.wait(`document.querySelector("dialog.signin[open]")`) // there is nothing to see without
	s.stop(t, "tokensvc")
	b.click("dialog.signin input[name=mode][value=client]")
	b.fill("dialog.signin input[name=id]", admin)
	b.fill("dialog.signin input[name=secret]", clientSecret)
	b.key("Enter")
	b.waitText("dialog.signin .error", "cannot be reached")
	s.start(t, "tokensvc")
}

// TestForbidden: who may see one namespace sees that one, is told so, and why others are not there.
func TestForbidden(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.create(t, event("shop", "one"), event("payments", "two"))
	b := openTab(t, s)
	b.expect("403")
	b.open("/console/#/overview")
	b.signIn(reader)
	b.waitText(".history", "You see the namespaces shop")
	if names := b.texts(".facet .name"); strings.Contains(strings.Join(names, " "), "payments") {
		t.Errorf("facets have a namespace that may not be seen: %v", names)
	}
	show(b, "events?q=namespace%3Apayments")
	b.waitText(`main .message[data-kind=forbidden]`, "may not see that")
	b.waitText(`main .message[data-kind=forbidden]`, "You may see shop.")
	b.shot("state-forbidden")
	b.clickText("nav.views a", "Live")
	b.click(".chip-remove")
	b.waitText("main", "You see shop")
	live := event("shop", "three")
	live.Note = "It arrives where it may be seen."
	hidden := event("payments", "four")
	hidden.Note = "It does not arrive."
	s.create(t, hidden, live)
	b.waitText("main [data-row]", live.Note)
	if strings.Contains(b.text("main"), hidden.Note) {
		t.Error("an event of another namespace is shown")
	}
	for _, q := range []string{"payments", "shop"} {
		show(b, "object?kind=Pod&name=web-0&ns="+q)
		if q == "payments" {
			b.wait(`document.querySelector("main .message[data-kind=forbidden]")`)
		} else {
			b.wait(`document.querySelector("main .mark")`)
		}
	}
}

// TestStates: a page that is empty, or whose server is away, says why and what to do.
func TestStates(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	b := openTab(t, s)
	b.expect("net::ERR_|400")
	b.open("/console/#/overview")
	b.signIn(admin)
	b.waitText(`main .message[data-kind=empty]`, "Nothing has been recorded since history began")
	b.shot("state-empty")
	s.create(t, event("default", "first"))
	b.key("r")
	b.waitText("main", "occurrence")
	b.clickText("nav.views a", "Events")
	b.waitText("main [data-row]", "This is a test.")
	s.stop(t, "eventsvc")
	b.key("r")
	b.waitText("main .note.warn", "cannot be reached")
	if rows := b.count("main [data-row]"); rows != 1 {
		t.Errorf("%d rows are left while the server is away", rows)
	}
	b.shot("state-unreachable")
	s.start(t, "eventsvc")
	b.clickText("main .note.warn button", "Ask again")
	b.wait(`!document.querySelector("main .note.warn")`)
	show(b, "events?from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z")
	b.waitText("main .message", "is not held")
}

// TestServerAway: a page that the browser has kept says that the server does not answer, rather than ask a person who
// may be signed in to sign in, and goes on once the server is back.
func TestServerAway(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.create(t, event("default", "first"))
	to, err := url.Parse(s.events)
	if err != nil {
		t.Fatal(err)
	}
	var away atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() && strings.HasPrefix(r.URL.Path, "/console/session/") {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	b := openTab(t, &services{tokens: s.tokens, events: front.URL})
	b.expect("net::ERR_")
	b.open("/console/#/events?from=-1h")
	b.signInWithToken(s.token(t, admin))
	b.waitText("main [data-row]", "This is a test.")
	b.settled() // the sign-in is kept
	away.Store(true)
	b.reload()
	b.waitText("dialog.signin", "The server cannot be reached")
	if n := b.count("dialog.signin form"); n > 0 {
		t.Error("it asks to sign in")
	}
	away.Store(false)
	b.clickText("dialog.signin button", "Ask again")
	b.waitText("main [data-row]", "This is a test.")
}
