package httpserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/shared/cli"
)

// anyTLS returns a configuration with a certificate that no client has to verify.
func anyTLS() *tls.Config {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	return &tls.Config{Certificates: srv.TLS.Certificates}
}

// writePair writes a self-signed certificate for a host and its key.
func writePair(t *testing.T, certFile, keyFile, host string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCertFilesReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	synctest.Test(t, func(t *testing.T) {
		writePair(t, certFile, keyFile, "old.example")
		config, err := CertFiles(certFile, keyFile)
		if err != nil {
			t.Fatal(err)
		}
		serves := func(host string) {
			t.Helper()
			pair, err := config.GetCertificate(&tls.ClientHelloInfo{ServerName: host})
			if err != nil {
				t.Fatal(err)
			}
			if err := pair.Leaf.VerifyHostname(host); err != nil {
				t.Error(err)
			}
		}
		serves("old.example")
		time.Sleep(time.Hour)
		if err := os.WriteFile(certFile, []byte("half a certifi"), 0o600); err != nil {
			t.Fatal(err)
		}
		serves("old.example")
		writePair(t, certFile, keyFile, "new.example")
		time.Sleep(time.Hour)
		serves("new.example")
	})
	if _, err := CertFiles(certFile, filepath.Join(dir, "none")); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "none") {
		t.Errorf("a key file that is not there: %v", err)
	}
}
