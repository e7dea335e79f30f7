package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/localca"
	"tidings.example/shared/waittest"
)

// authority makes a certificate for names below dir, with an authority of its
// own if there is none yet, and returns the configuration that serves it.
func authority(t *testing.T, dir string, names ...string) *tls.Config {
	t.Helper()
	config, err := localca.TLSConfig(dir, names, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := config.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	config.Certificates = []tls.Certificate{*pair}
	return config
}

// TestIssuerCertificate: keys are only fetched from an issuer whose certificate
// is valid for its name and signed by a trusted authority.
func TestIssuerCertificate(t *testing.T) {
	t.Parallel()
	own, strange := t.TempDir(), t.TempDir()
	authority(t, strange, "127.0.0.1")
	plain := newIssuer(t)
	for _, c := range []struct {
		name, ca string
		names    []string
		want     int
	}{
		{"good", filepath.Join(own, "ca.crt"), []string{"127.0.0.1"}, http.StatusOK},
		{"another authority", filepath.Join(strange, "ca.crt"), []string{"127.0.0.1"}, http.StatusServiceUnavailable},
		{"the system's authorities", "", []string{"127.0.0.1"}, http.StatusServiceUnavailable},
		{"another name", filepath.Join(own, "ca.crt"), []string{"issuer.example"}, http.StatusServiceUnavailable},
	} {
		for _, inFile := range []bool{false, true} {
			server := httptest.NewUnstartedServer(plain.Config.Handler)
			server.TLS = authority(t, own, c.names...)
			server.StartTLS()
			t.Cleanup(server.Close)
			secure := &issuer{Server: server, key: plain.key}
			args := []string{"--jwks-url=" + server.URL + "/jwks", "--issuer-ca-file=" + c.ca}
			first := secure
			if inFile { // beside another issuer, which makes the service ready
				first = plain
				entry := "- issuer: " + server.URL + "\n  jwksURL: " + server.URL + "/jwks\n"
				if c.ca != "" {
					entry += "  caFile: " + c.ca + "\n"
				}
				args = []string{"--issuers-file=" + writeFile(t, "issuers.yaml", entry)}
			} else if c.want != http.StatusOK {
				continue // such a service never becomes ready
			}
			p := start(t, t.TempDir(), first, args...)
			p.token = secure.token(t, nil)
			if code, object := p.do("GET", eventsPath, ""); code != c.want {
				t.Errorf("%s, in the file %v: %d %v", c.name, inFile, code, object)
			}
		}
	}
}

// TestCertificateReload: a running service takes up a new certificate, keeps
// the old one when the new is broken, and speaks TLS 1.2 and up with modern
// suites only.
func TestCertificateReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "served.crt"), filepath.Join(dir, "served.key")
	place := func(from string) {
		t.Helper()
		for src, dst := range map[string]string{"tls.key": key, "tls.crt": cert} {
			data, err := os.ReadFile(filepath.Join(from, src))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dst, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, second := t.TempDir(), t.TempDir()
	authority(t, first, "127.0.0.1")
	authority(t, second, "127.0.0.1")
	place(first)
	p := start(t, t.TempDir(), newIssuer(t), "--listen-https=127.0.0.1:0", "--tls-cert-file="+cert, "--tls-key-file="+key)
	addr := strings.TrimPrefix(p.url("--listen-https"), "http://")
	dial := func(c *tls.Config) error {
		conn, err := tls.Dial("tcp", addr, c)
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	trusting := func(dir string) *tls.Config {
		t.Helper()
		pem, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	if err := dial(trusting(first)); err != nil {
		t.Fatal(err)
	}
	old := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11} //nolint:gosec // to be refused
	if err := dial(old); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
	for _, suite := range []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA} {
		weak := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}} //nolint:gosec // to be refused
		if err := dial(weak); err == nil || !strings.Contains(err.Error(), "handshake failure") {
			t.Errorf("%s: %v", tls.CipherSuiteName(suite), err)
		}
	}
	if err := os.WriteFile(cert, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dial(trusting(first)); err != nil {
		t.Errorf("with a broken file: %v", err)
	}
	place(second)
	waittest.Becomes(t, func() error { return dial(trusting(second)) })
}
