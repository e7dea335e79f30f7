package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidings.example/shared/waittest"
)

// TestNothingLeaks sends hostile values in every part of a request. No answer
// reveals internals or can be taken for a web page, and no log line is forged
// or contains a token.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	i, dir := newRotating(t), t.TempDir()
	p := start(t, dir, &issuer{Server: i.Server, key: i.keys["k1"]}, "--jwks-url="+i.URL, "--audit=metadata", "--log-level=debug")
	const forged = `{"level":"INFO","msg":"forged"}`
	const script = `<script>alert(1)</script>`
	badKey := i.signed("k1", `{"alg":"RS256","kid":"x\n`+strings.ReplaceAll(forged, `"`, `\"`)+`"}`, i.payload())
	unknown := i.signed("k1", `{"alg":"RS256","kid":"<script>"}`, i.payload("sub", `"<script>"`))
	strange := i.signed("k1", goodHeader, i.payload("sub", `"<script>"`, "client_id", `"<b>"`))
	event := strings.Replace(newEvent("x"), `"type"`, `"note":"`+script+`","type"`, 1)
	for _, c := range []struct{ method, path, body, token string }{
		{"GET", eventsPath, "", badKey}, {"GET", eventsPath, "", unknown}, {"GET", eventsPath, "", strange}, {"GET", eventsPath, "", ""},
		{"POST", eventsPath, event, p.token}, {"GET", eventsPath + "/x", "", p.token},
		{"GET", eventsPath + "/%0A" + strings.ReplaceAll(forged, `"`, "%22"), "", p.token},
		{"GET", "/%3Cscript%3E?secret-query=1", "", p.token}, {"GET", eventsPath + "/..%2F..%2Fetc%2Fpasswd", "", p.token},
		{"POST", eventsPath, `{"kind":"<script>","apiVersion":"<script>"}`, p.token}, {"POST", eventsPath, `\x00`, p.token},
		{"POST", eventsPath, strings.Replace(event, `"name":"x"`, `"name":"<script>"`, 1), p.token},
		{"GET", eventsPath + "?fieldSelector=%3Cscript%3E&labelSelector=%00", "", p.token}, {"GET", eventsPath + "?continue=%00", "", p.token},
		{"GET", eventsPath + "?resourceVersion=%3Cscript%3E&watch=1", "", p.token}, {"TRACE", eventsPath, "", p.token}, {"<A>", "/", "", p.token},
		{"GET", "/version", "", ""}, {"GET", "/readyz?verbose", "", ""}, {"GET", "/openapi/v2", "", p.token}, {"GET", "/metrics", "", p.token},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url("--listen-http")+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Method = c.method
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		req.Header["User-Agent"] = []string{"a\tb" + script + forged}
		req.Header["X-Request-Id"] = []string{`"` + script}
		req.Header["Traceparent"] = []string{"00-" + script}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			if c.method == "<A>" { // refused by our side
				continue
			}
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		what := c.method + " " + c.path
		if resp.StatusCode >= 500 {
			t.Errorf("%s: %s %s", what, resp.Status, body)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Server": "", "X-Powered-By": ""} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", what, name, got)
			}
		}
		if kind := resp.Header.Get("Content-Type"); strings.Contains(kind, "html") || kind == "" {
			t.Errorf("%s: Content-Type %q", what, kind)
		}
		if !strings.HasPrefix(c.path, "/readyz") && !strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: no Content-Security-Policy", what)
		}
		for _, inside := range []string{dir, "goroutine", ".go:", "panic", "bbolt", "index.db", "secret-query", i.URL} {
			if strings.Contains(string(body), inside) {
				t.Errorf("%s: the answer has %q: %.300s", what, inside, body)
			}
		}
		if c.token != "" && strings.Contains(string(body), c.token) {
			t.Errorf("%s: the answer repeats the token", what)
		}
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{p.log, dir + "/audit.log"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var entry map[string]any
			if err := json.Unmarshal([]byte(line), &entry); err != nil || entry["msg"] == "forged" {
				t.Errorf("%s: %v: %s", file, err, line)
			}
		}
		for name, secret := range map[string]string{
			"a token": p.token, "a bad token": unknown, "a signature": badKey[strings.LastIndex(badKey, "."):], "a query": "secret-query", "a note": "alert(1)</script>\",\"type",
		} {
			if strings.Contains(string(data), secret) {
				t.Errorf("%s has %s", file, name)
			}
		}
	}
}

