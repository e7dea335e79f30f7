// Package service holds the life of a process that both services share: settings, listeners, TLS, probes, metrics,
// logs and the graceful stop.
package service

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
)

// Parse fills cli.
func Parse(name, prefix, description string, cli any, args []string, stdout, stderr io.Writer) (*kong.Context, error) {
	panic("not yet")
}

// ExitCode is 0, 1 or 2.
func ExitCode(err error) int { panic("not yet") }

// UsageError is a usage error.
type UsageError struct{ Err error }

// Error is the text.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Logger makes the logger.
func Logger(w *os.File, format, level string) (*slog.Logger, error) { panic("not yet") }

// Endpoint is one listener.
type Endpoint struct {
	Setting   string
	Addr      string
	Handler   http.Handler
	TLS       *tls.Config
	Streaming bool
	OnListen  func(net.Addr)
}

// Config is what Run needs.
type Config struct {
	Name                   string
	Log                    *slog.Logger
	Endpoints              []Endpoint
	Tasks                  []func(ctx context.Context) error
	Health                 *Health
	Drain                  func(context.Context)
	StopDelay, StopTimeout time.Duration
}

// Run serves until ctx ends.
func Run(ctx context.Context, c Config) error { panic("not yet") }

// Signals ends the context on SIGINT or SIGTERM.
func Signals(ctx context.Context) (context.Context, context.CancelFunc) { panic("not yet") }

// Health is a set of named checks.
type Health struct{}

// Add adds a readiness check.
func (h *Health) Add(name string, check func(context.Context) error) {}

// AddLive adds a liveness check.
func (h *Health) AddLive(name string, check func(context.Context) error) {}

// Handler serves /livez or /readyz.
func (h *Health) Handler(path string) http.Handler { panic("not yet") }

// Admin serves probes and metrics.
func Admin(h *Health, reg *prometheus.Registry) http.Handler { panic("not yet") }

// NewRegistry makes a registry.
func NewRegistry(name string) *prometheus.Registry { panic("not yet") }

// Access logs and measures.
func Access(log *slog.Logger, reg *prometheus.Registry, next http.Handler) http.Handler {
	panic("not yet")
}

// Healthcheck asks a readiness probe.
func Healthcheck(ctx context.Context, url string, wait time.Duration) error { panic("not yet") }

// SelfSigned makes a local CA and a certificate.
func SelfSigned(dir string, hosts []string, now time.Time) (*tls.Config, []byte, error) {
	panic("not yet")
}

// CertFiles loads a certificate.
func CertFiles(cert, key string) (*tls.Config, error) { panic("not yet") }
