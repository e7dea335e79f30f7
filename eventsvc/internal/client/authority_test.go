package client_test

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/shared/certtest"
)

// TestAuthorityRenewed: a client made from a kubeconfig trusts the authority that its file has now.
func TestAuthorityRenewed(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[tls.Certificate]
	dir := t.TempDir()
	renew := func(file bool) {
		t.Helper()
		made := t.TempDir()
		certtest.Write(t, made, "127.0.0.1")
		pair, err := tls.LoadX509KeyPair(filepath.Join(made, "tls.crt"), filepath.Join(made, "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
		now.Store(&pair)
		if !file {
			return
		}
		if err := os.Rename(filepath.Join(made, "ca.crt"), filepath.Join(dir, "ca.crt")); err != nil {
			t.Fatal(err)
		}
	}
	renew(true)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*now.Load()}, MinVersion: tls.VersionTLS12}, nil
	}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.SetKeepAlivesEnabled(false) // each request is a connection
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"+
		"clusters: [{name: c, cluster: {server: \""+server.URL+"\", certificate-authority: ca.crt}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := client.FromKubeconfig(file, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for step, trusted := range []bool{true, false, true} {
		if err := c.Do(t.Context(), client.Request{Path: "/"}, nil); (err == nil) != trusted {
			t.Errorf("step %d: %v", step, err)
		}
		renew(step == 1)
	}
}
