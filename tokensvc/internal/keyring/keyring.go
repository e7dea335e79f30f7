package keyring

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/bearer"
)

// ClockSkew is by how much the clocks of verifiers may differ from the clock of this service.
const ClockSkew = time.Minute

// TokenForm says how tokens name their key.
type TokenForm struct {
	Type       string // "typ" of the token header; empty: none
	Thumbprint bool   // kid is the RFC 7638 thumbprint instead of a UUID
}

// Config says where keys come from and how long they live. If Path is empty, keys are made in memory.
type Config struct {
	Path     string        // PEM file or directory of PEM files; empty: keys are made in memory
	Rotation time.Duration // time after which a new key signs, if keys are made in memory; 0: never
	MaxAge   time.Duration // for which verifiers may cache the published keys
	Lifetime time.Duration // of the tokens that are signed
	Format   TokenForm
	Log      *slog.Logger
	Registry prometheus.Registerer
	Now      func() time.Time
}

// Keyring signs with the key that is in the state [Signing], and publishes all keys that verifiers may need. It is safe
// for concurrent use.
type Keyring struct {
	c       Config
	current atomic.Pointer[snapshot]
	signer  jws.Signer
	gate    chan struct{} // limits signers to the number of cores, in the order of arrival; more would only be slower

	mu   sync.Mutex // guards keys and seen
	keys []*key
	seen string // fingerprint of the key files that were read last
}

// New returns a Keyring with the keys of the files, or with a first key made in memory.
func New(c Config) (*Keyring, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.MaxAge <= 0 || c.Lifetime <= 0 {
		return nil, errors.New("keyring: Config.MaxAge and Config.Lifetime are required")
	}
	signer, err := jws.NewSigner(jwa.RS256)
	if err != nil {
		return nil, fmt.Errorf("RS256 signer: %w", err)
	}
	r := &Keyring{c: c, signer: signer, gate: make(chan struct{}, runtime.GOMAXPROCS(0))}
	if err := r.tick(); err != nil {
		return nil, err
	}
	if c.Registry != nil {
		c.Registry.MustRegister(r.metrics()...)
	}
	return r, nil
}

// lead is how long a key is published before it signs, when all processes have its file.
func (c *Config) lead() time.Duration { return 2 * c.MaxAge }

// tail is how long a key stays published after its last token.
func (r *Keyring) tail() time.Duration { return r.c.Lifetime + ClockSkew }

// generate adds a new key that signs from the given time.
func (r *Keyring) generate(from time.Time) error {
	private, err := rsa.GenerateKey(rand.Reader, minBits)
	if err != nil {
		return fmt.Errorf("make RSA key: %w", err)
	}
	k, err := newKey(private, &private.PublicKey, from, r.c.Format)
	if err != nil {
		return err
	}
	r.keys = append(r.keys, k)
	return nil
}

// Key implements [bearer.KeySet] for the service's own tokens, which are all signed by RS256.
func (r *Keyring) Key(_ context.Context, kid, _ string) (bearer.Key, error) {
	for _, k := range r.current.Load().published {
		if k.id == kid {
			return k.verify, nil
		}
	}
	return nil, bearer.ErrUnknownKey
}

// Run updates the states of keys by the clock, makes scheduled keys and reloads changed files, until ctx ends.
func (r *Keyring) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := r.tick(); err != nil {
				r.c.Log.Error("keys are kept as they were", "error", err)
			}
		}
	}
}

func (r *Keyring) metrics() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tokensvc_keys_published", Help: "Keys in the published key set.",
		}, func() float64 { return float64(len(r.current.Load().published)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tokensvc_signers_busy", Help: "Signatures being made now.",
		}, func() float64 { return float64(len(r.gate)) }),
	}
}
