package console_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"tidings.example/deploy/test/internal/testenv"
)

// startWithProvider starts services whose issuers file has one provider. People of the group sre may do everything,
// others nothing.
func startWithProvider(t testing.TB, more, block string) (*services, *provider) {
	t.Helper()
	dir := t.TempDir()
	s := newServices(t, dir, "EVENTSVC_ISSUERS_FILE="+filepath.Join(dir, "issuers.yaml"), "EVENTSVC_CLOCK_SKEW=0s")
	p := newProvider(t, s)
	p.set(func(h *behaviour) { h.groups = []string{"sre"} })
	write(t, filepath.Join(dir, "issuers.yaml"), p.entry("  claims: [groups]\n"+more, block))
	write(t, filepath.Join(dir, "policy.yaml"), policy+fmt.Sprintf("- role: events:admin\n  subjects: [{claim: groups, value: sre, issuer: %q}]\n", p.URL))
	t.Cleanup(func() {
		s.stopAll()
		if t.Failed() {
			for name, p := range s.programs {
				t.Logf("%s said:\n%s", name, p.log.String())
			}
		}
	})
	s.startAll(t)
	s.create(t, event("shop", "first"))
	return s, p
}

// enter signs in with the provider as a person does who has no session there.
func (b *tab) enter() {
	b.t.Helper()
	b.clickText("dialog.signin .providers button", "Sign in with Corp")
	b.click("#enter")
	b.signedIn()
}

// signedIn waits until the page has a token and what it asks for.
func (b *tab) signedIn() {
	b.t.Helper()
	b.wait(`location.pathname === "/console/" && document.querySelector("main") && !document.querySelector("dialog.signin") && !document.querySelector("main .message[data-kind=expired]")`)
	b.settled()
}

// TestProvider: a person signs in at the company's provider and is where they wanted to be. Afterwards neither the
// address, the tab's history, its storage, nor the log has anything of it.
func TestProvider(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"access", "id"} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			s, p := startWithProvider(t, "", ", token: "+token+", scopes: [openid, profile, offline_access]")
			b := openTab(t, s)
			b.open("/console/#/events?q=reason%3ATested")
			b.wait(`document.querySelector("dialog.signin[open] .providers button")`)
			if has := evaluate[string](b, `document.activeElement.textContent`); has != "Sign in with Corp" {
				t.Errorf("the focus is on %q", has)
			}
			if n := len(p.noticed().asked); n != 0 {
				t.Errorf("the page has sent people away %d times before they wanted to", n)
			}
			b.enter()
			b.waitText("main [data-row]", "This is a test.")
			if at := evaluate[string](b, `location.href`); at != s.events+"/console/#/events?q=reason%3ATested" {
				t.Errorf("the address is %s", at)
			}
			b.click("header button[aria-label=Settings]")
			b.waitText(".who", "Ann Example")
			b.waitText(".who", "renewed by itself")

			asked := p.noticed().asked[0]
			trade := p.noticed().trades[0]
			if asked.Get("code_challenge_method") != "S256" || asked.Get("response_type") != "code" || asked.Get("response_mode") != "" || asked.Get("redirect_uri") != s.events+"/console/" ||
				len(asked.Get("state")) != 43 || len(asked.Get("nonce")) != 43 || len(trade.Get("code_verifier")) != 43 || trade.Get("client_secret") != "" {
				t.Errorf("%v\n%v", asked, trade)
			}
			traces := []string{asked.Get("state"), asked.Get("nonce"), trade.Get("code"), trade.Get("code_verifier"), "eyJ", "refresh-"}
			history, err := json.Marshal(call(b, page.GetNavigationHistory, cdp.Empty{}))
			if err != nil {
				t.Fatal(err)
			}
			for where, text := range map[string]string{
				"storage": evaluate[string](b, `JSON.stringify([localStorage, sessionStorage, document.cookie])`),
				"history": strings.ReplaceAll(string(history), p.URL, ""), // the provider's own pages have what it was asked with
				"log":     s.programs["eventsvc"].log.String(),
			} {
				for _, trace := range traces {
					if where == "history" && (trace == asked.Get("state") || trace == asked.Get("nonce")) {
						continue
					}
					if strings.Contains(text, trace) {
						t.Errorf("the %s has %q: %s", where, trace, text)
					}
				}
			}
			if kept := evaluate[string](b, `Object.keys(sessionStorage).join()`); kept != "" {
				t.Errorf("the tab keeps %s", kept)
			}
		})
	}
}

