package httpserver

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/cli"
)

// certCheckInterval is the shortest time between two checks whether the certificate's files have changed.
const certCheckInterval = 5 * time.Second

// The values of the label of the counter of reloads.
const (
	resultOK    = "ok"
	resultError = "error"
)

// CertFiles returns a TLS configuration with a certificate chain and its key in PEM. The files are read again when they
// change. If the new pair cannot be loaded, that is logged and the pair in use is kept. The metrics are those of a file
// that package livefile follows: certificate_reloads_total, and certificate_file_good.
func CertFiles(cert, key string, log *slog.Logger, reg prometheus.Registerer) (*tls.Config, error) {
	c := &certFiles{
		cert: cert, key: key, log: log,
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "certificate_reloads_total", Help: "New versions of the certificate or its key, by result.",
		}, []string{"result"}),
		good: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "certificate_file_good", Help: "1 if the certificate's files are in force, 0 if they are bad and the certificate before stays in force.",
		}),
	}
	if err := c.load(); err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	c.good.Set(1)
	for _, result := range []string{resultOK, resultError} {
		c.reloads.WithLabelValues(result) // shown from the start, so that the first reload is an increase
	}
	reg.MustRegister(c)
	return TLSConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(time.Now()), nil }), nil
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

// certFiles is a certificate that is reloaded when its files change.
type certFiles struct {
	cert, key string
	log       *slog.Logger
	reloads   *prometheus.CounterVec
	good      prometheus.Gauge

	mu      sync.Mutex
	failed  string // why the files could not be loaded when they were last read; empty: they are in force
	pair    *tls.Certificate
	stamp   string // size and time of both files when they were last read
	checked time.Time
}

// load reads the pair. It takes the stamp first, so that the next check sees a change during the read.
func (c *certFiles) load() error {
	c.stamp = fileStamp(c.cert) + fileStamp(c.key)
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("TLS certificate %s with key %s: %w: give a PEM certificate and the key that belongs to it", c.cert, c.key, err)
	}
	c.pair = &pair
	return nil
}

func (c *certFiles) current(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.checked) < certCheckInterval {
		return c.pair
	}
	c.checked = now
	same := fileStamp(c.cert)+fileStamp(c.key) == c.stamp
	if same && c.failed == "" {
		return c.pair
	}
	switch err := c.load(); { // also of files that are the same: a disk or a mount may have failed for a while
	case err == nil:
		c.failed = ""
		c.good.Set(1)
		c.reloads.WithLabelValues(resultOK).Inc()
	case !same || c.failed != err.Error(): // else it was reported
		c.failed = err.Error()
		c.good.Set(0)
		c.reloads.WithLabelValues(resultError).Inc()
		c.log.Warn("certificate not reloaded, the old one stays in use", "error", err)
	}
	return c.pair
}

// Describe implements [prometheus.Collector].
func (c *certFiles) Describe(to chan<- *prometheus.Desc) {
	c.reloads.Describe(to)
	c.good.Describe(to)
}

// Collect implements [prometheus.Collector]. It looks at the files first, because connections may last for days.
func (c *certFiles) Collect(to chan<- prometheus.Metric) {
	c.current(time.Now())
	c.reloads.Collect(to)
	c.good.Collect(to)
}

func fileStamp(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return "missing"
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano(), ";")
}
