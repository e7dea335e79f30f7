package httpserver

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/cli"
	"tidings.example/shared/livefile"
)

// maxCertificate is the largest file of a certificate chain, in bytes.
const maxCertificate = 1 << 20

// CertFiles returns a TLS configuration with a certificate chain and its key in PEM. The files are read again when they
// change, while the file that is returned is followed. If the new pair cannot be used, the pair before stays in force.
func CertFiles(cert, key string, log *slog.Logger, reg prometheus.Registerer) (*tls.Config, *livefile.File, error) {
	var current atomic.Pointer[tls.Certificate]
	file, err := livefile.Open(livefile.Config{
		Path: cert, MaxBytes: maxCertificate, Metric: "certificate", What: "certificate", Log: log, Registry: reg,
		Beside: func() string {
			text, _ := os.ReadFile(key) // Apply returns the error
			return string(text)
		},
		Apply: func([]byte) error {
			pair, err := tls.LoadX509KeyPair(cert, key)
			if err != nil {
				return fmt.Errorf("with the key %s: %w: give a PEM certificate and the key that belongs to it", key, err)
			}
			current.Store(&pair)
			return nil
		},
	})
	if err != nil {
		return nil, nil, cli.Usagef("TLS certificate: %w", err)
	}
	return TLSConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return current.Load(), nil }), file, nil
}

// TLSConfig returns a TLS configuration with the certificate of a function. It allows TLS 1.2 and later, with forward
// secrecy and authenticated encryption only.
func TLSConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{
		GetCertificate: certificate,
		MinVersion:     tls.VersionTLS12,
		CipherSuites: []uint16{ // those of TLS 1.2; the suites of 1.3 are fixed
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}
}