// TestProviderReload: who loads the page again is still signed in as long as the provider's session lives, and is sent
// there once; when it has ended, the form is back, and another reload sends nobody away.
func TestProviderReload(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", "")
	b := openTab(t, s)
	b.open("/console/#/events")
	b.enter()
	for range 2 {
		before := len(p.noticed().asked)
		b.reload()
		b.signedIn()
		b.waitText("main [data-row]", "This is a test.")
		asked := p.noticed().asked[before:]
		if len(asked) != 1 || asked[0].Get("prompt") != "none" {
			t.Errorf("asked %v", asked)
		}
	}
	p.forget()
	before := len(p.noticed().asked)
	b.reload()
	b.wait(`document.querySelector("dialog.signin[open] .providers button")`)
	b.settled()
	if n := len(p.noticed().asked) - before; n != 1 {
		t.Errorf("asked %d times", n)
	}
	if at := evaluate[string](b, `location.href + document.querySelectorAll("dialog.signin .note").length`); at != s.events+"/console/#/events0" {
		t.Errorf("%s: the address, and how many complaints there are", at)
	}
	b.reload()
	b.wait(`document.querySelector("dialog.signin[open] .providers button")`)
	b.settled()
	if n := len(p.noticed().asked) - before; n != 1 {
		t.Errorf("asked %d times after another reload", n)
	}
	b.enter()
	if n := len(p.noticed().asked) - before; n != 2 || slices.Contains(p.noticed().asked[before+1]["prompt"], "none") {
		t.Errorf("asked %d times", n)
	}
}

