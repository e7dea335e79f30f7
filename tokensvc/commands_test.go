package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/certtest"
	"tidings.example/shared/cli"
	"tidings.example/shared/waittest"
	"tidings.example/tokensvc/internal/keyring"
)

// metric returns a line of the metrics, without its name.
func (r *running) metric(t *testing.T, name string) string {
	t.Helper()
	_, body := fetch(t, "GET", r.admin+"/metrics", "")
	for line := range strings.SplitSeq(string(body), "\n") {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return rest
		}
	}
	return ""
}

func (r *running) source(t *testing.T, secret string) []string {
	t.Helper()
	return []string{"--token-url", r.api + "/oauth2/token", "--client-id", "demo", "--client-secret-file", tempFile(t, "secret", secret)}
}

// execCredentialOf runs the plugin and reads what kubectl would read.
func execCredentialOf(t *testing.T, args []string) execCredential {
	t.Helper()
	stdout, stderr, err := command(t, "", append([]string{"credential"}, args...)...)
	if err != nil {
		t.Fatalf("%v %s", err, stderr)
	}
	var got execCredential
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCredential(t *testing.T) {
	t.Parallel()
	key := t.TempDir()
	if _, stderr, err := command(t, "", "keys", "rotate", "--signing-key", key); err != nil {
		t.Fatal(stderr)
	}
	r := start(t, "--clients-file", clientsFile(t), "--signing-key", key)
	cache := t.TempDir()
	patient := []string{"--cache-dir", cache, "--timeout", "4m"} // which a busy machine does not exceed
	args := append(r.source(t, "s3cret\n"), patient...)
	begin := time.Now()
	first := execCredentialOf(t, args)
	took := time.Since(begin)
	_, claims := verified(t, r, first.Status.Token)
	exp, _ := claims["exp"].(float64)
	early := time.Unix(int64(exp), 0).Sub(first.Status.Expiration)
	if first.APIVersion != "client.authentication.k8s.io/v1" || first.Kind != "ExecCredential" || early < 9*time.Second || early > 11*time.Second+took {
		t.Errorf("%+v, %v before the end", first, early)
	}

	t.Run("calls at the same time", func(t *testing.T) {
		for i := range 8 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				if diff := cmp.Diff(first, execCredentialOf(t, args)); diff != "" {
					t.Errorf("kept token (-want +got):\n%s", diff)
				}
			})
		}
	})
	if got := r.metric(t, `tokensvc_token_requests_total{method="client_secret_post",outcome="issued"}`); got != "1" {
		t.Errorf("%s tokens were issued for 9 calls", got)
	}

	files, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("cache holds %v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(files[0], []byte(`{"access_token": "half`), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := execCredentialOf(t, args); again.Status.Token == first.Status.Token || again.Status.Token == "" {
		t.Error("a damaged cache gives no new token")
	}

	other := start(t, "--clients-file", clientsFile(t)) // with a key of its own
	moved := append(other.source(t, "s3cret"), patient...)
	stale := execCredentialOf(t, moved)
	content := fmt.Sprintf(`{"access_token": %q, "expires": %q}`, first.Status.Token, time.Now().Add(time.Hour).Format(time.RFC3339))
	newest, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range newest {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fresh := execCredentialOf(t, moved)
	if fresh.Status.Token == first.Status.Token || fresh.Status.Token == stale.Status.Token {
		t.Error("a token whose key is not published any more is used")
	}
}

func TestCredentialErrors(t *testing.T) {
	t.Parallel()
	r := start(t, "--clients-file", clientsFile(t))
	for name, tc := range map[string]struct {
		url, secret string
		want        []string
	}{
		"wrong secret":      {r.api + "/oauth2/token", "wr0ng", []string{"invalid_client", `"demo"`}},
		"nobody there":      {"http://127.0.0.1:1/oauth2/token", "s3cret", []string{"--token-url", "127.0.0.1:1"}},
		"no token endpoint": {r.api + "/oauth2/jwks", "s3cret", []string{"405", "/oauth2/jwks"}},
		"no URL":            {"::", "s3cret", []string{"--token-url"}},
		"no scheme":         {"127.0.0.1:9000/oauth2/token", "s3cret", []string{"--token-url", "such as http://"}},
		"empty secret":      {r.api + "/oauth2/token", " \n", []string{"--client-secret-file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(r.source(t, tc.secret), "--cache-dir", t.TempDir())
			args[1] = tc.url
			stdout, stderr, err := command(t, "", append([]string{"credential"}, args...)...)
			if err == nil || stdout != "" || strings.Contains(stderr, "wr0ng") {
				t.Errorf("error %v, stdout %q, stderr %q", err, stdout, stderr)
			}
			for _, want := range tc.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q does not name %s", stderr, want)
				}
			}
		})
	}
}

// TestCredentialTimeout: a call takes at most --timeout, even if the endpoint does not answer or another call holds the
// lock. A cached token is used if the keys cannot be fetched in time.
func TestCredentialTimeout(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections, and nobody answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	cache, secret := t.TempDir(), tempFile(t, "secret", "s3cret")
	args := []string{"credential", "--token-url", "http://" + silent.Addr().String() + "/oauth2/token", "--client-id", "demo",
		"--client-secret-file", secret, "--cache-dir", cache, "--timeout", "200ms"}
	if _, stderr, err := command(t, "", args...); cli.ExitCode(err) != 1 || !strings.Contains(stderr, "--timeout") {
		t.Errorf("a silent endpoint: %v %s", err, stderr)
	}
	files, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("cache holds %v, %v", files, err)
	}
	content := fmt.Sprintf(`{"access_token": "kept", "expires": %q}`, time.Now().Add(time.Hour).Format(time.RFC3339))
	if err := os.WriteFile(files[0], []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := execCredentialOf(t, args[1:]); got.Status.Token != "kept" {
		t.Errorf("token %q instead of the one that was kept", got.Status.Token)
	}
	other, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := command(t, "", args...); cli.ExitCode(err) != 1 || !strings.Contains(stderr, "other calls") {
		t.Errorf("a call that waits for another: %v %s", err, stderr)
	}
	if _, stderr, err := command(t, "", append(args, "--timeout", "0s")...); cli.ExitCode(err) != 2 || !strings.Contains(stderr, "--timeout") {
		t.Errorf("no time at all: %v %s", err, stderr)
	}
}

func TestTokenCommands(t *testing.T) {
	t.Parallel()
	r := start(t, "--clients-file", clientsFile(t))
	stdout, stderr, err := command(t, "", append([]string{"token", "fetch"}, r.source(t, "s3cret")...)...)
	if err != nil {
		t.Fatal(stderr)
	}
	token := strings.TrimSpace(stdout)
	verified(t, r, token)
	tampered := token[:len(token)-8] + "AAAAAAAA"
	elsewhere := start(t, "--clients-file", clientsFile(t))
	for name, tc := range map[string]struct {
		input string
		args  []string
		want  []string // in the output; without "would accept" an error is expected
	}{
		"good":           {token, nil, []string{`"sub": "demo"`, `"alg": "RS256"`, "would accept"}},
		"with Bearer":    {"Bearer " + token + "\n", []string{"--audience", "demo"}, []string{"would accept"}},
		"other audience": {token, []string{"--audience", "events"}, []string{"other audience", "events", "demo"}},
		"other issuer":   {token, []string{"--issuer", "https://issuer.example"}, []string{"other issuer", "https://issuer.example", "http://tokens.test"}},
		"other key":      {token, []string{"--jwks-url", elsewhere.api + "/oauth2/jwks"}, []string{"key unknown", "restarted"}},
		"tampered":       {tampered, nil, []string{"signature wrong"}},
		"no token":       {"hello", nil, []string{"no three parts"}},
		"no base64":      {"a.b%.c", nil, []string{"base64url"}},
		"no JSON":        {"YQ.YQ.YQ", nil, []string{"not JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"token", "inspect", "--jwks-url", r.api + "/oauth2/jwks"}
			stdout, stderr, err := command(t, tc.input, append(args, tc.args...)...)
			good := strings.Contains(strings.Join(tc.want, ""), "would accept")
			if (err == nil) != good {
				t.Errorf("error %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(stdout+stderr, want) {
					t.Errorf("%q lacks %s", stdout+stderr, want)
				}
			}
		})
	}
}

// begins returns when the newest key in a directory begins to sign: after some seconds, the lead and what a file takes
// to arrive.
func begins(t *testing.T, dir string) time.Time {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.pem"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no keys in %s: %v", dir, err)
	}
	from, err := time.Parse(keyring.TimeLayout, strings.TrimSuffix(filepath.Base(files[len(files)-1]), ".pem"))
	if err != nil {
		t.Fatal(err)
	}
	return from
}

// TestKeyCommands rotates the keys of a running service.
func TestKeyCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := []string{"--signing-key", dir, "--jwks-max-age", "1s", "--token-lifetime", "1h"}
	states := func(args ...string) (got []string) {
		stdout, stderr, err := command(t, "", append(append([]string{"keys"}, args...), settings...)...)
		if err != nil {
			t.Fatal(stderr)
		}
		for _, line := range strings.Split(strings.TrimSpace(stdout), "\n")[1:] {
			got = append(got, strings.Fields(line)[1])
		}
		return got
	}
	if diff := cmp.Diff([]string{"signing"}, states("rotate")); diff != "" {
		t.Errorf("first key (-want +got):\n%s", diff)
	}
	r := start(t, append(settings, "--clients-file", clientsFile(t))...)
	token, _ := askToken(t, r, demoForm)
	before, _ := verified(t, r, token)
	states("rotate") // its key signs already when it is shown, if the machine is busy for seconds
	<-time.After(time.Until(begins(t, dir)))
	waittest.Until(t, "the second key signs", func() bool {
		token, _ := askToken(t, r, demoForm)
		after, _ := verified(t, r, token)
		return after["kid"] != before["kid"]
	})
	if diff := cmp.Diff([]string{"retiring", "signing"}, states("inspect")); diff != "" {
		t.Errorf("after the change (-want +got):\n%s", diff)
	}
	old := time.Now().Add(-24 * time.Hour).UTC().Format(keyring.TimeLayout)
	files, err := filepath.Glob(filepath.Join(dir, "*.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files { // as if the first rotation were a day ago
		name := old
		if i == 1 {
			name = time.Now().Add(-12 * time.Hour).UTC().Format(keyring.TimeLayout)
		}
		if err := os.Rename(file, filepath.Join(dir, name+".pem")); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"gone", "signing"}, states("inspect")); diff != "" {
		t.Errorf("a day later (-want +got):\n%s", diff)
	}
	settings[3] = "1h" // the next key stays pending however long this machine takes
	if diff := cmp.Diff([]string{"signing", "pending"}, states("rotate")); diff != "" {
		t.Errorf("after another rotation (-want +got):\n%s", diff)
	}
	for _, path := range []string{filepath.Join(dir, "none"), tempFile(t, "key.pem", "x")} {
		if _, _, err := command(t, "", "keys", "rotate", "--signing-key", path); cli.ExitCode(err) != 1 {
			t.Errorf("rotate in %s: %v", path, err)
		}
	}
}

// TestReplicas: two services with one directory of keys are one issuer. Each accepts the other's tokens, before and
// after a rotation.
func TestReplicas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := []string{"--signing-key", dir, "--jwks-max-age", "1s"}
	rotate := func() {
		if _, stderr, err := command(t, "", append([]string{"keys", "rotate"}, settings...)...); err != nil {
			t.Fatal(stderr)
		}
	}
	rotate()
	args := append(settings, "--clients-file", clientsFile(t))
	replicas := []*running{start(t, args...), start(t, args...)}
	both := func() (kid any) {
		for i, r := range replicas {
			token, _ := askToken(t, r, demoForm)
			header, _ := verified(t, replicas[1-i], token)
			kid = header["kid"]
		}
		return kid
	}
	before := both()
	rotate()
	for from := begins(t, dir); time.Now().Before(from); <-time.After(50 * time.Millisecond) {
		both()
	}
	waittest.Until(t, "the second key signs", func() bool { return both() != before })
}

// TestHTTPS: the service with a certificate, and a client that trusts its authority and no other.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certtest.Write(t, dir, "127.0.0.1")
	r := start(t, "--clients-file", clientsFile(t), "--listen-https", "127.0.0.1:0",
		"--tls-cert-file", filepath.Join(dir, "tls.crt"), "--tls-key-file", filepath.Join(dir, "tls.key"))
	args := append([]string{"token", "fetch", "--ca-file", filepath.Join(dir, "ca.crt")}, r.source(t, "s3cret")...)
	args[5] = r.https + "/oauth2/token"
	if _, stderr, err := command(t, "", args...); err != nil {
		t.Error(stderr)
	}
	if _, stderr, err := command(t, "", append(args[:2:2], args[4:]...)...); err == nil || !strings.Contains(stderr, "certificate") {
		t.Errorf("without --ca-file: %v %s", err, stderr)
	}
	for _, file := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "tls.key")} {
		args[3] = file
		if _, stderr, err := command(t, "", args...); cli.ExitCode(err) != 2 || !strings.Contains(stderr, "--ca-file") {
			t.Errorf("--ca-file %s: %v %s", file, err, stderr)
		}
	}
}
