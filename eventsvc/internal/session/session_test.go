package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	here   = "https://events.example"
	number = "0123456789abcdef0123456789abcdef"
	chrome = "Mozilla/5.0 Chrome/1"
)

// browser is one that has pages of the console, and its cookies.
type browser struct {
	t       *testing.T
	h       http.Handler
	headers map[string]string
	cookies []*http.Cookie
}

func newBrowser(t *testing.T, h http.Handler) *browser {
	return &browser{t, h, map[string]string{
		"Origin": here, "Sec-Fetch-Site": "same-origin", "User-Agent": chrome, NumberHeader: number, "Authorization": "Bearer good",
	}, nil}
}

// with returns a browser that differs by a header; "" removes it.
func (b *browser) with(name, value string) *browser {
	other := *b
	other.headers = map[string]string{}
	for n, v := range b.headers {
		other.headers[n] = v
	}
	other.headers[name] = value
	return &other
}

func (b *browser) ask(method, query, body string) *http.Response {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), method, here+Path+query, strings.NewReader(body))
	for name, value := range b.headers {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	rec := httptest.NewRecorder()
	b.h.ServeHTTP(rec, r)
	if set := rec.Result().Cookies(); len(set) > 0 {
		b.cookies = set
	}
	return rec.Result()
}

// resumed is what a page gets back, "" if nothing.
func (b *browser) resumed() string {
	b.t.Helper()
	a := b.ask("POST", "", "")
	content, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != 200 && a.StatusCode != 204 && a.StatusCode != 403 {
		b.t.Fatalf("%d, %v: %s", a.StatusCode, err, content)
	}
	if a.StatusCode != 200 {
		return ""
	}
	return string(content)
}

func (b *browser) keep(content string) {
	b.t.Helper()
	if a := b.ask("PUT", "", content); a.StatusCode != 204 {
		b.t.Fatalf("%d", a.StatusCode)
	}
}

