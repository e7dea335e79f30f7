package e2e_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emicklei/go-restful/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/routes"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"tidings.example/deploy/test/internal/testenv"
)

// signer signs service-account tokens and publishes its key, with the code of kube-apiserver.
type signer struct {
	tokens    serviceaccount.TokenGenerator
	documents serviceaccount.OpenIDMetadataProvider
}

func newSigner(t *testing.T, issuer string, key crypto.Signer) signer {
	t.Helper()
	tokens, err := serviceaccount.JWTTokenGenerator(issuer, key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := serviceaccount.StaticPublicKeysGetter([]any{key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	documents, err := serviceaccount.NewOpenIDMetadataProvider(issuer, issuer+serviceaccount.JWKSPath, "", public)
	if err != nil {
		t.Fatal(err)
	}
	return signer{tokens, documents}
}

func (s signer) keys() string {
	keys, _ := s.documents.GetKeysetJSON()
	return string(keys)
}

// grant is what a token is asked for. Its zero value is a token of system:serviceaccount:shop:reporter for a quarter of
// an hour.
type grant struct {
	namespace, account string
	subject            string // instead of the account's; of an issuer that is no cluster
	audiences          []string
	age                time.Duration // how long ago the token was signed
	injected           bool          // into every pod: good for a year, with a warning after an hour
}

// token is the token of a service account, bound to a pod and its node.
func (s signer) token(t *testing.T, g grant) string {
	t.Helper()
	account := core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reporter", UID: "b0c0e3a6-7a6d-4a52-8a8f-0f2f5f1b9c11"}}
	if g.namespace != "" {
		account.Namespace = g.namespace
	}
	if g.account != "" {
		account.Name = g.account
	}
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name + "-0", UID: "4b0dd2a8-6d29-4f0c-9f0c-3a3f7c6f2d51"}}
	node := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "9d1b6a3f-7c52-4a57-9a4e-6f0b0f8f6e21"}}
	life, warn := int64(900), int64(0)
	if g.injected {
		life, warn = serviceaccount.ExpirationExtensionSeconds, serviceaccount.WarnOnlyBoundTokenExpirationSeconds
	}
	public, private, err := serviceaccount.Claims(account, pod, nil, node, nil, nil, life, warn, g.audiences, nil)
	if err != nil {
		t.Fatal(err)
	}
	if g.subject != "" {
		public.Subject = g.subject
	}
	for _, instant := range []*int64{(*int64)(public.IssuedAt), (*int64)(public.NotBefore), (*int64)(public.Expiry)} {
		*instant -= int64(g.age.Seconds())
	}
	signed, err := s.tokens.GenerateToken(t.Context(), public, private)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// legacyToken is the token of the same account that controllers put into secrets: without an audience and without an
// end.
func (s signer) legacyToken(t *testing.T) string {
	t.Helper()
	public, private := serviceaccount.LegacyClaims(
		corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reporter", UID: "b0c0e3a6-7a6d-4a52-8a8f-0f2f5f1b9c11"}},
		corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reporter-token-x7k2p"}})
	signed, err := s.tokens.GenerateToken(t.Context(), public, private)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// cluster is the part of a Kubernetes cluster that services need to verify its tokens. Like kube-apiserver, it shows
// its keys to service accounts only. Its handler of both documents is that of kube-apiserver.
type cluster struct {
	signer
	key    crypto.Signer
	issuer string
	trust  string // what an entry of a file of issuers says about it
}

func newCluster(t *testing.T, key crypto.Signer) *cluster {
	t.Helper()
	c := &cluster{key: key}
	allowed := ""
	api := restful.NewContainer()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+allowed {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		api.ServeHTTP(w, r)
	}))
	c.issuer = "https://" + server.Listener.Addr().String()
	c.signer = newSigner(t, c.issuer, key)
	routes.NewOpenIDMetadataServer(c.documents).Install(api)
	allowed = c.token(t, grant{account: "verifier", audiences: []string{c.issuer}})
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c.trust = fmt.Sprintf("issuer: %q, caFile: %q, bearerTokenFile: %q", c.issuer, textFile(t, "ca.crt", string(ca)), textFile(t, "token", allowed))
	return c
}

