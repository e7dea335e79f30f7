package oauth_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/bearer"
	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/keyring"
	"tidings.example/tokensvc/internal/oauth"
	"tidings.example/tokensvc/internal/token"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const issuer = "https://issuer.example"

// store holds the client "demo" with the secret "s3cret" and fails for the id "outage".
type store struct{}

func (store) ByClientID(_ context.Context, id string) (client.Client, error) {
	switch id {
	case "demo":
		secret, err := client.ParseSecret("{noop}s3cret")
		return client.Client{ID: "registration-1", ClientID: "demo", Name: "Demo", Scope: "read", Secrets: []client.Secret{secret}}, err
	case "a+b":
		secret, err := client.ParseSecret("{noop}1+1=100%, %41")
		return client.Client{ID: "registration-3", ClientID: "a+b", Name: "Signs", Scope: "read", Secrets: []client.Secret{secret}}, err
	case "keyed":
		keys, err := client.ParseKeys([]byte(clientKeySet()), nil)
		return client.Client{ID: "registration-2", ClientID: "keyed", Name: "Keyed", Scope: "read", Keys: keys}, err
	case "panic-2f7a91c4":
		panic("a mistake in the program")
	case "outage":
		return client.Client{}, fmt.Errorf("no database")
	}
	return client.Client{}, client.ErrNotFound
}

func (store) BySubject(context.Context, string, []string) (client.Client, error) {
	return client.Client{}, client.ErrNotFound
}

// server is a whole service, and the parts of it that tests inspect.
type server struct {
	http.Handler
	keys   *keyring.Keyring
	issuer *token.Issuer
	log    *strings.Builder
}