// TestProviderRefuses: whatever goes wrong at the provider or on the way back is refused, and the page says in words
// what to change. What others say is text.
func TestProviderRefuses(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", ", scopes: [openid, profile]")
	p.set(func(h *behaviour) {
		h.publish = func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = true }
	})
	s.restart(t, "eventsvc") // which asks the provider again
	back := func(change func(url.Values)) func(*behaviour) {
		return func(h *behaviour) {
			h.forth = func(q url.Values) { q.Set("iss", p.URL); change(q) }
		}
	}
	refused := func(code string) func(*behaviour) {
		return back(func(q url.Values) {
			q.Del("code")
			q.Set("error", code)
			q.Set("error_description", `<img src=x onerror="window.hacked=1">`)
		})
	}
	answered := func(change func(map[string]any) int) func(*behaviour) {
		return func(h *behaviour) { back(func(url.Values) {})(h); h.answer = change }
	}
	failed := func(code int, name, description string) func(*behaviour) {
		return answered(func(m map[string]any) int {
			clear(m)
			m["error"] = name
			m["error_description"] = description
			return code
		})
	}
	idToken := func(iss, aud, nonce string, left time.Duration) func(*behaviour) {
		return answered(func(m map[string]any) int {
			claims := fmt.Sprintf(`{"iss":%q,"aud":%q,"nonce":%q,"sub":"ann","exp":%d}`, iss, aud, nonce, time.Now().Add(left).Unix())
			m["id_token"] = "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".e30"
			return 0
		})
	}
	for name, tt := range map[string]struct {
		how    func(*behaviour)
		want   string
		trades int // requests to the token endpoint
	}{
		"another state":  {back(func(q url.Values) { q.Set("state", "other") }), "begun in another tab or has taken too long. Try again", 0},
		"no state":       {back(func(q url.Values) { q.Del("state") }), "begun in another tab or has taken too long. Try again", 0},
		"another issuer": {back(func(q url.Values) { q.Set("iss", "https://evil.example") }), "was not used: iss is another issuer", 0},
		"no issuer":      {back(func(q url.Values) { q.Del("iss") }), "was not used: iss is missing", 0},
		"an error of another": {back(func(q url.Values) {
			q.Set("iss", "https://evil.example")
			q.Set("error", "evil")
			q.Set("error_description", "evil")
		}), "was not used: iss is another issuer", 0},
		"neither code nor error": {back(func(q url.Values) { q.Del("code") }), "no code", 0},
		"access denied":          {refused("access_denied"), `Corp did not let you in: access_denied (<img src=x onerror="window.hacked=1">). Ask whoever runs it`, 0},
		"login required":         {refused("login_required"), "Nobody is signed in at Corp", 0},
		"consent required":       {refused("consent_required"), "wants your consent", 0},
		"a wrong scope":          {refused("invalid_scope"), "Correct scopes (openid, profile) in its entry of the issuers file", 0},
		"a client with a secret": {refused("unauthorized_client"), "for a page (Entra: platform Single-page application, not Web), with PKCE and without a secret", 0},
		"out of order":           {refused("temporarily_unavailable"), "Corp could not answer", 0},
		"any other error":        {refused("evil<b>"), "did not sign you in: evil<b>", 0},
		"another nonce":          {func(h *behaviour) { back(func(url.Values) {})(h); h.nonce = "other" }, "it is the answer to another sign-in (nonce)", 1},
		"opaque":                 {func(h *behaviour) { back(func(url.Values) {})(h); h.opaque = true }, "gave an opaque access token, which eventsvc cannot read. In its entry of the issuers file set token: id", 1},
		"no CORS":                {func(h *behaviour) { back(func(url.Values) {})(h); h.noCORS = true }, "does not let this page read its answer: register " + s.events + " there (Entra", 1},
		"a secret is wanted":     {failed(401, "invalid_client", "secret"), "does not take tidings-console for a public client", 1},
		"a web client of Entra":  {failed(400, "invalid_request", "AADSTS9002326: Cross-origin token redemption"), "does not give tokens to pages", 1},
		"a used code":            {failed(400, "invalid_grant", "used"), "did not sign you in: invalid_grant (used)", 1},
		"a page of a proxy":      {answered(func(m map[string]any) int { clear(m); return 502 }), "token endpoint answered 502", 1},
		"no access token":        {answered(func(m map[string]any) int { delete(m, "access_token"); return 0 }), "gave no access token. Set token: id", 1},
		"an ID token of another": {idToken("https://evil.example", consoleClient, "", time.Hour), "iss is https://evil.example, not " + p.URL, 1},
		"for another":            {idToken(p.URL, "other", "", time.Hour), "aud is other, not tidings-console", 1},
		"expired":                {idToken(p.URL, consoleClient, "", -time.Hour), "it has expired", 1},
		"with no nonce":          {idToken(p.URL, consoleClient, "", time.Hour), "(nonce)", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p.set(func(h *behaviour) { tt.how(h) })
			before := len(p.noticed().trades)
			b := openTab(t, s)
			b.expect("^(network|javascript|security) error: |request (failed|answered)") // the browser's words for the same
			b.open("/console/#/events")
			b.clickText("dialog.signin .providers button", "Sign in with Corp")
			b.wait(`document.querySelector("#enter") || location.pathname === "/console/" && document.querySelector("dialog.signin .note")`)
			if b.count("#enter") > 0 { // the first time
				b.click("#enter")
			}
			b.waitText("dialog.signin .note", tt.want)
			if text := b.text("dialog.signin .note"); strings.Contains(tt.want, "another issuer") && strings.Contains(text, "evil") {
				t.Errorf("what the other says is shown: %s", text)
			}
			if hacked := evaluate[bool](b, `"hacked" in window || document.querySelector("dialog img, dialog b") !== null`); hacked {
				t.Error("a text has become more than text")
			}
			if n := len(p.noticed().trades) - before; n != tt.trades {
				t.Errorf("the token endpoint was asked %d times", n)
			}
			if at := evaluate[string](b, `location.href + "|" + Object.keys(sessionStorage).join()`); at != s.events+"/console/#/events|" {
				t.Errorf("the address, and what the tab keeps: %s", at)
			}
			p.set(func(h *behaviour) { publish := h.publish; *h = behaviour{publish: publish, groups: h.groups} })
		})
	}
}

