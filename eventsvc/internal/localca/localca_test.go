package localca_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidings.example/eventsvc/internal/localca"
)

// leaf is the certificate that a configuration serves, verified for host against the authority at that time.
func leaf(t *testing.T, config *tls.Config, ca []byte, host string, at time.Time) *x509.Certificate {
	t.Helper()
	pair, err := config.GetCertificate(&tls.ClientHelloInfo{ServerName: host})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("the authority is no PEM certificate")
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: at}); err != nil {
		t.Errorf("at %s for %s: %v", at.Format(time.DateOnly), host, err)
	}
	return pair.Leaf
}

// sign returns a configuration with a certificate for the hosts, and the authority's certificate in PEM.
func sign(dir string, hosts []string, at time.Time) (*tls.Config, []byte, error) {
	config, err := localca.TLSConfig(dir, hosts, at)
	if err != nil {
		return nil, nil, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	return config, ca, err
}

func TestSelfSigned(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tls")
	day := 24 * time.Hour
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	renew := func(at time.Time, hosts ...string) (*x509.Certificate, []byte) {
		t.Helper()
		config, ca, err := sign(dir, hosts, at)
		if err != nil {
			t.Fatal(err)
		}
		return leaf(t, config, ca, hosts[0], at), ca
	}
	first, ca := renew(start, "localhost", "127.0.0.1", "::1")
	if err := first.VerifyHostname("127.0.0.1"); err != nil {
		t.Error(err)
	}
	if life := first.NotAfter.Sub(start); life != 365*day {
		t.Errorf("the certificate lives %s, want a year", life)
	}
	for _, step := range []struct {
		name  string
		at    time.Time
		hosts []string
		same  bool
	}{
		{"soon after, hosts in another order and form", start.Add(300 * day), []string{"127.0.0.1", "localhost", "0:0:0:0:0:0:0:1"}, true},
		{"less than 30 days left", start.Add(336 * day), []string{"localhost", "127.0.0.1", "::1"}, false},
		{"expired long ago", start.Add(5 * 365 * day), []string{"localhost"}, false},
		{"near the end of the authority", start.Add(10*365*day - 60*day), []string{"localhost"}, false},
		{"the last days of the authority", start.Add(10*365*day - day), []string{"localhost"}, true},
	} {
		next, nextCA := renew(step.at, step.hosts...)
		if !bytes.Equal(ca, nextCA) {
			t.Errorf("%s: the authority was replaced", step.name)
		}
		if next.Equal(first) != step.same {
			t.Errorf("%s: same certificate is %v, want %v", step.name, !step.same, step.same)
		}
		first = next
	}
	if _, _, err := sign(dir, []string{"localhost"}, start.Add(11*365*day)); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired authority: %v", err)
	}
}

func TestSelfSignedOtherHosts(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	for _, host := range []string{"a.example", "b.example"} {
		config, ca, err := sign(dir, []string{host}, now)
		if err != nil {
			t.Fatal(err)
		}
		leaf(t, config, ca, host, now)
	}
}

func TestSelfSignedNewAuthority(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	for range 2 {
		config, ca, err := sign(dir, []string{"localhost"}, now)
		if err != nil {
			t.Fatal(err)
		}
		leaf(t, config, ca, "localhost", now) // the second time signed by the new authority
		for _, name := range []string{"ca.crt", "ca.key"} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSelfSignedFiles(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	again := func() ([]byte, error) {
		_, ca, err := sign(dir, []string{"localhost"}, now)
		return ca, err
	}
	ca, err := again()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "ca.key"), 0o644); err != nil { //nolint:gosec // that is what is tested
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("cut off"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := again()
	if err != nil || !bytes.Equal(ca, second) {
		t.Fatalf("a damaged certificate: %v; the authority must stay", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Fatalf("files: %v, %v; want the four and no leftovers", entries, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", entry.Name(), info.Mode())
		}
	}
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := again(); err == nil || !strings.Contains(err.Error(), "delete both") {
		t.Errorf("an authority without its key: %v, want what to do", err)
	}
}
