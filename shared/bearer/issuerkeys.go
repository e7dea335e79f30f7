package bearer

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// IssuerKeysConfig are the settings of [IssuerKeys]. Issuer and Log are required.
type IssuerKeysConfig struct {
	Issuer         string // asked for its metadata if Source says neither URL nor file
	Source         KeySource
	AllowHTTPHosts []string      // hosts beside this machine that may be asked over plain HTTP
	MaxStale       time.Duration // how long the last good keys are used when the issuer does not answer; 0: 24 h
	Log            *slog.Logger
	Registry       prometheus.Registerer
}

// IssuerKeys are the public keys of one issuer, from wherever its [KeySource] says. Where they are published may have to be
// asked from the issuer (RFC 8414), which may not be up yet. Until it answers, its tokens are refused with 503, and it does
// not count as ready. It is safe for concurrent use.
type IssuerKeys struct {
	config JWKSConfig // without the URL, which may have to be found
	issuer string
	found  atomic.Pointer[keeper]
}

// keeper is a key set that is kept fresh.
type keeper interface {
	KeySet
	Run(ctx context.Context) error
	Ready(ctx context.Context) error
}

// NewIssuerKeys returns the keys of an issuer. An error names the part of the source that cannot be used.
func NewIssuerKeys(c IssuerKeysConfig) (*IssuerKeys, error) {
	if err := c.Source.check(c.Issuer); err != nil {
		return nil, err
	}
	k := &IssuerKeys{issuer: c.Issuer}
	if c.Source.JWKSFile != "" {
		file, err := newFileKeys(c.Source.JWKSFile, c.Source.Algorithms, c.Log)
		if err != nil {
			return nil, err
		}
		k.use(file)
		return k, nil
	}
	client, err := c.Source.client()
	if err != nil {
		return nil, err
	}
	k.config = JWKSConfig{
		Client: client, AllowHTTPHosts: c.AllowHTTPHosts, Algorithms: c.Source.Algorithms,
		MaxStale: c.MaxStale, Log: c.Log, Registry: c.Registry,
	}
	if c.Source.JWKSURL == "" {
		return k, checkAddress(c.Issuer, c.AllowHTTPHosts)
	}
	return k, k.useURL(c.Source.JWKSURL)
}

func (k *IssuerKeys) use(keys keeper) { k.found.Store(&keys) }

func (k *IssuerKeys) useURL(url string) error {
	config := k.config
	config.URL = url
	set, err := NewJWKS(config)
	if err == nil {
		k.use(set)
	}
	return err
}

// Run finds the key set, if need be, and keeps it fresh until ctx ends. It always returns nil.
func (k *IssuerKeys) Run(ctx context.Context) error {
	const first, longest = 250 * time.Millisecond, 15 * time.Second
	for wait := first; k.found.Load() == nil; wait = min(2*wait, longest) {
		url, err := DiscoverJWKS(ctx, k.issuer, k.config.Client, k.config.AllowHTTPHosts)
		if err == nil {
			err = k.useURL(url)
		}
		if err == nil {
			break
		}
		k.config.Log.WarnContext(ctx, "the issuer's keys are not found yet", "issuer", k.issuer, "error", err, "again_in", wait)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
	return (*k.found.Load()).Run(ctx)
}

var errNoKeys = errors.New("the issuer's keys have not been found yet")

// Key implements [KeySet].
func (k *IssuerKeys) Key(ctx context.Context, kid string) (Key, error) {
	if set := k.found.Load(); set != nil {
		return (*set).Key(ctx, kid)
	}
	return nil, errNoKeys
}

// Ready returns nil if there are keys to verify tokens with.
func (k *IssuerKeys) Ready(ctx context.Context) error {
	if set := k.found.Load(); set != nil {
		return (*set).Ready(ctx)
	}
	return errNoKeys
}