func newServer(t testing.TB, adjust func(*oauth.Config)) *server {
	t.Helper()
	keys, err := keyring.New(keyring.Config{MaxAge: time.Minute, Lifetime: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := token.New(token.Config{Issuer: issuer, Lifetime: 5 * time.Minute, Signer: keys})
	if err != nil {
		t.Fatal(err)
	}
	clients, err := client.New(client.Config{
		Store: store{}, Timeout: time.Hour, // a compare may take long
		Assertions: client.Assertions{Audience: issuer, Keys: true, MaxLife: 5 * time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	own, err := bearer.New(bearer.Config{Issuer: issuer, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{keys: keys, issuer: tokens, log: &strings.Builder{}}
	c := oauth.Config{
		Issuer: issuer, PublicURL: issuer, Clients: clients, Registrations: store{}, Tokens: tokens, Keys: keys, Verify: own.Verify,
		Log: slog.New(slog.NewJSONHandler(io.MultiWriter(s.log, t.Output()), nil)), Registry: prometheus.NewRegistry(),
	}
	if adjust != nil {
		adjust(&c)
	}
	if s.Handler, err = oauth.New(c); err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends one request.
func (s *server) ask(method, target, body string, header ...string) *http.Response {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Del(header[i])
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

// TestTwoAuthorizations: two Authorization headers are refused, because it is not clear which one counts.
func TestTwoAuthorizations(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("POST", "/oauth2/token", strings.NewReader("grant_type=client_credentials"))
	r.Header.Set(ctype, "application/x-www-form-urlencoded")
	r.Header.Add(auth, basic("demo:s3cret"))
	r.Header.Add(auth, basic("demo:s3cret"))
	w := httptest.NewRecorder()
	newServer(t, func(c *oauth.Config) { c.Basic = true }).ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestClientGone: a client that leaves before the answer is counted neither as an outage nor as a failure.
func TestClientGone(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest("POST", "/oauth2/token", strings.NewReader(strings.Replace(good, "s3cret", "wrong", 1))).WithContext(ctx)
	r.Header.Set(ctype, "application/x-www-form-urlencoded")
	s.ServeHTTP(httptest.NewRecorder(), r)
	if !strings.Contains(s.log.String(), `"outcome":"client_gone"`) || strings.Contains(s.log.String(), "ERROR") {
		t.Errorf("log %s", s.log)
	}
}

// TestLateBody: a body that has not come in time is no malformed form, so that clients try again.
func TestLateBody(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	r := httptest.NewRequest("POST", "/oauth2/token", io.MultiReader(strings.NewReader(good), iotest.ErrReader(os.ErrDeadlineExceeded)))
	r.Header.Set(ctype, "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusRequestTimeout || !strings.Contains(w.Body.String(), `"error":"temporarily_unavailable"`) || !strings.Contains(s.log.String(), `"outcome":"body_time"`) {
		t.Errorf("%d %s, log %s", w.Code, w.Body, s.log)
	}
}

func basic(credentials string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
}

const (
	good  = "grant_type=client_credentials&client_id=demo&client_secret=s3cret"
	noCT  = ""
	auth  = "Authorization"
	ctype = "Content-Type"
)

// matrix has every way to ask for a token that the contract and RFC 6749 tell apart. The answers are in
// testdata/matrix.golden, byte by byte.
func matrix() []struct {
	name, method, target, body string
	header                     []string
	status                     int
} {
	many := strings.Repeat("&x=1", 30)
	return []struct {
		name, method, target, body string
		header                     []string
		status                     int
	}{
		{"contract rule 1: right secret", "POST", "/oauth2/token", good, nil, 200},
		{"contract rule 2: wrong secret", "POST", "/oauth2/token", strings.Replace(good, "s3cret", "wrong", 1), nil, 401},
		{"unknown client, same answer", "POST", "/oauth2/token", strings.Replace(good, "demo", "nobody", 1), nil, 401},
		{"E1 no credentials", "POST", "/oauth2/token", "grant_type=client_credentials", nil, 401},
		{"E1 no client_secret", "POST", "/oauth2/token", "grant_type=client_credentials&client_id=demo", nil, 401},
		{"E1 empty client_secret", "POST", "/oauth2/token", "grant_type=client_credentials&client_id=demo&client_secret=", nil, 401},
		{"E1 empty client_id", "POST", "/oauth2/token", "grant_type=client_credentials&client_id=&client_secret=s3cret", nil, 401},
		{"E1 empty body", "POST", "/oauth2/token", "", []string{ctype, "application/x-www-form-urlencoded"}, 401},
		{"E4 Basic where only post is registered", "POST", "/oauth2/token", "grant_type=client_credentials", []string{auth, basic("demo:s3cret")}, 401},
		{"E6 Basic without base64", "POST", "/oauth2/token", "grant_type=client_credentials", []string{auth, "Basic %%%"}, 400},
		{"E6 Basic without colon", "POST", "/oauth2/token", "grant_type=client_credentials", []string{auth, basic("demo")}, 400},
		{"E6 Basic with empty half", "POST", "/oauth2/token", "grant_type=client_credentials", []string{auth, basic("demo:")}, 400},
		{"E6 Basic of three words", "POST", "/oauth2/token", "grant_type=client_credentials", []string{auth, "Basic a b"}, 400},
		{"6749 2.3: two methods at once", "POST", "/oauth2/token", good, []string{auth, basic("demo:s3cret")}, 400},
		{"E7 client_id twice", "POST", "/oauth2/token", good + "&client_id=demo", nil, 400},
		{"E7 client_secret twice", "POST", "/oauth2/token", good + "&client_secret=s3cret", nil, 400},
		{"E8 client_id with NUL", "POST", "/oauth2/token", strings.Replace(good, "demo", "de%00mo", 1), nil, 400},
		{"E8 client_id with a line feed", "POST", "/oauth2/token", strings.Replace(good, "demo", "de%0Amo", 1), nil, 400},
		{"E8 client_id that is no UTF-8", "POST", "/oauth2/token", strings.Replace(good, "demo", "de%FFmo", 1), nil, 400},
		{"E9 no grant_type", "POST", "/oauth2/token", "client_id=demo&client_secret=s3cret", nil, 400},
		{"E9 grant_type twice", "POST", "/oauth2/token", good + "&grant_type=client_credentials", nil, 400},
		{"E10 other grant", "POST", "/oauth2/token", "grant_type=password&client_id=demo&client_secret=s3cret", nil, 400},
		{"E10 grant in other case", "POST", "/oauth2/token", "grant_type=Client_Credentials&client_id=demo&client_secret=s3cret", nil, 400},
		{"E10 grant_type empty counts as absent (6749 3.2)", "POST", "/oauth2/token", "grant_type=&client_id=demo&client_secret=s3cret", nil, 400},
		{"E12 scope twice", "POST", "/oauth2/token", good + "&scope=read&scope=read", nil, 400},
		{"E13 other scope", "POST", "/oauth2/token", good + "&scope=write", nil, 400},
		{"E13 scope with a double space", "POST", "/oauth2/token", good + "&scope=read++read", nil, 400},
		{"E13 more than the one scope", "POST", "/oauth2/token", good + "&scope=read+write", nil, 400},
		{"own scope", "POST", "/oauth2/token", good + "&scope=read", nil, 200},
		{"E14 scope empty counts as absent (6749 3.2)", "POST", "/oauth2/token", good + "&scope=", nil, 200},
		{"E15 wrong secret and bad grant", "POST", "/oauth2/token", "grant_type=x&client_id=demo&client_secret=wrong", nil, 401},
		{"E16 credentials in the query", "POST", "/oauth2/token?client_id=demo&client_secret=s3cret", "grant_type=client_credentials", nil, 400},
		{"E16 secret in the query and the body", "POST", "/oauth2/token?client_secret=s3cret", good, nil, 400},
		{"E16 secret in the query, name escaped", "POST", "/oauth2/token?client%5Fsecret=s3cret", good, nil, 400},
		{"E16 grant_type in the query does not count", "POST", "/oauth2/token?grant_type=client_credentials", "client_id=demo&client_secret=s3cret", nil, 400},
		{"E17 unknown parameters", "POST", "/oauth2/token", good + "&audience=a&audience=b&foo", nil, 200},
		{"8707: the one audience", "POST", "/oauth2/token", good + "&resource=demo", nil, 200},
		{"8707: a resource without a value", "POST", "/oauth2/token", good + "&resource=", nil, 200},
		{"8707: another resource", "POST", "/oauth2/token", good + "&resource=https%3A%2F%2Fapi", nil, 400},
		{"8707: one good and one other resource", "POST", "/oauth2/token", good + "&resource=demo&resource=https%3A%2F%2Fapi", nil, 400},
		{"8707: another resource, wrong secret", "POST", "/oauth2/token", strings.Replace(good, "s3cret", "wrong", 1) + "&resource=x", nil, 401},
		{"E18 JSON body", "POST", "/oauth2/token", `{"grant_type":"client_credentials"}`, []string{ctype, "application/json"}, 400},
		{"E18 no content type", "POST", "/oauth2/token", good, []string{ctype, noCT}, 400},
		{"multipart body", "POST", "/oauth2/token", "--x\r\n\r\n--x--", []string{ctype, "multipart/form-data; boundary=x"}, 400},
		{"content type with charset", "POST", "/oauth2/token", good, []string{ctype, "application/x-www-form-urlencoded; charset=UTF-8"}, 200},
		{"content type in other case", "POST", "/oauth2/token", good, []string{ctype, "Application/X-WWW-Form-URLEncoded"}, 200},
		{"compressed body", "POST", "/oauth2/token", good, []string{"Content-Encoding", "gzip"}, 400},
		{"bad escape", "POST", "/oauth2/token", good + "&x=%zz", nil, 400},
		{"32 parameters", "POST", "/oauth2/token", good + many[4:], nil, 200},
		{"33 parameters", "POST", "/oauth2/token", good + many, nil, 400},
		{"16 KiB", "POST", "/oauth2/token", good + "&x=" + strings.Repeat("x", 16<<10-len(good)-3), nil, 200},
		{"16 KiB and one byte", "POST", "/oauth2/token", good + "&x=" + strings.Repeat("x", 16<<10-len(good)-2), nil, 413},
		{"registrations cannot be read", "POST", "/oauth2/token", strings.Replace(good, "demo", "outage", 1), nil, 503},
		{"GET", "GET", "/oauth2/token", "", nil, 405},
		{"PUT", "PUT", "/oauth2/token", good, nil, 405},
		{"HEAD", "HEAD", "/oauth2/token", "", nil, 405},
		{"OPTIONS without CORS", "OPTIONS", "/oauth2/token", "", []string{"Origin", "https://console.example"}, 405},
		{"a method nobody knows", "BREW", "/oauth2/token", "", nil, 405},
		{"contract rule 3: other path", "GET", "/oauth2/nothing", "", nil, 401},
		{"trailing slash is another path", "POST", "/oauth2/token/", good, nil, 401},
		{"double slash is another path", "POST", "//oauth2/token", good, nil, 401},
		{"an escaped slash is another path", "POST", "/oauth2%2Ftoken", good, nil, 401},
		{"root", "GET", "/", "", nil, 401},
		{"token in the query is never read", "GET", "/?access_token=x", "", nil, 401},
		{"own registration without a token", "GET", "/oauth2/client", "", nil, 401},
		{"Basic at a protected path", "GET", "/oauth2/client", "", []string{auth, basic("demo:s3cret")}, 401},
		{"bad token", "GET", "/oauth2/client", "", []string{auth, "Bearer x.y.z"}, 401},
		{"empty token", "GET", "/oauth2/client", "", []string{auth, "Bearer "}, 401},
	}
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	var got strings.Builder
	for _, tc := range matrix() {
		resp := s.ask(tc.method, tc.target, tc.body, tc.header...)
		if resp.StatusCode != tc.status {
			t.Errorf("%s: status %d, want %d", tc.name, resp.StatusCode, tc.status)
		}
		fmt.Fprintf(&got, "## %s\n%s\n", tc.name, dump(t, resp))
	}
	compareGolden(t, "testdata/matrix.golden", got.String())
	for _, secret := range []string{"s3cret", "eyJ", "Basic ZGVtb"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log repeats %q", secret)
		}
	}
}

// TestBasic: client_secret_basic, where it is enabled (RFC 6749 section 2.3.1).
func TestBasic(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *oauth.Config) { c.Basic = true })
	const grant = "grant_type=client_credentials"
	var got strings.Builder
	for _, tc := range []struct{ name, body, header string }{
		{"right", grant, basic("demo:s3cret")},
		{"scheme in other case", grant, strings.Replace(basic("demo:s3cret"), "Basic", "bAsIc", 1)},
		{"halves are form-encoded", grant, basic("d%65mo:s3%63ret")},
		{"client_id in the body too", grant + "&client_id=demo", basic("demo:s3cret")},
		{"another client_id in the body", grant + "&client_id=other", basic("demo:s3cret")},
		{"wrong", grant, basic("demo:wrong")},
		{"both", good, basic("demo:s3cret")},
		{"bad escape", grant, basic("demo:%zz")},
		{"post still works", good, ""},
	} {
		fmt.Fprintf(&got, "## %s\n%s\n", tc.name, dump(t, s.ask("POST", "/oauth2/token", tc.body, auth, tc.header)))
	}
	compareGolden(t, "testdata/basic.golden", got.String())
}

// TestBasicReadings: id and secret of Basic may be form-encoded, as RFC 6749 section 2.3.1 says, or raw, as curl and
// Authlib send them.
func TestBasicReadings(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *oauth.Config) { c.Basic = true })
	const id, secret = "a+b", "1+1=100%, %41"
	for _, tc := range []struct {
		name, credentials, bodyID string
		want                      int
		logged                    string // client_id
	}{
		{"raw", id + ":" + secret, "", 200, id},
		{"form-encoded", url.QueryEscape(id) + ":" + url.QueryEscape(secret), "", 200, id},
		{"form-encoded, with %20", "a%2bb:" + url.PathEscape("1") + "%2b1%3d100%25,%20%2541", "", 200, id},
		{"raw, with the id in the body", id + ":" + secret, id, 200, id},
		{"form-encoded, with the id in the body", url.QueryEscape(id) + ":" + url.QueryEscape(secret), id, 200, id},
		{"another id in the body", id + ":" + secret, "a", 400, ""},
		{"the id of the other reading in the body", id + ":s3cret", "a b", 401, "a b"},
		{"id raw, secret form-encoded", id + ":" + url.QueryEscape(secret), "", 401, "a b"},
		{"encoded twice", url.QueryEscape(id) + ":" + url.QueryEscape(url.QueryEscape(secret)), "", 401, id},
		{"plain id, raw secret that does not decode", "demo:100%", "", 401, "demo"},
		{"id that does not decode", "100%:s3cret", "", 401, "100%"},
		{"id that decodes to what no client has", "a%00b:s3cret", "", 401, "a%00b"},
		{"id that no client has", "a\x00b:s3cret", "", 400, ""},
	} {
		body := "grant_type=client_credentials"
		if tc.bodyID != "" {
			body += "&client_id=" + url.QueryEscape(tc.bodyID)
		}
		s.log.Reset()
		if resp := s.ask("POST", "/oauth2/token", body, auth, basic(tc.credentials)); resp.StatusCode != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, resp.StatusCode, tc.want)
		}
		var line struct {
			ClientID string `json:"client_id"`
		}
		if err := json.Unmarshal([]byte(s.log.String()), &line); err != nil || line.ClientID != tc.logged && tc.logged != "" {
			t.Errorf("%s: logged %s", tc.name, s.log)
		}
	}
}

var tokenText = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)

// dump writes an answer with sorted headers and the token replaced.
func dump(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", resp.StatusCode)
	if err := resp.Header.Write(&b); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(tokenText.ReplaceAllString(string(body), "TOKEN")))
	return strings.ReplaceAll(b.String(), "\r\n", "\n")
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// demoToken asks for a token with the good form.
func (s *server) demoToken(t *testing.T, more string) string {
	t.Helper()
	var body struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(s.ask("POST", "/oauth2/token", good+more).Body).Decode(&body); err != nil || body.AccessToken == "" {
		t.Fatalf("no token: %v", err)
	}
	return body.AccessToken
}

func TestProtected(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	own := s.demoToken(t, "&scope=read")
	other, err := s.issuer.Issue(t.Context(), client.Client{ClientID: "removed"}, false)
	if err != nil {
		t.Fatal(err)
	}
	bad := own[:len(own)-8] + "AAAAAAAA"
	volatile := regexp.MustCompile(`"(jti|iat|exp)":("[^"]*"|[0-9]+)`)
	var got strings.Builder
	for _, tc := range []struct{ name, method, target, body, token string }{
		{"own registration", "GET", "/oauth2/client", "", own},
		{"own registration, HEAD", "HEAD", "/oauth2/client", "", own},
		{"own registration, removed since", "GET", "/oauth2/client", "", other.Value},
		{"own registration, POST", "POST", "/oauth2/client", "", own},
		{"signature of another key", "GET", "/oauth2/client", "", bad},
		{"unknown path", "GET", "/nothing", "", own},
	} {
		answer := dump(t, s.ask(tc.method, tc.target, tc.body, auth, "Bearer "+tc.token))
		fmt.Fprintf(&got, "## %s\n%s\n", tc.name, volatile.ReplaceAllString(answer, `"$1":VOLATILE`))
	}
	compareGolden(t, "testdata/protected.golden", got.String())
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for _, path := range []string{"/oauth2/jwks", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		get := s.ask("GET", path, "")
		body, err := io.ReadAll(get.Body)
		if err != nil {
			t.Fatal(err)
		}
		etag := get.Header.Get("ETag")
		if get.StatusCode != 200 || !json.Valid(body) || etag == "" || !strings.HasPrefix(get.Header.Get("Cache-Control"), "public, max-age=") {
			t.Errorf("GET %s: %d %v %s", path, get.StatusCode, get.Header, body)
		}
		head := s.ask("HEAD", path, "")
		if head.StatusCode != 200 || head.Header.Get("Content-Length") != fmt.Sprint(len(body)) {
			t.Errorf("HEAD %s: %d %v", path, head.StatusCode, head.Header)
		}
		for _, tc := range []struct {
			given string
			want  int
		}{{etag, 304}, {"W/" + etag, 304}, {`"a", ` + etag, 304}, {"*", 304}, {`"a"`, 200}, {etag[1:], 200}} {
			if got := s.ask("GET", path, "", "If-None-Match", tc.given); got.StatusCode != tc.want {
				t.Errorf("GET %s, If-None-Match %s: %d, want %d", path, tc.given, got.StatusCode, tc.want)
			}
		}
		if resp := s.ask("POST", path, "x=y"); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") == "" {
			t.Errorf("POST %s: %d %v", path, resp.StatusCode, resp.Header)
		}
	}
	var keys struct{ Keys []map[string]any }
	if err := json.NewDecoder(s.ask("GET", "/oauth2/jwks", "").Body).Decode(&keys); err != nil || len(keys.Keys) != 1 {
		t.Fatalf("key set %v, %v", keys, err)
	}
	for member, value := range keys.Keys[0] { // RFC 7518 section 6.3.1: the public members, never d and its like
		switch member {
		case "kid", "n", "e":
		case "kty", "alg", "use":
			if want := map[string]string{"kty": "RSA", "alg": "RS256", "use": "sig"}[member]; value != want {
				t.Errorf("%s is %v", member, value)
			}
		default:
			t.Errorf("member %q is published", member)
		}
	}
}

// TestMetadataPaths: where RFC 8414 section 3.1 puts the document.
func TestMetadataPaths(t *testing.T) {
	t.Parallel()
	const bare, oidc = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	for _, tc := range []struct {
		issuer string
		public []string
		not    []string
	}{
		{"https://a.example", []string{bare, oidc}, []string{bare + "/x"}},
		{"https://a.example/", []string{bare, oidc}, []string{bare + "/"}},
		{"https://a.example/x/y", []string{bare, oidc, bare + "/x/y", "/x/y" + oidc}, []string{bare + "/x"}},
		{"https://a.example/x%20y/a%2Fb", []string{bare + "/x%20y/a%2Fb", "/x%20y/a%2Fb" + oidc}, []string{bare + "/x%20y/a/b"}},
		{"https://public.example/base", []string{bare, oidc, "/base" + bare, "/base" + oidc, bare + "/base"}, []string{"/bas" + oidc, "/base/base" + oidc}},
		{"https://public.example/base/a", []string{bare + "/base/a", "/base/a" + oidc, "/a" + oidc}, []string{"/base" + oidc + "/a", bare + "/a"}},
		{"https://public.example/based", []string{bare + "/based", "/based" + oidc}, []string{"/d" + oidc}},
		{"just a name", nil, []string{bare, oidc}},
		{"urn:example:issuer", nil, []string{bare, oidc}},
	} {
		s := newServer(t, func(c *oauth.Config) { c.Issuer, c.PublicURL = tc.issuer, "https://public.example/base" })
		for _, path := range tc.public {
			var doc struct {
				Issuer string `json:"issuer"`
				Token  string `json:"token_endpoint"`
				JWKS   string `json:"jwks_uri"`
			}
			resp := s.ask("GET", path, "")
			if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil || doc.Issuer != tc.issuer ||
				doc.Token != "https://public.example/base/oauth2/token" || doc.JWKS != "https://public.example/base/oauth2/jwks" {
				t.Errorf("%s at %s: %d %+v %v", tc.issuer, path, resp.StatusCode, doc, err)
			}
		}
		for _, path := range tc.not {
			if resp := s.ask("GET", path, ""); resp.StatusCode != 401 {
				t.Errorf("%s at %s: %d, want 401", tc.issuer, path, resp.StatusCode)
			}
		}
	}
}

// TestPublicURLWithPath: a proxy may keep or remove the path of the public URL.
func TestPublicURLWithPath(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "/auth", "/a/b", "/oauth2", "/x%20y", "/a%2Fb", "/:tenant", "/*"} {
		s := newServer(t, func(c *oauth.Config) { c.PublicURL = "https://public.example" + base })
		var issued struct {
			Token string `json:"access_token"`
		}
		for _, prefix := range []string{"", base} {
			answer := s.ask("POST", prefix+"/oauth2/token", good)
			if err := json.NewDecoder(answer.Body).Decode(&issued); err != nil || answer.StatusCode != 200 || answer.Header.Get("Pragma") != "no-cache" {
				t.Fatalf("%s: token at %q: %d %v", base, prefix, answer.StatusCode, err)
			}
			for _, tc := range []struct {
				method, path, body, token string
				want                      int
			}{
				{"GET", "/oauth2/jwks", "", "", 200},
				{"HEAD", "/oauth2/jwks", "", "", 200},
				{"GET", "/.well-known/oauth-authorization-server", "", "", 200},
				{"GET", "/oauth2/token", "", "", 405},
				{"GET", "/oauth2/client", "", "", 401},
				{"GET", "/oauth2/client", "", issued.Token, 200},
				{"GET", "/oauth2/authorize?response_type=code", "", "", 401},
				{"GET", "/oauth2/authorize", "", issued.Token, 404},
				{"GET", "/oauth2/jwks/", "", "", 401},
				{"GET", "/oauth2%2Fjwks", "", "", 401},
				{"GET", "/other", "", "", 401},
				{"GET", base + base + "/oauth2/jwks", "", "", map[bool]int{true: 200, false: 401}[base == ""]},
			} {
				header := []string{}
				if tc.token != "" {
					header = []string{"Authorization", "Bearer " + tc.token}
				}
				if got := s.ask(tc.method, prefix+tc.path, tc.body, header...); got.StatusCode != tc.want {
					t.Errorf("%s: %s %q %s: %d, want %d", base, tc.method, prefix, tc.path, got.StatusCode, tc.want)
				}
			}
		}
		if got := s.ask("GET", "/elsewhere/oauth2/jwks", ""); got.StatusCode != 401 {
			t.Errorf("%s: the keys below another path: %d", base, got.StatusCode)
		}
	}
}

