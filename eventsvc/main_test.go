package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"tidings.example/shared/certtest"
	"tidings.example/shared/cli"
	"tidings.example/shared/pgtest"
	"tidings.example/shared/service"
	"tidings.example/shared/waittest"
)

// The tests wait more than they compute, so more of them run at a time than there are processors. The many command
// lines that they parse leave more garbage than anything else, and to collect it often would take as long as all the
// rest. The limit of memory of an import would be that of all tests beside it, and stay where two imports overlap.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // -parallel goes before
		panic(err)
	}
	debug.SetGCPercent(400)
	if err := os.Setenv("GOMEMLIMIT", "off"); err != nil {
		panic(err)
	}
	os.Exit(pgtest.Run(m.Run))
}

const eventsPath = "/apis/events.k8s.io/v1/namespaces/default/events"

// issuer signs tokens and publishes its key as any OAuth server does.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key := certtest.RSA(t)
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"keys":[{"kty":"RSA","use":"sig","alg":"RS256","kid":"k1","n":%q,"e":%q}]}`,
			encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes()))
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.URL, i.URL+"/jwks")
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token signs claims; nil stands for good ones.
func (i *issuer) token(t testing.TB, change func(claims map[string]any)) string {
	t.Helper()
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL, "sub": "demo", "client_id": "demo", "aud": "demo", "jti": rand.Text(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(55 * time.Minute).Unix(),
	}
	if change != nil {
		change(claims)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed := encode([]byte(`{"alg":"RS256","kid":"k1","typ":"JWT"}`)) + "." + encode(payload)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + encode(signature)
}

// process is a running eventsvc.
type process struct {
	t     testing.TB
	mu    sync.Mutex
	addrs map[string]string
	stop  func() error
	token string
	log   string // the file
}

// start runs the program on free ports until stop or the end of the test, and
// waits until it is ready.
func start(t testing.TB, dir string, i *issuer, args ...string) *process {
	t.Helper()
	p := launch(t, dir, i, args...)
	waittest.Until(t, "the service is ready", func() bool {
		return p.healthcheck(0) == nil
	})
	return p
}

// healthcheck asks the readiness probe.
func (p *process) healthcheck(wait time.Duration) error {
	return service.Healthcheck(p.t.Context(), strings.TrimPrefix(p.url("--listen-admin"), "http://"), wait)
}

// launch is start without the wait: the listeners are open.
func launch(t testing.TB, dir string, i *issuer, args ...string) *process {
	t.Helper()
	p := &process{t: t, addrs: map[string]string{}, token: i.token(t, nil)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	p.log = log.Name()
	args = append([]string{
		"--listen-http=127.0.0.1:0", "--listen-admin=127.0.0.1:0", "--data-dir=" + dir, "--issuer=" + i.URL,
	}, args...)
	go func() { done <- run(ctx, args, io.Discard, log, p.listening) }()
	p.stop = sync.OnceValue(func() error {
		cancel()
		err := waittest.Within(t, done)
		if t.Failed() {
			if b, readErr := os.ReadFile(log.Name()); readErr == nil {
				t.Logf("log:\n%s", b)
			}
		}
		return err
	})
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	waittest.Until(t, "the service listens", func() bool {
		select {
		case err := <-done:
			done <- err
			t.Fatalf("ended: %v", err)
		default:
		}
		return p.url("--listen-admin") != ""
	})
	return p
}

func (p *process) listening(setting string, addr net.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addrs[setting] = addr.String()
}

// url is where a listener is reached, "" before it is open.
func (p *process) url(setting string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.addrs[setting] == "" {
		return ""
	}
	return "http://" + p.addrs[setting]
}

// do sends a request to the API and returns the answer's code and body.
func (p *process) do(method, path, body string) (int, map[string]any) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url("--listen-http")+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(b, &object); err != nil {
		p.t.Fatalf("%v: %s", err, b)
	}
	return resp.StatusCode, object
}

func newEvent(name string) string {
	return `{"metadata":{"name":"` + name + `"},"eventTime":"2026-01-02T03:04:05.000006Z","reportingController":"example.com/ctl",` +
		`"reportingInstance":"ctl-1","action":"Do","reason":"Because","type":"Normal","regarding":{"namespace":"default"}}`
}

func TestServe(t *testing.T) {
	t.Parallel()
	i, dir := newIssuer(t), t.TempDir()
	p := start(t, dir, i, "--rules-file="+writeFile(t, "rules.yaml", "[{name: warnings, where: type=Warning, keep: 720h}]"), "--max-bytes=64MiB", "--history=1h")
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", eventsPath, newEvent("a"), 201},
		{"GET", eventsPath + "/a", "", 200},
		{"PATCH", eventsPath + "/a", `{"metadata":{"labels":{"x":"y"}}}`, 200},
		{"PUT", eventsPath + "/b", newEvent("b"), 201},
		{"GET", eventsPath, "", 200},
		{"DELETE", eventsPath + "/b", "", 200},
		{"GET", eventsPath + "/b", "", 404},
		{"GET", "/api/v1/events", "", 200},
	} {
		if code, object := p.do(c.method, c.path, c.body); code != c.want {
			t.Fatalf("%s %s: %d %v", c.method, c.path, code, object)
		}
	}
	_, list := p.do("GET", eventsPath, "")
	rv := list["metadata"].(map[string]any)["resourceVersion"].(string)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}

	// After a restart the events are there, and a watch goes on where it was.
	p = start(t, dir, i)
	if code, object := p.do("GET", eventsPath+"/a", ""); code != 200 {
		t.Fatal(code, object)
	}
	p.do("POST", eventsPath, newEvent("c"))
	req, err := http.NewRequestWithContext(t.Context(), "GET", p.url("--listen-http")+eventsPath+"?watch=1&resourceVersion="+rv, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"type":"ADDED"`) || !strings.Contains(lines.Text(), `"name":"c"`) {
		t.Fatalf("%s, %v", lines.Text(), lines.Err())
	}
	// A stop ends the watch cleanly.
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("%s, %v", lines.Text(), lines.Err())
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	i, stranger := newIssuer(t), newIssuer(t)
	p := start(t, t.TempDir(), i, "--audience=eventsvc", "--clock-skew=0s")
	audience := func(claims map[string]any) { claims["aud"] = []string{"x", "eventsvc"} }
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"good":           {i.token(t, audience), 200},
		"none":           {"", 401},
		"other audience": {i.token(t, nil), 401},
		"expired":        {i.token(t, func(m map[string]any) { audience(m); m["exp"] = time.Now().Unix() - 1 }), 401},
		"too long":       {i.token(t, func(m map[string]any) { audience(m); m["exp"] = time.Now().Add(2 * time.Hour).Unix() }), 401},
		"other issuer":   {i.token(t, func(m map[string]any) { audience(m); m["iss"] = "https://other.example" }), 401},
		"other key":      {stranger.token(t, func(m map[string]any) { audience(m); m["iss"] = i.URL }), 401},
		"garbage":        {"x.y.z", 401},
	} {
		p.token = c.token
		if code, object := p.do("GET", eventsPath, ""); code != c.want {
			t.Errorf("%s: %d %v", name, code, object)
		}
	}
}

