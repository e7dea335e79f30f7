package console_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The client and the person that providers know.
const (
	consoleClient = "tidings-console"
	employee      = "ann"
)

// provider is an OpenID provider of its own origin, where a person signs in by pressing a button. The protocol is that
// of github.com/zitadel/oidc; what tests change of it are the fields of how, by [provider.set].
type provider struct {
	*httptest.Server
	op *op.Provider
	storage
}

// behaviour is how a provider answers.
type behaviour struct {
	life    time.Duration            // of tokens; 0: an hour
	opaque  bool                     // access tokens are no JWT
	noCORS  bool                     // no page may read an answer
	groups  []string                 // the claim of that name
	broken  bool                     // it has no metadata
	nonce   string                   // of ID tokens; empty: the request's
	hold    chan struct{}            // the token endpoint waits for its end
	forth   func(url.Values)         // changes what people are sent back with
	claims  func(map[string]any)     // changes the access token
	answer  func(map[string]any) int // changes what the token endpoint answers, and with which code
	publish func(map[string]any)     // changes the metadata
}

// facts are what a provider has noticed.
type facts struct {
	asked   []url.Values // for each request to the authorization endpoint
	trades  []url.Values // for each request to the token endpoint
	revoked []string     // refresh tokens that were given back
	out     int          // people who have signed out
}

// newProvider starts a provider that sends people back to the console of the services.
func newProvider(t testing.TB, s *services) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{storage: storage{state: &state{key: key, page: s.events + "/console/", requests: map[string]*request{}, refresh: map[string]*request{}}}}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	p.op, err = op.NewProvider(&op.Config{CodeMethodS256: true, GrantTypeRefreshToken: true}, p.storage,
		op.StaticIssuer(p.URL), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// entry is an entry of the issuers file; more are further members of the entry, and block those of console.
func (p *provider) entry(more, block string) string {
	return fmt.Sprintf("- issuer: %s\n  audiences: [%s]\n  clientIDClaim: sub\n%s  console: {clientID: %s, name: Corp%s}\n", p.URL, consoleClient, more, consoleClient, block)
}

// set changes how the provider answers.
func (p *provider) set(change func(*behaviour)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.how)
}

// noticed returns what the provider has noticed so far.
func (p *provider) noticed() facts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.facts
}

// forget ends the person's session and all that came of it, as an administrator may.
func (p *provider) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signedIn = false
	clear(p.refresh)
}

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	p.mu.Lock()
	how := p.how
	switch r.URL.Path {
	case "/authorize":
		p.asked = append(p.asked, maps.Clone(r.Form))
	case "/oauth/token":
		p.trades = append(p.trades, maps.Clone(r.Form))
	}
	p.mu.Unlock()
	switch {
	case r.URL.Path == "/login":
		p.login(w, r)
		return
	case r.URL.Path == "/favicon.ico":
		return
	case how.broken && r.URL.Path != "/login":
		_, _ = io.WriteString(w, "<!doctype html><title>Maintenance</title>")
		return
	case r.URL.Path == "/oauth/token" && how.hold != nil:
		select {
		case <-how.hold:
		case <-r.Context().Done():
		}
	}
	rec := httptest.NewRecorder()
	p.op.ServeHTTP(rec, r)
	h, body := rec.Result().Header, rec.Body.Bytes()
	if how.noCORS {
		h.Del("Access-Control-Allow-Origin")
	}
	edit := how.answer
	switch {
	case r.URL.Path == "/oauth/token" && how.claims != nil:
		edit = func(m map[string]any) int { m["access_token"] = p.change(m["access_token"], how.claims); return 0 }
	case r.URL.Path == "/.well-known/openid-configuration" && how.publish != nil:
		edit = func(m map[string]any) int { how.publish(m); return 0 }
	case r.URL.Path != "/oauth/token":
		edit = nil
	}
	if edit != nil {
		answer := map[string]any{}
		_ = json.Unmarshal(body, &answer)
		rec.Code = cmp.Or(edit(answer), rec.Code)
		body, _ = json.Marshal(answer)
	}
	if to, err := url.Parse(h.Get("Location")); err == nil && how.forth != nil && to.Path == "/console/" {
		q := to.Query()
		how.forth(q)
		to.RawQuery = q.Encode()
		h.Set("Location", to.String())
	}
	h.Del("Content-Length")
	maps.Copy(w.Header(), h)
	w.WriteHeader(rec.Code)
	_, _ = io.Copy(w, bytes.NewReader(body))
}