// TestMetadata: the members that OpenID Connect Discovery section 3 requires, and clients with it, at both paths and
// for pages of every origin.
func TestMetadata(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *oauth.Config) { c.Issuer, c.PublicURL = "https://a.example/", "https://public.example/base" })
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		resp := s.ask("GET", path, "", "Origin", "https://page.example")
		var got map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		const at = "https://public.example/base/oauth2"
		list := func(values ...any) []any { return values }
		want := map[string]any{
			"issuer": "https://a.example/", "token_endpoint": at + "/token", "jwks_uri": at + "/jwks",
			"authorization_endpoint": at + "/authorize", "response_types_supported": list("none"), "subject_types_supported": list("public"),
			"id_token_signing_alg_values_supported": list("RS256"), "code_challenge_methods_supported": list("S256"),
			"token_endpoint_auth_methods_supported": list("client_secret_post"), "grant_types_supported": list("client_credentials"),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		if h := resp.Header; h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Credentials") != "" || h.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v", path, h)
		}
	}
	if h := s.ask("GET", "/oauth2/jwks", "", "Origin", "https://page.example").Header; h.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("keys: %v", h)
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *oauth.Config) { c.Origins = []string{"https://console.example"} })
	var got strings.Builder
	for _, tc := range []struct{ name, method, body, origin string }{
		{"preflight", "OPTIONS", "", "https://console.example"},
		{"preflight of another page", "OPTIONS", "", "https://evil.example"},
		{"request", "POST", good, "https://console.example"},
		{"refused request can be read too", "POST", "x=y", "https://console.example"},
		{"request of another page", "POST", good, "https://evil.example"},
		{"no page", "POST", good, ""},
	} {
		fmt.Fprintf(&got, "## %s\n%s\n", tc.name, dump(t, s.ask(tc.method, "/oauth2/token", tc.body, "Origin", tc.origin)))
	}
	compareGolden(t, "testdata/cors.golden", got.String())
}

