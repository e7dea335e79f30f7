package main

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"tidings.example/shared/certtest"
	"tidings.example/shared/cli"
	"tidings.example/shared/service"
	"tidings.example/shared/waittest"
	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/client/clienttest"
)

// command runs the program to its end and returns what it printed.
func command(t *testing.T, input string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	std, read := files(t, input)
	ctx, cancel := waittest.Context(t) // ends a service that should have refused to start
	defer cancel()
	err = run(ctx, args, std)
	if ctx.Err() != nil {
		waittest.Lost(t, fmt.Sprintf("%q has not ended", args))
	}
	stdout, stderr = read()
	return stdout, stderr, err
}

func files(t testing.TB, input string) (std stdio, read func() (stdout, stderr string)) {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	std = stdio{in: open("in"), out: open("out"), err: open("err")}
	if _, err := std.in.WriteString(input); err != nil {
		t.Fatal(err)
	}
	if _, err := std.in.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	text := func(f *os.File) string {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	t.Cleanup(func() { fmt.Fprint(t.Output(), text(std.err)) }) // where outputtest searches it
	return std, func() (string, string) { return text(std.out), text(std.err) }
}

// running is a service that has been started.
type running struct {
	api, https, admin string // URLs
	log               func() string
	stop              func() error
}

func start(t testing.TB, args ...string) *running {
	t.Helper()
	std, read := files(t, "")
	type address struct{ setting, addr string }
	listened := make(chan address, 3)
	std.listened = func(setting string, a net.Addr) { listened <- address{setting, a.String()} }
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	usual := []string{"--listen-http", "127.0.0.1:0", "--listen-admin", "127.0.0.1:0", "--public-url", "http://tokens.test"}
	if !slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "--key-rotation") || strings.HasPrefix(a, "--signing-key")
	}) {
		usual = append(usual, "--signing-key", signingKey(t)) // to make one takes longer than most tests
	}
	args = append(usual, args...)
	go func() { done <- run(ctx, args, std) }()
	r := &running{log: func() string { _, stderr := read(); return stderr }}
	r.stop = func() error {
		cancel()
		err := waittest.Within(t, done)
		done <- err
		return err
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("stopped with %v", err)
		}
	})
	lost, found := waittest.Context(t)
	defer found()
	for r.api == "" || r.admin == "" || r.https == "" && slices.Contains(args, "--listen-https") {
		select {
		case <-lost.Done():
			waittest.Lost(t, "not all listeners are open\n"+r.log())
		case a := <-listened:
			switch a.setting {
			case "--listen-http":
				r.api = "http://" + a.addr
			case "--listen-https":
				r.https = "https://" + a.addr
			case "--listen-admin":
				r.admin = "http://" + a.addr
			}
		case err := <-done:
			done <- err
			t.Fatalf("did not start: %v\n%s", err, r.log())
		}
	}
	return r
}

// signingKey is a file with a key that no other service of this test has.
func signingKey(t testing.TB) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(certtest.RSA(t))
	if err != nil {
		t.Fatal(err)
	}
	return tempFile(t, "signing.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

const demoClients = `clients:
- {client_id: demo, client_name: Demo, client_secret: "HASH", scope: read}
`

func clientsFile(t testing.TB) string {
	t.Helper()
	return tempFile(t, "clients.yaml", strings.ReplaceAll(demoClients, "HASH", clienttest.Hash))
}

func tempFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func fetch(t *testing.T, method, target, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

const demoForm = "grant_type=client_credentials&client_id=demo&client_secret=s3cret"

// verified returns header and claims of a token after it has verified the signature by the published keys, with the
// standard library alone.
func verified(t *testing.T, r *running, token string) (header, claims map[string]any) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q has not three parts", token)
	}
	var raw [3][]byte
	for i, part := range parts {
		var err error
		if raw[i], err = base64.RawURLEncoding.DecodeString(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(json.Unmarshal(raw[0], &header), json.Unmarshal(raw[1], &claims)); err != nil {
		t.Fatal(err)
	}
	_, body := fetch(t, "GET", r.api+"/oauth2/jwks", "")
	var set struct{ Keys []struct{ Kid, N, E string } }
	if err := json.Unmarshal(body, &set); err != nil {
		t.Fatal(err)
	}
	for _, k := range set.Keys {
		n, nErr := base64.RawURLEncoding.DecodeString(k.N)
		e, eErr := base64.RawURLEncoding.DecodeString(k.E)
		if err := errors.Join(nErr, eErr); err != nil {
			t.Fatal(err)
		}
		if k.Kid != header["kid"] {
			continue
		}
		key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], raw[2]); err != nil {
			t.Fatal(err)
		}
		return header, claims
	}
	t.Fatalf("key %v is not published", header["kid"])
	return nil, nil
}

