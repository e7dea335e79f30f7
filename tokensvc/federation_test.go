package main

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidings.example/shared/certtest"
	"tidings.example/shared/cli"
	"tidings.example/shared/waittest"
)

// cluster signs service-account tokens as kube-apiserver does.
type cluster struct {
	name string
	keys map[string]*rsa.PrivateKey
}

func newCluster(t testing.TB, name string, kids ...string) *cluster {
	t.Helper()
	c := &cluster{name: name, keys: map[string]*rsa.PrivateKey{}}
	for _, kid := range kids {
		c.keys[kid] = certtest.RSA(t)
	}
	return c
}

// jwks is the document with some of the keys.
func (c *cluster) jwks(kids ...string) string {
	var keys []string
	for _, kid := range kids {
		n := base64.RawURLEncoding.EncodeToString(c.keys[kid].N.Bytes())
		keys = append(keys, fmt.Sprintf(`{"use":"sig","kty":"RSA","kid":%q,"alg":"RS256","n":%q,"e":"AQAB"}`, kid, n))
	}
	return `{"keys":[` + strings.Join(keys, ",") + `]}`
}

// token is a projected token of a service account, NAMESPACE:NAME.
func (c *cluster) token(kid, account, audience string) string {
	namespace, name, _ := strings.Cut(account, ":")
	now := time.Now().Unix()
	enc := base64.RawURLEncoding
	input := enc.EncodeToString(fmt.Appendf(nil, `{"alg":"RS256","kid":%q}`, kid)) + "." + enc.EncodeToString(fmt.Appendf(nil,
		`{"aud":[%q],"exp":%d,"iat":%d,"iss":%q,"jti":"6b0d3d1c-54b5-4f1e-9d6e-6d7d0d5f3b0e","kubernetes.io":{"namespace":%q,"node":{"name":"n1","uid":"u1"},`+
			`"pod":{"name":"p","uid":"u2"},"serviceaccount":{"name":%q,"uid":"u3"}},"nbf":%d,"sub":"system:serviceaccount:%s"}`,
		audience, now+900, now, c.name, namespace, name, now, account))
	sum := sha256.Sum256([]byte(input))
	signature, err := rsa.SignPKCS1v15(nil, c.keys[kid], crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return input + "." + enc.EncodeToString(signature)
}

const workloads = `clients:
- {client_id: "system:serviceaccount:shop:reporter", client_name: Reporter, scope: read, assertion_issuer: "https://cluster.example", audience: [eventsvc, audit]}
- {client_id: shop, client_name: Everything else in the shop, scope: read, assertion_issuer: "https://cluster.example", assertion_subject: "system:serviceaccount:shop:*"}
`

// startTrusting starts a service that trusts the cluster with the key k1, and returns the file of keys.
func startTrusting(t *testing.T, c *cluster, args ...string) (r *running, jwks string) {
	t.Helper()
	jwks = tempFile(t, "jwks.json", c.jwks("k1"))
	issuers := tempFile(t, "issuers.yaml", fmt.Sprintf("- {issuer: %q, jwksFile: %q}\n", c.name, jwks))
	args = append([]string{"--clients-file", tempFile(t, "clients.yaml", workloads), "--trusted-issuers-file", issuers}, args...)
	return start(t, args...), jwks
}

// TestFederation: the token that a workload has anyway gets it an access token, with both commands that fetch tokens.
// The file is read each time, because the kubelet replaces it.
func TestFederation(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "https://cluster.example", "k1")
	r, _ := startTrusting(t, c)
	projected := tempFile(t, "token", c.token("k1", "shop:reporter", "http://tokens.test")+"\n")
	fetchAs := func(args ...string) (map[string]any, string, error) {
		t.Helper()
		args = append([]string{"token", "fetch", "--token-url", r.api + "/oauth2/token", "--assertion-file", projected}, args...)
		stdout, stderr, err := command(t, "", args...)
		if err != nil {
			return nil, stderr, err
		}
		_, claims := verified(t, r, strings.TrimSpace(stdout))
		return claims, strings.TrimSpace(stdout), nil
	}
	claims, _, err := fetchAs()
	if err != nil || claims["sub"] != "system:serviceaccount:shop:reporter" || claims["client_id"] != nil {
		t.Errorf("the client by its subject: %v, %v", claims, err)
	}
	if got := execCredentialOf(t, []string{"--token-url", r.api + "/oauth2/token", "--assertion-file", projected, "--cache-dir", t.TempDir()}); got.Status.Token == "" {
		t.Error("no credential for kubectl")
	}
	if err := os.WriteFile(projected, []byte(c.token("k1", "shop:batch", "http://tokens.test")), 0o600); err != nil {
		t.Fatal(err)
	}
	if claims, stderr, err := fetchAs(); err != nil || claims["client_id"] != "shop" {
		t.Errorf("one of a namespace, without its client_id: %v, %v %s", claims, err, stderr)
	}
	claims, token, err := fetchAs("--client-id", "shop")
	if err != nil || claims["sub"] != "system:serviceaccount:shop:batch" || claims["client_id"] != "shop" || claims["aud"] != "shop" {
		t.Errorf("one of a namespace: %v, %v", claims, err)
	}
	checkOwnRegistration(t, r, token)
	if err := os.WriteFile(projected, []byte(c.token("k1", "other:batch", "http://tokens.test")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := fetchAs("--client-id", "shop"); cli.ExitCode(err) != 1 || !strings.Contains(stderr, "with the assertion in "+projected) {
		t.Errorf("another namespace: %v %s", err, stderr)
	}
	if got := r.metric(t, `tokensvc_token_requests_total{method="federated_jwt",outcome="issued"}`); got != "4" {
		t.Errorf("%s tokens counted, want 4", got)
	}
	if want := `"sub":"system:serviceaccount:shop:batch"`; !strings.Contains(r.log(), want) {
		t.Errorf("the log does not say %s", want)
	}
}

// checkOwnRegistration: a token for one of many subjects leads to the registration that they share.
func checkOwnRegistration(t *testing.T, r *running, token string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.api+"/oauth2/client", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusOK ||
		got["client_id"] != "shop" || got["token_endpoint_auth_method"] != "private_key_jwt" {
		t.Errorf("registration: %d %v %v", resp.StatusCode, err, got)
	}
}

func assertionForm(assertion string, more ...string) string {
	form := url.Values{"grant_type": {"client_credentials"}, "client_assertion": {assertion}, "client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}}
	for i := 0; i < len(more); i += 2 {
		form.Add(more[i], more[i+1])
	}
	return form.Encode()
}

// TestResource: a client asks for a token for one or some of its audiences (RFC 8707).
func TestResource(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "https://cluster.example", "k1")
	r, _ := startTrusting(t, c)
	assertion := c.token("k1", "shop:reporter", "http://tokens.test")
	for _, tc := range []struct {
		resources []string
		want      any
	}{
		{nil, []any{"eventsvc", "audit"}},
		{[]string{"audit"}, "audit"},
		{[]string{"audit", "eventsvc", "audit"}, []any{"audit", "eventsvc"}},
	} {
		var more []string
		for _, resource := range tc.resources {
			more = append(more, "resource", resource)
		}
		token, _ := askToken(t, r, assertionForm(assertion, more...))
		_, claims := verified(t, r, token)
		if diff := cmp.Diff(tc.want, claims["aud"]); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.resources, diff)
		}
	}
	status, body := fetch(t, "POST", r.api+"/oauth2/token", assertionForm(assertion, "resource", "https://api.example"))
	if status != http.StatusBadRequest || !strings.Contains(string(body), `"invalid_target"`) {
		t.Errorf("another resource: %d %s", status, body)
	}
}

