package aggregate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/service"
	"tidings.example/shared/waittest"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.cert = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: rand.Text()}, IsCA: true, BasicConstraintsValid: true}, &a.key.PublicKey, nil)
	return a
}

func (a *authority) sign(c *x509.Certificate, key *ecdsa.PublicKey, parent *x509.Certificate) *x509.Certificate {
	a.t.Helper()
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// client returns a certificate of a front proxy. change makes it another one.
func (a *authority) client(name string, change func(*x509.Certificate)) *tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(c)
	}
	return &tls.Certificate{Certificate: [][]byte{a.sign(c, &key.PublicKey, a.cert).Raw}, PrivateKey: key}
}

// cluster is what the server asks of a kube-apiserver.
type cluster struct {
	*httptest.Server
	t       *testing.T
	mu      sync.Mutex
	version int
	object  *corev1.ConfigMap // nil: there is none
	changed chan struct{}     // closed at a change
	review  func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int)
	reviews []authorizationv1.SubjectAccessReviewSpec
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, version: 1, changed: make(chan struct{})}
	c.allow(true)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+configPath, c.configMaps)
	mux.HandleFunc("POST "+reviewsPath, c.decide)
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

// allow sets the answer to all reviews.
func (c *cluster) allow(allowed bool) {
	c.decideBy(func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: allowed, Reason: "the rule"}, http.StatusCreated
	})
}

func (c *cluster) decideBy(review func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.review = review
}

// asked returns the reviews so far.
func (c *cluster) asked() []authorizationv1.SubjectAccessReviewSpec {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reviews
}

func (c *cluster) decide(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	c.reviews = append(c.reviews, review.Spec)
	by := c.review
	c.mu.Unlock()
	status, code := by(review.Spec)
	review.Status = status
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(review)
}

// configure makes a version of the ConfigMap; nil removes it.
func (c *cluster) configure(data map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	c.object = nil
	if data != nil {
		c.object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configName, ResourceVersion: fmt.Sprint(c.version)}, Data: data}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// configMaps lists and watches as RBAC lets the role extension-apiserver-authentication-reader do: only by this name.
func (c *cluster) configMaps(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("fieldSelector") != "metadata.name="+configName {
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	c.mu.Lock()
	version, object, changed := c.version, c.object, c.changed
	c.mu.Unlock()
	if r.URL.Query().Get("watch") == "" {
		list := corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(version)}}
		if object != nil {
			list.Items = append(list.Items, *object)
		}
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	seen := r.URL.Query().Get("resourceVersion")
	http.NewResponseController(w).Flush()
	for {
		if fmt.Sprint(version) != seen {
			kind, shown := "MODIFIED", object
			if object == nil {
				kind, shown = "DELETED", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configName, ResourceVersion: fmt.Sprint(version)}}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": shown})
			http.NewResponseController(w).Flush()
			seen = fmt.Sprint(version)
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
		c.mu.Lock()
		version, object, changed = c.version, c.object, c.changed
		c.mu.Unlock()
	}
}

// front is the data of a ConfigMap as kube-apiserver writes it.
func front(a *authority, names ...string) map[string]string {
	list, _ := json.Marshal(names)
	return map[string]string{
		"client-ca-file":               "",
		"requestheader-client-ca-file": a.pem(), "requestheader-allowed-names": string(list),
		"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`, "requestheader-uid-headers": `["X-Remote-Uid"]`,
	}
}

// world is an aggregated server between a cluster and an event server.
type world struct {
	t        *testing.T
	cluster  *cluster
	ca       *authority
	proxy    *tls.Certificate
	server   *Server
	url      string
	registry *prometheus.Registry
	said     *lines
}

const group = "events.tidings.example"

const all = "/apis/" + group + "/v1/events"

func newWorld(t *testing.T, events http.HandlerFunc, change func(*Config)) *world {
	t.Helper()
	w := &world{t: t, cluster: newCluster(t), ca: newAuthority(t), registry: prometheus.NewRegistry(), said: &lines{}}
	w.proxy = w.ca.client("front-proxy", nil)
	w.cluster.configure(front(w.ca, "front-proxy"))
	upstream := httptest.NewServer(events)
	t.Cleanup(func() { upstream.CloseClientConnections(); upstream.Close() })
	log := slog.New(slog.NewTextHandler(w.said, nil))
	api, err := client.New(client.Config{Server: w.cluster.URL})
	if err != nil {
		t.Fatal(err)
	}
	store, err := client.New(client.Config{Server: upstream.URL, Tokens: client.StaticToken("own"), UserAgent: "eventsvc/test"})
	if err != nil {
		t.Fatal(err)
	}
	formats, err := codec.New("tidings.example")
	if err != nil {
		t.Fatal(err)
	}
	health := &service.Health{}
	front := NewFrontProxy(api, log)
	health.Add("front-proxy", front.Ready)
	c := Config{
		Events: store, Codec: formats, Advertise: []string{"get"}, FrontProxy: front,
		Reviewer: NewReviewer(api, log, w.registry), Probe: health.Handler, Log: log, Registry: w.registry,
	}
	if change != nil {
		change(&c)
	}
	if w.server, err = New(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = front.Run(ctx) })
	t.Cleanup(func() { cancel(); waittest.Join(t, &running) })
	served := httptest.NewUnstartedServer(httpserver.Access(log, w.registry, audit.Handler(nil, w.server)))
	served.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	served.EnableHTTP2 = true
	served.StartTLS()
	t.Cleanup(func() { served.CloseClientConnections(); served.Close() })
	w.url = served.URL
	waittest.Until(t, "the front proxy is known", func() bool { return front.Ready(ctx) == nil })
	return w
}

// lines are what was logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// as returns an HTTP client with a certificate; nil: without one.
func (w *world) as(certificate *tls.Certificate) *http.Client {
	w.t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if certificate != nil {
		// Sent whatever the server says it accepts, as whoever forges does.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// answer is an answer with its body.
type answer struct {
	t      *testing.T
	code   int
	header http.Header
	body   string
}

// send sends a request with headers in pairs.
func (w *world) send(c *http.Client, method, path string, headers ...string) *answer {
	w.t.Helper()
	resp := w.open(c, method, path, headers...)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return &answer{w.t, resp.StatusCode, resp.Header, string(body)}
}

func (w *world) open(c *http.Client, method, path string, headers ...string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

// get asks as a person whom the front proxy names.
func (w *world) get(path string, headers ...string) *answer {
	w.t.Helper()
	return w.send(w.as(w.proxy), "GET", path, append([]string{"X-Remote-User", "anna"}, headers...)...)
}

// must checks the status, and that the body is a Status of the same code if it is a refusal of the API.
func (a *answer) must(code int) *answer {
	a.t.Helper()
	if a.code != code {
		a.t.Fatalf("got %d, want %d: %s", a.code, code, a.body)
	}
	return a
}

// status decodes a Status.
func (a *answer) status() metav1.Status {
	a.t.Helper()
	var st metav1.Status
	if err := json.Unmarshal([]byte(a.body), &st); err != nil || int(st.Code) != a.code || st.Kind != "Status" {
		a.t.Fatalf("no Status of %d: %s", a.code, a.body)
	}
	return st
}

// metric returns the value of a counter with a label, or without one.
func (w *world) metric(name, label string) float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (len(m.GetLabel()) == 0 || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}