// textFile returns the path of a new file.
func textFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// twoClusters are one that signs with RSA and one that signs with ECDSA.
func twoClusters(t *testing.T) (shop, edge *cluster) {
	t.Helper()
	modulus, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newCluster(t, modulus), newCluster(t, curve)
}

// badToken is a token that a service must refuse, and what its log says about it.
type badToken struct{ token, reason string }

// badTokens are tokens of an account in the shop that no service accepts for the audience.
func badTokens(t *testing.T, shop, edge *cluster, audience string) map[string]badToken {
	t.Helper()
	audiences := []string{audience}
	old := newSigner(t, shop.issuer, shop.key)
	var err error
	if old.tokens, err = serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, shop.key); err != nil {
		t.Fatal(err)
	}
	return map[string]badToken{
		"another audience":                     {shop.token(t, grant{audiences: []string{"https://vault.example"}}), "other audience"},
		"for the API server":                   {shop.token(t, grant{audiences: []string{"https://kubernetes.default.svc"}, injected: true}), "other audience"},
		"expired":                              {shop.token(t, grant{audiences: audiences, age: 2 * time.Hour}), "expired"},
		"for a year":                           {shop.token(t, grant{audiences: audiences, injected: true}), "lives too long"},
		"not valid yet":                        {shop.token(t, grant{audiences: audiences, age: -30 * time.Minute}), "not valid yet"},
		"another cluster in its name":          {newSigner(t, shop.issuer, edge.key).token(t, grant{audiences: audiences}), "alg not allowed"},
		"from a secret":                        {shop.legacyToken(t), "other audience"},
		"from a secret, as it was signed once": {old.legacyToken(t), "issuer"},
	}
}

// TestClusterTokensAsAssertions: tokensvc accepts the tokens that Kubernetes signs for the clients that are bound to
// their issuer and subject, or to their issuer and namespace, and for no other.
func TestClusterTokensAsAssertions(t *testing.T) {
	t.Parallel()
	shop, edge := twoClusters(t)
	const audience, reporter = "https://tokens.example", "system:serviceaccount:shop:reporter"
	w := startLocal(t, "TOKENSVC_FAILURE_REFILL=0s",
		"TOKENSVC_TRUSTED_ISSUERS_FILE="+textFile(t, "issuers.yaml", fmt.Sprintf(
			"- {%s, audiences: [%q]}\n- {%s, audiences: [%q], algorithms: [ES256]}\n", shop.trust, audience, edge.trust, audience)),
		"TOKENSVC_CLIENTS_FILE="+textFile(t, "clients.yaml", fmt.Sprintf(`clients:
- {client_id: %q, scope: events, assertion_issuer: %q}
- {client_id: shop, scope: events, assertion_issuer: %q, assertion_subject: "system:serviceaccount:shop:*"}
- {client_id: edge-reporter, scope: events, assertion_issuer: %q, assertion_subject: %q}
`, reporter, shop.issuer, shop.issuer, edge.issuer, reporter)))
	itself := grant{audiences: []string{audience}}
	batch := grant{account: "batch", audiences: itself.audiences}
	elsewhere := grant{namespace: "other", account: "batch", audiences: itself.audiences}
	for name, tc := range map[string]struct{ clientID, assertion string }{
		"issuer and subject":                   {reporter, shop.token(t, itself)},
		"issuer and subject, no client_id":     {"", shop.token(t, itself)},
		"issuer and namespace":                 {"shop", shop.token(t, batch)},
		"issuer and namespace, no client_id":   {"", shop.token(t, batch)},
		"the same subject, of another cluster": {"edge-reporter", edge.token(t, itself)},
	} {
		token, status := tradeAssertion(t, w, tc.clientID, tc.assertion)
		if status != http.StatusOK {
			t.Errorf("%s: %d\n%s", name, status, w.log("tokensvc"))
			continue
		}
		if status := listEvents(t, w, token); status != http.StatusOK {
			t.Errorf("%s: eventsvc answers the token with %d", name, status)
		}
	}
	refuses := func(name, clientID, assertion, reason string) {
		t.Helper()
		checkRefusal(t, w, "tokensvc", name, reason, func() int {
			_, status := tradeAssertion(t, w, clientID, assertion)
			return status
		})
	}
	for name, r := range badTokens(t, shop, edge, audience) {
		refuses(name, "", r.token, r.reason)
	}
	refuses("several audiences", "", shop.token(t, grant{audiences: []string{audience, "https://vault.example"}}), "several audiences")
	refuses("another namespace", "", shop.token(t, elsewhere), "no client has this subject")
	refuses("another namespace, as a client", "shop", shop.token(t, elsewhere), "client bound to another subject")
	refuses("another cluster, as a client", reporter, edge.token(t, itself), "client bound to another issuer")
	refuses("an account that is a client itself, as its namespace", "shop", shop.token(t, itself), "subject registered by itself")
}