func askToken(t *testing.T, r *running, form string) (token string, answer map[string]any) {
	t.Helper()
	status, body := fetch(t, "POST", r.api+"/oauth2/token", form)
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	token, _ = answer["access_token"].(string)
	return token, answer
}

// TestContract: with the default settings, token, header and claims are those of the contract.
func TestContract(t *testing.T) {
	t.Parallel()
	r := start(t, "--signing-key=", "--clients-file", clientsFile(t))
	before := time.Now().Unix()
	token, answer := askToken(t, r, demoForm)
	delete(answer, "access_token")
	if diff := cmp.Diff(map[string]any{"token_type": "Bearer", "expires_in": 300.0}, answer); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	header, claims := verified(t, r, token)
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	if kid, _ := header["kid"].(string); !uuid.MatchString(kid) || header["alg"] != "RS256" || len(header) != 2 {
		t.Errorf("header %v", header)
	}
	if jti, _ := claims["jti"].(string); !uuid.MatchString(jti) {
		t.Errorf("jti %v", claims["jti"])
	}
	iat, _ := claims["iat"].(float64)
	if int64(iat) < before || int64(iat) > time.Now().Unix() {
		t.Errorf("iat %v", claims["iat"])
	}
	want := map[string]any{
		"iss": "http://tokens.test", "sub": "demo", "aud": "demo", "iat": iat, "nbf": iat, "exp": iat + 300, "jti": claims["jti"],
	}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if again, _ := askToken(t, r, demoForm); again == token {
		t.Error("two tokens are the same")
	}
}

// TestCustomization: the customization of the contract can be had by settings alone.
func TestCustomization(t *testing.T) {
	t.Parallel()
	r := start(t, "--clients-file", clientsFile(t), "--issuer", "my issuer", "--token-lifetime", "10m", "--token-scope-claim", "--token-type", "at+jwt", "--key-id", "thumbprint")
	token, answer := askToken(t, r, demoForm)
	header, claims := verified(t, r, token)
	iat, _ := claims["iat"].(float64)
	if header["typ"] != "at+jwt" || answer["expires_in"] != 600.0 || claims["iss"] != "my issuer" || claims["exp"] != iat+600 {
		t.Errorf("header %v, claims %v, answer %v", header, claims, answer)
	}
	if diff := cmp.Diff([]any{"read"}, claims["scope"]); diff != "" {
		t.Errorf("scope (-want +got):\n%s", diff)
	}
	if status, _ := fetch(t, "GET", r.api+"/.well-known/oauth-authorization-server", ""); status != http.StatusUnauthorized {
		t.Errorf("metadata of an issuer that is no URL: %d", status)
	}
}

// TestStockClient: golang.org/x/oauth2 gets tokens with both of its ways to send credentials.
func TestStockClient(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		style oauth2.AuthStyle
		args  []string
	}{
		{oauth2.AuthStyleInParams, nil},
		{oauth2.AuthStyleAutoDetect, nil}, // tries Basic first
		{oauth2.AuthStyleInHeader, []string{"--client-secret-basic"}},
	} {
		r := start(t, append(tc.args, "--clients-file", clientsFile(t))...)
		conf := clientcredentials.Config{ClientID: "demo", ClientSecret: "s3cret", TokenURL: r.api + "/oauth2/token", AuthStyle: tc.style}
		token, err := conf.Token(t.Context())
		if err != nil {
			t.Fatalf("style %v: %v", tc.style, err)
		}
		if left := time.Until(token.Expiry); left < 4*time.Minute || left > 5*time.Minute || token.Type() != "Bearer" {
			t.Errorf("style %v: %s token for %v", tc.style, token.Type(), left)
		}
		req, err := http.NewRequestWithContext(t.Context(), "GET", r.api+"/oauth2/client", nil)
		if err != nil {
			t.Fatal(err)
		}
		token.SetAuthHeader(req)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("style %v: own registration answered %d", tc.style, resp.StatusCode)
		}
	}
}

// oddSecret has what is different in a form and raw.
const oddSecret = "+%2b/%zz%:=&? 100%"

