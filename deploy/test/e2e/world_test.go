package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The demo client, the same with make run and with compose.
const (
	clientID     = "demo"
	clientSecret = "demo-secret"
)

// deadline bounds every wait in these tests. It is long enough for a busy machine.
const deadline = 5 * time.Minute

// world is a running pair of services and how to reach it.
type world struct {
	tokens string // base URL of tokensvc
	events string // base URL of eventsvc, plain HTTP
	secure string // base URL of eventsvc, HTTPS
	ca     string // file with the CA of secure

	probes []string // base URLs of the admin listeners, where they can be reached from here

	restart func(t *testing.T, service string) // asks it to stop, starts it again, returns when ready
	kill    func(t *testing.T, service string) // the same without asking
	inside  func(t *testing.T) string          // a token fetched from where the services run
	log     func(service string) string        // what it has printed; of processes started here

	recreate func(t *testing.T) // throws both services away and starts new ones on the same data
}

// scenarios run against every world.
var scenarios = []struct {
	name string
	run  func(*testing.T, *world)
}{
	{"Lifecycle", testLifecycle},
	{"Refusals", testRefusals},
	{"TokensFromInsideAndOutside", testInsideOutside},
	{"Kubectl", testKubectl},
	{"Examples", testExamples},
	{"WatchOverRestarts", testWatchOverRestarts},
	{"InformerOverRestart", testInformerOverRestart},
	{"DataStays", testDataStays},
}

// TestLocal runs the scenarios against binaries that are started here.
func TestLocal(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(root, "deploy/compose/policy.yaml")
	w := startLocal(t, "EVENTSVC_POLICY_FILE="+policy, "EVENTSVC_AUDIT=metadata")
	runScenarios(t, w)
	t.Run("MetricsThatAreAskedFor", func(t *testing.T) { testMetrics(t, w) })
}

func runScenarios(t *testing.T, w *world) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { s.run(t, w) })
	}
}

// requestToken asks for a token and returns it with the status of the answer.
func requestToken(ctx context.Context, base, id, secret string) (token string, status int, err error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
	var answer struct {
		AccessToken string `json:"access_token"`
		Error       string `json:"error"`
	}
	status, err = call(ctx, http.DefaultClient, request{
		method: http.MethodPost, url: base + "/oauth2/token",
		contentType: "application/x-www-form-urlencoded", body: []byte(form.Encode()),
	}, &answer)
	if answer.Error != "" {
		err = fmt.Errorf("%s", answer.Error)
	}
	return answer.AccessToken, status, err
}

func (w *world) token(t *testing.T) string {
	t.Helper()
	token, status, err := requestToken(t.Context(), w.tokens, clientID, clientSecret)
	if err != nil || status != http.StatusOK {
		t.Fatalf("token: status %d, %v", status, err)
	}
	return token
}

// request is one HTTP request with an optional body.
type request struct {
	method, url, token, contentType string
	body                            []byte
}

// call sends r and decodes the JSON answer into out.
func call(ctx context.Context, client *http.Client, r request, out any) (int, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return 0, err
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return resp.StatusCode, fmt.Errorf("%w in answer %q", err, raw)
	}
	return resp.StatusCode, nil
}

// kubeconfig writes the same kind of file as `make run`: the CA inside, and
// tokensvc as the credential plugin.
func (w *world) kubeconfig(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: w.secure, CertificateAuthority: w.ca}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion:      "client.authentication.k8s.io/v1",
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		Command:         filepath.Join(bin, "tokensvc"),
		Args: []string{"credential", "--token-url=" + w.tokens + "/oauth2/token", "--client-id=" + clientID,
			"--client-secret-file=" + filepath.Join(root, "deploy/local/demo-secret")},
	}}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: "default"}
	config.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func (w *world) restConfig(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// https is a client that trusts the server's own CA and nothing else.
func (w *world) https(t *testing.T) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(w.ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("%s holds no certificate", w.ca)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
