// Package certtest makes certificates and keys for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Write writes a certificate for a host or address into tls.crt of a directory, its key into tls.key, and the
// certificate of its authority, which is itself, into ca.crt. It is valid for a day.
func Write(t testing.TB, dir, host string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(24 * time.Hour), BasicConstraintsValid: true, IsCA: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: cert}, "ca.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// made are the RSA keys of this process; given is how many of them each test has got.
var (
	mu    sync.Mutex
	made  []*rsa.PrivateKey
	given = map[string]int{}
)

// RSA returns an RSA key of 2048 bits that this test, with all its subtests, does not have yet. Another test may have
// the same key: to make one takes longer than most tests.
func RSA(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	test, _, _ := strings.Cut(t.Name(), "/")
	n := given[test]
	given[test]++
	if n == len(made) {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, key)
	}
	return made[n]
}
