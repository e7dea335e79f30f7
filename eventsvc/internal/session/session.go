// Package session keeps who is signed in to the console over reloads, new tabs and replicas.
//
// # Contract
//
// [New] returns a handler for [Path]. The page sends what its sign-in consists of (PUT), gets it back when it is
// loaded again (POST), and ends it (DELETE). The server keeps none of it: the answer to PUT is a cookie that holds it,
// sealed with the secret of a [Keeper]. Scripts cannot read the cookie (HttpOnly), and other sites cannot have it sent
// (SameSite). Its path is that of this handler, so that no request for events has it: these have a token of their own,
// as before.
//
// A cookie is shared by all ports of a host, and can be set by some that are no console. So it is good only together
// with a number that the page made by chance and keeps in the storage of its origin. The two, the origin and the
// browser are part of the seal: a cookie of another origin, of another browser or without the number is as good as
// none.
//
// A session ends after [Life], whatever happens, and as soon as somebody signs out: a Keeper knows the sessions that
// have ended early, for all replicas. If it cannot be asked, nobody is signed in.
//
// # Concurrency
//
// The handler is safe for concurrent use.
//
// # What it does not know
//
// What the page keeps, and how tokens are renewed: the page does.
package session

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tidings.example/eventsvc/internal/console"
)

const (
	// Path is where the handler is.
	Path = console.Folder + "/session/mine"
	// Life is how long a session can be resumed.
	Life = 12 * time.Hour
	// MaxContent is how many bytes a page may keep. Sealed, they fit into a cookie, which has 4,096 bytes with its
	// name.
	MaxContent = 2800
	// NumberHeader has the number of the page, which is the other half of the cookie.
	NumberHeader = "Tidings-Page"

	cookieName = "tidings-session"
	secure     = "__Secure-" // before the name of a cookie that came by https
	minNumber  = 32          // characters
)

// Keeper has what all replicas share.
type Keeper interface {
	// Secret returns at least 32 bytes that nobody else knows. They are the same after a restart.
	Secret(ctx context.Context) ([]byte, error)
	// EndSession notes that a session has ended. The note may be forgotten after until.
	EndSession(ctx context.Context, id string, until time.Time) error
	// SessionEnded reports whether a session has ended.
	SessionEnded(ctx context.Context, id string) (bool, error)
}

// Config are the settings of a handler. All are required.
type Config struct {
	Keeper Keeper
	Verify func(ctx context.Context, token string) error // returns an error if the token is nobody's
	Log    *slog.Logger
}

// Handler answers the page.
type Handler struct {
	c    Config
	seal cipher.AEAD
	now  func() time.Time
}

// New returns a handler.
func New(ctx context.Context, c Config) (*Handler, error) {
	secret, err := c.Keeper.Secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("the secret of the console's sessions: %w", err)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "session of the console", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Handler{c: c, seal: seal, now: time.Now}, nil
}

// sealed is what a cookie holds.
type sealed struct {
	ID      string          `json:"id"`
	Until   time.Time       `json:"until"`
	Content json.RawMessage `json:"content"`
}

// errNone says that there is no session. Why not is nobody's business: one who tries cookies learns nothing.
var errNone = errors.New("there is no session: sign in")

// ServeHTTP answers PUT, POST and DELETE of the page.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	origin, err := originOf(r)
	if err != nil {
		http.Error(w, "403 "+err.Error(), http.StatusForbidden)
		return
	}
	bound := origin + "\n" + r.Header.Get(NumberHeader) + "\n" + r.UserAgent()
	switch r.Method {
	case http.MethodPut:
		h.keep(w, r, origin, bound)
	case http.MethodPost:
		h.resume(w, r, origin, bound)
	case http.MethodDelete:
		h.end(w, r, origin, bound)
	default:
		w.Header().Set("Allow", "PUT, POST, DELETE")
		http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
	}
}

// originOf returns the origin of the page that sends a request, which has to be this one. Pages of other origins
// cannot make the headers that are looked at.
func originOf(r *http.Request) (string, error) {
	origin := r.Header.Get("Origin")
	u, err := url.Parse(origin)
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("only a page of the console may ask: Origin is no address of a page")
	case site != "" && site != "same-origin":
		return "", errors.New("only a page of the console may ask: Sec-Fetch-Site is " + site)
	case site == "" && u.Host != r.Host: // browsers say it by https and on this machine; a proxy then has to keep Host
		return "", fmt.Errorf("only a page of the console may ask: Origin is %s, Host is %s", origin, r.Host)
	case len(r.Header.Get(NumberHeader)) < minNumber:
		return "", fmt.Errorf("%s has fewer than %d characters", NumberHeader, minNumber)
	}
	return origin, nil
}

