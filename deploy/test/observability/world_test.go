package observability_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

const (
	folder     = "../../observability" // what is tested
	eventsPath = "/apis/events.k8s.io/v1/namespaces/default/events"
	tokenForm  = "grant_type=client_credentials&client_id=demo&client_secret=demo-secret"
	note       = "a note that is found in the file"
)

// deadline bounds every wait in these tests. It is long enough for a busy machine.
const deadline = 3 * time.Minute

// bin holds the services that TestMain builds.
var bin string

func TestMain(m *testing.M) {
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "observability:", err)
		code = 1
	}
	os.Exit(code)
}

func build(m *testing.M) (int, error) {
	var err error
	if bin, err = os.MkdirTemp("", "observability-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(bin)
	for _, name := range []string{"tokensvc", "eventsvc"} {
		if err := testenv.Build("../../../"+name, filepath.Join(bin, name)); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

func clientsFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clients.yaml")
	write(t, path, `clients: [{client_id: demo, client_name: Demo, client_secret: "{noop}demo-secret", scope: events}]`)
	return path
}

func startTokens(t *testing.T, shell string) *svc {
	t.Helper()
	s := start(t, "tokensvc", shell, "CLIENTS_FILE="+clientsFile(t))
	s.ready(t)
	return s
}

// startBoth starts both services and fetches a token.
func startBoth(t *testing.T, settings ...string) (tokens, events *svc, token string) {
	t.Helper()
	tokens = startTokens(t, "")
	events = start(t, "eventsvc", "", append(settings, "ISSUER="+tokens.url, "BASIC_TOKEN_URL="+tokens.url+"/oauth2/token")...)
	events.ready(t)
	return tokens, events, tokens.token(t)
}

// startTarget starts one more eventsvc, for copies.
func startTarget(t *testing.T, tokens *svc, settings ...string) *svc {
	t.Helper()
	s := start(t, "eventsvc", "", append(settings, "ISSUER="+tokens.url)...)
	s.ready(t)
	return s
}

// startMirror copies from one eventsvc to another, and waits until it follows the source. Its job is the one that the
// manifests give it.
func startMirror(t *testing.T, tokens *svc, from string, to *svc, settings ...string) *svc {
	t.Helper()
	dir := t.TempDir()
	write(t, dir+"/kubeconfig", fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: %q}}]\n", from, tokens.token(t)))
	write(t, dir+"/secret", "demo-secret")
	s := start(t, "eventsvc", "exec "+bin+"/eventsvc mirror;", append(settings, "KUBECONFIG="+dir+"/kubeconfig", "CLUSTER=demo", "SERVER="+to.url,
		"TOKEN_URL="+tokens.url+"/oauth2/token", "CLIENT_ID=demo", "CLIENT_SECRET_FILE="+dir+"/secret")...)
	s.name = "eventsvc-mirror"
	s.scrapedOnce(t, "the mirror follows", func(now scrape) bool {
		return now.sum(`eventsvc_mirror_connected`) == 1 && now.sum("eventsvc_mirror_lag_seconds") == 0
	})
	return s
}

// startAlerts sends an alert of each event to an Alertmanager, and waits until it has seen what the server has.
func startAlerts(t *testing.T, tokens, of *svc, alertmanager string) *svc {
	t.Helper()
	dir := t.TempDir()
	write(t, dir+"/rules.yaml", "[{name: Any, search: 'type:normal,warning', labels: {name: '{{.Event}}'}}]\n")
	write(t, dir+"/token", tokens.token(t))
	s := start(t, "eventsvc", "exec "+bin+"/eventsvc alerts;", "SERVER="+of.url, "TOKEN_FILE="+dir+"/token", "RULES="+dir+"/rules.yaml",
		"CURSOR_FILE="+dir+"/cursor.json", "ALERTMANAGER="+alertmanager)
	s.name = "eventsvc-alerts"
	s.ready(t) // it watches
	return s
}

// aggregated is a running eventsvc aggregate, for which the test plays kube-apiserver.
type aggregated struct {
	*svc
	client  *http.Client // as kube-apiserver
	url     string
	reviews atomic.Int64 // code of the answers to reviews
}

// ask asks for events as somebody, and returns the code.
func (a *aggregated) ask(t *testing.T, user string) (code int, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"/apis/events.tidings.example/v1/events", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Remote-User", user)
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// startAggregate has passed one request on. It has one certificate for all ends.
func startAggregate(t *testing.T, to *svc, token string) *aggregated {
	t.Helper()
	dir := t.TempDir()
	a := &aggregated{}
	a.reviews.Store(http.StatusCreated)
	pair := selfSigned(t, dir)
	authority, err := os.ReadFile(dir + "/tls.crt")
	if err != nil {
		t.Fatal(err)
	}
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(int(a.reviews.Load()))
			fmt.Fprint(w, `{"kind":"SubjectAccessReview","status":{"allowed":true}}`)
		case r.URL.Query().Has("watch"):
			<-r.Context().Done()
		default:
			_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{map[string]any{
				"data": map[string]string{"requestheader-client-ca-file": string(authority), "requestheader-username-headers": `["X-Remote-User"]`},
			}}})
		}
	}))
	t.Cleanup(func() { cluster.CloseClientConnections(); cluster.Close() })
	write(t, dir+"/kubeconfig", fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"+
		"clusters: [{name: c, cluster: {server: %q}}]\n", cluster.URL))
	write(t, dir+"/token", token)
	https := porttest.Addr(t)
	a.svc = start(t, "eventsvc", "exec "+bin+"/eventsvc aggregate;", "KUBECONFIG="+dir+"/kubeconfig", "SERVER="+to.url, "TOKEN_FILE="+dir+"/token",
		"GROUP_DOMAIN=tidings.example", "LISTEN_HTTPS="+https, "TLS_CERT_FILE="+dir+"/tls.crt", "TLS_KEY_FILE="+dir+"/tls.key")
	a.name, a.url = "eventsvc-aggregate", "https://"+https
	a.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}, DisableKeepAlives: true,
	}}
	testenv.Eventually(t, "a request is passed on", deadline, func() error {
		code, err := a.ask(t, "anna")
		if err == nil && code != http.StatusOK {
			err = errors.New(http.StatusText(code))
		}
		return err
	})
	return a
}

