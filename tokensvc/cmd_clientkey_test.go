package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidings.example/shared/cli"
	"tidings.example/shared/waittest"
	"tidings.example/tokensvc/internal/client/clienttest"
)

// keyedClients is a clients file of "demo" with the key set that a command printed.
func keyedClients(t testing.TB, jwks string) string {
	t.Helper()
	return tempFile(t, "clients.yaml", "clients:\n- {client_id: demo, client_name: Demo, scope: read, jwks: "+strings.TrimSpace(jwks)+"}\n")
}

// newClientKey makes a key, and returns its file and the printed key set.
func newClientKey(t testing.TB, name string, args ...string) (file, jwks string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), name)
	std, read := files(t, "")
	if err := run(t.Context(), append([]string{"client-key", "new", file}, args...), std); err != nil {
		t.Fatal(err)
	}
	jwks, _ = read()
	return file, jwks
}

// TestClientKey: a client authenticates with the key that the command made, by every algorithm and by both commands
// that fetch tokens, and what they send is good once.
func TestClientKey(t *testing.T) {
	t.Parallel()
	for _, alg := range []string{"ES256", "Ed25519", "EdDSA", "RS256"} {
		t.Run(alg, func(t *testing.T) {
			t.Parallel()
			key, jwks := newClientKey(t, "demo.pem", "--algorithm", alg)
			r := start(t, "--clients-file", keyedClients(t, jwks), "--private-key-jwt", "--issuer", "https://issuer.example")
			args := []string{"--token-url", r.api + "/oauth2/token", "--client-id", "demo", "--client-key-file", key, "--assertion-audience", "https://issuer.example"}
			stdout, stderr, err := command(t, "", append([]string{"token", "fetch"}, args...)...)
			if err != nil {
				t.Fatal(stderr)
			}
			if _, claims := verified(t, r, strings.TrimSpace(stdout)); claims["sub"] != "demo" {
				t.Errorf("claims %v", claims)
			}
			if got := execCredentialOf(t, append(args, "--cache-dir", t.TempDir())); got.Status.Token == "" {
				t.Error("no credential for kubectl")
			}
			if got := r.metric(t, `tokensvc_token_requests_total{method="private_key_jwt",outcome="issued"}`); got != "2" {
				t.Errorf("%s tokens counted, want 2", got)
			}
			if got := r.metric(t, "tokensvc_assertions_remembered"); got != "2" {
				t.Errorf("%s assertions remembered, want 2", got)
			}
		})
	}
}