// TestProviderOtherTab: an answer that is opened in another tab, or comes too late, is not used.
func TestProviderOtherTab(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", "")
	b := openTab(t, s)
	b.open("/console/?code=stolen&state=unknown#/events")
	b.waitText("dialog.signin .note", "begun in another tab or has taken too long. Try again")
	if at := evaluate[string](b, `location.href`); at != s.events+"/console/#/events" {
		t.Error(at)
	}
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `if (location.search.includes("code=")) { const now = Date.now; Date.now = () => now() + 11 * 60 * 1000; }`,
	})
	b.clickText("dialog.signin .providers button", "Sign in with Corp")
	b.click("#enter")
	b.waitText("dialog.signin .note", "begun in another tab or has taken too long. Try again")
	if n := len(p.noticed().trades); n != 0 {
		t.Errorf("%d answers were used", n)
	}
	two := openTab(t, s)
	two.open("/console/#/events")
	two.clickText("dialog.signin .providers button", "Sign in with Corp")
	two.signedIn()
	two.waitText("main [data-row]", "This is a test.")
}

// TestProviderTwoTabs: a person who signs in in two tabs at once is signed in in both.
func TestProviderTwoTabs(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", "")
	one := openTab(t, s)
	two := one.beside()
	for _, b := range []*tab{one, two} {
		b.open("/console/#/events")
		b.clickText("dialog.signin .providers button", "Sign in with Corp")
		b.wait(`document.querySelector("#enter")`)
	}
	for _, b := range []*tab{one, two} {
		b.click("#enter")
		b.signedIn()
		b.waitText("main [data-row]", "This is a test.")
	}
	if n := len(p.noticed().trades); n != 2 {
		t.Errorf("%d codes were used", n)
	}
}

// TestProviderRequest: the request has the parameters of the entry and of the provider's endpoint. It uses PKCE even if
// the metadata of the provider does not list it.
func TestProviderRequest(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", `, parameters: {audience: "https://events.example", prompt: select_account}`)
	p.set(func(h *behaviour) {
		h.publish = func(m map[string]any) {
			m["authorization_endpoint"] = p.URL + "/authorize?tenant=a&state=b"
			delete(m, "code_challenge_methods_supported") // as in the metadata of Entra
		}
	})
	s.restart(t, "eventsvc")
	b := openTab(t, s)
	b.open("/console/")
	b.enter()
	asked := p.noticed().asked[0]
	if asked.Get("code_challenge_method") != "S256" || asked.Get("tenant") != "a" || asked.Get("audience") != "https://events.example" || asked.Get("prompt") != "select_account" || len(asked["state"]) != 1 || asked.Get("scope") != "openid profile" {
		t.Errorf("%v", asked)
	}
	b.reload()
	b.signedIn()
	if asked := p.noticed().asked[1]; !slices.Equal(asked["prompt"], []string{"none"}) {
		t.Errorf("%v", asked)
	}
}

// TestProviderBrowser: a browser that cannot do what a sign-in needs is told what is missing.
func TestProviderBrowser(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", "")
	for script, want := range map[string]string{
		`Object.defineProperty(Crypto.prototype, "subtle", { get: () => undefined })`:                                        "needs a page that came by https", // as on a page of plain HTTP
		`Object.defineProperty(window, "sessionStorage", { get: () => { throw new DOMException("no", "SecurityError"); } })`: "allow it to store data for this site",
	} {
		b := openTab(t, s)
		call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		b.open("/console/")
		b.clickText("dialog.signin .providers button", "Sign in with Corp")
		b.waitText("dialog.signin .note", want)
		b.wait(`document.querySelector("dialog.signin .providers button:not(:disabled)")`)
	}
	if n := len(p.noticed().asked); n != 0 {
		t.Errorf("people were sent away %d times", n)
	}
}

// TestProviderSlow: a token endpoint that does not answer is given up, and who comes back by the browser's button can
// go on.
func TestProviderSlow(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", "")
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	p.set(func(h *behaviour) { h.hold = hold })
	b := openTab(t, s)
	b.expect("request failed|^network error")
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{ // so that nobody waits for it
		Source: `{ const later = setTimeout; window.setTimeout = (f, ms, ...more) => later(f, ms === 20000 ? 200 : ms, ...more); }`,
	})
	b.open("/console/#/events")
	b.clickText("dialog.signin .providers button", "Sign in with Corp")
	b.wait(`document.querySelector("#enter")`)
	evaluate[bool](b, `(history.back(), true)`)
	b.wait(`location.pathname === "/console/" && document.querySelector("dialog.signin .providers button:not(:disabled)")`)
	b.clickText("dialog.signin .providers button", "Sign in with Corp")
	b.click("#enter")
	b.waitText("dialog.signin .note", "Corp has not answered for 20s. Try again.")
}