// keep begins a session, or replaces the content of one with "goes-on=true". That one keeps its end.
func (h *Handler) keep(w http.ResponseWriter, r *http.Request, origin, bound string) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || h.c.Verify(r.Context(), token) != nil {
		http.Error(w, "401 a session begins with a token that is accepted", http.StatusUnauthorized)
		return
	}
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxContent))
	if err != nil {
		http.Error(w, fmt.Sprintf("413 a page may keep JSON of at most %d bytes", MaxContent), http.StatusRequestEntityTooLarge)
		return
	}
	if err := json.Unmarshal(content, new(json.RawMessage)); err != nil {
		http.Error(w, "400 the body is no JSON: "+err.Error(), http.StatusBadRequest)
		return
	}
	s := sealed{ID: rand.Text(), Until: h.now().Add(Life).UTC().Truncate(time.Second), Content: content}
	if r.URL.Query().Get("goes-on") == "true" {
		before, err := h.open(r, origin, bound)
		if err != nil {
			h.refuse(w, err)
			return
		}
		s.ID, s.Until = before.ID, before.Until
	}
	plain, err := json.Marshal(s)
	if err != nil {
		http.Error(w, "500 "+err.Error(), http.StatusInternalServerError)
		return
	}
	c := cookie(origin)
	c.Value = base64.RawURLEncoding.EncodeToString(h.seal.Seal(nil, nil, plain, []byte(bound)))
	http.SetCookie(w, c)
	w.WriteHeader(http.StatusNoContent)
}

// cookie returns the cookie without its value. It has no path, so that a browser gives it the folder of this handler,
// also where a proxy serves the console below another path; and no age, so that it ends with the browser.
func cookie(origin string) *http.Cookie {
	c := &http.Cookie{Name: cookieName, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if strings.HasPrefix(origin, "https:") {
		c.Name, c.Secure = secure+cookieName, true
	}
	return c
}

// open returns the session of a request.
func (h *Handler) open(r *http.Request, origin, bound string) (*sealed, error) {
	c, err := r.Cookie(cookie(origin).Name)
	if err != nil {
		return nil, errNone
	}
	content, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return nil, errNone
	}
	plain, err := h.seal.Open(nil, nil, content, []byte(bound))
	if err != nil {
		return nil, errNone
	}
	var s sealed
	if json.Unmarshal(plain, &s) != nil || !h.now().Before(s.Until) {
		return nil, errNone
	}
	switch ended, err := h.c.Keeper.SessionEnded(r.Context(), s.ID); {
	case err != nil:
		return nil, err
	case ended:
		return nil, errNone
	}
	return &s, nil
}

// resume answers with the content of the session.
func (h *Handler) resume(w http.ResponseWriter, r *http.Request, origin, bound string) {
	s, err := h.open(r, origin, bound)
	switch {
	case errors.Is(err, errNone):
		w.WriteHeader(http.StatusNoContent) // no failure: most pages are opened by somebody who is not signed in yet
	case err != nil:
		h.refuse(w, err)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(s.Content)
	}
}

// end ends the session for good. The browser forgets it in any case.
func (h *Handler) end(w http.ResponseWriter, r *http.Request, origin, bound string) {
	c := cookie(origin)
	c.MaxAge = -1
	http.SetCookie(w, c)
	s, err := h.open(r, origin, bound)
	if err == nil {
		err = h.c.Keeper.EndSession(r.Context(), s.ID, s.Until)
	}
	if err != nil && !errors.Is(err, errNone) {
		h.refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h *Handler) refuse(w http.ResponseWriter, err error) {
	if errors.Is(err, errNone) {
		http.Error(w, "401 "+err.Error(), http.StatusUnauthorized)
		return
	}
	h.c.Log.Error("a session of the console cannot be looked up", "error", err)
	http.Error(w, "503 sessions cannot be looked up at present: sign in, or try again", http.StatusServiceUnavailable)
}
