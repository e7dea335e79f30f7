package httpserver

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidings.example/shared/certtest"
	"tidings.example/shared/cli"
)

// anyTLS returns a configuration with a certificate that no client has to verify.
func anyTLS() *tls.Config {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	return &tls.Config{Certificates: srv.TLS.Certificates}
}

func TestCertFilesReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	synctest.Test(t, func(t *testing.T) {
		certtest.Write(t, dir, "old.example")
		var said bytes.Buffer
		config, err := CertFiles(certFile, keyFile, slog.New(slog.NewJSONHandler(&said, nil)))
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
		if !strings.Contains(said.String(), `"msg":"certificate not reloaded, the old one stays in use"`) {
			t.Errorf("the log says %q", said.String())
		}
		certtest.Write(t, dir, "new.example")
		time.Sleep(time.Hour)
		serves("new.example")
	})
	if _, err := CertFiles(certFile, filepath.Join(dir, "none"), slog.New(slog.DiscardHandler)); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "none") {
		t.Errorf("a key file that is not there: %v", err)
	}
}