// TestProviderAway: a provider whose metadata cannot be read has a button that says so, until it can.
func TestProviderAway(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", "")
	p.set(func(h *behaviour) { h.broken = true })
	s.restart(t, "eventsvc")
	b := openTab(t, s)
	b.open("/console/")
	b.waitText("dialog.signin .providers .hint", "Corp: eventsvc cannot read its metadata")
	if !evaluate[bool](b, `document.querySelector("dialog.signin .providers button").disabled`) {
		t.Error("the button can be pressed")
	}
	b.shot("sign-in-away")
	p.set(func(h *behaviour) { h.broken = false })
	b.wait(`!document.querySelector("dialog.signin .providers button").disabled`)
	b.enter()
}

// TestProviderAdded: a block console that is added while the service runs is a button when the page is next looked at,
// also in a browser that has the page already. The policy lets it ask a token endpoint of another origin. A token that
// lives longer than its entry allows is refused, with the figures to compare, until the entry allows it.
func TestProviderAdded(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", "")
	elsewhere := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(elsewhere.Close)
	p.set(func(h *behaviour) {
		h.life = 90 * time.Minute
		h.publish = func(m map[string]any) { m["token_endpoint"] = elsewhere.URL + "/oauth/token" }
	})
	file := filepath.Join(s.dir, "issuers.yaml")
	entry := p.entry("  claims: [groups]\n", "")
	without, _, _ := strings.Cut(entry, "  console:")
	write(t, file, without)
	s.restart(t, "eventsvc")
	b := openTab(t, s)
	b.expect("401") // the token that lives too long
	b.open("/console/#/events")
	b.wait(`document.querySelector("dialog.signin[open] form")`)
	if b.count(".providers button") != 0 {
		t.Error("there is a button without a block console")
	}
	replace(t, file, entry)
	testenv.Eventually(t, "the page has a button", deadline, func() error {
		b.reload()
		if ok := evaluate[bool](b, `new Promise((done) => setTimeout(() => done(document.querySelector(".providers button:not(:disabled)") !== null), 300))`); !ok {
			return errors.New("there is none")
		}
		return nil
	})
	b.clickText("dialog.signin .providers button", "Sign in with Corp")
	b.click("#enter")
	b.waitText("dialog.signin .note", "it lives 1h 30m, and at most 1h are allowed. Let Corp give shorter tokens, or raise maxTokenLife")
	b.shot("sign-in-refused")
	replace(t, file, p.entry("  claims: [groups]\n  maxTokenLife: 2h\n", ""))
	testenv.Eventually(t, "the token is accepted", deadline, func() error {
		b.clickText("dialog.signin .providers button", "Sign in with Corp")
		b.wait(`location.pathname === "/console/" && document.querySelector("main [data-row], dialog.signin .note")`)
		if b.count("dialog.signin") > 0 {
			return errors.New(b.text("dialog.signin"))
		}
		return nil
	})
	b.waitText("main [data-row]", "This is a test.")
}

