// Package localca makes certificates, and the local authority that signs them, for machines without another source of
// certificates. The authority is valid for 10 years and never replaced, because clients have it in their configuration.
package localca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tidings.example/eventsvc/internal/disk"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/safefile"
)

const (
	caLife       = 10 * 365 * 24 * time.Hour
	certLife     = 365 * 24 * time.Hour
	renewBefore  = 30 * 24 * time.Hour
	clockSkew    = 5 * time.Minute // for clients whose clocks are behind
	caCertFile   = "ca.crt"
	caKeyFile    = "ca.key"
	leafCertFile = "tls.crt"
	leafKeyFile  = "tls.key"
)

// TLSConfig returns a TLS configuration with a certificate for the hosts (names and addresses). The certificate is
// valid for a year; a call renews it if less than 30 days are left or if the hosts have changed. All files are kept in
// dir with mode 0600, and are durable when the call returns; ca.crt is what clients have to trust.
func TLSConfig(dir string, hosts []string, now time.Time) (*tls.Config, error) {
	if len(hosts) == 0 {
		return nil, errors.New("self-signed certificate: no host names given")
	}
	leaf, err := loadOrMakeLeaf(dir, hosts, now)
	if err != nil {
		return nil, fmt.Errorf("self-signed certificate: %w", err)
	}
	return httpserver.TLSConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return leaf, nil }), nil
}

// loadOrMakeLeaf loads the certificate, or makes it if it is missing, damaged or not usable: clients know only the
// authority.
func loadOrMakeLeaf(dir string, hosts []string, now time.Time) (*tls.Certificate, error) {
	if err := safefile.MkdirAll(dir); err != nil {
		return nil, err
	}
	ca, err := loadOrMakeCA(dir, now)
	if err != nil {
		return nil, err
	}
	leaf, err := loadPair(filepath.Join(dir, leafCertFile), filepath.Join(dir, leafKeyFile))
	if err == nil && usable(leaf.Leaf, ca.Leaf, hosts, now) {
		return leaf, nil
	}
	made, err := makeLeaf(dir, ca, hosts, now)
	if made != nil && disk.IsFull(err) {
		return made, nil // the next start makes another one; clients trust it by the authority
	}
	return made, err
}

// loadOrMakeCA loads the authority, or makes it if ca.crt is missing, which is written last. It never replaces one.
func loadOrMakeCA(dir string, now time.Time) (*tls.Certificate, error) {
	certFile, keyFile := filepath.Join(dir, caCertFile), filepath.Join(dir, caKeyFile)
	if _, err := os.Stat(certFile); errors.Is(err, fs.ErrNotExist) {
		return makePair(certFile, keyFile, &x509.Certificate{
			Subject:               pkix.Name{CommonName: "local authority " + now.UTC().Format(time.DateOnly)},
			NotBefore:             now.Add(-clockSkew),
			NotAfter:              now.Add(caLife),
			IsCA:                  true,
			BasicConstraintsValid: true,
			MaxPathLenZero:        true,
			KeyUsage:              x509.KeyUsageCertSign,
		}, nil)
	}
	ca, err := loadPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("local authority: %w: restore both files, or delete both to get a new authority that clients must be told about", err)
	}
	if now.After(ca.Leaf.NotAfter) {
		return nil, fmt.Errorf("local authority: %s expired on %s: delete %s and %s to get a new one that clients must be told about",
			certFile, ca.Leaf.NotAfter.Format(time.DateOnly), caCertFile, caKeyFile)
	}
	return ca, nil
}

func loadPair(certFile, keyFile string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{certFile, keyFile} { // copies and restores often have wider modes, and are not synced
		if err := errors.Join(os.Chmod(name, 0o600), safefile.Sync(name)); err != nil {
			return nil, err
		}
	}
	return &pair, safefile.Sync(filepath.Dir(certFile))
}

// usable reports whether the certificate is signed by ca, is for exactly these hosts, and is valid long enough.
func usable(leaf, ca *x509.Certificate, hosts []string, now time.Time) bool {
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	lasts := now.Add(renewBefore).Before(leaf.NotAfter) || leaf.NotAfter.Equal(ca.NotAfter)
	return lasts && now.After(leaf.NotBefore) && now.Before(leaf.NotAfter) && leaf.CheckSignatureFrom(ca) == nil &&
		slices.Equal(normalHosts(names), normalHosts(hosts))
}

// normalHosts returns the hosts sorted, with addresses in canonical form, for comparing.
func normalHosts(hosts []string) []string {
	out := slices.Clone(hosts)
	for i, host := range out {
		if ip := net.ParseIP(host); ip != nil {
			out[i] = ip.String()
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func makeLeaf(dir string, ca *tls.Certificate, hosts []string, now time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: hosts[0]},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(certLife),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if template.NotAfter.After(ca.Leaf.NotAfter) {
		template.NotAfter = ca.Leaf.NotAfter
	}
	for _, host := range normalHosts(hosts) {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return makePair(filepath.Join(dir, leafCertFile), filepath.Join(dir, leafKeyFile), template, ca)
}

// makePair makes a key and a certificate that ca has signed, or that is self-signed if ca is nil. It writes both files,
// the key first, and returns the pair also if that fails.
func makePair(certFile, keyFile string, template *x509.Certificate, ca *tls.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	parent, signer := template, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err == nil {
		err = safefile.Write(keyFile, keyPEM)
	}
	if err == nil {
		err = safefile.Write(certFile, certPEM)
	}
	return &pair, err
}
