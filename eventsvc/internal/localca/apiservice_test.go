package localca

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/shared/waittest"
)

// registry is a kube-apiserver with one APIService. It refuses an update of what has changed since it was read.
type registry struct {
	mu      sync.Mutex
	version float64
	bundle  string
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if req.URL.Path != "/apis/apiregistration.k8s.io/v1/apiservices/v1.events.example.com" {
		http.NotFound(w, req)
		return
	}
	if req.Method == http.MethodPut {
		var sent struct {
			Metadata struct{ Version float64 }
			Spec     struct{ CABundle, Group string }
		}
		if err := json.NewDecoder(req.Body).Decode(&sent); err != nil || sent.Spec.Group != "events.example.com" || sent.Metadata.Version != r.version {
			w.WriteHeader(http.StatusConflict)
			return
		}
		r.bundle = sent.Spec.CABundle
		r.version++
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"version": r.version}, "spec": map[string]any{"group": "events.example.com", "caBundle": r.bundle}})
}

// trusts reports whether a client that has the bundle trusts the certificate of a configuration at a time.
func (r *registry) trusts(t *testing.T, config *tls.Config, now time.Time) bool {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := base64.StdEncoding.DecodeString(r.bundle)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	pair, err := config.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "eventsvc-aggregate.tidings.svc", CurrentTime: now})
	return err == nil
}

// TestAPIService: each replica's authority is in the caBundle, however many start at once, and what is there stays.
func TestAPIService(t *testing.T) {
	t.Parallel()
	r := &registry{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	api, err := client.New(client.Config{Server: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var configs []*tls.Config
	for range 3 {
		a := &APIService{Name: "v1.events.example.com", Dir: t.TempDir(), Hosts: []string{"eventsvc-aggregate.tidings.svc"}, API: api, Log: slog.New(slog.DiscardHandler)}
		config, err := a.TLSConfig()
		if err != nil {
			t.Fatal(err)
		}
		configs = append(configs, config)
		go func() { _ = a.Run(t.Context()) }()
	}
	for _, config := range configs {
		waittest.Until(t, "the authority is trusted", func() bool { return r.trusts(t, config, time.Now()) })
	}
}

// TestRenewed: a process that runs for long replaces its certificate before it expires, and kube-apiserver goes on to
// trust it: the authority stays.
func TestRenewed(t *testing.T) {
	t.Parallel()
	r := &registry{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	api, err := client.New(client.Config{Server: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	a := &APIService{Name: "v1.events.example.com", Dir: t.TempDir(), Hosts: []string{"eventsvc-aggregate.tidings.svc"}, API: api, Log: slog.New(slog.DiscardHandler)}
	start := time.Now()
	if _, err := TLSConfig(a.Dir, a.Hosts, start.Add(12*time.Hour+renewBefore-certLife)); err != nil { // to be renewed in half a day
		t.Fatal(err)
	}
	config, err := a.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	var bundle string
	for _, step := range []struct{ after, left time.Duration }{ // what is left of the certificate then
		{0, renewBefore + 12*time.Hour}, {time.Hour, renewBefore + 11*time.Hour}, {25 * time.Hour, certLife}, {26 * time.Hour, certLife - time.Hour},
	} {
		now := start.Add(step.after)
		if err := a.keep(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		pair, err := config.GetCertificate(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		if left := pair.Leaf.NotAfter.Sub(now); (left-step.left).Abs() > time.Minute || !r.trusts(t, config, now) || bundle != "" && r.bundle != bundle {
			t.Errorf("after %s the certificate has %s left, want %s; trusted: %t; the same authority: %t", step.after, left, step.left, r.trusts(t, config, now), r.bundle == bundle)
		}
		bundle = r.bundle
	}
}

// TestNewest: a bundle has room for another authority, and none that has expired.
func TestNewest(t *testing.T) {
	t.Parallel()
	var bundle []byte
	now := time.Now()
	for i := range maxAuthorities + 5 {
		pair, err := loadOrMakeCA(t.TempDir(), now.Add(time.Duration(i-maxAuthorities)*24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})...)
	}
	count := func(at time.Time) (n int) {
		for block, rest := pem.Decode(newest(bundle, at)); block != nil; block, rest = pem.Decode(rest) {
			n++
		}
		return n
	}
	if got := count(now); got != maxAuthorities-1 {
		t.Errorf("%d are kept", got)
	}
	if got := count(now.Add(caLife)); got != 4 {
		t.Errorf("%d are valid in ten years", got)
	}
	if got := newest([]byte("-----BEGIN CERTIFICATE-----\n"), now); len(got) > 0 {
		t.Errorf("%s", got)
	}
}