// TestProviderTokens: a person signs in with as many groups as Entra names, with none, and while the clock of the
// provider is ahead by what is allowed. Where eventsvc refuses a token, the page names its cause in a sentence.
func TestProviderTokens(t *testing.T) {
	t.Parallel()
	groups := func(n int) []string {
		all := []string{"sre"}
		for i := range n {
			all = append(all, fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		}
		return all
	}
	later := func(m map[string]any, by float64) {
		for _, name := range []string{"iat", "nbf", "exp"} {
			if at, ok := m[name].(float64); ok {
				m[name] = at + by
			}
		}
	}
	s, p := startWithProvider(t, "", "")
	s.programs["eventsvc"].env = append(s.programs["eventsvc"].env, "EVENTSVC_CLOCK_SKEW=1m")
	s.restart(t, "eventsvc")
	for name, test := range map[string]struct {
		change func(map[string]any)
		says   string // empty: the person is signed in
	}{
		"200 groups":         {func(m map[string]any) { m["groups"] = groups(200) }, ""},
		"no groups":          {func(m map[string]any) { m["groups"] = nil }, ""},
		"a clock 50 s ahead": {func(m map[string]any) { later(m, 50) }, ""},
		"500 groups":         {func(m map[string]any) { m["groups"] = groups(500) }, "and at most 16384 are read. Let Corp write fewer groups into it"},
		"a clock ahead":      {func(m map[string]any) { later(m, 200) }, "the clock of Corp is 3m"},
		"a clock behind":     {func(m map[string]any) { later(m, -4000) }, "the clock of Corp is behind the one of eventsvc"},
		"a long life":        {func(m map[string]any) { m["exp"] = m["iat"].(float64) + 7200 }, "it lives 2h, and at most 1h are allowed"},
		"another issuer":     {func(m map[string]any) { m["iss"] = "https://sts.example" }, "it is from https://sts.example. Write that as issuer"},
		"another audience":   {func(m map[string]any) { m["aud"] = "api" }, "it is for api. Write that into audiences"},
		"a number":           {func(m map[string]any) { m["groups"] = 7 }, "its claim groups is a number."},
		"nested groups":      {func(m map[string]any) { m["groups"] = map[string]any{"sre": true} }, "its claim groups is an object."},
		"a list of numbers":  {func(m map[string]any) { m["groups"] = []int{7} }, "its claim groups is a list of other things than texts."},
		"no subject":         {func(m map[string]any) { delete(m, "sub") }, "the log of eventsvc says what is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			p.set(func(h *behaviour) { h.claims = test.change })
			p.forget()
			b := openTab(t, s)
			b.expect("401")
			b.expect("403")
			b.open("/console/#/events")
			b.clickText("dialog.signin .providers button", "Sign in with Corp")
			b.click("#enter")
			if test.says != "" {
				b.waitText("dialog.signin .note", test.says)
				return
			}
			b.signedIn()
		})
	}
}

// replace replaces a file at once, as it may be read at any time.
func replace(t testing.TB, file, content string) {
	t.Helper()
	write(t, file+".new", content)
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// TestProviderGroups: the policy decides by the groups that the provider names. Who has none is told so.
func TestProviderGroups(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", "")
	p.set(func(h *behaviour) { h.groups = []string{"interns"} })
	b := openTab(t, s)
	b.expect("403")
	b.open("/console/#/events")
	b.clickText("dialog.signin .providers button", "Sign in with Corp")
	b.click("#enter")
	b.waitText("main .message[data-kind=forbidden]", "may not see that")
	p.set(func(h *behaviour) { h.groups = []string{"interns", "sre"} })
	b.reload()
	b.signedIn()
	b.waitText("main [data-row]", "This is a test.")
}

// TestProviderRenews: tokens are renewed before they end, one at a time, each with the refresh token that came with the
// last. What is seen stays. When the provider takes it back, a bar says so and what is seen stays; who signs in again
// goes on there.
func TestProviderRenews(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", ", scopes: [openid, offline_access]")
	p.set(func(h *behaviour) { h.life = 6 * time.Second })
	b := openTab(t, s)
	b.expect("invalid_grant|request answered with 400|status of 400") // at the end
	b.open("/console/#/events?q=reason%3ATested")
	b.enter()
	b.waitText("main [data-row]", "This is a test.")
	evaluate[bool](b, `Boolean(document.querySelector("main [data-row]").mark = true)`)
	testenv.Eventually(t, "three tokens more", deadline, func() error {
		if n := len(p.noticed().trades); n < 4 {
			return fmt.Errorf("%d requests for tokens", n)
		}
		return nil
	})
	used := map[string]bool{}
	for _, trade := range p.noticed().trades[1:] {
		if token := trade.Get("refresh_token"); trade.Get("grant_type") != "refresh_token" || token == "" || used[token] {
			t.Errorf("%v", trade)
		}
		used[trade.Get("refresh_token")] = true
	}
	b.wait(`document.querySelector("main [data-row]").mark === true && !document.querySelector("dialog, .ended")`)
	p.forget()
	b.waitText(".ended", "Your sign-in at Corp has ended")
	b.wait(`document.querySelector("main [data-row]").mark === true && !document.querySelector("dialog")`)
	b.shot("sign-in-ended")
	b.clickText(".ended button", "Sign in again")
	b.click("#enter")
	b.signedIn()
	b.waitText("main [data-row]", "This is a test.")
	if at := evaluate[string](b, `location.hash`); at != "#/events?q=reason%3ATested" {
		t.Error(at)
	}
}

// TestProviderWithoutRenewal: without a refresh token, or where it brings no ID token although that is what eventsvc
// gets, the sign-in ends with its token.
func TestProviderWithoutRenewal(t *testing.T) {
	t.Parallel()
	for name, block := range map[string]string{"no refresh token": ", token: id", "no ID token": ", token: id, scopes: [openid, offline_access]"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := startWithProvider(t, "", block)
			p.set(func(h *behaviour) {
				h.life = 6 * time.Second
				h.answer = func(m map[string]any) int {
					if trades := p.noticed().trades; trades[len(trades)-1].Get("grant_type") == "refresh_token" {
						delete(m, "id_token")
					}
					return 0
				}
			})
			b := openTab(t, s)
			b.open("/console/#/events")
			b.enter()
			b.waitText("main [data-row]", "This is a test.")
			b.waitText(".ended", "Your sign-in at Corp has ended")
			b.waitText("main [data-row]", "This is a test.")
			b.clickText(".ended button", "Another way")
			b.wait(`document.querySelector("dialog.signin[open] .providers button")`)
			b.clickText("dialog.signin .providers button", "Sign in with Corp")
			b.signedIn()
		})
	}
}