// oddClient starts a service with Basic for a client with oddSecret.
func oddClient(t *testing.T) *running {
	t.Helper()
	hash, err := client.HashSecret(oddSecret, client.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, "--client-secret-basic", "--clients-file",
		tempFile(t, "clients.yaml", fmt.Sprintf("clients:\n- {client_id: demo, client_name: Demo, scope: read, client_secret: %q}\n", hash)))
}

// TestRawBasic: curl sends Basic credentials raw, golang.org/x/oauth2 as a form. Each refused attempt is one, with its
// reason.
func TestRawBasic(t *testing.T) {
	t.Parallel()
	r := oddClient(t)
	conf := clientcredentials.Config{ClientID: "demo", ClientSecret: oddSecret, TokenURL: r.api + "/oauth2/token", AuthStyle: oauth2.AuthStyleInHeader}
	if _, err := conf.Token(t.Context()); err != nil {
		t.Error(err)
	}
	for secret, want := range map[string]string{oddSecret: "200", "wrong+%41": "401", "wrong%": "401", strings.Repeat("long", 19): "401"} {
		out, err := exec.CommandContext(t.Context(), "curl", "-s", "-o", os.DevNull, "-w", "%{http_code}", "-u", "demo:"+secret,
			"-d", "grant_type=client_credentials", r.api+"/oauth2/token").CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			t.Skip("needs curl")
		}
		if err != nil || string(out) != want {
			t.Errorf("curl -u, %q: %s, %v, want %s", secret, out, err, want)
		}
	}
	for metric, want := range map[string]string{
		`tokensvc_token_requests_total{method="client_secret_basic",outcome="issued"}`:       "2",
		`tokensvc_token_requests_total{method="client_secret_basic",outcome="wrong_secret"}`: "3",
	} {
		if got := r.metric(t, metric); got != want {
			t.Errorf("%s is %s, want %s", metric, got, want)
		}
	}
	if log := r.log(); strings.Count(log, `"detail":"the secret has more than the 72 bytes that BCrypt compares"`) != 1 || strings.Contains(log, "long") {
		t.Errorf("not exactly the long secret is explained:\n%s", log)
	}
}