// change signs a token anew, with other claims.
func (p *provider) change(token any, change func(map[string]any)) string {
	claims := map[string]any{}
	parts := strings.Split(fmt.Sprint(token), ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil {
		return err.Error()
	}
	change(claims)
	payload, _ = json.Marshal(claims)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: p.key}, (&jose.SignerOptions{}).WithHeader("kid", "key-1"))
	if err != nil {
		return err.Error()
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return err.Error()
	}
	compact, _ := signed.CompactSerialize()
	return compact
}

// login is the page where a person signs in, unless they have a session or must not be asked.
func (p *provider) login(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	req := p.requests[r.Form.Get("id")]
	if req == nil {
		http.NotFound(w, r)
		return
	}
	p.signedIn = p.signedIn || r.Method == http.MethodPost
	switch {
	case p.signedIn:
		req.done = true
		http.Redirect(w, r, "/authorize/callback?id="+req.id, http.StatusFound)
	case len(req.Prompt) == 1 && req.Prompt[0] == oidc.PromptNone:
		http.Redirect(w, r, req.RedirectURI+"?error=login_required&error_description=nobody+is+signed+in&state="+url.QueryEscape(req.State), http.StatusFound)
	default:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Corp</title><form method="post" action="/login?id=%s"><button id="enter">Enter</button></form>`, req.id)
	}
}

// storage is what the protocol needs to know. Methods that it does not have are not asked for here.
type storage struct {
	op.Storage
	*state
}

type state struct {
	key  *rsa.PrivateKey
	page string // where people are sent back to

	mu sync.Mutex
	facts
	how      behaviour
	signedIn bool // whether the person has a session
	requests map[string]*request
	refresh  map[string]*request // by refresh token, which is good once
	last     int                 // number of the last request, code or token
}

// request is a sign-in, and afterwards what was granted.
type request struct {
	oidc.AuthRequest
	id, code, nonce string
	done            bool
}

func (r *request) GetID() string             { return r.id }
func (r *request) GetACR() string            { return "" }
func (r *request) GetAMR() []string          { return nil }
func (r *request) GetAudience() []string     { return []string{consoleClient} }
func (r *request) GetAuthTime() time.Time    { return time.Now() }
func (r *request) GetClientID() string       { return r.ClientID }
func (r *request) GetNonce() string          { return cmp.Or(r.nonce, r.Nonce) }
func (r *request) GetScopes() []string       { return r.Scopes }
func (r *request) GetSubject() string        { return employee }
func (r *request) Done() bool                { return r.done }
func (r *request) SetCurrentScopes([]string) {}
func (r *request) GetCodeChallenge() *oidc.CodeChallenge {
	return &oidc.CodeChallenge{Challenge: r.CodeChallenge, Method: r.CodeChallengeMethod}
}

func (s *state) next(what string) string {
	s.last++
	return what + strconv.Itoa(s.last)
}

// CreateAuthRequest implements [op.AuthStorage].
func (s storage) CreateAuthRequest(_ context.Context, r *oidc.AuthRequest, _ string) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req := &request{AuthRequest: *r, id: s.next("request-"), nonce: s.how.nonce}
	s.requests[req.id] = req
	return req, nil
}

func (s storage) find(what string, is func(*request) bool) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if is(r) {
			return r, nil
		}
	}
	return nil, fmt.Errorf("no %s", what)
}

// AuthRequestByID implements [op.AuthStorage].
func (s storage) AuthRequestByID(_ context.Context, id string) (op.AuthRequest, error) {
	return s.find(id, func(r *request) bool { return r.id == id })
}

// AuthRequestByCode implements [op.AuthStorage].
func (s storage) AuthRequestByCode(_ context.Context, code string) (op.AuthRequest, error) {
	return s.find(code, func(r *request) bool { return r.code == code })
}

// SaveAuthCode implements [op.AuthStorage].
func (s storage) SaveAuthCode(_ context.Context, id, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[id].code = code
	return nil
}

// DeleteAuthRequest implements [op.AuthStorage].
func (s storage) DeleteAuthRequest(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.requests, id)
	return nil
}

// CreateAccessToken implements [op.AuthStorage].
func (s storage) CreateAccessToken(context.Context, op.TokenRequest) (string, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next("token-"), time.Now().Add(cmp.Or(s.how.life, time.Hour)), nil
}

// CreateAccessAndRefreshTokens implements [op.AuthStorage]. A refresh token is good once: another is given for it.
func (s storage) CreateAccessAndRefreshTokens(_ context.Context, r op.TokenRequest, before string) (string, string, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refresh, before)
	next := s.next("refresh-")
	s.refresh[next] = r.(*request)
	return s.next("token-"), next, time.Now().Add(cmp.Or(s.how.life, time.Hour)), nil
}

// TokenRequestByRefreshToken implements [op.AuthStorage].
func (s storage) TokenRequestByRefreshToken(_ context.Context, token string) (op.RefreshTokenRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.refresh[token]; r != nil {
		return r, nil
	}
	return nil, op.ErrInvalidRefreshToken
}

// TerminateSession implements [op.AuthStorage].
func (s storage) TerminateSession(context.Context, string, string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signedIn = false
	s.out++
	return nil
}

// RevokeToken implements [op.AuthStorage].
func (s storage) RevokeToken(_ context.Context, token, _, _ string) *oidc.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refresh, token)
	s.revoked = append(s.revoked, token)
	return nil
}

// GetRefreshTokenInfo implements [op.AuthStorage].
func (s storage) GetRefreshTokenInfo(_ context.Context, _, token string) (string, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refresh[token] == nil {
		return "", "", op.ErrInvalidRefreshToken
	}
	return employee, token, nil
}

// signing is the key of a provider, in both forms that the protocol asks for.
type signing struct {
	key any
}

func (k signing) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k signing) Algorithm() jose.SignatureAlgorithm          { return jose.RS256 }
func (k signing) Use() string                                 { return "sig" }
func (k signing) ID() string                                  { return "key-1" }
func (k signing) Key() any                                    { return k.key }

// SigningKey implements [op.AuthStorage].
func (s storage) SigningKey(context.Context) (op.SigningKey, error) { return signing{s.key}, nil }

// SignatureAlgorithms implements [op.AuthStorage].
func (s storage) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256}, nil
}

// KeySet implements [op.AuthStorage].
func (s storage) KeySet(context.Context) ([]op.Key, error) {
	return []op.Key{signing{&s.key.PublicKey}}, nil
}

// GetClientByClientID implements [op.OPStorage].
func (s storage) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != consoleClient {
		return nil, fmt.Errorf("no client %s", id)
	}
	return client{page: s.page, how: s.how}, nil
}

// SetUserinfoFromScopes implements [op.OPStorage].
func (s storage) SetUserinfoFromScopes(_ context.Context, info *oidc.UserInfo, _, _ string, _ []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	info.Subject, info.PreferredUsername = employee, "Ann Example"
	if s.how.groups != nil {
		info.AppendClaims("groups", s.how.groups)
	}
	return nil
}

// GetPrivateClaimsFromScopes implements [op.OPStorage].
func (s storage) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.how.groups == nil {
		return nil, nil
	}
	return map[string]any{"groups": s.how.groups}, nil
}

// client is the registration of the console: public, with PKCE.
type client struct {
	page string
	how  behaviour
}

func (c client) GetID() string                       { return consoleClient }
func (c client) RedirectURIs() []string              { return []string{c.page} }
func (c client) PostLogoutRedirectURIs() []string    { return []string{c.page} }
func (c client) ApplicationType() op.ApplicationType { return op.ApplicationTypeUserAgent }
func (c client) AuthMethod() oidc.AuthMethod         { return oidc.AuthMethodNone }
func (c client) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}
func (c client) LoginURL(id string) string            { return "/login?id=" + id }
func (c client) IDTokenLifetime() time.Duration       { return cmp.Or(c.how.life, time.Hour) }
func (c client) DevMode() bool                        { return true } // sends people to plain HTTP
func (c client) IsScopeAllowed(scope string) bool     { return scope == "groups" }
func (c client) IDTokenUserinfoClaimsAssertion() bool { return true }
func (c client) ClockSkew() time.Duration             { return 0 }
func (c client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken}
}
func (c client) RestrictAdditionalIdTokenScopes() func([]string) []string { //nolint:revive // the interface has this name
	return func(s []string) []string { return s }
}
func (c client) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return func(s []string) []string { return s }
}
func (c client) AccessTokenType() op.AccessTokenType {
	if c.how.opaque {
		return op.AccessTokenTypeBearer
	}
	return op.AccessTokenTypeJWT
}