// TestClusterTokensDirectly: eventsvc accepts the tokens that Kubernetes signs without any token service, and its
// policy tells accounts and clusters apart.
func TestClusterTokensDirectly(t *testing.T) {
	t.Parallel()
	shop, edge := twoClusters(t)
	w := startLocal(t,
		"EVENTSVC_ISSUERS_FILE="+textFile(t, "issuers.yaml", fmt.Sprintf(
			"- {%s, audiences: [eventsvc]}\n- {%s, audiences: [eventsvc], algorithms: [ES256]}\n", shop.trust, edge.trust)),
		"EVENTSVC_POLICY_FILE="+textFile(t, "policy.yaml", fmt.Sprintf(`bindings:
- role: events:read
  subjects:
  - {issuer: %q, clientID: "system:serviceaccount:shop:reporter"}
  - {issuer: %q, clientID: "system:serviceaccount:edge:reporter"}
`, shop.issuer, edge.issuer)))
	itself := grant{audiences: []string{"eventsvc"}}
	outpost := grant{namespace: "edge", audiences: itself.audiences}
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"a bound account":                     {shop.token(t, itself), http.StatusOK},
		"several audiences":                   {shop.token(t, grant{audiences: []string{"https://vault.example", "eventsvc"}}), http.StatusOK},
		"signed with ECDSA":                   {edge.token(t, outpost), http.StatusOK},
		"another account":                     {shop.token(t, grant{account: "batch", audiences: itself.audiences}), http.StatusForbidden},
		"the name of the other cluster's":     {shop.token(t, outpost), http.StatusForbidden},
		"the same account of another cluster": {edge.token(t, itself), http.StatusForbidden},
	} {
		if status := listEvents(t, w, tc.token); status != tc.want {
			t.Errorf("%s: %d, want %d\n%s", name, status, tc.want, w.log("eventsvc"))
		}
	}
	for name, r := range badTokens(t, shop, edge, "eventsvc") {
		checkRefusal(t, w, "eventsvc", name, r.reason, func() int { return listEvents(t, w, r.token) })
	}
}

// tradeAssertion sends an assertion, for a client if one is named, and returns the token and the status of the answer.
func tradeAssertion(t *testing.T, w *world, clientID, assertion string) (token string, status int) {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_assertion": {assertion},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}}
	if clientID != "" {
		form.Set("client_id", clientID)
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	status, err := call(t.Context(), http.DefaultClient, request{
		method: http.MethodPost, url: w.tokens + "/oauth2/token", contentType: "application/x-www-form-urlencoded", body: []byte(form.Encode()),
	}, &answer)
	if err != nil {
		t.Fatal(err)
	}
	return answer.AccessToken, status
}

// listEvents returns the status of a list with the token.
func listEvents(t *testing.T, w *world, token string) int {
	t.Helper()
	var answer map[string]any
	status, err := call(t.Context(), http.DefaultClient, request{
		method: http.MethodGet, url: w.events + "/apis/events.k8s.io/v1/namespaces/shop/events", token: token,
	}, &answer)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// checkRefusal sends a request that the service must answer with 401, and waits until it has logged the reason.
func checkRefusal(t *testing.T, w *world, service, name, reason string, send func() int) {
	t.Helper()
	before := len(w.log(service))
	if status := send(); status != http.StatusUnauthorized {
		t.Errorf("%s: %d, want 401", name, status)
		return
	}
	testenv.Eventually(t, name+": the log says "+reason, deadline, func() error {
		if said := w.log(service)[before:]; !strings.Contains(said, reason) {
			return fmt.Errorf("it says:\n%s", said)
		}
		return nil
	})
}