// handler returns one whose files are in a folder.
func handler(t *testing.T, k Keeper) *Handler {
	t.Helper()
	h, err := New(t.Context(), Config{Keeper: k, Log: slog.New(slog.DiscardHandler), Verify: func(_ context.Context, token string) error {
		if token != "good" {
			return errors.New("nobody's")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func files(t *testing.T, dir string) *Files {
	t.Helper()
	f, err := NewFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const content = `{"token":"very-secret"}`

// TestResume: a page gets back what another one has kept, also from a server that was started again.
func TestResume(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "console")
	b := newBrowser(t, handler(t, files(t, dir)))
	if got := b.resumed(); got != "" {
		t.Errorf("before: %s", got)
	}
	b.keep(content)
	c := b.cookies[0]
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "" || c.Domain != "" || c.MaxAge != 0 || c.Name != "__Secure-tidings-session" || strings.Contains(c.Value, "secret") {
		t.Errorf("%+v", c)
	}
	b.h = handler(t, files(t, dir))
	if got := b.resumed(); got != content {
		t.Errorf("after a restart: %s", got)
	}
	if a := b.ask("PUT", "?goes-on=true", `{"token":"next"}`); a.StatusCode != 204 || b.resumed() != `{"token":"next"}` {
		t.Errorf("%d, %s", a.StatusCode, b.resumed())
	}
	if info, err := os.Stat(filepath.Join(dir, "secret")); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
		t.Errorf("%v, %v", info, err)
	}
	plain := newBrowser(t, b.h).with("Origin", "http://events.example")
	if plain.keep(content); plain.cookies[0].Secure || plain.resumed() != content {
		t.Errorf("by http: %+v", plain.cookies[0])
	}
}

// TestStolen: the cookie is good for nothing in another browser, for a page of another origin or one with another
// number, after its life, or changed.
func TestStolen(t *testing.T) {
	t.Parallel()
	h := handler(t, files(t, t.TempDir()))
	b := newBrowser(t, h)
	b.keep(content)
	for _, other := range []*browser{
		b.with("User-Agent", "Mozilla/5.0 Firefox/1"), b.with(NumberHeader, strings.Repeat("f", 32)), b.with(NumberHeader, ""), b.with("Origin", "https://events.example:444"),
	} {
		if got := other.resumed(); got != "" {
			t.Errorf("%v: %s", other.headers, got)
		}
		if a := other.ask("PUT", "?goes-on=true", content); a.StatusCode != 401 && a.StatusCode != 403 {
			t.Errorf("%v goes on: %d", other.headers, a.StatusCode)
		}
	}
	changed := *b
	c := *b.cookies[0]
	c.Value = "A" + c.Value[1:]
	if c.Value == b.cookies[0].Value {
		c.Value = "B" + c.Value[1:]
	}
	changed.cookies = []*http.Cookie{&c}
	if got := changed.resumed(); got != "" {
		t.Errorf("changed: %s", got)
	}
	if got := newBrowser(t, handler(t, files(t, t.TempDir()))).withCookies(b).resumed(); got != "" {
		t.Errorf("with another secret: %s", got)
	}
	if got := b.resumed(); got != content {
		t.Errorf("its own: %s", got)
	}
	h.now = func() time.Time { return time.Now().Add(Life) }
	if got := b.resumed(); got != "" {
		t.Errorf("after its life: %s", got)
	}
}

func (b *browser) withCookies(of *browser) *browser {
	b.cookies = of.cookies
	return b
}

// TestFixation: a cookie that somebody else has put into a browser signs nobody in, and a sign-in replaces it.
func TestFixation(t *testing.T) {
	t.Parallel()
	h := handler(t, files(t, t.TempDir()))
	attacker := newBrowser(t, h).with(NumberHeader, strings.Repeat("a", 32))
	attacker.keep(`{"token":"the attacker's"}`)
	victim := newBrowser(t, h).withCookies(attacker)
	if got := victim.resumed(); got != "" {
		t.Errorf("the victim goes on as %s", got)
	}
	victim.keep(content)
	if attacker.withCookies(victim).resumed() != "" || victim.resumed() != content {
		t.Error("the attacker has the session of the victim")
	}
}

// TestOtherSites: a request that another site makes a browser send does nothing, with the cookie or without.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, handler(t, files(t, t.TempDir())))
	b.keep(content)
	for _, other := range []*browser{
		b.with("Sec-Fetch-Site", "cross-site"), b.with("Sec-Fetch-Site", "same-site"), b.with("Sec-Fetch-Site", "none"), b.with("Origin", ""), b.with("Origin", "null"),
		b.with("Sec-Fetch-Site", "").with("Origin", "https://evil.example"), b.with("Sec-Fetch-Site", "").with("Origin", "https://events.example:444"),
	} {
		for _, method := range []string{"POST", "PUT", "DELETE", "GET"} {
			if a := other.ask(method, "", content); a.StatusCode != 403 || a.Header.Get("Set-Cookie") != "" || a.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s with %v: %d", method, other.headers, a.StatusCode)
			}
		}
	}
	if got := b.with("Sec-Fetch-Site", "").resumed(); got != content {
		t.Errorf("from a browser that does not name the site: %q", got)
	}
	if a := b.with("Authorization", "Bearer bad").ask("PUT", "", content); a.StatusCode != 401 {
		t.Errorf("with a token that is nobody's: %d", a.StatusCode)
	}
	if a := b.ask("GET", "", ""); a.StatusCode != 405 || a.Header.Get("Allow") != "PUT, POST, DELETE" {
		t.Errorf("GET: %d", a.StatusCode)
	}
	for bad, want := range map[string]int{"no JSON": 400, `"` + strings.Repeat("x", MaxContent) + `"`: 413} {
		if a := b.ask("PUT", "", bad); a.StatusCode != want {
			t.Errorf("%.10s: %d", bad, a.StatusCode)
		}
	}
	b.keep(`"` + strings.Repeat("x", MaxContent-2) + `"`)
	if n := len(b.cookies[0].String()); n > 4096 {
		t.Errorf("the longest cookie has %d bytes", n)
	}
}

// TestEnd: who signs out has ended the session also for a copy of the cookie and the number, for the server that was
// started again, and for another tab that wants to go on.
func TestEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBrowser(t, handler(t, files(t, dir)))
	b.keep(content)
	thief := newBrowser(t, b.h).withCookies(b)
	if a := b.ask("DELETE", "", ""); a.StatusCode != 204 || b.cookies[0].MaxAge >= 0 {
		t.Errorf("%d, %+v", a.StatusCode, b.cookies[0])
	}
	for range 2 {
		if got := thief.resumed(); got != "" {
			t.Errorf("the copy is %s", got)
		}
		if a := thief.ask("PUT", "?goes-on=true", content); a.StatusCode != 401 {
			t.Errorf("the copy goes on: %d", a.StatusCode)
		}
		thief.h = handler(t, files(t, dir))
	}
	if a := b.ask("DELETE", "", ""); a.StatusCode != 204 {
		t.Errorf("again: %d", a.StatusCode)
	}
}

// away is a keeper whose database cannot be reached once the secret is known.
type away struct{ Keeper }

func (away) SessionEnded(context.Context, string) (bool, error) { return false, errors.New("away") }

// TestAway: while nobody can say whether a session has ended, nobody goes on with one.
func TestAway(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, handler(t, away{files(t, t.TempDir())}))
	b.keep(content)
	for _, method := range []string{"POST", "DELETE"} {
		if a := b.ask(method, "", ""); a.StatusCode != 503 {
			t.Errorf("%s: %d", method, a.StatusCode)
		}
	}
}

// TestFiles: the files of a folder are read again; a secret that is too short is refused; what is past is forgotten.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := files(t, dir)
	for id, until := range map[string]time.Time{"past": time.Now().Add(-time.Minute), "ended": time.Now().Add(time.Hour)} {
		if err := f.EndSession(t.Context(), id, until); err != nil {
			t.Fatal(err)
		}
	}
	f = files(t, dir)
	for id, want := range map[string]bool{"past": false, "ended": true, "other": false} {
		if ended, err := f.SessionEnded(t.Context(), id); err != nil || ended != want {
			t.Errorf("%s: %t, %v", id, ended, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "ended")); err != nil || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("%s, %v", text, err)
	}
	for i := range maxEnded {
		f.ended[strconv.Itoa(i)] = time.Now().Add(time.Hour)
	}
	if err := f.EndSession(t.Context(), "more", time.Now().Add(time.Hour)); err == nil {
		t.Error("there is no bound")
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Config{Keeper: f}); err == nil || !strings.Contains(err.Error(), "at least 32") {
		t.Error(err)
	}
}
