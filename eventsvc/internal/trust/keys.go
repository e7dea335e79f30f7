package trust

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"tidings.example/shared/bearer"
)

// keys are the public keys of one issuer. Where they are published may have to be
// asked from the issuer (RFC 8414), which may not be up yet. Until it answers, its
// tokens are refused with 503 and it does not count as ready.
type keys struct {
	config bearer.JWKSConfig
	issuer string
	found  atomic.Pointer[bearer.JWKS]
}

// newKeys uses the JWKS at c.URL. If that is empty, Run asks the issuer's metadata
// where it is.
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

// Run finds the key set, if need be, and keeps it fresh until ctx ends.
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

// Key returns the public key with an id. It implements the key source of [bearer.Verifier].
func (k *keys) Key(ctx context.Context, kid string) (bearer.Key, error) {
	if set := k.found.Load(); set != nil {
		return set.Key(ctx, kid)
	}
	return nil, &bearer.Error{Reason: errNoKeys.Error(), Status: http.StatusServiceUnavailable}
}

// Ready returns nil if there are keys to verify tokens with.
func (k *keys) Ready(ctx context.Context) error {
	if set := k.found.Load(); set != nil {
		return set.Ready(ctx)
	}
	return errNoKeys
}