// TestWatchesEndWithTheirClients: a client that leaves ends its watch, although nothing
// is written to it.
func TestWatchesEndWithTheirClients(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), newIssuer(t), "--listen-https=127.0.0.1:0", "--tls-self-signed")
	plain := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(p.url("--listen-http"), "http://"))
	}
	secure := func(ctx context.Context) (net.Conn, error) {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // which offers no HTTP/2
		return dialer.DialContext(ctx, "tcp", strings.TrimPrefix(p.url("--listen-https"), "http://"))
	}
	for name, dial := range map[string]func(context.Context) (net.Conn, error){"HTTP": plain, "HTTPS": secure} {
		conns := make([]net.Conn, 50)
		for i := range conns {
			conn, err := dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			fmt.Fprintf(conn, "GET %s?watch=true&resourceVersion=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", eventsPath, p.token)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatal(resp, err)
			}
			conns[i] = conn
		}
		if n := metric(t, p.url("--listen-admin"), "eventsvc_watches"); n != "50" {
			t.Fatalf("%s: %s watches are open", name, n)
		}
		for _, conn := range conns {
			_ = conn.Close()
		}
		waittest.Until(t, name+": no watch is left", func() bool { return metric(t, p.url("--listen-admin"), "eventsvc_watches") == "0" })
	}
}

// TestKubernetesTokens: service account tokens of a cluster, which live for a
// day and have no client id, beside another issuer's.
func TestKubernetesTokens(t *testing.T) {
	t.Parallel()
	own, cluster := newRotating(t), newRotating(t)
	issuers := writeFile(t, "issuers.yaml", fmt.Sprintf(
		"- issuer: %s\n  jwksURL: %s/openid/v1/jwks\n  audiences: [https://events.example]\n  maxTokenLife: 24h\n", cluster.URL, cluster.URL))
	rules := writeFile(t, "policy.yaml", fmt.Sprintf(
		"bindings:\n- {role: 'events:write', namespaces: [default], subjects: [{issuer: '%s', clientID: 'system:serviceaccount:apps:reporter'}]}\n", cluster.URL))
	p := start(t, t.TempDir(), &issuer{Server: own.Server, key: own.keys["k1"]}, "--jwks-url="+own.URL, "--issuers-file="+issuers, "--policy-file="+rules)
	now := time.Now().Unix()
	account := func(changes ...string) string {
		return cluster.signed("k1", `{"alg":"RS256","kid":"k1"}`, cluster.payload(append([]string{
			"aud", `["https://events.example"]`, "sub", `"system:serviceaccount:apps:reporter"`,
			"iat", fmt.Sprint(now), "nbf", fmt.Sprint(now), "exp", fmt.Sprint(now + 86400), "jti", `"6c7f9a46-1ad6-4d9f-8a0e-3b5a3f0e6f5c"`,
			"kubernetes.io", `{"namespace":"apps","node":{"name":"n1","uid":"u"},"pod":{"name":"reporter-0","uid":"u"},"serviceaccount":{"name":"reporter","uid":"u"},"warnafter":1}`,
		}, changes...)...))
	}
	for name, c := range map[string]struct {
		token, method string
		want          int
	}{
		"creates where it may":        {account(), "POST", 201},
		"does not read":               {account(), "GET", 403},
		"another account":             {account("sub", `"system:serviceaccount:apps:other"`), "POST", 403},
		"for the API server":          {account("aud", `["https://kubernetes.default.svc"]`), "POST", 401},
		"for more than a day":         {account("exp", fmt.Sprint(now+86401)), "POST", 401},
		"a legacy one without expiry": {account("exp", ""), "POST", 401},
		"the name from elsewhere":     {own.signed("k1", goodHeader, own.payload("sub", `"system:serviceaccount:apps:reporter"`)), "POST", 403},
	} {
		p.token = c.token
		if code, object := p.do(c.method, eventsPath, newEvent("x")); code != c.want {
			t.Errorf("%s: %d %v, want %d", name, code, object, c.want)
		}
	}
}

// TestHangup: SIGHUP makes the running service read its policy file again. It
// ends nothing, and keeps the old policy if the file is bad.
func TestHangup(t *testing.T) {
	t.Parallel()
	i := newRotating(t)
	path := writeFile(t, "policy.yaml", "bindings: [{role: 'events:read', subjects: [{clientID: demo}]}]")
	p := start(t, t.TempDir(), &issuer{Server: i.Server, key: i.keys["k1"]}, "--jwks-url="+i.URL, "--policy-file="+path)
	token := i.token("k1", "demo", "")
	p.until(http.StatusOK, bearing(token))
	for _, step := range []struct {
		policy string
		want   int
	}{{"bindings: 7", http.StatusOK}, {"{}", http.StatusForbidden}, {"bindings: [{role: 'events:admin', subjects: [{clientID: demo}]}]", http.StatusOK}} {
		if err := os.WriteFile(path, []byte(step.policy), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		p.until(step.want, bearing(token))
	}
}