// TestIssuerIsLate starts without an issuer: alive, not ready, 503; and ready
// once the issuer is there. After that the issuer may go away.
func TestIssuerIsLate(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	var up sync.Mutex // held: the issuer is down
	up.Lock()
	handler := i.Config.Handler
	i.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.TryLock() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		defer up.Unlock()
		handler.ServeHTTP(w, r)
	})
	p := &process{t: t, addrs: map[string]string{}, token: i.token(t, nil)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{
			"--listen-http=127.0.0.1:0", "--listen-admin=127.0.0.1:0", "--data-dir=" + t.TempDir(), "--issuer=" + i.URL, "--log-level=error",
		}, io.Discard, os.Stderr, p.listening)
	}()
	t.Cleanup(func() {
		cancel()
		if err := waittest.Within(t, done); err != nil {
			t.Error(err)
		}
	})
	waittest.Until(t, "the service is live", func() bool {
		resp, err := http.Get(p.url("--listen-admin") + "/livez")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	if err := p.healthcheck(0); err == nil {
		t.Error("ready without keys")
	}
	if code, object := p.do("GET", eventsPath, ""); code != http.StatusServiceUnavailable {
		t.Errorf("%d %v", code, object)
	}
	up.Unlock()
	waittest.Becomes(t, func() error { return p.healthcheck(waittest.Most) })
	i.Close()
	if code, object := p.do("POST", eventsPath, newEvent("a")); code != http.StatusCreated {
		t.Errorf("%d %v", code, object)
	}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, newIssuer(t), "--listen-https=127.0.0.1:0", "--tls-self-signed")
	pem, err := os.ReadFile(filepath.Join(dir, "tls", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(strings.Replace(p.url("--listen-https"), "http:", "https:", 1) + "/version")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Error(resp.Status, resp.Proto)
	}
}

// refused starts the program, which has to end with exit code 2, and returns what it prints.
func refused(t *testing.T, args []string) string {
	t.Helper()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stderr.Close() }()
	err = run(t.Context(), args, io.Discard, stderr, nil)
	if code := cli.ExitCode(err); code != 2 {
		t.Errorf("exit code %d: %v", code, err)
	}
	printed, err := os.ReadFile(stderr.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(printed)
}

// TestBadValues: a start refuses impossible values and names the setting. TestContradictions is about settings that
// contradict each other.
func TestBadValues(t *testing.T) {
	t.Parallel()
	issuer := "--issuer=http://127.0.0.1:1"
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"--issuer"}},
		{[]string{issuer, "--jwks-url=file:///x"}, []string{"--jwks-url"}},
		{[]string{issuer, "--data-dir="}, []string{"--data-dir"}},
		{[]string{issuer, "--retention=-1h"}, []string{"--retention"}},
		{[]string{issuer, "--rules-file=/nowhere/rules.yaml"}, []string{"--rules-file", "/nowhere/rules.yaml"}},
		{[]string{issuer, "--max-bytes=8GB"}, []string{"--max-bytes", "8GiB"}},
		{[]string{issuer, "--max-bytes=32MiB"}, []string{"--max-bytes", "64MiB"}},
		{[]string{issuer, "--max-requests=1"}, []string{"--max-requests"}},
		{[]string{issuer, "--store-max-staleness=10s"}, []string{"--store-max-staleness", "--store-dsn"}},
		{[]string{issuer, "--audit-max-bytes=4KiB"}, []string{"--audit-max-bytes", "8KiB"}},
		{[]string{issuer, "--observed-metrics=-1"}, []string{"--observed-metrics", "1000"}},
		{[]string{issuer, "--stop-delay=-1s"}, []string{"--stop-delay"}},
		{[]string{issuer, "--clock-skew=6m"}, []string{"--clock-skew", "5m"}},
		{[]string{issuer, "--create-rate=many"}, []string{"--create-rate", "RATE", "100:1000"}},
		{[]string{issuer, "--client-create-rate=NaN"}, []string{"--client-create-rate"}},
		{[]string{issuer, "--namespace-create-rate=5:0"}, []string{"--namespace-create-rate"}},
		{[]string{issuer, "--history=-1h"}, []string{"--history"}},
		{[]string{issuer, "--group-domain=Not A Domain"}, []string{"--group-domain"}},
		{[]string{issuer, "--no-such-flag"}, []string{"--no-such-flag"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			printed := refused(t, append([]string{"--listen-http=127.0.0.1:0", "--listen-admin=", "--data-dir=" + t.TempDir()}, c.args...))
			for _, want := range c.want {
				if !strings.Contains(printed, want) {
					t.Errorf("%s does not name %s", printed, want)
				}
			}
		})
	}
}

func TestUnusableDataDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), []string{"--issuer=http://127.0.0.1:1", "--data-dir=" + file}, io.Discard, stderr, nil)
	if cli.ExitCode(err) != 1 || !strings.Contains(err.Error(), "--data-dir") {
		t.Error(err)
	}
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), newIssuer(t))
	admin := strings.TrimPrefix(p.url("--listen-admin"), "http://")
	if err := run(t.Context(), []string{"healthcheck", "--listen-admin=" + admin}, io.Discard, os.Stderr, nil); err != nil {
		t.Error(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Where nobody listens: the address of a service that has stopped may be another's at once.
	if err := run(t.Context(), []string{"healthcheck", "--listen-admin=127.0.0.1:1"}, io.Discard, null, nil); cli.ExitCode(err) != 1 {
		t.Error(err)
	}
}

func TestPrints(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"version": "eventsvc ", "--help": "healthcheck", "serve --help": "--data-dir", "serve --help storage": "EVENTSVC_DATA_DIR"} {
		var out bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &out, os.Stderr, nil); cli.ExitCode(err) != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s", args, err, out.String())
		}
	}
}

// TestStartLine: the first line of the log has the version, and the settings that differ from their defaults.
func TestStartLine(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	p := start(t, t.TempDir(), i, "--retention=48h", "--max-watches=20000", "--log-format=json")
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	var line struct {
		Message, Version string
		Settings         map[string]string
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if err := json.Unmarshal(bytes.Replace(first, []byte(`"msg"`), []byte(`"message"`), 1), &line); err != nil {
		t.Fatalf("%s: %v", first, err)
	}
	_, usual := line.Settings["max-watches"]
	if line.Message != "starting" || line.Version != service.Version() || line.Settings["retention"] != "48h0m0s" || line.Settings["issuer"] != i.URL || usual {
		t.Errorf("the first line is %s", first)
	}
}
