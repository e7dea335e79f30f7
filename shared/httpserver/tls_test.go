package httpserver

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	synctest.Test(t, func(t *testing.T) {
		certtest.Write(t, dir, "old.example")
		var said bytes.Buffer
		reg := prometheus.NewRegistry()
		metrics := func(good, failed, ok float64) {
			t.Helper()
			if got := certificateMetrics(t, reg); !slices.Equal(got, []float64{good, failed, ok}) {
				t.Errorf("good, failed and successful reloads are %v, want %v, %v and %v", got, good, failed, ok)
			}
		}
		config, err := CertFiles(certFile, keyFile, slog.New(slog.NewJSONHandler(&said, nil)), reg)
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
		metrics(1, 0, 0)
		time.Sleep(time.Hour)
		if err := os.WriteFile(certFile, []byte("half a certifi"), 0o600); err != nil {
			t.Fatal(err)
		}
		serves("old.example")
		if !strings.Contains(said.String(), `"msg":"certificate not reloaded, the old one stays in use"`) {
			t.Errorf("the log says %q", said.String())
		}
		metrics(0, 1, 0)
		certtest.Write(t, dir, "new.example")
		time.Sleep(time.Hour)
		serves("new.example")
		metrics(1, 1, 1)
		time.Sleep(time.Hour)
		if err := os.Remove(keyFile); err != nil {
			t.Fatal(err)
		}
		metrics(0, 2, 1) // also without a new connection
	})
	if _, err := CertFiles(certFile, filepath.Join(dir, "none"), slog.New(slog.DiscardHandler), prometheus.NewRegistry()); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "none") {
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

// TestCertFilesUnreadForAWhile: files that could not be read are read again, although nobody touches them, and are
// reported once.
func TestCertFilesUnreadForAWhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	synctest.Test(t, func(t *testing.T) {
		certtest.Write(t, dir, "old.example")
		var said bytes.Buffer
		config, err := CertFiles(certFile, keyFile, slog.New(slog.NewJSONHandler(&said, nil)), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		serves := func(host string) {
			t.Helper()
			time.Sleep(time.Minute)
			pair, err := config.GetCertificate(&tls.ClientHelloInfo{ServerName: host})
			if err != nil {
				t.Fatal(err)
			}
			if err := pair.Leaf.VerifyHostname(host); err != nil {
				t.Error(err)
			}
		}
		certtest.Write(t, dir, "new.example")
		key, err := os.ReadFile(keyFile)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		write := func(content []byte) { // with the size and the time that the file has
			t.Helper()
			if err := errors.Join(os.WriteFile(keyFile, content, 0o600), os.Chtimes(keyFile, at, at)); err != nil {
				t.Fatal(err)
			}
		}
		write(make([]byte, len(key))) // as if it could not be read
		serves("old.example")
		serves("old.example")
		write(key)
		serves("new.example")
		if n := strings.Count(said.String(), "certificate not reloaded"); n != 1 {
			t.Errorf("reported %d times, want once: %s", n, said.String())
		}
	})
}
