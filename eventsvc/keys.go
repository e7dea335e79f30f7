package main

import (
	"context"
	"crypto/rsa"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"tidings.example/shared/bearer"
)

// keys are the issuer's public keys. Where they are published may itself have
// to be found out from the issuer, who may not be up yet: until then nobody can
// be authenticated and the service is not ready.
type keys struct {
	config bearer.JWKSConfig
	issuer string
	found  atomic.Pointer[bearer.JWKS]
}

// newKeys uses the JWKS at the URL or, if that is empty, the one that the
// issuer's metadata names.
func newKeys(issuer string, c bearer.JWKSConfig) (*keys, error) {
	k := &keys{issuer: issuer, config: c}
	if c.URL == "" {
		return k, bearer.CheckAddress(issuer, c.AllowHTTPHosts)
	}
	return k, k.use()
}

func (k *keys) use() error {
	set, err := bearer.NewJWKS(k.config)
	if err == nil {
		k.found.Store(set)
	}
	return err
}

// Run finds the key set and keeps it fresh until ctx ends.
func (k *keys) Run(ctx context.Context) error {
	const first, longest = 250 * time.Millisecond, 15 * time.Second
	for wait := first; k.found.Load() == nil; wait = min(2*wait, longest) {
		url, err := bearer.DiscoverJWKS(ctx, k.issuer, k.config.Client, k.config.AllowHTTPHosts)
		if err == nil {
			k.config.URL = url
			err = k.use()
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
	return k.found.Load().Run(ctx)
}

var errNoKeys = errors.New("the issuer's keys have not been found yet")

// Key finds a public key by its id.
func (k *keys) Key(ctx context.Context, kid string) (*rsa.PublicKey, error) {
	if set := k.found.Load(); set != nil {
		return set.Key(ctx, kid)
	}
	return nil, &bearer.Error{Reason: errNoKeys.Error(), Status: http.StatusServiceUnavailable}
}

// Ready tells whether there are keys to verify tokens with.
func (k *keys) Ready(ctx context.Context) error {
	if set := k.found.Load(); set != nil {
		return set.Ready(ctx)
	}
	return errNoKeys
}