// TestClientKeyAfterRestart: an assertion that was used is refused after a restart, which waits until a new one is
// good.
func TestClientKeyAfterRestart(t *testing.T) {
	t.Parallel()
	file, jwks := newClientKey(t, "demo.pem")
	key, err := readClientKey(file)
	if err != nil {
		t.Fatal(err)
	}
	clients := keyedClients(t, jwks)
	var used []string
	for range 3 {
		r := start(t, "--clients-file", clients, "--private-key-jwt", "--issuer", "https://issuer.example")
		fresh, err := key.Assertion("demo", "https://issuer.example", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		used = append(used, fresh)
		for i, assertion := range used {
			want := http.StatusUnauthorized
			if i == len(used)-1 {
				want = http.StatusOK
			}
			form := url.Values{
				"grant_type": {"client_credentials"}, "client_assertion": {assertion},
				"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
			}
			if status, body := fetch(t, "POST", r.api+"/oauth2/token", form.Encode()); status != want {
				t.Errorf("assertion %d of %d: %d %s, want %d", i+1, len(used), status, body, want)
			}
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestClientKeyRotation: replace a key of a running service by the commands. No good request is refused meanwhile.
func TestClientKeyRotation(t *testing.T) {
	t.Parallel()
	first, jwks := newClientKey(t, "first.pem")
	second, onlySecond := newClientKey(t, "second.pem", "--algorithm", "EdDSA")
	clients := keyedClients(t, jwks)
	r := start(t, "--clients-file", clients, "--private-key-jwt", "--issuer", "https://issuer.example")
	try := func(key string) error {
		_, _, err := command(t, "", "token", "fetch", "--token-url", r.api+"/oauth2/token", "--client-id", "demo",
			"--client-key-file", key, "--assertion-audience", "https://issuer.example")
		return err
	}
	register := func(jwks string) {
		t.Helper()
		text, err := os.ReadFile(keyedClients(t, jwks))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(clients, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if try(first) != nil || try(second) == nil {
		t.Fatal("before the rotation, not exactly the first key is good")
	}
	both, _, err := command(t, "", "client-key", "show", first, second)
	if err != nil {
		t.Fatal(err)
	}
	register(both)
	waittest.Becomes(t, func() error { // the file is read again within a second
		if err := try(first); err != nil {
			t.Fatalf("the first key, while both are registered: %v", err)
		}
		return try(second)
	})
	if err := try(first); err != nil {
		t.Fatalf("the first key, while both are registered: %v", err)
	}
	register(onlySecond)
	waittest.Until(t, "the first key is refused", func() bool {
		if err := try(second); err != nil {
			t.Fatalf("the second key: %v", err)
		}
		return try(first) != nil
	})
	if err := try(second); err != nil {
		t.Errorf("the second key, alone: %v", err)
	}
}

// TestClientKeyCommands: what the commands print and refuse.
func TestClientKeyCommands(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key.pem")
	stdout, stderr, err := command(t, "", "client-key", "new", file, "--client-id", "o'brien")
	if err != nil {
		t.Fatal(stderr)
	}
	set, sql, _ := strings.Cut(stdout, "\n")
	if !json.Valid([]byte(set)) || sql != "UPDATE clients SET jwks = '"+set+"' WHERE client_id = 'o''brien';\n" {
		t.Errorf("printed %s", stdout)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key can be read by others: %v, %v", info.Mode(), err)
	}
	if shown, _, err := command(t, "", "client-key", "show", file, "--pem", "--client-id", "demo"); err != nil ||
		!strings.HasPrefix(shown, "-----BEGIN PUBLIC KEY-----\n") || !strings.Contains(shown, "UPDATE clients SET public_keys = '-----BEGIN") {
		t.Errorf("PEM: %v %s", err, shown)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a file that exists": {[]string{"new", file}, "exists"},
		"no such file":       {[]string{"show", file + "x"}, "client-key new"},
		"no key":             {[]string{"show", tempFile(t, "x.pem", "x")}, "no private key in PEM"},
		"three keys":         {[]string{"show", file, file, file}, "at most 2"},
		"HS256":              {[]string{"new", file + "2", "--algorithm", "HS256"}, "--algorithm"},
		"public key":         {[]string{"show", tempFile(t, "p.pem", clienttest.PEM)}, "PRIVATE KEY belongs"},
	} {
		if _, stderr, err := command(t, "", append([]string{"client-key"}, tc.args...)...); cli.ExitCode(err) != 2 || !strings.Contains(stderr, tc.want) {
			t.Errorf("%s: %v %s", name, err, stderr)
		}
	}
}

// TestFetchSettings: settings of a token source that contradict each other.
func TestFetchSettings(t *testing.T) {
	t.Parallel()
	file := tempFile(t, "secret", "s3cret")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--client-id", "demo"}, "exactly one must be set, 0 are"},
		{[]string{"--client-id", "demo", "--client-secret-file", file, "--assertion-file", file}, "exactly one must be set, 2 are"},
		{[]string{"--client-secret-file", file}, "--client-id is missing"},
		{[]string{"--client-key-file", file}, "--client-id is missing"},
		{[]string{"--client-id", "demo", "--client-secret-file", file, "--assertion-audience", "x"}, "no effect without --client-key-file"},
		{[]string{"--client-id", "demo", "--client-key-file", file, "--token-url", "http://127.0.0.1:1/token"}, "--assertion-audience must be set"},
		{[]string{"--client-id", "demo", "--client-key-file", file}, "no private key in PEM"},
	} {
		args := append([]string{"token", "fetch", "--token-url", "http://127.0.0.1:1/oauth2/token"}, tc.args...)
		if _, stderr, err := command(t, "", args...); cli.ExitCode(err) != 2 || !strings.Contains(stderr, tc.want) {
			t.Errorf("%v: %v %s", tc.args, err, stderr)
		}
	}
}
