package bearer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// IssuerKeys are the public keys of one issuer, from wherever its [KeySource] says. Where they are published may have
// to be asked from the issuer (RFC 8414), which may not be up yet. Requests wait for its first answer. From then on, as
// long as it does not answer, its tokens are refused with 503, and it does not count as ready. It is safe for
// concurrent use.
type IssuerKeys struct {
	config  JWKSConfig // without the URL, which may have to be found
	issuer  string
	found   atomic.Pointer[followedKeys]
	asked   chan struct{} // closed when the issuer was asked for the first time
	tell    sync.Once     // closes asked
	waiters chan struct{} // requests that wait for asked
}

// firstWait is how long a request waits for the first answer of an issuer.
const firstWait = time.Second

func newIssuerKeys(issuer string, c JWKSConfig) *IssuerKeys {
	return &IssuerKeys{config: c, issuer: issuer, asked: make(chan struct{}), waiters: make(chan struct{}, maxWaiters)}
}

// followedKeys is a key set that is kept fresh.
type followedKeys interface {
	KeySet
	Run(ctx context.Context) error
	Ready(ctx context.Context) error
}

// NewIssuerKeys returns the keys of an issuer, which is asked for its metadata if the source says neither URL nor file.
// The source sets URL, Client and Algorithms of the configuration, whose Log is required. An error names the part of
// the source that cannot be used.
func NewIssuerKeys(issuer string, source KeySource, c JWKSConfig) (*IssuerKeys, error) {
	if err := source.check(issuer); err != nil {
		return nil, err
	}
	k := newIssuerKeys(issuer, c)
	if source.JWKSFile != "" {
		file, err := newFileKeys(source.JWKSFile, source.Algorithms, c.Log)
		if err != nil {
			return nil, err
		}
		k.use(file)
		return k, nil
	}
	client, err := source.client()
	if err != nil {
		return nil, err
	}
	k.config.Client, k.config.Algorithms = client, source.Algorithms
	if source.JWKSURL == "" {
		return k, CheckAddress(issuer, c.AllowHTTPHosts)
	}
	return k, k.useURL(source.JWKSURL)
}

func (k *IssuerKeys) use(keys followedKeys) { k.found.Store(&keys) }

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
		k.tell.Do(func() { close(k.asked) })
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

// Key implements [KeySet]. It waits for the first answer of the issuer, because the event recorder of client-go does
// not send an event again that was refused with 503, as it would be in the first moments after a start.
func (k *IssuerKeys) Key(ctx context.Context, kid, alg string) (Key, error) {
	if k.found.Load() == nil {
		k.wait(ctx)
	}
	if set := k.found.Load(); set != nil {
		return (*set).Key(ctx, kid, alg)
	}
	return nil, errNoKeys
}

// wait waits until the issuer was asked for the first time, unless too many requests do.
func (k *IssuerKeys) wait(ctx context.Context) {
	select {
	case k.waiters <- struct{}{}:
		defer func() { <-k.waiters }()
	default:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	select {
	case <-k.asked:
	case <-ctx.Done():
	}
}

// Ready returns nil if there are keys to verify tokens with.
func (k *IssuerKeys) Ready(ctx context.Context) error {
	if set := k.found.Load(); set != nil {
		return (*set).Ready(ctx)
	}
	return errNoKeys
}
