package httpserver

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

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
	certtest.Write(t, dir, "old.example")
	var said bytes.Buffer
	reg := prometheus.NewRegistry()
	config, file, err := CertFiles(certFile, keyFile, slog.New(slog.NewJSONHandler(&said, nil)), reg)
	if err != nil {
		t.Fatal(err)
	}
	serves := func(host string, good, failed, ok float64) {
		t.Helper()
		file.Reload()
		pair, err := config.GetCertificate(&tls.ClientHelloInfo{ServerName: host})
		if err != nil {
			t.Fatal(err)
		}
		if err := pair.Leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
		if got := certificateMetrics(t, reg); !slices.Equal(got, []float64{good, failed, ok}) {
			t.Errorf("good, failed and successful reloads are %v, want %v, %v and %v", got, good, failed, ok)
		}
	}
	write := func(file, content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serves("old.example", 1, 0, 0)
	write(certFile, "half a certifi")
	serves("old.example", 0, 1, 0)
	certtest.Write(t, dir, "new.example")
	serves("new.example", 1, 1, 1)
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	write(keyFile, "")
	serves("new.example", 0, 2, 1)
	serves("new.example", 0, 2, 1) // and it is said once
	write(keyFile, string(key))
	serves("new.example", 1, 2, 2)
	if n := strings.Count(said.String(), "with the key "+keyFile); n != 2 {
		t.Errorf("reported %d times, want twice: %s", n, said.String())
	}
	if _, _, err := CertFiles(certFile, filepath.Join(dir, "none"), slog.New(slog.DiscardHandler), prometheus.NewRegistry()); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "none") {
		t.Errorf("a key file that is not there: %v", err)
	}
}

// certificateMetrics returns whether the files are good, and the number of reloads that failed and succeeded.
func certificateMetrics(t *testing.T, reg *prometheus.Registry) (values []float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families { // by name, and then by label
		for _, m := range f.GetMetric() {
			values = append(values, m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	return values
}