// TestAdmin: probes and metrics are on the admin listener only, and nothing secret is logged.
func TestAdmin(t *testing.T) {
	t.Parallel()
	r := start(t, "--clients-file", clientsFile(t), "--log-level", "debug")
	token, _ := askToken(t, r, demoForm)
	for _, wrong := range []string{"wrong-passw0rd", "s3cret%00s3cret"} {
		if status, _ := fetch(t, "POST", r.api+"/oauth2/token", "grant_type=client_credentials&client_id=demo&client_secret="+wrong); status != http.StatusUnauthorized {
			t.Errorf("%s: %d", wrong, status)
		}
	}
	fetch(t, "POST", r.api+"/oauth2/token?client_secret=in-the-qu3ry", demoForm)
	for _, path := range []string{"/livez", "/readyz", "/metrics"} {
		if status, _ := fetch(t, "GET", r.api+path, ""); status != http.StatusUnauthorized {
			t.Errorf("GET %s on the public listener: %d", path, status)
		}
		status, body := fetch(t, "GET", r.admin+path, "")
		if status != http.StatusOK {
			t.Errorf("GET %s: %d", path, status)
		}
		if want := `tokensvc_token_requests_total{method="client_secret_post",outcome="issued"} 1`; path == "/metrics" && !strings.Contains(string(body), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if _, stderr, err := command(t, "", "healthcheck", "--listen-admin", strings.TrimPrefix(r.admin, "http://")); err != nil {
		t.Errorf("healthcheck: %v %s", err, stderr)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if _, _, err := command(t, "", "healthcheck", "--listen-admin", "127.0.0.1:1"); cli.ExitCode(err) != 1 { // the port of this test may be in use again
		t.Errorf("healthcheck where nobody listens: %v", err)
	}
	for _, secret := range []string{token, "s3cret", "wrong-passw0rd", "in-the-qu3ry", clienttest.Hash[7:]} {
		if strings.Contains(r.log(), secret) {
			t.Errorf("the log repeats %q", secret)
		}
	}
	if got := strings.Count(r.log(), `"msg":"token request"`); got != 4 {
		t.Errorf("%d audit lines for 4 decisions:\n%s", got, r.log())
	}
}

// TestBadValues: unusable values are refused at start, with the name of the setting. TestContradictions has settings
// that contradict each other.
func TestBadValues(t *testing.T) {
	t.Parallel()
	file := clientsFile(t)
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"DSN file missing":     {[]string{"--database-dsn-file", file + "x"}, []string{"--database-dsn-file"}},
		"no URL":               {[]string{"--clients-file", file, "--public-url", "tokens.test"}, []string{"--public-url"}},
		"fraction of a second": {[]string{"--clients-file", file, "--token-lifetime", "1500ms"}, []string{"--token-lifetime"}},
		"assertions of a day":  {[]string{"--clients-file", file, "--assertion-lifetime", "24h"}, []string{"--assertion-lifetime"}},
		"no lifetime":          {[]string{"--clients-file", file, "--token-lifetime", "0s"}, []string{"--token-lifetime"}},
		"bad proxy":            {[]string{"--clients-file", file, "--trusted-proxy", "proxy"}, []string{"--trusted-proxy"}},
		"negative time":        {[]string{"--clients-file", file, "--failure-refill=-1s"}, []string{"--failure-refill"}},
		"origin with a path":   {[]string{"--clients-file", file, "--cors-origin", "https://console.example/"}, []string{"--cors-origin", "https://console.example/"}},
		"all origins":          {[]string{"--clients-file", file, "--cors-origin", "*"}, []string{"--cors-origin"}},
		"no connections":       {[]string{"--database-dsn", "postgres://x", "--database-max-connections", "0"}, []string{"--database-max-connections"}},
		"unknown flag":         {[]string{"--clients-fil", file}, []string{"--clients-fil"}},
		"unknown log level":    {[]string{"--clients-file", file, "--log-level", "loud"}, []string{"--log-level"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, stderr, err := command(t, "", tc.args...)
			if code := cli.ExitCode(err); code != 2 {
				t.Errorf("exit code %d (%v), want 2", code, err)
			}
			for _, setting := range tc.want {
				if !strings.Contains(stderr, setting) {
					t.Errorf("%q does not name %s", stderr, setting)
				}
			}
		})
	}
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() }) // after the parallel subtests
	file := clientsFile(t)
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"no such clients file": {[]string{"--clients-file", file + "x"}, []string{"--clients-file", file + "x"}},
		"bad clients file":     {[]string{"--clients-file", tempFile(t, "c.yaml", "clients: [{client_id: a}]")}, []string{"clients[0].client_secret"}},
		"bad DSN":              {[]string{"--database-dsn", "postgres://u:pa55@h:port/d"}, []string{"--database-dsn"}},
		"no such key":          {[]string{"--clients-file", file, "--signing-key", file + "x"}, []string{"--signing-key", file + "x"}},
		"file without a key":   {[]string{"--clients-file", file, "--signing-key", file}, []string{"--signing-key", file}},
		"busy port":            {[]string{"--clients-file", file, "--listen-http", busy.Addr().String()}, []string{"--listen-http", busy.Addr().String()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, stderr, err := command(t, "", append([]string{"--listen-admin", "127.0.0.1:0"}, tc.args...)...)
			if code := cli.ExitCode(err); code != 1 && code != 2 || err == nil {
				t.Errorf("exit code %d (%v)", code, err)
			}
			for _, text := range tc.want {
				if !strings.Contains(stderr, text) {
					t.Errorf("%q does not name %s", stderr, text)
				}
			}
			if strings.Contains(stderr, "pa55") {
				t.Errorf("%q repeats the password", stderr)
			}
		})
	}
}

// TestEnvironment: settings come from the environment too, and the command line goes first.
func TestEnvironment(t *testing.T) {
	t.Setenv("TOKENSVC_CLIENTS_FILE", clientsFile(t))
	t.Setenv("TOKENSVC_TOKEN_LIFETIME", "1m")
	t.Setenv("TOKENSVC_ISSUER", "from the environment")
	r := start(t, "--token-lifetime", "2m")
	token, answer := askToken(t, r, demoForm)
	if _, claims := verified(t, r, token); claims["iss"] != "from the environment" || answer["expires_in"] != 120.0 {
		t.Errorf("claims %v, answer %v", claims, answer)
	}
}

// TestDatabaseDown: without its database the service starts, is not ready, and says 503, not 401.
func TestDatabaseDown(t *testing.T) {
	t.Parallel()
	r := start(t, "--database-dsn", "postgres://u:p@127.0.0.1:1/d", "--database-timeout", "500ms") // where nobody listens
	if status, _ := fetch(t, "GET", r.admin+"/readyz", ""); status == http.StatusOK {
		t.Error("ready without the database")
	}
	if status, body := fetch(t, "POST", r.api+"/oauth2/token", demoForm); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, body)
	}
}