// TestProviderSignOut: who signs out is forgotten here, gives the refresh token back, and can sign out there too.
func TestProviderSignOut(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", ", scopes: [openid, offline_access]")
	b := openTab(t, s)
	b.open("/console/#/events")
	b.enter()
	b.click("header button[aria-label=Settings]")
	b.clickText(".who button", "Sign out")
	b.waitText("dialog.signin .note", "You are signed out here.")
	testenv.Eventually(t, "the refresh token is given back", deadline, func() error {
		if got := p.noticed().revoked; len(got) != 1 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	if kept := evaluate[int](b, `sessionStorage.length`); kept != 0 {
		t.Errorf("%d things are kept", kept)
	}
	b.shot("sign-in-left")
	b.clickText("dialog.signin .note a", "Also sign out of Corp")
	b.wait(`document.querySelector("dialog.signin[open] .providers button")`)
	testenv.Eventually(t, "the session there has ended", deadline, func() error {
		if n := p.noticed().out; n != 1 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	if at := evaluate[string](b, `location.href`); at != s.events+"/console/#/overview" && at != s.events+"/console/" {
		t.Error(at)
	}
}

// TestProviderPictures makes screenshots of the form in both themes and three widths, where CONSOLE_SCREENSHOTS names a
// directory. In both themes it is accessible.
func TestProviderPictures(t *testing.T) {
	t.Parallel()
	s, p := startWithProvider(t, "", "")
	b := openTab(t, s)
	one := p.entry("  claims: [groups]\n", "")
	two := strings.Replace(one, "Corp", "Example Corp", 1) + "- {issuer: 'https://login.example.invalid', jwksURL: '" + p.URL + "/keys', console: {clientID: c, name: Partners}}\n"
	for name, file := range map[string]string{"sign-in-one": one, "sign-in-two": two} {
		write(t, filepath.Join(s.dir, "issuers.yaml"), file)
		s.restart(t, "eventsvc")
		b.open("/console/?" + name + "#/events")
		b.wait(fmt.Sprintf(`document.querySelectorAll("dialog.signin[open] .providers button").length === %d && document.querySelector(".providers button:not(:disabled)")`, strings.Count(file, "issuer:")))
		for _, dark := range []bool{false, true} {
			b.dark(dark)
			for size, width := range map[string]int64{"wide": 1440, "middle": 820, "narrow": 360} {
				b.size(width, 900)
				b.settled()
				b.shot(fmt.Sprintf("%s-%s-%v", name, size, map[bool]string{false: "light", true: "dark"}[dark]))
			}
			contrast(b, name)
		}
		named(b, name)
	}
}