// TestIssuerRotation: an issuer changes its key. No good assertion is refused by any of two replicas, and the old key
// is not good any more when it has gone from the file.
func TestIssuerRotation(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "https://cluster.example", "k1", "k2")
	first, firstKeys := startTrusting(t, c)
	second, secondKeys := startTrusting(t, c)
	good := func(r *running, kid string) bool {
		status, body := fetch(t, "POST", r.api+"/oauth2/token", assertionForm(c.token(kid, "shop:reporter", "http://tokens.test")))
		if status != http.StatusOK && status != http.StatusUnauthorized {
			t.Errorf("%d %s", status, body)
		}
		return status == http.StatusOK
	}
	publish := func(kids ...string) {
		t.Helper()
		for _, path := range []string{firstKeys, secondKeys} {
			if err := os.WriteFile(path, []byte(c.jwks(kids...)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	replicas := []*running{first, second}
	check := func(step, kid string) {
		t.Helper()
		for i, r := range replicas {
			if !good(r, kid) {
				t.Errorf("%s: replica %d refuses an assertion signed with %s", step, i, kid)
			}
		}
	}
	check("at first", "k1")
	publish("k1", "k2")
	for _, r := range replicas {
		waittest.Until(t, "the new key is good", func() bool { // the file is read again within two seconds
			check("while the new key is published", "k1")
			return good(r, "k2")
		})
	}
	check("with both keys", "k1")
	check("with both keys", "k2")
	publish("k2")
	for _, r := range replicas {
		waittest.Until(t, "the old key is refused", func() bool {
			check("while the old key is withdrawn", "k2")
			return !good(r, "k1")
		})
	}
	check("afterwards", "k2")
}

// TestTrustedIssuersReload: the running service follows its file of trusted issuers. An issuer is added, changed and
// removed, between them the file has a mistake. A client of another issuer is never refused.
func TestTrustedIssuersReload(t *testing.T) {
	t.Parallel()
	stays, other := newCluster(t, "https://cluster.example", "k1"), newCluster(t, "https://other.example", "k1")
	clients := tempFile(t, "clients.yaml", workloads+"- {client_id: other, scope: read, assertion_issuer: \"https://other.example\", assertion_subject: \"system:serviceaccount:shop:*\"}\n")
	entry := func(c *cluster, more string) string {
		return fmt.Sprintf("- {issuer: %q, jwksFile: %q%s}\n", c.name, tempFile(t, "jwks.json", c.jwks("k1")), more)
	}
	first, second := entry(stays, ""), entry(other, "")
	changed := func(more string) string { return strings.TrimSuffix(second, "}\n") + more + "}\n" }
	issuers := tempFile(t, "issuers.yaml", first)
	r := start(t, "--clients-file", clients, "--trusted-issuers-file", issuers, "--failure-refill", "0")
	ask := func(assertion string) bool {
		t.Helper()
		status, body := fetch(t, "POST", r.api+"/oauth2/token", assertionForm(assertion))
		if status != http.StatusOK && status != http.StatusUnauthorized {
			t.Errorf("%d %s", status, body)
		}
		return status == http.StatusOK
	}
	good, assertion := stays.token("k1", "shop:reporter", "http://tokens.test"), other.token("k1", "shop:batch", "http://tokens.test")
	until := func(step, content string, done func() bool) {
		t.Helper()
		if err := os.WriteFile(issuers+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(issuers+".new", issuers); err != nil { // it may be read at any time
			t.Fatal(err)
		}
		waittest.Until(t, step, func() bool {
			if !ask(good) {
				t.Errorf("%s: the good client is refused", step)
			}
			return done()
		})
	}
	accepted := func() bool { return ask(assertion) }
	refused := func() bool { return !ask(assertion) }
	if !refused() {
		t.Error("the issuer is trusted before it is listed")
	}
	until("added", first+second, accepted)
	until("a mistake", first+changed(", subjects: ['*']"), func() bool { return r.metric(t, "issuers_file_good") == "0" })
	if !accepted() || !ask(good) {
		t.Error("a mistake has changed something")
	}
	until("other subjects", first+changed(", subjects: ['system:serviceaccount:other:*']"), refused)
	until("these subjects", first+changed(", subjects: ['system:serviceaccount:shop:*']"), accepted)
	until("other audiences", first+changed(", audiences: [elsewhere]"), refused)
	until("the default audience", first+second, accepted)
	until("a shorter life", first+changed(", maxTokenLife: 10s"), refused)
	until("again", first+second, accepted)
	until("removed", first, refused)
	until("empty", "", func() bool { return r.metric(t, "issuers_file_good") == "0" })
	if n := strings.Count(r.log(), "a file is bad, the version before stays in force"); n != 2 || !strings.Contains(r.log(), "entry 2: subjects") {
		t.Errorf("%d mistakes are logged, want 2", n)
	}
	if got := r.metric(t, `issuers_reloads_total{result="error"}`); got != "2" {
		t.Errorf("%s mistakes are counted, want 2", got)
	}
	if n := strings.Count(r.log(), "keys read"); n != 2 {
		t.Errorf("keys were read %d times, want once for each issuer", n)
	}
	if !ask(good) {
		t.Error("the good client is refused in the end")
	}
}

// TestBadTrustedIssuers: a file that cannot be used ends the start with exit code 2, and says why.
func TestBadTrustedIssuers(t *testing.T) {
	t.Parallel()
	clients := clientsFile(t)
	for name, tc := range map[string]struct{ content, want string }{
		"no list":      {"x", "into a list of issuers"},
		"this service": {"- {issuer: 'http://127.0.0.1:9000'}", "entry 1: issuer \"http://127.0.0.1:9000\" is this service"},
		"plain HTTP":   {"- {issuer: 'http://a.example'}", "plain HTTP"},
	} {
		_, stderr, err := command(t, "", "--clients-file", clients, "--trusted-issuers-file", tempFile(t, "issuers.yaml", tc.content), "--listen-admin", "127.0.0.1:0")
		if cli.ExitCode(err) != 2 || !strings.Contains(stderr, "--trusted-issuers-file") || !strings.Contains(stderr, tc.want) {
			t.Errorf("%s: %v %s", name, err, stderr)
		}
	}
}