func TestHashSecret(t *testing.T) {
	t.Parallel()
	stdout, _, err := command(t, "new-s3cret\n", "hash-secret", "--client-id", "o'dd")
	if err != nil {
		t.Fatal(err)
	}
	hash, sql, _ := strings.Cut(stdout, "\n")
	if want := "UPDATE clients SET client_secret = '" + hash + "' WHERE client_id = 'o''dd';\n"; sql != want {
		t.Errorf("SQL %q, want %q", sql, want)
	}
	next, _, err := command(t, "new-s3cret\n", "hash-secret", "--client-id", "demo", "--next")
	if err != nil || !strings.Contains(next, "\nUPDATE clients SET client_secret_next = '{bcrypt}$2a$10$") {
		t.Errorf("%q, %v", next, err)
	}
	r := start(t, "--clients-file", tempFile(t, "clients.yaml", strings.ReplaceAll(demoClients, "HASH", hash)))
	askToken(t, r, strings.Replace(demoForm, "s3cret", "new-s3cret", 1))
	for _, bad := range []string{"", "\n", strings.Repeat("x", 73), "a\x00b"} {
		if _, _, err := command(t, bad, "hash-secret"); cli.ExitCode(err) == 0 {
			t.Errorf("%q is hashed", bad)
		}
	}
}

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	if stdout, _, err := command(t, "", "version"); err != nil || !strings.HasPrefix(stdout, "tokensvc ") {
		t.Errorf("version: %q, %v", stdout, err)
	}
	stdout, _, err := command(t, "", "serve", "--help", "all")
	if cli.ExitCode(err) != 0 {
		t.Errorf("help: %v", err)
	}
	for _, want := range []string{"--clients-file", "TOKENSVC_CLIENTS_FILE", "--database-dsn-file", "TOKENSVC_DATABASE_DSN_FILE", "--jwks-max-age"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("help lacks %s", want)
		}
	}
	for _, name := range []string{"serve", "healthcheck", "token", "credential", "keys", "hash-secret"} {
		stdout, _, err := command(t, "", name, "--help")
		if cli.ExitCode(err) != 0 || !regexp.MustCompile(`(?m)^    .*\btokensvc\b`).MatchString(stdout) {
			t.Errorf("help of %s has no example (%v):\n%s", name, err, stdout)
		}
	}
}

// TestSignals: SIGHUP reads the clients again, SIGUSR1 makes a new key. Services of other tests get these signals too,
// which does not disturb them.
func TestSignals(t *testing.T) {
	t.Parallel()
	r := start(t, "--signing-key=", "--clients-file", clientsFile(t))
	for _, tc := range []struct {
		signal syscall.Signal
		done   func() bool
	}{
		{syscall.SIGHUP, func() bool { return strings.Count(r.log(), "clients loaded") > 1 }},
		{syscall.SIGUSR1, func() bool {
			_, body := fetch(t, "GET", r.api+"/oauth2/jwks", "")
			return strings.Count(string(body), `"kid"`) > 1
		}},
	} {
		if err := syscall.Kill(os.Getpid(), tc.signal); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, fmt.Sprintf("%v has an effect", tc.signal), tc.done)
	}
}

// TestAdminHosts: the admin listener answers for no host name that is not allowed.
func TestAdminHosts(t *testing.T) {
	t.Parallel()
	r := start(t, "--clients-file", clientsFile(t), "--allowed-hosts", "tokens.example", "--profiles")
	for host, want := range map[string]int{"": 200, "localhost": 200, "tokens.example:9001": 200, "evil.example": 403} {
		for _, path := range []string{"/metrics", "/readyz", "/debug/pprof/cmdline"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.admin+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s of %q: %s, want %d", path, host, resp.Status, want)
			}
		}
	}
}

// TestStartLine: the first line of the log has the version, and the settings that differ from their defaults.
func TestStartLine(t *testing.T) {
	t.Parallel()
	r := start(t, "--clients-file="+clientsFile(t), "--token-lifetime=60s", "--jwks-max-age=300s", "--log-format=json")
	waittest.Until(t, "the first lines are written", func() bool { return strings.Contains(r.log(), "\n") })
	first, _, _ := strings.Cut(r.log(), "\n")
	for _, part := range []string{`"msg":"starting"`, `"version":"` + service.Version() + `"`, `"token-lifetime":"1m0s"`, `"public-url":"http://tokens.test"`} {
		if !strings.Contains(first, part) {
			t.Errorf("%s\nlacks %s", first, part)
		}
	}
	if strings.Contains(first, "jwks-max-age") {
		t.Errorf("%s\nhas a default", first)
	}
}