// selfSigned writes a certificate that is its own authority, and its key.
func selfSigned(t *testing.T, dir string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, made, made, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	write(t, dir+"/tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}
}

func (s *svc) token(t *testing.T) string {
	t.Helper()
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(s.send(t, "POST", "/oauth2/token", "", tokenForm, http.StatusOK), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Token
}

// send sends a request and checks the code of the answer.
func (s *svc) send(t *testing.T, method, path, token, body string, want int) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(body, "grant_type") {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Fatalf("%s %s: %d, want %d: %.300s %v", method, path, resp.StatusCode, want, answer, err)
	}
	return answer
}

func eventBody(name, note string) string {
	meta := map[string]string{"name": name}
	if name == "" {
		meta = map[string]string{"generateName": "e-"}
	}
	body, err := json.Marshal(map[string]any{
		"metadata": meta, "eventTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		"type": "Normal", "reason": "Tested", "action": "Testing", "note": note,
		"regarding": map[string]string{"kind": "Pod", "name": "web-0", "namespace": "default"}, "reportingController": "example.com/faults", "reportingInstance": "faults-1",
	})
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return string(body)
}

func (s *svc) create(t *testing.T, token, name string, want int) {
	t.Helper()
	s.send(t, "POST", eventsPath, token, eventBody(name, note), want)
}

// createIn records an event of a cluster, as a mirror does.
func (s *svc) createIn(t *testing.T, token, cluster string) {
	t.Helper()
	body := strings.Replace(eventBody("", note), `"metadata":{`, `"metadata":{"labels":{"tidings.example/cluster":"`+cluster+`"},`, 1)
	s.send(t, "POST", eventsPath, token, body, http.StatusCreated)
}

// mirroredUntil writes the cursor of a mirror, and waits until the service knows of it.
func (s *svc) mirroredUntil(t *testing.T, token, cluster string, at time.Time) {
	t.Helper()
	body := fmt.Sprintf(`{"metadata":{"name":"eventsvc-mirror.%s","labels":{"tidings.example/cluster":%q},"annotations":{"mirror.tidings.example/cursor":"1",`+
		`"mirror.tidings.example/cursor-time":%q}},"involvedObject":{"kind":"Cluster","namespace":"kube-system"},"reason":"Mirrored","type":"Normal",`+
		`"reportingComponent":"tidings.example/mirror"}`, cluster, cluster, at.UTC().Format(time.RFC3339))
	const events = "/api/v1/namespaces/kube-system/events"
	s.send(t, "DELETE", events, token, "", http.StatusOK)
	s.send(t, "POST", events, token, body, http.StatusCreated)
	s.scrapedOnce(t, "the cursor is known", func(now scrape) bool {
		_, known := now.samples[fmt.Sprintf(`eventsvc_cluster_complete_seconds{cluster=%q,instance="a",job=%q}`, cluster, s.name)]
		return known
	})
}

// createMany records large events, many at a time.
func (s *svc) createMany(t *testing.T, token string, n int) {
	t.Helper()
	body := eventBody("", strings.Repeat("x", 1000))
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for range n / 32 {
				s.send(t, "POST", eventsPath, token, body, http.StatusCreated)
			}
		})
	}
	group.Wait()
}

// watch opens a watch that stays open until the test ends.
func (s *svc) watch(t *testing.T, token string) {
	t.Helper()
	resp, err := get(t.Context(), s.url+eventsPath+"?watch=true", token)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("watch: %v %v", resp, err)
	}
	t.Cleanup(func() { resp.Body.Close() })
}

// watchWithoutReading is a client that asks for a watch and then does not read what comes.
func (s *svc) watchWithoutReading(t *testing.T, token string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	fmt.Fprintf(c, "GET %s?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", eventsPath, token)
	s.scrapedOnce(t, "the watch is open", func(now scrape) bool { return now.sum("eventsvc_watches") == 1 })
}

// scrapedOnce scrapes until the condition holds.
func (s *svc) scrapedOnce(t *testing.T, what string, there func(scrape) bool) (now scrape) {
	t.Helper()
	testenv.Eventually(t, what, deadline, func() error {
		if now = s.scraped(t); !there(now) {
			return errors.New("not yet")
		}
		return nil
	})
	return now
}

// sum adds up all series whose text begins so.
func (s scrape) sum(prefix string) (sum float64) {
	for series, sample := range s.samples {
		if strings.HasPrefix(series, prefix) {
			sum += sample.value
		}
	}
	return sum
}

func get(ctx context.Context, url, token string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return http.DefaultClient.Do(req)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}