// TestAudit: one line per decision, with what an operator needs and nothing that a client made up.
func TestAudit(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *oauth.Config) {
		c.TrustedProxies, c.Assertions = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, true
	})
	type line struct {
		Msg, Outcome, Method, Source, Registration, Scope, Jti, Kid string
		ClientID                                                    string `json:"client_id"`
		Detail                                                      string
	}
	read := func() line {
		t.Helper()
		var l line
		lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
		s.log.Reset()
		if err := json.Unmarshal([]byte(lines[0]), &l); err != nil || len(lines) != 1 {
			t.Errorf("log %q: %v", lines, err)
		}
		return l
	}
	s.ask("POST", "/oauth2/token", good, "X-Forwarded-For", "198.51.100.7, 203.0.113.9")
	got := read()
	if got.Jti == "" || got.Kid == "" {
		t.Errorf("no jti or kid: %+v", got)
	}
	got.Jti, got.Kid = "", ""
	want := line{Msg: "token request", Outcome: "issued", Method: "client_secret_post", Source: "203.0.113.9", Registration: "registration-1", Scope: "read", ClientID: "demo"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const post, key = "client_secret_post", "private_key_jwt"
	for _, tc := range []struct{ body, outcome, method, clientID, detail string }{
		{strings.Replace(good, "s3cret", "wrong", 1), "wrong_secret", post, "demo", ""},
		{strings.Replace(good, "demo", "a%0Ab", 1), "client_id_characters", "", "", ""},
		{strings.Replace(good, "demo", strings.Repeat("x", 129), 1), "unknown_client", post, "", ""},
		{good + "&scope=other", "invalid_scope", post, "demo", ""},
		{withAssertion(assertionOf("nobody", issuer)), "unknown_client", key, "nobody", "iss is neither a client nor a trusted issuer"},
		{withAssertion(assertionOf("keyed", issuer+"/oauth2/token")), "wrong_assertion", key, "keyed", "other audience"},
		{withAssertion(assertionOf("a\nb", issuer)), "unknown_client", key, "", "iss is neither a client nor a trusted issuer"},
		{withAssertion("x"), "wrong_assertion", key, "", "not three parts"},
	} {
		s.ask("POST", "/oauth2/token", tc.body)
		want := line{Msg: "token request", Outcome: tc.outcome, Method: tc.method, Source: "192.0.2.1", ClientID: tc.clientID, Detail: tc.detail}
		if diff := cmp.Diff(want, read()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	s.ask("POST", "/oauth2/token?client_secret=s3cret", good)
	if got := read(); got.Outcome != "credentials_in_query" {
		t.Errorf("secret in the query is logged as %+v", got)
	}
}

// unsigned makes tokens without signing them, so that they cost nothing.
type unsigned struct{}

func (unsigned) Sign(_ context.Context, payload []byte) (value, kid string, err error) {
	return string(payload), "kid", nil
}

// TestNothingIsKept: tokens and refusals do not stay in memory.
func TestNothingIsKept(t *testing.T) { // not parallel: what others allocate would be counted
	s := newServer(t, func(c *oauth.Config) {
		c.Log = slog.New(slog.DiscardHandler)
		var err error
		if c.Tokens, err = token.New(token.Config{Issuer: issuer, Lifetime: 5 * time.Minute, Signer: unsigned{}}); err != nil {
			t.Fatal(err)
		}
	})
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the second collection frees what pools hold
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	use := func(n int) {
		for i := range n {
			if a := s.ask("POST", "/oauth2/token", good); a.StatusCode != http.StatusOK {
				t.Fatal(a.Status)
			}
			s.ask("POST", "/oauth2/token", fmt.Sprintf("client_id=%d", i))
		}
	}
	use(100)
	before := heap()
	const requests = 20_000
	use(requests)
	if grown := heap() - before; grown > requests {
		t.Errorf("%d tokens and as many refusals leave %d bytes behind", requests, grown)
	}
}

// TestCountedSource: failures are counted per address, but not where an address stands for many clients.
func TestCountedSource(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"203.0.113.9": "203.0.113.9", "::ffff:203.0.113.9": "203.0.113.9",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", // one subscriber has a whole network
		"127.0.0.1": "", "127.1.2.3": "", "::1": "", "::ffff:127.0.0.1": "", // loopback
		"192.0.2.7": "", "::ffff:192.0.2.7": "", "2001:db8:ffff::1": "", // trusted proxies
		"no address": "no address",
	} {
		got := oauth.CountedSource(source, netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8:ffff::/48"))
		if got != want {
			t.Errorf("%s is counted as %q, want %q", source, got, want)
		}
	}
}

// FuzzTokenRequest: every answer is one of the table, is JSON and must not be stored. A token is issued only for the
// right secret in the body.
func FuzzTokenRequest(f *testing.F) {
	for _, tc := range matrix() {
		if tc.status != http.StatusInternalServerError {
			f.Add(tc.target, tc.body, "application/x-www-form-urlencoded", "")
		}
	}
	f.Add("/oauth2/token", "grant_type=client_credentials", "application/x-www-form-urlencoded", basic("demo:s3cret"))
	s := newServer(f, func(c *oauth.Config) { c.Basic = true })
	f.Fuzz(func(t *testing.T, target, body, contentType, authorization string) {
		r, err := http.NewRequest("POST", "http://localhost/oauth2/token", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_, r.URL.RawQuery, _ = strings.Cut(target, "?")
		r.RemoteAddr = "192.0.2.1:1234"
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var answer struct {
			Error string
			Token string `json:"access_token"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
		}
		if (w.Code == 200) != (answer.Token != "") || (w.Code == 200) != (answer.Error == "") || w.Code == 500 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if w.Code == 200 && !strings.Contains(body+authorization, "s3") && !strings.Contains(body, "%") && authorization == "" {
			t.Fatalf("token for %q", body)
		}
	})
}
